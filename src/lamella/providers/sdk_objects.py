"""The built-in wire formats as values, for callers that send requests with their own client.

This module imports no SDK.
"""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from lamella.core.messages import ModelReply, ModelRequest
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.ports import ModelRegistry
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.registry import PROVIDERS
from lamella.providers.wire import Body, Fields, WireFormat, as_fields

_ACCEPTED_OBJECTS_HINT = (
    "Give what the SDK returned: its answer, a stream read to its end, or a list of a stream's events."
)
# Attributes in which the SDKs' stream objects keep the accumulated message after the stream was read.
_SNAPSHOT_ATTRIBUTES = ("current_message_snapshot", "current_completion_snapshot")


WIRE_FORMATS = tuple(row.load_wire_format() for row in PROVIDERS if row.load_wire_format is not None)


class BuiltInWireFormats:
    """The wire formats that ship with Lamella, combined with a registry of model profiles."""

    def __init__(self, models: ModelRegistry | None = None) -> None:
        self._models = models or BuiltInModelProfiles()

    def build_request_unchecked(self, name: str, request: ModelRequest) -> Body:
        """Return the keyword arguments that send a request with the SDK of the wire format ``name``."""
        return get_wire_format(name).build_request(request, self._models.get_model_profile(request.model))

    def build_request(self, format_name: str, request: ModelRequest, allow_any_model: bool, /) -> Body:  # noqa: FBT001 - the port fixes the signature
        """Return the keyword arguments for a request, after checking that the model fits the wire format.

        With ``allow_any_model`` the check is skipped. Without it, a model that is known to belong to another maker
        raises an error.
        """
        if not allow_any_model:
            self.check_model_provider(format_name, request.model)
        return self.build_request_unchecked(format_name, request)

    def build_http_body(self, name: str, request: ModelRequest) -> Body:
        """Return the HTTP body that the SDK would send, without the API key and without streaming options."""
        return get_wire_format(name).to_http_body(self.build_request_unchecked(name, request))

    def check_model_provider(self, name: str, model: str) -> None:
        """Raise an error if the model is known to belong to a maker that uses another built-in wire format."""
        dialect, maker = get_wire_format(name), self._models.get_model_profile(model).provider
        if maker != dialect.provider and maker in {known.provider for known in WIRE_FORMATS}:
            raise InvalidOperationError(
                f"{model} is not a model of the provider {name}.",
                hint=lambda hints: (
                    f"Choose the provider of the model, or another model with {hints.option_hint('model')}."
                ),
            )

    def parse_reply(self, response: object) -> ModelReply:
        """Return the reply contained in an object that an SDK returned.

        ``response`` is an SDK's answer object, plain data, a stream that was read to its end, or a list of stream
        events. Raises ``InvalidOperationError`` for any other object, and ``InvalidReplyError`` for an answer that has
        not ended.
        """
        try:
            reply = response if isinstance(response, ModelReply) else _read_reply(_read_sdk_stream_to_end(response))
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            # An object that the caller built itself can fail at any attribute. The pending turn stays pending.
            raise _unknown_answer_error(response) from error
        if reply is None:
            raise InvalidReplyError("The answer has not ended.", hint="Read the stream to its end, or ask again.")
        return reply


def get_wire_format(name: str) -> WireFormat:
    """Return the wire format with this name, or raise an error that lists the known names."""
    found = next((dialect for dialect in WIRE_FORMATS if dialect.name == name), None)
    if found is None:
        names = ", ".join(dialect.name for dialect in WIRE_FORMATS)
        raise InvalidOperationError(
            f"There is no provider {name!r} to build a request for.", hint=f"Choose one of: {names}."
        )
    return found


def _read_reply(answer: object) -> ModelReply | None:
    fields = as_fields(answer)
    if not fields:
        return _read_events(answer)
    dialect = next((dialect for dialect in WIRE_FORMATS if dialect.is_answer(fields)), None)
    if dialect is None:
        raise _unknown_answer_error(answer)
    return dialect.read_reply(fields)


def _read_sdk_stream_to_end(answer: Any) -> object:  # noqa: ANN401 - callers pass any object
    """Read an SDK's synchronous stream object to its end and return the accumulated answer.

    Any other object is returned unchanged. Awaitables and async streams raise an error.
    """
    until_done = getattr(answer, "until_done", None)
    if isinstance(answer, Coroutine) or iscoroutinefunction(until_done) or hasattr(answer, "__aiter__"):
        raise InvalidOperationError(
            f"{type(answer).__name__} has to be awaited.",
            hint="Await the answer, or collect the stream with [event async for event in stream], and give that.",
        )
    if not callable(until_done):
        return answer
    until_done()
    for name in _SNAPSHOT_ATTRIBUTES:
        if hasattr(answer, name):
            found: object = getattr(answer, name)
            return found
    return _finish_response(answer)


def _finish_response(stream: Any) -> object:  # noqa: ANN401 - a stream of the Responses API
    try:
        found: object = stream.get_final_response()
    except RuntimeError as error:
        # The SDK raises this if it has read no completed response. It does not keep a response that was cut short.
        raise InvalidReplyError(
            "The stream has no completed answer.",
            hint="If the answer was cut short, collect the stream's events in a list and give that.",
        ) from error
    return found


def _read_events(answer: object) -> ModelReply | None:
    """Read a collection of stream events. Returns None if the end of the stream is missing."""
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise _unknown_answer_error(answer)
    events = [_unwrap_event(event) for event in answer]
    if not events:
        raise InvalidOperationError(
            f"There is nothing in this {type(answer).__name__}.",
            hint="A stream can be read once. Collect its events in a list while reading, and give the list.",
        )
    return _detect_wire_format(events).read_events(events)


def _detect_wire_format(events: Sequence[Fields]) -> WireFormat:
    """Return the wire format of the first event that any format recognises."""
    for event in events:
        for dialect in WIRE_FORMATS:
            if dialect.is_event(event):
                return dialect
    raise InvalidOperationError(
        f"None of these {len(events):,} is an event of a stream that Lamella knows.", hint=_ACCEPTED_OBJECTS_HINT
    )


def _unwrap_event(event: object) -> Fields:
    # OpenAI's streaming helper wraps each chunk in an event of its own, which also repeats everything received before.
    chunk = getattr(event, "chunk", None)
    return as_fields(event if chunk is None else chunk)


def _unknown_answer_error(answer: object) -> InvalidOperationError:
    return InvalidOperationError(
        f"{type(answer).__name__} is no answer that Lamella knows.", hint=_ACCEPTED_OBJECTS_HINT
    )
