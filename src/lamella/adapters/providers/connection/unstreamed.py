"""Answers that came in one piece although a stream was asked for: a whole answer, an error, or somebody's web page."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Protocol

from lamella.adapters.providers.connection.failures import (
    Refusal,
    Target,
    explain_page,
    explain_refusal,
    explain_unstreamed,
)
from lamella.adapters.providers.wire.fields import Fields, as_fields, fields_at, status_at, text_at
from lamella.core.messages.delta import Delta, ReasoningDelta, Reply, Stop, TextDelta

_WHOLE = ("json", "html")


class _Response(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...

    def aread(self) -> Awaitable[bytes]: ...


class EventStream(Protocol):
    """A stream of an SDK's events, and the answer it comes from."""

    @property
    def response(self) -> _Response: ...

    def __aiter__(self) -> AsyncIterator[object]: ...


def comes_whole(headers: Mapping[str, str]) -> bool:
    """Whether an answer is no stream by its type. Streams under other wrong types are read as what they are."""
    return any(kind in headers.get("content-type", "").lower() for kind in _WHOLE)


async def read_batches(
    stream: EventStream,
    take: Callable[[Fields], Iterable[Delta]],
    *,
    target: Target,
    read: Callable[[object], Reply | None],
) -> AsyncGenerator[Iterable[Delta], None]:
    """The deltas of each event that ``take`` is given, or of all that came in one piece, which ``read`` understands."""
    if comes_whole(stream.response.headers):
        yield read_whole(await stream.response.aread(), target, read)
        return
    async for event in stream:
        yield take(as_fields(event))


def read_whole(body: bytes, target: Target, read: Callable[[object], Reply | None]) -> Iterator[Delta]:
    """The deltas of an answer that is one; anything else raises what it says."""
    reply = read(_parse(body, target))
    if reply is None:
        raise explain_unstreamed(target, body)
    if reply.reasoning:
        yield ReasoningDelta(text=reply.reasoning)
    if reply.text:
        yield TextDelta(text=reply.text)
    yield from reply.calls
    yield reply.usage
    yield Stop(reason=reply.stop, id=reply.id, diagnosis=reply.diagnosis, carried=reply.carried)


def check_no_error(body: bytes, target: Target) -> None:
    """Raises what a body says that should have been a stream."""
    _parse(body, target)
    raise explain_unstreamed(target, body)


def _parse(body: bytes, target: Target) -> Fields:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise explain_page(target, body) from None
    fields = as_fields(found)
    # Some servers send an empty one beside every answer.
    if fields.get("error"):
        raise explain_refusal(_refuse(fields), target)
    return fields


def _refuse(fields: Fields) -> Refusal:
    error = fields_at(fields, "error")
    words = text_at(error, "message") or text_at(fields, "error") or json.dumps(fields["error"])
    status = status_at(error, "code")
    code = "" if status else text_at(error, "code")
    return Refusal(status=status or 200, kind=code or text_at(error, "type") or text_at(error, "status"), words=words)
