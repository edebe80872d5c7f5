"""Bounds: how much of an answer is read, and for how long, whatever a server sends.

SDKs read lines without end, and some copy what they have of an event with every line of it.
"""

import re
from asyncio import get_running_loop, timeout, timeout_at
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lamella.adapters.providers.connection.unstreamed import comes_whole

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response

_Http = TypeVar("_Http", bound="AsyncClient")
_KILOBYTE = 1_024
_MEGABYTE = 1_024 * _KILOBYTE
# What taking one part of an answer costs, in bytes that could be read meanwhile: parts of one byte end, too.
_PART = 64
_BLANK = (b"\n\n", b"\n\r\n", b"\r\r")
_EVENT = re.compile(rb"\n\r?\n|\r\r")
# Five ends of lines are blank lines, however lines end.
_BLANKS = re.compile(rb"[\r\n]{5,}")
_COMMENT = re.compile(rb"^:[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many bytes an answer may have once unpacked, and how many seconds it may take.

    ``event`` and ``lines`` are for one event, or an answer in one piece, ``stream`` for all events. 128,000 tokens are
    45 MB of events, or 1 MB in one piece. Of a refusal a few hundred characters are ever shown. ``opening`` is how many
    seconds may pass until an answer begins, with the request on its way, and for all of a refusal: time-outs of clients
    begin anew with every byte.
    """

    event: int = 4 * _MEGABYTE
    lines: int = 4_096
    stream: int = 64 * _MEGABYTE
    refusal: int = 256 * _KILOBYTE
    seconds: float = 3_600.0
    opening: float = 600.0


class EndlessAnswer(ValueError):  # noqa: N818 - it is an answer, of which enough was read
    """More came than any answer has."""


def bound_opening(http: _Http, bounds: Bounds = Bounds()) -> _Http:  # noqa: B008 - it is frozen
    """The same client, which waits for the head of an answer only so long, however slowly it arrives."""
    send = http.send

    async def send_bounded(request: "Request", **how: Any) -> "Response":  # noqa: ANN401 - as the client takes it
        from httpx2 import ReadTimeout

        try:
            async with timeout(bounds.opening):
                return await send(request, **how)
        except TimeoutError as error:
            raise ReadTimeout(f"no answer began within {bounds.opening:,.0f} seconds", request=request) from error

    setattr(http, "send", send_bounded)  # noqa: B010 - a method is replaced for this one client
    return http


async def bound_answer(response: "Response", bounds: Bounds = Bounds()) -> None:  # noqa: B008 - it is frozen
    """Make a response stop at its bounds, before anything of it is read; for a client's hook on responses.

    Bytes are counted behind the unpacking, which comes a megabyte at a time: a bomb is stopped while it goes off.
    """
    unpacked, packed = response.aiter_bytes, response.aiter_raw

    def read_packed(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        return _read_packed(packed(chunk_size), bounds)

    def read(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        if _count_packings(response) > 1:
            return _leave_packed(response)
        parts = unpacked(chunk_size)
        if response.status_code >= 300:
            return _read_refusal(response, parts, bounds)
        return _read_bounded(parts, bounds, in_events=not comes_whole(response.headers))

    # Every other way of reading goes through this one. A transport of our own would not know the machine's proxies.
    setattr(response, "aiter_bytes", read)  # noqa: B010 - a method is replaced for this one response
    if _count_packings(response):
        setattr(response, "aiter_raw", read_packed)  # noqa: B010 - the same


def _count_packings(response: "Response") -> int:
    named = response.headers.get("content-encoding", "").lower().split(",")
    return sum(packing.strip() not in {"", "identity"} for packing in named)


async def _leave_packed(response: "Response") -> AsyncGenerator[bytes, None]:
    """Nothing of an answer that is packed twice, as none is that anybody means.

    A few kilobytes of it can be gigabytes that unpack to nothing, and nobody counts those (9 kB took 4 s, 2026-11-18).
    """
    await response.aclose()
    if response.status_code < 300:
        raise EndlessAnswer("it is packed more than once")
    yield b""


async def _read_packed(parts: AsyncGenerator[bytes, None], bounds: Bounds) -> AsyncGenerator[bytes, None]:
    """What is packed, of which no more comes than an answer has: it may unpack to nothing, for ever."""
    read = 0
    async with aclosing(parts):
        async for part in parts:
            read += max(len(part), _PART)
            if read > bounds.stream:
                raise EndlessAnswer(f"it has more than {bounds.stream:,} bytes before they are unpacked")
            yield part


async def _read_refusal(
    response: "Response", parts: AsyncGenerator[bytes, None], bounds: Bounds
) -> AsyncGenerator[bytes, None]:
    """A refusal as if it had ended at its bound: its status and its first words say enough."""
    left = bounds.refusal
    timed = _read_until(parts, get_running_loop().time() + bounds.opening)
    with suppress(TimeoutError, EndlessAnswer):
        async with aclosing(parts), aclosing(timed):
            async for part in timed:
                yield part[:left]
                left -= max(len(part), _PART)
                if left <= 0:
                    break
    await response.aclose()


async def _read_until(parts: AsyncGenerator[bytes, None], moment: float) -> AsyncGenerator[bytes, None]:
    """Parts that come in time, then ``TimeoutError``. What unpacks to nothing gives no part that could be counted."""
    while True:
        async with timeout_at(moment):
            part = await anext(parts, None)
        if part is None:
            return
        yield part


async def _read_bounded(
    parts: AsyncGenerator[bytes, None], bounds: Bounds, *, in_events: bool
) -> AsyncGenerator[bytes, None]:
    timed = _read_until(parts, get_running_loop().time() + bounds.seconds)
    events, read = EventBuffer(bounds), 0
    most = bounds.stream if in_events else bounds.event
    async with aclosing(parts), aclosing(timed):
        while True:
            try:
                part = await anext(timed, None)
            except TimeoutError as error:
                raise EndlessAnswer(f"it took more than {bounds.seconds:,.0f} seconds") from error
            if part is None:
                break
            read += max(len(part), _PART)
            # What came in time and in size is told before the rest is refused.
            for told in events.take(part) if in_events else (part,):
                yield told
            if read > most:
                raise EndlessAnswer(f"it has more than {most:,} bytes")
    for told in events.end():
        yield told


class EventBuffer:
    """Parts of a stream, given on as whole events, without comments and more blank lines, which say nothing."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open = bytearray()

    def take(self, part: bytes) -> Iterator[bytes]:
        """The events that are whole now, in one piece."""
        # A blank line may have begun in the part before.
        start = max(len(self._open) - 2, 0)
        self._open += part
        places = ((self._open.rfind(mark, start), mark) for mark in _BLANK)
        end = max((place + len(mark) for place, mark in places if place >= 0), default=0)
        whole = bytes(self._open[:end])
        del self._open[:end]
        yield from self._tell(whole)
        if len(self._open) > self._bounds.event:
            raise EndlessAnswer(f"it has an event of more than {self._bounds.event:,} bytes")

    def end(self) -> Iterator[bytes]:
        """What is left once nothing more comes."""
        whole = bytes(self._open)
        self._open.clear()
        yield from self._tell(whole)

    def _tell(self, whole: bytes) -> Iterator[bytes]:
        said = _COMMENT.sub(b"", whole) if whole.startswith(b":") or b"\n:" in whole else whole
        said = _BLANKS.sub(b"\n\n", said)
        if max(said.count(b"\n"), said.count(b"\r")) > self._bounds.lines:
            longest = max(len(event.splitlines()) for event in _EVENT.split(said))
            if longest > self._bounds.lines:
                raise EndlessAnswer(f"it has an event of more than {self._bounds.lines:,} lines")
        if said.strip(b"\r\n"):
            yield said
