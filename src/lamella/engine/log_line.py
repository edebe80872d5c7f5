"""The log line of a turn: ids, hashes and numbers for whoever listens to the program. Never a key.

No text either, unless a setting allows how the answer begins. Whatever that holds, it stays one line.
"""

from collections.abc import Iterable, Mapping, Sequence
from logging import getLogger

from lamella.core.ledger.entry import Entry
from lamella.core.log.call import Call
from lamella.core.log.events.imprint import Imprint
from lamella.core.prompt.layers.model import LAYER_ORDER
from lamella.core.prompt.prompt import Prompt

LOGGER = getLogger("lamella.turns")
CALLS = getLogger("lamella.calls")
_DIGITS = 3
# How much of an answer is shown where that is allowed, in characters.
_SHOWN = 200


def log_turn(
    prompt: Prompt,
    imprint: Imprint,
    *,
    entry: Entry | None,
    calls: Sequence[Call],
    level: int,
    said: str = "",
    shown: bool = False,
) -> None:
    """Tell of a turn that was answered, in one line; records carry the same as a mapping, ``record.turn``.

    Of what was ``said`` the length is told, and how it begins if that may be ``shown``.
    """
    told = {
        **describe_turn(prompt, imprint, entry=entry, calls=calls),
        "length": len(said),
        **({"preview": show_beginning(said)} if shown else {}),
    }
    LOGGER.log(level, "turn %s", _join(told), extra={"turn": told})


def log_aside(conversation: str, call: Call) -> None:
    """Tell of a model call that gave no answer, in one line; records carry the same as a mapping, ``record.call``."""
    usage, billed = call.usage, call.billed
    told = {
        "conversation": conversation,
        "purpose": call.purpose,
        "model": call.model,
        "plain": usage.plain,
        "read": usage.read,
        "write": usage.write,
        "write_long": usage.write_long,
        "output": usage.output,
        "cost": None if billed is None else float(billed),
        "total": call.timing.total,
    }
    CALLS.info("call %s", _join(told), extra={"call": told})


def describe_turn(
    prompt: Prompt, imprint: Imprint, *, entry: Entry | None, calls: Sequence[Call]
) -> Mapping[str, str | int | float | None]:
    """What is told of a turn; none is what nobody knows.

    What moved is left out: it may be the address of a page, with a key in it.
    """
    timings = [call.timing for call in calls]
    segments = dict(zip((f"segments_{layer.value}" for layer in LAYER_ORDER), imprint.segments, strict=False))
    return {
        "conversation": prompt.conversation_id,
        "message": prompt.message_id,
        "model": prompt.model,
        "renderer": imprint.renderer,
        "system": imprint.system,
        "library": imprint.library,
        "prefix": imprint.prefix,
        "whole": imprint.whole,
        "cause": _find_cause(entry, calls),
        "triggered": None if entry is None else int(entry.prefix.triggered),
        "outcome": calls[0].verdict.outcome.value if calls else None,
        "calls": len(calls),
        "tokens": prompt.total,
        "predicted": _add(call.predicted.read for call in calls if call.predicted is not None),
        "cached": _add(call.usage.read for call in calls),
        "used": add_used(calls),
        "build": _add(timing.build for timing in timings),
        "first": timings[0].first if timings else None,
        "total": _add(timing.total for timing in timings),
        **segments,
        "dedup_ratio": round(imprint.dedup_ratio, _DIGITS),
        "compacted_share": round(imprint.compacted_share, _DIGITS),
        "unparsed": imprint.unparsed,
    }


def add_used(calls: Iterable[Call]) -> int | None:
    """What calls took in tokens, in and out, as their provider says; none where it does not say."""
    usages = [call.usage for call in calls]
    known = [one.prompt + (one.output or 0) for one in usages if one.prompt is not None]
    return sum(known) if known else None


def show_beginning(said: str) -> str:
    """How a text begins, on one line: breaks are blanks, and what a terminal would obey is written out."""
    # More is looked at than shown: runs of blanks count as one.
    line = " ".join(said[: _SHOWN * 10].split())
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    return plain if len(plain) <= _SHOWN and len(said) <= _SHOWN * 10 else f"{plain[:_SHOWN]}..."


def _find_cause(entry: Entry | None, calls: Sequence[Call]) -> str | None:
    """What moved the turn's first request: as it was entered, or as its first call was judged in another process."""
    if entry is not None:
        return entry.prefix.cause
    return calls[0].verdict.movement.cause.value if calls else None


def _add(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return round(sum(known), _DIGITS) if known else None


def _join(told: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_write(value)}" for name, value in told.items())


def _write(value: object) -> str:
    """A value in plain letters and without blanks, so that the line can be split at them and obeyed by no terminal."""
    return "-" if value is None else ascii("_".join(str(value).split()))[1:-1] or "-"
