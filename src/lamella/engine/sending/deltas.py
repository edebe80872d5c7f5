"""Deltas: what a provider that somebody else wrote says, checked before it counts as an answer."""

from collections.abc import AsyncGenerator, AsyncIterable, Coroutine
from contextlib import suppress
from inspect import isawaitable

from lamella.core.log.call import CacheUse
from lamella.core.messages.delta import (
    Delta,
    Diagnosis,
    NativeReply,
    ReasoningDelta,
    Stop,
    StopReason,
    TextDelta,
    ToolCall,
)
from lamella.core.messages.request import Request
from lamella.core.messages.usage import Usage
from lamella.core.values import replace
from lamella.errors import CallError, ReplyBrokenError
from lamella.ports import ChatProvider

_LONGEST = 80
# No answer has more tokens; larger numbers are no longer exact where JSON is read, and no store keeps them all.
_MOST = 2**53
# What an answer may weigh beyond what was asked for, and per token that was: servers count otherwise, and some models
# think without counting. A part weighs something by itself, so that parts of nothing end, too.
_SPARE = 4 * 1_024 * 1_024
_PER_TOKEN = 128
_PART = 32
_DELTAS = "Yield TextDelta, ReasoningDelta, ToolCall, Usage and at last Stop, with fields of their types."


async def read_answer(provider: ChatProvider, request: Request) -> AsyncGenerator[Delta, None]:
    """A provider's deltas as long as they are what they should be; its stream is closed at the end."""
    name = type(provider).__name__
    coming: object = provider.stream(request)
    if not isinstance(coming, AsyncIterable):
        if isinstance(coming, Coroutine):
            coming.close()
        raise CallError(
            f"stream() of {name} gives {_show(coming)}, which is no async iterator.",
            hint="Write it as an async generator: async def stream(self, request), with yield in it.",
        )
    left = _SPARE + request.answer * _PER_TOKEN
    try:
        async for delta in coming:
            checked = check_delta(delta, name)
            left -= _weigh(checked)
            if left < 0:
                raise ReplyBrokenError(
                    f"The answer of {request.model} does not end: {request.answer:,} tokens were asked for, and more "
                    "came than any of that length has.",
                    hint="What was said before is kept. Check what answers, or ask another model.",
                )
            yield checked
            # Whatever comes after the end, or fails to, belongs to no answer.
            if isinstance(delta, Stop):
                return
    finally:
        await _close(coming)


def _weigh(delta: Delta) -> int:
    match delta:
        case TextDelta() | ReasoningDelta():
            return _PART + len(delta.text)
        case ToolCall():
            return _PART + len(delta.id) + len(delta.name) + len(delta.arguments)
        case Usage() | Stop():
            return _PART


async def _close(coming: object) -> None:
    """Close a stream, if it can be: iterators need not; generators, which hold connections open, do."""
    # A guest may fail in any way, and by now its answer is whole, or why it is not is on its way up.
    with suppress(Exception):
        close = getattr(coming, "aclose", None)
        closing = close() if callable(close) else None
        if isawaitable(closing):
            await closing


async def foresee(provider: ChatProvider, request: Request) -> CacheUse | None:
    """What a provider that knows its own cache says it will serve."""
    # Looking for the one name takes a fraction of what asking whether the protocol is met does.
    look = getattr(provider, "foresee", None)
    found: object = look(request) if callable(look) else None
    if isawaitable(found):
        found = await found
    return found if isinstance(found, CacheUse) else None


def check_delta(delta: object, name: str) -> Delta:
    """A delta whose fields have their types. Usage that cannot be true becomes unknown; anything else wrong raises."""
    match delta:
        case TextDelta() | ReasoningDelta():
            wrong = _find_other(delta, "text")
        case ToolCall():
            wrong = _find_other(delta, "id", "name", "arguments") or _find_half(delta, "id", "name", "arguments")
        case Usage():
            return _check_usage(delta, name)
        case Stop():
            wrong = _find_wrong_end(delta)
        case _:
            raise _broken(name, _show(delta))
    if wrong is not None:
        raise _broken(name, wrong)
    return delta


def _broken(name: str, wrong: str) -> ReplyBrokenError:
    return ReplyBrokenError(f"{name} gave {wrong} as a part of its answer.", hint=_DELTAS)


def _find_wrong_end(stop: Stop) -> str | None:
    reason, made = stop.reason, stop.id
    if not isinstance(reason, StopReason) or not isinstance(made, str | None):
        return f"a Stop whose reason is {_show(reason)} and whose id is {_show(made)}"
    return _find_half(stop, "id") or _find_wrong_diagnosis(stop.diagnosis) or _find_wrong_carried(stop.carried)


def _find_wrong_diagnosis(diagnosis: object) -> str | None:
    if diagnosis is None:
        return None
    if not isinstance(diagnosis, Diagnosis):
        return f"a Stop whose diagnosis is {_show(diagnosis)}"
    reason, missed = diagnosis.reason, diagnosis.missed
    if not isinstance(reason, str | None) or not isinstance(missed, int | None) or isinstance(missed, bool):
        return f"a Diagnosis whose reason is {_show(reason)} and whose missed is {_show(missed)}"
    return _find_other(diagnosis, "verdict") or _find_half(diagnosis, "verdict", "reason")


def _find_wrong_carried(carried: object) -> str | None:
    if carried is None:
        return None
    if not isinstance(carried, NativeReply):
        return f"a Stop whose carried is {_show(carried)}"
    return _find_other(carried, "format", "json") or _find_half(carried, "format", "json")


def _find_other(part: object, *names: str) -> str | None:
    """The first of some fields that is not a text, in words."""
    for name in names:
        value: object = getattr(part, name)
        if not isinstance(value, str):
            return f"a {type(part).__name__} whose {name} is {_show(value)}"
    return None


def _find_half(part: object, *names: str) -> str | None:
    """The first of some texts with half of a character in it, which nothing can write down."""
    for name in names:
        value: object = getattr(part, name)
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            return f"a {type(part).__name__} whose {name}, {value!a}, has half of a character in it"
    return None


def _check_usage(usage: Usage, name: str) -> Usage:
    """Numbers that cannot be true make all of them unknown, with the reason: the answer itself is good."""
    counts = {name: getattr(usage, name) for name in Usage.__struct_fields__ if name != "fault"}
    wrong = [f"{what} {_show(count)}" for what, count in counts.items() if not _is_count(count)]
    if not wrong and usage.output is not None and (usage.reasoning or 0) > usage.output:
        wrong = [f"reasoning {usage.reasoning:,} of output {usage.output:,}"]
    if wrong:
        return Usage(fault=f"{name} reports {', '.join(wrong)}.")
    return usage if isinstance(usage.fault, str | None) else replace(usage, fault=_show(usage.fault))


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST)


def _show(value: object) -> str:
    """A value in an error: its type, and how it looks if that is short to say."""
    if value is None:
        return "None"
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - a guest's repr may fail in any way
        shown = ""
    # What begins so is an object's address, which tells nobody anything.
    tells = 0 < len(shown) <= _LONGEST and not shown.startswith("<")
    return f"{shown} of type {type(value).__name__}" if tells else f"a {type(value).__name__}"
