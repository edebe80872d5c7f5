"""JSON bodies of compactions (done, planned and undone), of recall, the memory and the user rules."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, convert
from msgspec.structs import asdict

from lamella.core.ledger.entry import CompactionCostEstimate
from lamella.core.log.receipts import CompactionCertificate, CompactionReceipt
from lamella.core.prompt.envelope import PromptTokenCounts
from lamella.core.search.index import Passage
from lamella.core.search.recall import RecalledMessage, RecallHit
from lamella.ports import ConversationListItem, Fact, Rule
from lamella.schemas.body import ConversationJsonBase, Count, ErrorDetailJson, JsonBody, Moment, Money, VersionedBody
from lamella.schemas.formatting import format_decimal_or_none

if TYPE_CHECKING:
    from lamella.conversation.compaction import CompactionProposal


class TokenCountsJson(JsonBody, frozen=True, kw_only=True):
    """The token counts of a request by layer, and its limit."""

    total: Count
    by_layer: Mapping[str, int]
    limit: int


def token_counts_to_json(counts: PromptTokenCounts) -> TokenCountsJson:
    """Return the token counts of a request, and its limit."""
    return TokenCountsJson(total=counts.total, by_layer=counts.by_layer, limit=counts.limit)


# Receipts.


class StepJson(JsonBody, frozen=True, kw_only=True):
    """A step that removed something."""

    name: str
    removed: Annotated[Sequence[str], Meta(description="Ids of the attachments or messages that it removed.")]
    tokens_before: Count
    tokens_after: Count


class SkippedStepJson(JsonBody, frozen=True, kw_only=True):
    """A step that was skipped, and why."""

    name: str
    why: str


class CertificateCountsJson(JsonBody, frozen=True, kw_only=True):
    """The number of texts still in the prompt, recallable, and gone."""

    stand: Annotated[int, Meta(ge=0, description="Still in the prompt.")]
    recallable: Annotated[int, Meta(ge=0, description="Not in the prompt, but recall finds them.")]
    gone: Count


class CertificateJson(JsonBody, frozen=True, kw_only=True):
    """Counts for the exact texts and the user rules in the messages that a compaction changed."""

    words: Annotated[CertificateCountsJson, Meta(description="Names, numbers and paths.")]
    rules: CertificateCountsJson


class ReceiptJson(JsonBody, frozen=True, kw_only=True):
    """The receipt of a compaction: what it removed, step by step."""

    id: str
    parent: Annotated[str, Meta(description="The message after which it was applied.")]
    steps: Sequence[StepJson]
    skipped: Sequence[SkippedStepJson]
    tokens_before: Count
    tokens_after: Count
    target: Annotated[int, Meta(description="The size in tokens that was aimed for.")]
    automatic: Annotated[bool, Meta(description="Whether Lamella compacted by itself.")]
    certificate: CertificateJson | None
    since: Annotated[str, Meta(description="Nothing before this message changed.")] | UnsetType = UNSET


def receipt_to_json(receipt: CompactionReceipt) -> ReceiptJson:
    """Return a compaction receipt."""
    return ReceiptJson(
        id=receipt.id,
        parent=receipt.parent,
        steps=[
            StepJson(
                name=step.name.value,
                removed=step.removed,
                tokens_before=step.tokens_before,
                tokens_after=step.tokens_after,
            )
            for step in receipt.steps
        ],
        skipped=[SkippedStepJson(name=skipped.name.value, why=skipped.why) for skipped in receipt.skipped],
        tokens_before=receipt.tokens_before,
        tokens_after=receipt.tokens_after,
        target=receipt.target,
        automatic=receipt.automatic,
        certificate=None if receipt.certificate is None else _certificate_to_json(receipt.certificate),
        since=receipt.since_message or UNSET,
    )


def receipt_to_json_or_none(receipt: CompactionReceipt | None) -> ReceiptJson | None:
    """Return a compaction receipt, or None if there was no compaction."""
    return None if receipt is None else receipt_to_json(receipt)


def _certificate_to_json(certificate: CompactionCertificate) -> CertificateJson:
    words, rules = (
        CertificateCountsJson(stand=stand, recallable=recallable, gone=gone)
        for stand, recallable, gone in (certificate.exact_strings, certificate.rules)
    )
    return CertificateJson(words=words, rules=rules)


class ReceiptListJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The compactions in force, oldest first."""

    receipts: Sequence[ReceiptJson]


def receipts_to_json(conversation_key: str, receipts: Iterable[CompactionReceipt]) -> ReceiptListJson:
    """Return the compactions in force, oldest first."""
    return ReceiptListJson(conversation=conversation_key, receipts=[receipt_to_json(one) for one in receipts])


# Plans and undos.


class PlannedCountsJson(JsonBody, frozen=True, kw_only=True):
    """The token counts of the next request without and with a compaction."""

    before: TokenCountsJson
    after: TokenCountsJson | None


class CostEstimateJson(JsonBody, frozen=True, kw_only=True):
    """The cost of a compaction now, and its later savings."""

    moved: Annotated[int, Meta(description="Cached tokens that must be sent again.")]
    cost_now: Money
    saved_per_turn: Money


class PlanJson(JsonBody, frozen=True, kw_only=True):
    """A compaction plan, and whether it was applied; the receipt is null if there is nothing to remove."""

    conversation: str
    committed: bool
    receipt: ReceiptJson | None
    tokens: PlannedCountsJson
    outlook: CostEstimateJson | None
    warnings: Sequence[str]


def plan_to_json(conversation_key: str, plan: "CompactionProposal", *, committed: bool) -> PlanJson:
    """Return a compaction plan and whether it was applied: receipt, token counts and cost estimate."""
    after = None if plan.after is None else token_counts_to_json(plan.after)
    return PlanJson(
        conversation=conversation_key,
        committed=committed,
        receipt=receipt_to_json_or_none(plan.receipt),
        tokens=PlannedCountsJson(before=token_counts_to_json(plan.before), after=after),
        outlook=None if plan.cost_estimate is None else _cost_estimate_to_json(plan.cost_estimate),
        warnings=plan.warnings,
    )


def _cost_estimate_to_json(estimate: CompactionCostEstimate) -> CostEstimateJson:
    return CostEstimateJson(
        moved=estimate.changed_tokens,
        cost_now=format_decimal_or_none(estimate.cost_now),
        saved_per_turn=format_decimal_or_none(estimate.saved_per_turn),
    )


class UndoResultJson(JsonBody, frozen=True, kw_only=True):
    """The compactions that were undone, by receipt, oldest first."""

    conversation: str
    undone: Sequence[str]


# Recall.


class RecalledMessageJson(JsonBody, frozen=True, kw_only=True):
    """A message next to a hit."""

    role: str
    turn: int
    message: str
    text: str


class RecallHitJson(JsonBody, frozen=True, kw_only=True):
    """A message, an attachment or a tool result: its whole text, or the sentences that fit the query best."""

    text: str
    role: str
    turn: Annotated[int, Meta(ge=0, description="The turn that it came with.")]
    at: Annotated[Moment | None, Meta(description="When it was written.")]
    message: Annotated[str | None, Meta(description="The message that it is or came with.")]
    id: str
    title: str
    place: str
    score: float
    excerpt: str
    whole: Annotated[bool, Meta(description="Whether `text` is the whole original.")]
    characters: Annotated[int, Meta(ge=0, description="The length of the original.")]
    before: Annotated[RecalledMessageJson | None, Meta(description="The message before it, if there was room for it.")]
    after: Annotated[RecalledMessageJson | None, Meta(description="The message after it, if there was room for it.")]


class RecallJson(JsonBody, frozen=True, kw_only=True):
    """Texts that left the prompt and match the query, best first; none if nothing fits."""

    conversation: str
    query: str
    hits: Sequence[RecallHitJson]


class ChatRecallHitJson(RecallHitJson, frozen=True, kw_only=True):
    """A text that recall found, with its conversation."""

    conversation: str
    name: str
    chat_title: str


class RecallEverywhereJson(VersionedBody, frozen=True, kw_only=True):
    """Texts of all conversations that match the query, best first."""

    query: str
    hits: Sequence[ChatRecallHitJson]
    error: Annotated[ErrorDetailJson, Meta(description="Why a conversation was not searched.")] | UnsetType = UNSET


def recall_to_json(conversation_key: str, query: str, hits: Iterable[RecallHit], *, whole: bool = False) -> RecallJson:
    """Return the recalled passages that match a query, best first; with ``whole`` their whole originals."""
    return RecallJson(conversation=conversation_key, query=query, hits=[_hit_to_json(one, whole) for one in hits])


def recall_everywhere_to_json(
    query: str, hits: Iterable[tuple[ConversationListItem, RecallHit]], *, whole: bool = False
) -> RecallEverywhereJson:
    """Return matching passages of all conversations, best first, each with its conversation."""
    listed = [
        ChatRecallHitJson(
            conversation=chat.conversation,
            name=chat.name,
            chat_title=chat.title,
            **{name: getattr(body, name) for name in body.__struct_fields__},
        )
        for chat, body in ((chat, _hit_to_json(one, whole)) for chat, one in hits)
    ]
    return RecallEverywhereJson(query=query, hits=listed)


def _hit_to_json(hit: RecallHit, whole: bool) -> RecallHitJson:  # noqa: FBT001 - private
    passage = hit.passage
    return RecallHitJson(
        text=passage.text if whole else hit.text,
        role=passage.role,
        turn=_turn_number(passage),
        at=hit.at,
        message=passage.message or None,
        id=passage.id,
        title=passage.title,
        place=passage.place,
        score=hit.score,
        excerpt=hit.excerpt,
        whole=whole or hit.is_whole,
        characters=len(passage.text),
        before=_recalled_message_to_json(hit.before),
        after=_recalled_message_to_json(hit.after),
    )


def _recalled_message_to_json(message: RecalledMessage | None) -> RecalledMessageJson | None:
    if message is None:
        return None
    passage = message.passage
    return RecalledMessageJson(
        role=passage.role, turn=_turn_number(passage), message=passage.message, text=message.text
    )


def _turn_number(passage: Passage) -> int:
    """Return the number of the turn in a place such as ``turn 3``."""
    return int(passage.place.rpartition(" ")[2])


# User rules.


class RuleJson(JsonBody, frozen=True, kw_only=True):
    """A user rule and the message it came with."""

    id: str
    text: str
    message: Annotated[str | None, Meta(description="Id of the message; null until that is sent.")]
    turn: int
    by: Annotated[Literal["found", "user"], Meta(description="Whether it was found in a message or added by the user.")]


class RuleListJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The active user rules, newest last."""

    rules: Sequence[RuleJson]


class AddedRuleJson(RuleListJson, frozen=True, kw_only=True):
    """The active user rules, and the one that was added."""

    added: RuleJson


class RemovedRuleJson(RuleListJson, frozen=True, kw_only=True):
    """The remaining user rules, and the one that was removed."""

    removed: RuleJson


def rules_to_json(conversation_key: str, rules: Iterable[Rule]) -> RuleListJson:
    """Return the active user rules of a conversation, newest last."""
    return RuleListJson(conversation=conversation_key, rules=[_rule_to_json(one) for one in rules])


def added_rule_to_json(conversation_key: str, rules: Iterable[Rule], added: Rule) -> AddedRuleJson:
    """Return the active user rules, and the one that was added."""
    return AddedRuleJson(**asdict(rules_to_json(conversation_key, rules)), added=_rule_to_json(added))


def removed_rule_to_json(conversation_key: str, rules: Iterable[Rule], removed: Rule) -> RemovedRuleJson:
    """Return the remaining user rules, and the one that was removed."""
    return RemovedRuleJson(**asdict(rules_to_json(conversation_key, rules)), removed=_rule_to_json(removed))


def _rule_to_json(rule: Rule) -> RuleJson:
    by = convert(rule.origin, Literal["found", "user"])
    return RuleJson(id=rule.id, text=rule.text, message=rule.message or None, turn=rule.turn, by=by)


# The memory.


class FactJson(JsonBody, frozen=True, kw_only=True):
    """A line of the memory."""

    id: str
    kind: str
    text: str
    chat: Annotated[str | None, Meta(description="Key of the conversation that it is about.")]


class AddedFactJson(FactJson, frozen=True, kw_only=True):
    """A line of the memory that was added; ``new`` if it was not there before."""

    new: bool


class RemovedFactJson(FactJson, frozen=True, kw_only=True):
    """A line that was removed from the memory."""

    removed: bool = True


class NumberedFactJson(FactJson, frozen=True, kw_only=True):
    """A line of the memory, with the number that requests may use for it."""

    number: int


class MemoryJson(VersionedBody, frozen=True, kw_only=True):
    """All lines of the memory."""

    folder: Annotated[str, Meta(description="Folder of the memory; empty over HTTP.")]
    facts: Sequence[NumberedFactJson]


class ConversationMemoryJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The memory in the prompt of a conversation; empty if there is none."""

    text: str


def memory_to_json(folder: str, facts: Iterable[Fact]) -> MemoryJson:
    """Return the lines of the memory in order, each with the number that commands accept."""
    listed = [
        NumberedFactJson(**asdict(fact_to_json(fact)), number=number) for number, fact in enumerate(facts, start=1)
    ]
    return MemoryJson(folder=folder, facts=listed)


def fact_to_json(fact: Fact) -> FactJson:
    """Return one line of the memory."""
    return FactJson(id=fact.id, kind=fact.kind.value, text=fact.text, chat=fact.conversation_key or None)


def added_fact_to_json(fact: Fact, *, is_new: bool) -> AddedFactJson:
    """Return a line that was added to the memory."""
    return AddedFactJson(**asdict(fact_to_json(fact)), new=is_new)


def removed_fact_to_json(fact: Fact) -> RemovedFactJson:
    """Return a line that was removed from the memory."""
    return RemovedFactJson(**asdict(fact_to_json(fact)))
