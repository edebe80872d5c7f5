"""Compactions as data: what was done, what would be, and what was taken back."""

from collections.abc import Sequence
from typing import Protocol

from lamella.core.ledger.outlook import Outlook
from lamella.core.log.receipt import Certificate, Receipt
from lamella.core.prompt.envelope import TokenCounts
from lamella.views.amounts import plain_if_known


class PlanShape(Protocol):
    """What has to be known of a planned compaction to show it."""

    @property
    def receipt(self) -> Receipt | None: ...
    @property
    def before(self) -> TokenCounts: ...
    @property
    def after(self) -> TokenCounts | None: ...
    @property
    def outlook(self) -> Outlook | None: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


def view_receipt(receipt: Receipt) -> dict[str, object]:
    """A receipt, in the names of docs/replay.md."""
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
        "certificate": receipt.certificate and view_certificate(receipt.certificate),
        **({"since": receipt.since} if receipt.since else {}),
    }


def view_certificate(certificate: Certificate) -> dict[str, object]:
    """Of exact words and wishes in what was touched, how many stand, are one recall away, and are gone."""
    names = ("stand", "recallable", "gone")
    counts = {"words": certificate.words, "rules": certificate.rules}
    return {kind: dict(zip(names, three, strict=True)) for kind, three in counts.items()}


def view_plan(conversation: str, plan: PlanShape, *, committed: bool) -> dict[str, object]:
    """A compaction that was planned, and whether it was done: its receipt, its counts, and what it brings."""
    outlook = plan.outlook
    return {
        "conversation": conversation,
        "committed": committed,
        "receipt": plan.receipt and view_receipt(plan.receipt),
        "tokens": {"before": view_tokens(plan.before), "after": plan.after and view_tokens(plan.after)},
        "outlook": outlook
        and {
            "moved": outlook.moved,
            "cost_now": plain_if_known(outlook.cost_now),
            "saved_per_turn": plain_if_known(outlook.saved_per_turn),
        },
        "warnings": list(plan.warnings),
    }


def view_undo(conversation: str, undone: Sequence[str]) -> dict[str, object]:
    """The receipts that an undo voided, oldest first."""
    return {"conversation": conversation, "undone": list(undone)}


def view_tokens(counts: TokenCounts) -> dict[str, object]:
    """What a request weighs, and what it may."""
    return {"total": counts.total, "by_layer": dict(counts.by_layer), "limit": counts.limit}
