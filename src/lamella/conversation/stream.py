"""Check what a provider streams before it counts as an answer, and change its text on the way.

``stream_checked_deltas`` yields checked deltas and limits the size of an answer: providers may be written by third
parties. ``AnswerEditor`` changes the text while it streams; only its output is shown and recorded.
"""

from asyncio import get_running_loop, timeout
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine
from contextlib import suppress
from inspect import isawaitable
from typing import Protocol

from lamella.core.log.call import CacheUsage
from lamella.core.log.turn import StoredCitation
from lamella.core.messages import (
    CacheDiagnosis,
    Delta,
    ModelRequest,
    ProviderReply,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
)
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.ports import ModelProvider

_MAX_REPR_CHARS = 80
# No answer has more tokens. Larger integers are not exact in every JSON reader, and not every store accepts them.
_MAX_TOKEN_COUNT = 2**53
# Maximum size of an answer: a fixed allowance and an amount per requested token. It is generous because servers count
# tokens differently and some models reason without counting. Each delta has a minimum size, so that a stream of empty
# deltas ends too.
_BASE_STREAM_BYTES = 4 * 1_024 * 1_024
_BYTES_PER_TOKEN = 128
_DELTA_OVERHEAD_BYTES = 32
# A model that thinks without showing it may send only signs of life for minutes.
_MAX_EMPTY_SECONDS = 900.0
_DELTA_HINT = "Yield TextDelta, ReasoningDelta, ToolCall, Usage and at last StopDelta, with fields of their types."


async def stream_checked_deltas(
    provider: ModelProvider, request: ModelRequest, *, max_empty_seconds: float = _MAX_EMPTY_SECONDS
) -> AsyncGenerator[Delta, None]:
    """Yield the checked deltas of a provider and close its stream at the end.

    Raises ``InvalidReplyError`` if a delta is invalid, if the answer is far longer than requested, or if for
    ``max_empty_seconds`` nothing arrives but empty deltas. Time in which the caller does not ask for more is not
    counted.
    """
    name = type(provider).__name__
    coming: object = provider.stream(request)
    if not isinstance(coming, AsyncIterable):
        if isinstance(coming, Coroutine):
            coming.close()
        raise InvalidOperationError(
            f"stream() of {name} gives {_describe_value(coming)}, which is no async iterator.",
            hint="Write it as an async generator: async def stream(self, request), with yield in it.",
        )
    left = _BASE_STREAM_BYTES + request.max_output_tokens * _BYTES_PER_TOKEN
    empty_seconds = 0.0
    deltas = aiter(coming)
    clock = get_running_loop().time
    try:
        while True:
            began = clock()
            try:
                async with timeout(max_empty_seconds - empty_seconds) as limit:
                    delta: object = await anext(deltas)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                if not limit.expired():
                    raise
                raise InvalidReplyError(
                    f"The answer of {request.model} does not go on: for {max_empty_seconds:g} seconds nothing came but "
                    "empty parts.",
                    hint="The text before is kept. Ask again, or ask another model.",
                ) from error
            checked = validate_delta(delta, name)
            empty_seconds = empty_seconds + clock() - began if _is_empty(checked) else 0.0
            left -= _delta_size(checked)
            if left < 0:
                raise InvalidReplyError(
                    f"The answer of {request.model} does not end: {request.max_output_tokens:,} tokens were asked for, and more "
                    "came than any of that length has.",
                    hint="What was said before is kept. Check what answers, or ask another model.",
                )
            yield checked
            # Anything after the stop, including an error, does not belong to the answer.
            if isinstance(delta, StopDelta):
                return
    finally:
        await _close_stream(coming)


def _is_empty(delta: Delta) -> bool:
    return isinstance(delta, Usage) or (isinstance(delta, TextDelta | ReasoningDelta) and not delta.text)


def _delta_size(delta: Delta) -> int:
    match delta:
        case TextDelta() | ReasoningDelta():
            return _DELTA_OVERHEAD_BYTES + len(delta.text)
        case ToolCall():
            return _DELTA_OVERHEAD_BYTES + len(delta.id) + len(delta.name) + len(delta.arguments)
        case Usage() | StopDelta():
            return _DELTA_OVERHEAD_BYTES


async def _close_stream(stream: object) -> None:
    """Close a stream if it has ``aclose``; iterators need not have it, but generators keep connections open."""
    # Third-party code may fail in any way. By now the answer is complete, or its error is already being raised.
    with suppress(Exception):
        close = getattr(stream, "aclose", None)
        closing = close() if callable(close) else None
        if isawaitable(closing):
            await closing


async def predict_cache_usage(provider: ModelProvider, request: ModelRequest) -> CacheUsage | None:
    """Return the cache usage that a provider predicts for a request, or None if it makes no prediction."""
    # Looking up one attribute costs a fraction of an isinstance check against the protocol.
    look = getattr(provider, "predict_cache_usage", None)
    found: object = look(request) if callable(look) else None
    if isawaitable(found):
        found = await found
    return found if isinstance(found, CacheUsage) else None


async def preview_cache_usage(provider: ModelProvider, request: ModelRequest) -> CacheUsage | None:
    """Return what ``predict_cache_usage`` would return if the request were sent now, without loading a model for it."""
    look = getattr(provider, "preview_cache_usage", None)
    found: object = look(request) if callable(look) else await predict_cache_usage(provider, request)
    if isawaitable(found):
        found = await found
    return found if isinstance(found, CacheUsage) else None


def validate_delta(delta: object, name: str) -> Delta:
    """Return the delta if its fields have the right types, otherwise raise ``InvalidReplyError``.

    Impossible usage numbers do not raise; they become unknown.
    """
    match delta:
        case TextDelta() | ReasoningDelta():
            wrong = _describe_first_non_text(delta, "text")
        case ToolCall():
            wrong = _describe_first_non_text(delta, "id", "name", "arguments") or _describe_first_invalid_text(
                delta, "id", "name", "arguments"
            )
        case Usage():
            return _validate_usage(delta, name)
        case StopDelta():
            wrong = _stop_problem(delta)
        case _:
            raise _invalid_delta_error(name, _describe_value(delta))
    if wrong is not None:
        raise _invalid_delta_error(name, wrong)
    return delta


def _invalid_delta_error(name: str, problem: str) -> InvalidReplyError:
    return InvalidReplyError(f"{name} gave {problem} as a part of its answer.", hint=_DELTA_HINT)


def _stop_problem(stop: StopDelta) -> str | None:
    reason, made = stop.reason, stop.id
    if not isinstance(reason, StopReason) or not isinstance(made, str | None):
        return f"a StopDelta whose reason is {_describe_value(reason)} and whose id is {_describe_value(made)}"
    return (
        _describe_first_invalid_text(stop, "id")
        or _diagnosis_problem(stop.diagnosis)
        or _provider_reply_problem(stop.provider_reply)
    )


def _diagnosis_problem(diagnosis: object) -> str | None:
    if diagnosis is None:
        return None
    if not isinstance(diagnosis, CacheDiagnosis):
        return f"a StopDelta whose diagnosis is {_describe_value(diagnosis)}"
    reason, missed = diagnosis.reason, diagnosis.missed
    if not isinstance(reason, str | None) or not isinstance(missed, int | None) or isinstance(missed, bool):
        return (
            f"a CacheDiagnosis whose reason is {_describe_value(reason)} and whose missed is {_describe_value(missed)}"
        )
    return _describe_first_non_text(diagnosis, "verdict") or _describe_first_invalid_text(
        diagnosis, "verdict", "reason"
    )


def _provider_reply_problem(carried: object) -> str | None:
    if carried is None:
        return None
    if not isinstance(carried, ProviderReply):
        return f"a StopDelta whose provider_reply is {_describe_value(carried)}"
    return _describe_first_non_text(carried, "format", "json") or _describe_first_invalid_text(
        carried, "format", "json"
    )


def _describe_first_non_text(part: object, *names: str) -> str | None:
    """Describe the first of these fields that is not a string, or return None."""
    for name in names:
        value: object = getattr(part, name)
        if not isinstance(value, str):
            return f"a {type(part).__name__} whose {name} is {_describe_value(value)}"
    return None


def _describe_first_invalid_text(part: object, *names: str) -> str | None:
    """Describe the first of these texts that contains a lone surrogate, which cannot be encoded, or return None."""
    for name in names:
        value: object = getattr(part, name)
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            return f"a {type(part).__name__} whose {name}, {value!a}, has half of a character in it"
    return None


def _validate_usage(usage: Usage, name: str) -> Usage:
    """Return the usage, or an unknown usage with the reason if its numbers cannot be true; the answer is kept."""
    counts = {name: getattr(usage, name) for name in Usage.__struct_fields__ if name != "fault"}
    wrong = [f"{what} {_describe_value(count)}" for what, count in counts.items() if not _is_token_count(count)]
    if not wrong and usage.output is not None and (usage.reasoning or 0) > usage.output:
        wrong = [f"reasoning {usage.reasoning:,} of output {usage.output:,}"]
    if wrong:
        return Usage(fault=f"{name} reports {', '.join(wrong)}.")
    return usage if isinstance(usage.fault, str | None) else replace(usage, fault=_describe_value(usage.fault))


def _is_token_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKEN_COUNT)


def _describe_value(value: object) -> str:
    """Describe a value in an error message: its type, and its repr if that is short."""
    if value is None:
        return "None"
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - a repr of third-party code may fail in any way
        shown = ""
    # A repr that starts with "<" is only a memory address.
    is_readable = 0 < len(shown) <= _MAX_REPR_CHARS and not shown.startswith("<")
    return f"{shown} of type {type(value).__name__}" if is_readable else f"a {type(value).__name__}"


# Editors of streamed text.


class AnswerEditor(Protocol):
    """Changes the text of an answer while it streams; only its output is shown and recorded."""

    @property
    def sources(self) -> tuple[StoredCitation, ...]:
        """Return the sources that the citation numbers in the output so far refer to."""
        ...

    def feed(self, text: str) -> str:
        """Add text and return the part that can be shown now; the rest is held back."""
        ...

    def finish(self, *, has_tool_calls: bool) -> str:
        """Return the text that was held back, at the end of the stream.

        The answer is complete, unless tools were ``has_tool_calls``.
        """
        ...
