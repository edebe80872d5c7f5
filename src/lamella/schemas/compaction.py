"""JSON bodies of compactions (done, planned and undone), of recall, the memory and the user rules."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from lamella.core.ledger.entry import CostEstimate
from lamella.core.log.receipts import CompactionCertificate, CompactionReceipt
from lamella.core.prompt.envelope import PromptTokenCounts
from lamella.core.search.search import RecallHit
from lamella.ports import ConversationSummary, Fact, Rule
from lamella.schemas.formatting import format_decimal_or_none


class PlanShape(Protocol):
    """The properties of a planned compaction that the JSON body needs."""

    @property
    def receipt(self) -> CompactionReceipt | None: ...
    @property
    def before(self) -> PromptTokenCounts: ...
    @property
    def after(self) -> PromptTokenCounts | None: ...
    @property
    def cost_estimate(self) -> CostEstimate | None: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


def receipt_to_json(receipt: CompactionReceipt) -> dict[str, object]:
    """Return a compaction receipt with the field names of docs/reference/json-output.md."""
    return {
        "id": receipt.id,
        "parent": receipt.parent,
        "steps": [
            {
                "name": step.name.value,
                "removed": list(step.removed),
                "tokens_before": step.tokens_before,
                "tokens_after": step.tokens_after,
            }
            for step in receipt.steps
        ],
        "skipped": [{"name": skipped.name.value, "why": skipped.why} for skipped in receipt.skipped],
        "tokens_before": receipt.tokens_before,
        "tokens_after": receipt.tokens_after,
        "target": receipt.target,
        "automatic": receipt.automatic,
        "certificate": receipt.certificate and certificate_to_json(receipt.certificate),
        **({"since": receipt.since_message} if receipt.since_message else {}),
    }


def certificate_to_json(certificate: CompactionCertificate) -> dict[str, object]:
    """Return counts for the exact texts and the user rules in the messages that a compaction changed.

    For each: how many are still in the prompt, how many recall can find, and how many are gone.
    """
    names = ("stand", "recallable", "gone")
    counts = {"words": certificate.exact_strings, "rules": certificate.rules}
    return {kind: dict(zip(names, three, strict=True)) for kind, three in counts.items()}


def plan_to_json(conversation_key: str, plan: PlanShape, *, committed: bool) -> dict[str, object]:
    """Return a compaction plan and whether it was applied: receipt, token counts and cost estimate."""
    outlook = plan.cost_estimate
    return {
        "conversation": conversation_key,
        "committed": committed,
        "receipt": plan.receipt and receipt_to_json(plan.receipt),
        "tokens": {"before": tokens_to_json(plan.before), "after": plan.after and tokens_to_json(plan.after)},
        "outlook": outlook
        and {
            "moved": outlook.changed_tokens,
            "cost_now": format_decimal_or_none(outlook.cost_now),
            "saved_per_turn": format_decimal_or_none(outlook.saved_per_turn),
        },
        "warnings": list(plan.warnings),
    }


def undo_to_json(conversation_key: str, undone: Sequence[str]) -> dict[str, object]:
    """Return the receipts that an undo voided, oldest first."""
    return {"conversation": conversation_key, "undone": list(undone)}


def tokens_to_json(counts: PromptTokenCounts) -> dict[str, object]:
    """Return the token counts of a request, and its limit."""
    return {"total": counts.total, "by_layer": dict(counts.by_layer), "limit": counts.limit}


# Recall, the memory and the user rules.


def recall_to_json(conversation_key: str, query: str, hits: Sequence[RecallHit]) -> dict[str, object]:
    """Return the recalled passages that match a query, best first."""
    return {"conversation": conversation_key, "query": query, "found": [_hit_to_json(one) for one in hits]}


def recall_hits_to_json(query: str, hits: Iterable[tuple[ConversationSummary, RecallHit]]) -> dict[str, object]:
    """Return matching passages of all conversations, best first, each with its conversation."""
    found = [
        {"conversation": chat.conversation, "name": chat.name, "chat_title": chat.title, **_hit_to_json(one)}
        for chat, one in hits
    ]
    return {"lamella": 1, "query": query, "found": found}


def _hit_to_json(hit: RecallHit) -> dict[str, object]:
    passage = hit.passage
    return {
        "place": passage.place,
        "at": hit.at,
        "role": passage.role,
        "id": passage.id,
        "message": passage.message or None,
        "title": passage.title,
        "score": hit.score,
        "excerpt": hit.excerpt,
        "text": passage.text,
    }


def rules_to_json(conversation_key: str, rules: Sequence[Rule]) -> dict[str, object]:
    """Return the active user rules of a conversation, newest last."""
    return {"lamella": 1, "conversation": conversation_key, "rules": [rule_to_json(one) for one in rules]}


def rule_to_json(rule: Rule) -> dict[str, object]:
    """Return one user rule; its message is None until the message is sent."""
    return {
        "id": rule.id,
        "text": rule.text,
        "message": rule.message or None,
        "turn": rule.turn,
        "by": rule.origin,
    }


def memory_to_json(folder: str, facts: Sequence[Fact]) -> dict[str, object]:
    """Return the lines of the memory in order, each with the number that commands accept."""
    listed = [fact_to_json(fact, number=number) for number, fact in enumerate(facts, start=1)]
    return {"lamella": 1, "folder": folder, "facts": listed}


def fact_to_json(fact: Fact, **more: object) -> dict[str, object]:
    """Return one line of the memory, with ``more`` fields."""
    return {"id": fact.id, "kind": fact.kind.value, "text": fact.text, "chat": fact.chat or None, **more}
