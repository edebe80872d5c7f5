"""Model calls as replies keep them: what the ledger says of each, written down and read back exactly."""

from decimal import Decimal

from msgspec import Struct

from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Outcome, Timing, Verdict
from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import UNKNOWN_USAGE, Usage

# Sums of amounts stay within what decimals can add exactly.
_LARGEST_EXPONENT = 20
_UNTIMED = Timing()


class StoredCall(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A call; what is unknown is left out."""

    outcome: Outcome
    cause: Cause
    segment: str | None = None
    model: str | None = None
    predicted: CacheUse | None = None
    usage: Usage = UNKNOWN_USAGE
    by_layer: dict[str, int] = {}
    cost: Cost | None = None
    billed: Decimal | None = None
    timing: Timing = _UNTIMED
    stop: str = ""
    id: str | None = None
    diagnosis: Diagnosis | None = None
    retries: int = 0


def store_call(call: Call) -> StoredCall:
    """A call as it is written down."""
    return StoredCall(
        outcome=call.verdict.outcome,
        cause=call.verdict.movement.cause,
        segment=call.verdict.movement.segment or None,
        model=call.model or None,
        predicted=call.predicted,
        # Left out is what is the very value of the class.
        usage=UNKNOWN_USAGE if call.usage == UNKNOWN_USAGE else call.usage,
        by_layer=dict(call.by_layer),
        cost=call.cost,
        billed=call.billed,
        timing=_UNTIMED if call.timing == _UNTIMED else call.timing,
        stop=call.stop,
        id=call.id or None,
        diagnosis=call.diagnosis,
        retries=call.retries,
    )


def read_call(stored: StoredCall) -> Call:
    """A call from what was written; a ``ValueError`` for an amount of money that is none."""
    amounts = () if stored.cost is None else (stored.cost.amount, stored.cost.naive, stored.cost.limit)
    for amount in (*amounts, *(() if stored.billed is None else (stored.billed,))):
        if not amount.is_finite() or abs(amount.adjusted()) > _LARGEST_EXPONENT:
            raise ValueError(f"{amount} is no amount of money")
    return Call(
        model=stored.model,
        verdict=Verdict(outcome=stored.outcome, movement=Movement(cause=stored.cause, segment=stored.segment)),
        predicted=stored.predicted,
        usage=stored.usage,
        by_layer=stored.by_layer,
        cost=stored.cost,
        billed=stored.billed,
        timing=stored.timing,
        stop=stored.stop,
        id=stored.id,
        diagnosis=stored.diagnosis,
        retries=stored.retries,
    )
