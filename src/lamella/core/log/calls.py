"""Model calls as JSON: what the ledger keeps with a reply, written down and read back exactly."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from msgspec.structs import asdict, fields

from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Outcome, Timing, Verdict
from lamella.core.log.fields import as_int, as_mapping, as_text
from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import Usage

# Sums of amounts stay within what decimals can add exactly.
_LARGEST_EXPONENT = 20


def write_call(call: Call) -> dict[str, object]:
    """A call as plain data; what is unknown is left out."""
    movement = call.verdict.movement
    written: dict[str, object] = {
        "model": call.model,
        "outcome": call.verdict.outcome.value,
        "cause": movement.cause.value,
        "segment": movement.segment,
        "predicted": None if call.predicted is None else asdict(call.predicted),
        "usage": {name: value for name, value in asdict(call.usage).items() if value is not None},
        "by_layer": dict(call.by_layer),
        "cost": None if call.cost is None else {name: str(value) for name, value in asdict(call.cost).items()},
        "billed": None if call.billed is None else str(call.billed),
        "timing": {name: value for name, value in asdict(call.timing).items() if value is not None},
        "stop": call.stop,
        "id": call.id,
        "diagnosis": None if call.diagnosis is None else asdict(call.diagnosis),
        "retries": call.retries,
    }
    return {name: value for name, value in written.items() if value not in (None, {}, "", 0)}


def read_call(written: object) -> Call:
    """A call from what was written."""
    body = _mapping(written)
    movement = Movement(cause=Cause(as_text(body["cause"])), segment=_maybe_text(body.get("segment")))
    return Call(
        model=_maybe_text(body.get("model")),
        verdict=Verdict(outcome=Outcome(as_text(body["outcome"])), movement=movement),
        predicted=_read_use(body.get("predicted")),
        usage=_read_usage(body.get("usage")),
        by_layer={name: as_int(value) for name, value in _mapping(body.get("by_layer")).items()},
        cost=_read_cost(body.get("cost")),
        billed=None if body.get("billed") is None else _money(body["billed"]),
        timing=Timing(**{name: _seconds(value) for name, value in _mapping(body.get("timing")).items()}),
        stop=_maybe_text(body.get("stop")) or "",
        id=_maybe_text(body.get("id")),
        diagnosis=_read_diagnosis(body.get("diagnosis")),
        retries=as_int(body.get("retries", 0)),
    )


def _read_use(written: object) -> CacheUse | None:
    if written is None:
        return None
    return CacheUse(**{name: as_int(value) for name, value in _mapping(written).items()})


def _read_usage(written: object) -> Usage:
    body = _mapping(written)
    counts = {
        field.name: as_int(body[field.name]) for field in fields(Usage) if field.name in body and field.name != "fault"
    }
    return Usage(**counts, fault=_maybe_text(body.get("fault")))


def _read_cost(written: object) -> Cost | None:
    if written is None:
        return None
    return Cost(**{name: _money(value) for name, value in _mapping(written).items()})


def _read_diagnosis(written: object) -> Diagnosis | None:
    if written is None:
        return None
    body = _mapping(written)
    missed = body.get("missed")
    return Diagnosis(
        verdict=as_text(body["verdict"]),
        reason=_maybe_text(body.get("reason")),
        missed=None if missed is None else as_int(missed),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return {} if value is None else as_mapping(value)


def _maybe_text(value: object) -> str | None:
    return None if value is None else as_text(value)


def _seconds(value: object) -> float:
    if not isinstance(value, int | float):
        raise ValueError(f"a number of seconds was expected, not {type(value).__name__}")
    return float(value)


def _money(value: object) -> Decimal:
    try:
        amount = Decimal(as_text(value))
    except InvalidOperation as error:
        raise ValueError(f"{value} is no amount of money") from error
    if not amount.is_finite() or abs(amount.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError(f"{value} is no amount of money")
    return amount
