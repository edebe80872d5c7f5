"""Dialects: each wire format as one value, for those who bring a client of their own. No SDK is imported for it."""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.registry import PROVIDERS
from lamella.adapters.providers.wire.body import Body
from lamella.adapters.providers.wire.dialect import Dialect
from lamella.adapters.providers.wire.fields import Fields, as_fields
from lamella.core.messages.delta import Reply
from lamella.core.messages.request import Request
from lamella.errors import CallError, ReplyBrokenError
from lamella.ports import ModelBook

_TAKEN = "Give what the SDK returned: its answer, a stream read to its end, or a list of a stream's events."
# What SDKs keep of a stream they have read, by the name they give it.
_SNAPSHOTS = ("current_message_snapshot", "current_completion_snapshot")


DIALECTS = tuple(row.dialect() for row in PROVIDERS if row.dialect is not None)


class WireDialects:
    """All that ship with Lamella, over what is known of models."""

    def __init__(self, models: ModelBook | None = None) -> None:
        self._models = models or BuiltInModels()

    def build(self, name: str, request: Request) -> Body:
        """The keyword arguments that send a request with the SDK of a dialect."""
        return find_dialect(name).build(request, self._models.model(request.model))

    def speak(self, name: str, request: Request, any_model: bool, /) -> Body:  # noqa: FBT001 - the shape of the port
        """The same; unless ``any_model``, a model that is known to be of another maker is refused."""
        if not any_model:
            self.check_maker(name, request.model)
        return self.build(name, request)

    def write(self, name: str, request: Request) -> Body:
        """The body that the SDK would send, without a key and without what only asks for a stream."""
        return find_dialect(name).write(self.build(name, request))

    def check_maker(self, name: str, model: str) -> None:
        """Refuses a model that is known to be of another maker than those who speak this dialect."""
        dialect, maker = find_dialect(name), self._models.model(model).provider
        if maker != dialect.maker and maker in {known.maker for known in DIALECTS}:
            raise CallError(
                f"{model} does not speak {name}.",
                hint=lambda door: (
                    f"Choose the provider that has it, or name it with {door.option('model')}: gateways have such ones."
                ),
            )

    def read(self, answer: object) -> Reply:
        """The reply in what an SDK returned: an answer, plain data, a stream read to its end, or its events.

        Raises ``bad_call`` for what is none of them, and ``reply_broken`` for one that has not ended.
        """
        try:
            reply = answer if isinstance(answer, Reply) else _read(_finish(answer))
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            # Objects that people built themselves can fail in any of their parts; the turn waits on.
            raise _unknown(answer) from error
        if reply is None:
            raise ReplyBrokenError("The answer has not ended.", hint="Read the stream to its end, or ask again.")
        return reply


def find_dialect(name: str) -> Dialect:
    """The dialect of a name."""
    found = next((dialect for dialect in DIALECTS if dialect.name == name), None)
    if found is None:
        names = ", ".join(dialect.name for dialect in DIALECTS)
        raise CallError(f"There is no provider {name!r} to build a request for.", hint=f"Choose one of: {names}.")
    return found


def _read(answer: object) -> Reply | None:
    fields = as_fields(answer)
    if not fields:
        return _read_events(answer)
    dialect = next((dialect for dialect in DIALECTS if dialect.is_answer(fields)), None)
    if dialect is None:
        raise _unknown(answer)
    return dialect.read_reply(fields)


def _finish(answer: Any) -> object:  # noqa: ANN401 - whatever people hand over
    """What a stream of an SDK's own added up to, read to its end first; anything else as it is."""
    until_done = getattr(answer, "until_done", None)
    if isinstance(answer, Coroutine) or iscoroutinefunction(until_done) or hasattr(answer, "__aiter__"):
        raise CallError(
            f"{type(answer).__name__} has to be awaited.",
            hint="Await the answer, or collect the stream with [event async for event in stream], and give that.",
        )
    if not callable(until_done):
        return answer
    until_done()
    for name in _SNAPSHOTS:
        if hasattr(answer, name):
            found: object = getattr(answer, name)
            return found
    return _finish_response(answer)


def _finish_response(stream: Any) -> object:  # noqa: ANN401 - a stream of the Responses API
    try:
        found: object = stream.get_final_response()
    except RuntimeError as error:
        # What the SDK raises where it has read no completed response; one that was cut short it does not keep.
        raise ReplyBrokenError(
            "The stream has no completed answer.",
            hint="If the answer was cut short, collect the stream's events in a list and give that.",
        ) from error
    return found


def _read_events(answer: object) -> Reply | None:
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise _unknown(answer)
    events = [_unwrap(event) for event in answer]
    if not events:
        raise CallError(
            f"There is nothing in this {type(answer).__name__}.",
            hint="A stream can be read once. Collect its events in a list while reading, and give the list.",
        )
    return _pick(events).read_events(events)


def _pick(events: Sequence[Fields]) -> Dialect:
    for event in events:
        for dialect in DIALECTS:
            if dialect.is_event(event):
                return dialect
    raise CallError(f"None of these {len(events):,} is an event of a stream that Lamella knows.", hint=_TAKEN)


def _unwrap(event: object) -> Fields:
    # OpenAI's streaming aid hands out chunks inside events of its own, each with all that came before.
    chunk = getattr(event, "chunk", None)
    return as_fields(event if chunk is None else chunk)


def _unknown(answer: object) -> CallError:
    return CallError(f"{type(answer).__name__} is no answer that Lamella knows.", hint=_TAKEN)
