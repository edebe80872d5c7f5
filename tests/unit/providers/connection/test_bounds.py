"""Bounds: events come whole however they were cut, and nothing comes for ever."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from httpx2 import AsyncByteStream, AsyncClient, ReadTimeout, Response
from hypothesis import given
from hypothesis import strategies as st

from lamella.providers.connection import (
    ResponseLimits,
    ResponseTooLarge,
    SseBuffer,
    limit_response,
    limit_response_start,
)

STREAM = b'data: {"a": 1}\n\n: a comment\n\ndata: b\r\n\r\n\n\n\n\n\nevent: x\n: another\ndata: c\n\ndata: left'
SAID = [b'data: {"a": 1}', b"data: b", b"event: x\ndata: c", b"data: left"]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_events_are_complete_and_without_comments_at_any_split(cuts: list[int]) -> None:
    events = SseBuffer(ResponseLimits())
    ends = [*sorted(cuts), len(STREAM)]
    parts = [STREAM[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    told = [*(piece for part in parts for piece in events.feed(part)), *events.finish()]
    lines = b"".join(told).replace(b"\r\n", b"\n")
    assert [event.strip(b"\n") for event in lines.split(b"\n\n") if event.strip()] == SAID


class Drip(AsyncByteStream):
    """A word now and then, for ever."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.001)
            yield b"data: a\n\n"


def test_endless_answer_is_cut() -> None:
    heard: list[bytes] = []

    async def run() -> None:
        response = Response(200, stream=Drip())
        await limit_response(response, ResponseLimits(max_seconds=0.1))
        async for part in response.aiter_bytes():
            heard.append(part)

    with pytest.raises(ResponseTooLarge, match="seconds"):
        asyncio.run(run())
    assert heard[0] == b"data: a\n\n"


def test_endless_error_body_is_read_up_to_limit() -> None:
    async def run() -> bytes:
        response = Response(500, stream=Drip())
        await limit_response(response, ResponseLimits(max_error_bytes=1_000))
        return await response.aread()

    assert 0 < len(asyncio.run(run())) <= 1_000


def test_dripping_error_body_is_cut() -> None:
    async def run() -> bytes:
        response = Response(500, stream=Drip())
        await limit_response(response, ResponseLimits(max_header_seconds=0.1))
        return await response.aread()

    assert asyncio.run(run()).startswith(b"data: a\n\n")


class Empty(AsyncByteStream):
    """Packed parts that unpack to nothing, for ever."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield gzip.compress(b"")[:10]
        while True:
            await asyncio.sleep(0)
            yield b"\x00\x00\x00\xff\xff" * 100


@pytest.mark.parametrize(
    "bounds", [ResponseLimits(max_stream_bytes=10_000), ResponseLimits(max_stream_bytes=10**12, max_seconds=0.1)]
)
def test_endless_compressed_answer_is_cut(bounds: ResponseLimits) -> None:
    async def run(status: int) -> bytes:
        response = Response(status, stream=Empty(), headers={"content-encoding": "gzip"})
        await limit_response(response, bounds)
        return await response.aread()

    with pytest.raises(ResponseTooLarge, match=r"bytes before they are unpacked|seconds"):
        asyncio.run(run(200))


def test_error_body_that_unpacks_to_nothing_is_empty() -> None:
    async def run() -> bytes:
        response = Response(500, stream=Empty(), headers={"content-encoding": "gzip"})
        await limit_response(response, ResponseLimits(max_stream_bytes=10_000))
        return await response.aread()

    assert asyncio.run(run()) == b""


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_endless_header_times_out(head: bytes) -> None:
    """Every byte begins the client's own time-out again."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        more = head if head.endswith(b"\n\r\n") else b"y"
        with suppress(ConnectionError):
            writer.write(head)
            while not writer.is_closing():
                writer.write(more)
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        gone.set()

    gone = asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            async with limit_response_start(AsyncClient(timeout=60), ResponseLimits(max_header_seconds=0.3)) as http:
                await http.get(f"http://127.0.0.1:{port}/")
        finally:
            await gone.wait()
            server.close()

    with pytest.raises(ReadTimeout, match="no answer began"):
        asyncio.run(run())
