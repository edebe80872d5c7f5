"""The ledger as one JSON object, in the names of docs/ledger.md."""

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal

from lamella.core.log.call import Call
from lamella.faces.cli.ledger_pages import Page, Sums, find_unexplained, sum_up
from lamella.faces.cli.totals import plain

_SHARE_DIGITS = 6
_SECOND_DIGITS = 3


def ledger_body(conversation: str, pages: Sequence[Page]) -> dict[str, object]:
    """Every turn with its calls, and the sums."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "turns": [page_body(page) for page in pages],
        "totals": sums_body(sum_up(pages), turns=len(pages)),
        "unexplained": find_unexplained(pages),
    }


def page_body(page: Page) -> dict[str, object]:
    """One turn; ``calls`` is empty where no model was called."""
    return {
        "turn": page.number,
        "message": page.told.message.id,
        "at": page.told.message.at,
        "standing": page.standing,
        "calls": [call_body(call) for call in page.calls],
    }


def call_body(call: Call) -> dict[str, object]:
    """One model call; what nobody knows is null."""
    verdict, cost = call.verdict, call.cost
    return {
        "model": call.model,
        "verdict": {
            "outcome": verdict.outcome.value,
            "cause": verdict.movement.cause.value,
            "segment": verdict.movement.segment,
            "ours": verdict.ours,
            "says": str(verdict),
        },
        "predicted": None if call.predicted is None else asdict(call.predicted),
        "reported": asdict(call.usage),
        "by_layer": dict(call.by_layer),
        "billed": _money(call.billed),
        "cost": cost
        and {
            "currency": "USD",
            "amount": plain(cost.amount),
            "naive": plain(cost.naive),
            "limit": plain(cost.limit),
        },
        "seconds": asdict(call.timing),
        "stop": call.stop,
        "id": call.id,
        "diagnosis": None if call.diagnosis is None else asdict(call.diagnosis),
        "retries": call.retries,
    }


def sums_body(sums: Sums, *, turns: int) -> dict[str, object]:
    """What the calls add up to."""
    share = sums.read_share
    return {
        "turns": turns,
        "calls": sums.calls,
        "predicted": sums.predicted,
        "read": sums.read,
        "write": sums.write,
        "plain": sums.plain,
        "output": sums.output,
        "cache_read_share": None if share is None else round(share, _SHARE_DIGITS),
        "billed": _money(sums.billed),
        "cost": _money(sums.amount),
        "naive_cost": _money(sums.naive),
        "limit_cost": _money(sums.limit),
        "unpriced_calls": sums.unpriced,
        "seconds": None if sums.seconds is None else round(sums.seconds, _SECOND_DIGITS),
        "retries": sums.retries,
    }


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else plain(amount)
