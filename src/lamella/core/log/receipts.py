"""The compaction receipt: a record of a compaction that can be shown, applied again and undone."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from lamella.core.text.content import canonical_json, short_hash
from lamella.core.values import repr_without


class CompactionStepName(StrEnum):
    """The compaction steps by the names that receipts use."""

    CHITCHAT = "chitchat"
    HANDLE = "handle"
    PREVIEW = "preview"
    TOOL_RESULTS = "tool_results"
    OLDEST_STAGES = "oldest_stages"
    REPLIES = "replies"
    SUMMARY = "summary"
    RECENT_STAGES = "recent_stages"
    # Puts turns without their replies into the history digest.
    DIGEST = "digest"
    # Shortens the last reply to its head and tail.
    LAST_REPLY = "last_reply"
    EXPENDABLE = "expendable"
    # In receipts up to version 2: keeps the rules that the user stated in removed messages, as the last step.
    RULES = "rules"


class ReplyInPrompt(Struct, frozen=True, kw_only=True):
    """A reply of the model that compaction may shorten: its question, its text, and the tokens that it takes."""

    id: str
    turn: int
    question: str
    text: str
    tokens: int


STEP_ORDER: tuple[CompactionStepName, ...] = tuple(
    name for name in CompactionStepName if name is not CompactionStepName.RULES
)
# The version of the rules by which a receipt is applied. In version 1 every handle was a block of its own, and no reply
# was removed without its question. In version 2 there was no history digest, and sentences found in removed messages
# went to a block of rules. Old receipts are applied by their own rules, so that the same bytes are sent again.
CHAIN_VERSION = 3
# Message ids are hexadecimal, so the id of stage data never equals one.
_STAGE_PREFIX = "stage:"


def stage_data_id(stage: str, attempt: int) -> str:
    """Return the id that receipts use for the data of a stage, as approved in this attempt."""
    return f"{_STAGE_PREFIX}{stage}:{attempt}"


def is_stage_data_id(removed_id: str) -> bool:
    """Return whether an id in a receipt names the data of a stage."""
    return removed_id.startswith(_STAGE_PREFIX)


class CompactionStep(Struct, frozen=True, kw_only=True):
    """The effect of one compaction step: the removed messages or artifacts, and the placeholder, if any.

    ``text`` is the placeholder block and ``content`` its text without the frame. ``outlines`` are, in the order of
    ``removed`` and if they were recorded, the texts that are left: of a reply its outline, of a question the sentences
    that stay in the digest. The token counts are those of the whole request before and after the step.
    """

    name: CompactionStepName
    removed: tuple[str, ...]
    text: str | None = None
    content: str = ""
    outlines: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0

    def __repr__(self) -> str:
        return repr_without(self, without=("text", "content", "outlines"))


class SkippedStep(Struct, frozen=True, kw_only=True):
    """A step that could have run and did not, and why."""

    name: CompactionStepName
    why: str


class CompactionCertificate(NamedTuple):
    """Counts of exact tokens and user rules in the compacted text: still in the prompt, recallable, or lost."""

    exact_strings: tuple[int, int, int] = (0, 0, 0)
    rules: tuple[int, int, int] = (0, 0, 0)

    @property
    def lost_count(self) -> int:
        return self.exact_strings[2] + self.rules[2]


class CompactionReceipt(Struct, frozen=True, kw_only=True):
    """The recorded result of a compaction: its steps in order. The log still has everything that it removed.

    - ``parent``: the message after which the compaction was committed.
    - ``steps``: if empty, the compaction only folded attachments out of messages.
    - ``chain_version``: the version of the rules by which the receipt is applied.
    - ``certificate``: what became of the exact tokens and rules in the compacted text.
    - ``target``: the token count that attachments, tool results and replies were reduced to.
    - ``soft_target``: the token count down to which user messages were removed; 0 if it is the same as ``target``.
    - ``since_message``: if set, nothing before this message changed. Then nothing was folded and no question was
      removed.
    - ``clears_in_place``: the compaction only replaces tool results by handles where they are, because reading them has
      cost as much as removing them. Nothing was folded, and every other message stays as it was sent.
    - ``why``: an explanation for the user.
    """

    id: str
    parent: str
    steps: tuple[CompactionStep, ...]
    skipped: tuple[SkippedStep, ...] = ()
    tokens_before: int
    tokens_after: int
    target: int
    automatic: bool = True
    chain_version: int = 1
    certificate: CompactionCertificate | None = None
    since_message: str = ""
    soft_target: int = 0
    clears_in_place: bool = False
    why: str = ""


def find_first_voided_index(receipt_ids: Sequence[str], receipt_id: str | None) -> int | None:
    """Return the index of the first compaction that an undo voids, or None if there is nothing to undo.

    It is the one named ``receipt_id``, by default the last. All later ones are void, too, because they were computed
    from its result.
    """
    if receipt_id is None:
        return len(receipt_ids) - 1 if receipt_ids else None
    return receipt_ids.index(receipt_id) if receipt_id in receipt_ids else None


def make_receipt(
    conversation_key: str,
    *,
    parent: str,
    steps: tuple[CompactionStep, ...],
    skipped: tuple[SkippedStep, ...],
    tokens: tuple[int, int],
    target: int,
    automatic: bool,
    chain_version: int = CHAIN_VERSION,
    certificate: CompactionCertificate | None = None,
    since_message: str = "",
    soft_target: int = 0,
) -> CompactionReceipt:
    """Build a receipt whose id is derived from its effect and its position."""
    cuts = [[step.name, list(step.removed), step.text or "", *_excerpts(step)] for step in steps]
    # ``since`` is appended only if set, so that the ids of older receipts, which had none, stay the same.
    parts = [conversation_key, parent, cuts, list(tokens), target, *([since_message] if since_message else [])]
    return CompactionReceipt(
        id=short_hash(canonical_json(parts)),
        parent=parent,
        steps=steps,
        skipped=skipped,
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        target=target,
        automatic=automatic,
        chain_version=chain_version,
        certificate=certificate,
        since_message=since_message,
        soft_target=soft_target,
    )


def _excerpts(step: CompactionStep) -> list[list[str]]:
    # Outlines of replies follow from the replies. Shortened last replies and excerpts of messages do not.
    return [list(step.outlines)] if step.outlines and step.name is not CompactionStepName.REPLIES else []
