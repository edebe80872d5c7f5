"""The ledger: a conversation's turns with the model calls made for them, what they add up to, and both as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lamella.core.log.call import ANSWER_PURPOSE, CacheUse, Call, Outcome, Timing
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.nodes import Told
from lamella.core.log.placement import Placement
from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import Usage
from lamella.core.prompt.layers.model import LAYER_ORDER
from lamella.views.amounts import plain, plain_if_known
from lamella.views.caches.doubts import DoubtShape, view_doubt
from lamella.views.turns import view_placement

# Calls and imprints are named here for faces, which do not import the core.
__all__ = [
    "Call",
    "Imprint",
    "LedgerRow",
    "LedgerSums",
    "find_answers",
    "find_unexplained",
    "make_rows",
    "sum_rows",
    "view_call",
    "view_imprint",
    "view_ledger",
    "written",
]

_SHARE_DIGITS = 6
_SECOND_DIGITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One turn of the active branch; turns of older versions have no ``imprint``."""

    number: int
    message: str
    at: str
    text: str
    standing: str
    calls: tuple[Call, ...]
    imprint: Imprint | None = None
    placement: Placement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSums:
    """What calls add up to, ``asides`` among them. None where no call knows; money lacks ``unpriced`` calls."""

    calls: int
    asides: int
    predicted: int | None
    read: int | None
    write: int | None
    plain: int | None
    output: int | None
    billed: Decimal | None
    amount: Decimal | None
    naive: Decimal | None
    limit: Decimal | None
    seconds: float | None
    retries: int
    unpriced: int

    @property
    def read_share(self) -> float | None:
        """The share of all input that was read from the cache; none where that is not known."""
        if self.read is None or self.plain is None:
            return None
        prompt = self.read + self.plain + (self.write or 0)
        return self.read / prompt if prompt else 0.0


def make_rows(turns: Sequence[Told], calls: Sequence[Sequence[Call]]) -> list[LedgerRow]:
    """Every turn of a branch with the calls that were made for it."""
    return [
        LedgerRow(
            number=number,
            message=told.message.id,
            at=told.message.at,
            text=told.message.text,
            standing=_tell_standing(told, made),
            calls=tuple(made),
            imprint=None if told.message.question is None else told.message.question.imprint,
            placement=None if told.message.question is None else told.message.question.placement,
        )
        for number, (told, made) in enumerate(zip(turns, calls, strict=True), start=1)
    ]


def _tell_standing(told: Told, calls: Sequence[Call]) -> str:
    """What became of a turn: waiting for its answer, left without one, answered by a model, or by someone else."""
    if told.reply is None:
        return "waiting"
    if find_answers(calls):
        return "called"
    return "no_call" if told.reply.text else "unanswered"


def find_answers(calls: Sequence[Call]) -> list[Call]:
    """The calls that gave answers, without those on the way to one."""
    return [call for call in calls if call.purpose == ANSWER_PURPOSE]


def sum_rows(rows: Sequence[LedgerRow]) -> LedgerSums:
    """The sums over every call."""
    calls = [call for row in rows for call in row.calls]
    reported = [call for call in calls if call.usage.prompt is not None and call.usage.read is not None]
    costs = [call.cost for call in calls if call.cost is not None]
    return LedgerSums(
        calls=len(calls),
        asides=len(calls) - len(find_answers(calls)),
        predicted=_add(call.predicted.read for call in calls if call.predicted is not None),
        read=_add(call.usage.read for call in reported),
        write=_add(written(call) for call in reported),
        plain=_add(call.usage.plain for call in reported),
        output=_add(call.usage.output for call in calls),
        billed=_add_money(call.billed for call in calls),
        amount=_add_money(cost.amount for cost in costs),
        naive=_add_money(cost.naive for cost in costs),
        limit=_add_money(cost.limit for cost in costs),
        seconds=_add_seconds(calls),
        retries=sum(call.retries for call in calls),
        unpriced=sum(call.billed is None for call in calls),
    )


def written(call: Call) -> int | None:
    """What went into the cache, for however long; none where the provider does not say."""
    usage = call.usage
    if usage.write is None and usage.write_long is None:
        return None
    return (usage.write or 0) + (usage.write_long or 0)


def find_unexplained(rows: Sequence[LedgerRow]) -> list[int]:
    """The turns whose prefix moved although nothing on record moves one."""
    return [row.number for row in rows if any(call.verdict.outcome is Outcome.UNEXPLAINED for call in row.calls)]


def view_ledger(conversation: str, rows: Sequence[LedgerRow], doubts: Sequence[DoubtShape] = ()) -> dict[str, object]:
    """Every turn with its calls, and the sums, in the names of docs/ledger.md."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "turns": [_view_row(row) for row in rows],
        "totals": _view_sums(sum_rows(rows), turns=len(rows)),
        "unexplained": find_unexplained(rows),
        "doubts": [view_doubt(one) for one in doubts],
    }


def view_call(call: Call) -> dict[str, object]:
    """One model call; what nobody knows is null."""
    verdict, cost = call.verdict, call.cost
    return {
        "purpose": call.purpose,
        "model": call.model,
        "verdict": {
            "outcome": verdict.outcome.value,
            "cause": verdict.movement.cause.value,
            "segment": verdict.movement.segment,
            "ours": verdict.ours,
            "says": str(verdict),
        },
        "predicted": call.predicted and _view_use(call.predicted),
        "reported": _view_usage(call.usage),
        "by_layer": dict(call.by_layer),
        "billed": plain_if_known(call.billed),
        "cost": cost
        and {
            "currency": "USD",
            "amount": plain(cost.amount),
            "naive": plain(cost.naive),
            "limit": plain(cost.limit),
        },
        "seconds": _view_timing(call.timing),
        "stop": call.stop,
        "id": call.id,
        "diagnosis": call.diagnosis and _view_diagnosis(call.diagnosis),
        "retries": call.retries,
    }


def view_imprint(imprint: Imprint) -> dict[str, object]:
    """What a turn was sent as first: hashes, the renderer's version, and measures."""
    return {
        "renderer": imprint.renderer,
        "hashes": dict(zip(("L1_SYSTEM", "L2_PREVIOUS", "prefix", "whole"), imprint.hashes, strict=True)),
        "segments": dict(zip((layer.value for layer in LAYER_ORDER), imprint.segments, strict=False)),
        "dedup_ratio": round(imprint.dedup_ratio, _SHARE_DIGITS),
        "compacted_share": round(imprint.compacted_share, _SHARE_DIGITS),
        "unparsed": imprint.unparsed,
    }


def _view_row(row: LedgerRow) -> dict[str, object]:
    """One turn; ``calls`` is empty where no model was called."""
    return {
        "turn": row.number,
        "message": row.message,
        "at": row.at,
        "standing": row.standing,
        "sent": row.imprint and view_imprint(row.imprint),
        "placement": row.placement and view_placement(row.placement),
        "calls": [view_call(call) for call in row.calls],
    }


def _view_sums(sums: LedgerSums, *, turns: int) -> dict[str, object]:
    """What the calls add up to."""
    share = sums.read_share
    return {
        "turns": turns,
        "calls": sums.calls,
        "asides": sums.asides,
        "predicted": sums.predicted,
        "read": sums.read,
        "write": sums.write,
        "plain": sums.plain,
        "output": sums.output,
        "cache_read_share": None if share is None else round(share, _SHARE_DIGITS),
        "billed": plain_if_known(sums.billed),
        "cost": plain_if_known(sums.amount),
        "naive_cost": plain_if_known(sums.naive),
        "limit_cost": plain_if_known(sums.limit),
        "unpriced_calls": sums.unpriced,
        "seconds": None if sums.seconds is None else round(sums.seconds, _SECOND_DIGITS),
        "retries": sums.retries,
    }


def _view_use(use: CacheUse) -> dict[str, object]:
    return {"read": use.read, "write": use.write, "uncached": use.uncached}


def _view_usage(usage: Usage) -> dict[str, object]:
    return {
        "plain": usage.plain,
        "read": usage.read,
        "write": usage.write,
        "write_long": usage.write_long,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "fault": usage.fault,
    }


def _view_timing(timing: Timing) -> dict[str, object]:
    return {"build": timing.build, "first": timing.first, "total": timing.total}


def _view_diagnosis(diagnosis: Diagnosis) -> dict[str, object]:
    return {"verdict": diagnosis.verdict, "reason": diagnosis.reason, "missed": diagnosis.missed}


def _add(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _add_money(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def _add_seconds(calls: Sequence[Call]) -> float | None:
    known = [call.timing.total for call in calls if call.timing.total is not None]
    return sum(known) if known else None
