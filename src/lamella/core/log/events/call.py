"""Model calls as events store them.

``to_stored_call`` and ``to_model_call`` convert exactly in both directions. ``AuxiliaryCallEvent`` is a call that gave
no reply of the conversation, such as a plan or a summary.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from lamella.core.log.call import (
    CacheOutcome,
    CacheUsage,
    CacheVerdict,
    CallTiming,
    ModelCall,
    PrefixChange,
    PrefixChangeCause,
    RequestHash,
    TurnInputCost,
)
from lamella.core.messages import UNKNOWN_USAGE, CacheDiagnosis, Usage
from lamella.core.values import replace

# Amounts of money with larger exponents are rejected, so that sums stay exact in decimal arithmetic.
_MAX_DECIMAL_EXPONENT = 20
_NO_TIMING = CallTiming()


class StoredModelCall(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A stored model call; unknown values are omitted."""

    outcome: CacheOutcome
    cause: PrefixChangeCause
    segment: str | None = None
    model: str | None = None
    predicted: CacheUsage | None = None
    usage: Usage = UNKNOWN_USAGE
    by_layer: dict[str, int] = {}
    cost: TurnInputCost | None = None
    billed: Decimal | None = None
    timing: CallTiming = _NO_TIMING
    stop: str = ""
    id: str | None = None
    diagnosis: CacheDiagnosis | None = None
    retries: int = 0
    request: RequestHash | None = None


def to_stored_call(call: ModelCall) -> StoredModelCall:
    """Return a model call in its stored form."""
    return StoredModelCall(
        outcome=call.verdict.outcome,
        cause=call.verdict.prefix_change.cause,
        segment=call.verdict.prefix_change.segment or None,
        model=call.model or None,
        predicted=call.predicted,
        # msgspec omits a field only if its value is the identical default object, not just an equal one.
        usage=UNKNOWN_USAGE if call.usage == UNKNOWN_USAGE else call.usage,
        by_layer=dict(call.by_layer),
        cost=call.cost,
        billed=call.billed,
        timing=_NO_TIMING if call.timing == _NO_TIMING else call.timing,
        stop=call.stop,
        id=call.id or None,
        diagnosis=call.diagnosis,
        retries=call.retries,
        request=call.request,
    )


def to_model_call(stored: StoredModelCall) -> ModelCall:
    """Return the model call of a stored one; raises ``ValueError`` for an invalid amount of money."""
    amounts = () if stored.cost is None else (stored.cost.amount, stored.cost.naive, stored.cost.limit)
    for amount in (*amounts, *(() if stored.billed is None else (stored.billed,))):
        if not amount.is_finite() or abs(amount.adjusted()) > _MAX_DECIMAL_EXPONENT:
            raise ValueError(f"{amount} is no amount of money")
    return ModelCall(
        model=stored.model,
        verdict=CacheVerdict(
            outcome=stored.outcome, prefix_change=PrefixChange(cause=stored.cause, segment=stored.segment)
        ),
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
        request=stored.request,
    )


# Auxiliary calls.

# Any valid time, for calls without one.
_PLACEHOLDER_DATE = "2026-01-01"


class AuxiliaryCallEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An auxiliary model call and its ``purpose``; the output of the call is not stored.

    ``parent`` is the last message when the call was made, empty before the first message. The call belongs to the
    question that waits there, or to the next question. ``started`` is set for keep-alive calls: the time they were
    sent.
    """

    parent: str
    purpose: str
    call: StoredModelCall
    started: str = ""


def to_auxiliary_model_calls(events: Sequence[AuxiliaryCallEvent]) -> tuple[ModelCall, ...]:
    """Return the calls, each with its purpose; raises ``ValueError`` for an invalid amount or time."""
    for event in events:
        datetime.fromisoformat(event.started or _PLACEHOLDER_DATE)
    return tuple(replace(to_model_call(event.call), purpose=event.purpose) for event in events)
