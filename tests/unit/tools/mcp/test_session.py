"""Servers at an address that never end: what is read of them has an end, and so has saying goodbye."""

import asyncio
import json
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from tests.waiting import HANG_SECONDS

from lamella.tools.mcp import McpServerSpec, McpSession, McpToolError

MEGABYTE = 1_024 * 1_024
SECONDS = HANG_SECONDS


def unpack_for_ever() -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=31)
    while True:
        yield packer.compress(b" " * MEGABYTE) + packer.flush(zlib.Z_SYNC_FLUSH)


def repeat(part: bytes) -> Iterator[bytes]:
    while True:
        yield part


# Head, what comes for ever, and how much of it may be taken: what waits in sockets comes on top of the bound.
ENDLESS: dict[str, tuple[bytes, Callable[[], Iterator[bytes]], int]] = {
    "a body": (b"200 OK\r\nContent-Type: application/json", lambda: repeat(b" " * 65_536), 20 * MEGABYTE),
    "a line": (b"200 OK\r\nContent-Type: text/event-stream", lambda: repeat(b"x" * 65_536), 20 * MEGABYTE),
    "comments": (b"200 OK\r\nContent-Type: text/event-stream", lambda: repeat(b": x\n" * 16_384), 90 * MEGABYTE),
    "a bomb": (b"200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip", unpack_for_ever, MEGABYTE),
    "a refusal": (b"400 No\r\nContent-Type: application/json", lambda: repeat(b" " * 65_536), 20 * MEGABYTE),
}


@dataclass(slots=True)
class Hostile:
    """A server on loopback that answers as it is told to; ``given`` is how many bytes it got rid of."""

    answer: Callable[["Hostile", asyncio.StreamWriter, bytes, dict[str, object]], Awaitable[None]]
    given: int = 0
    serving: set[asyncio.Task[object]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(lengths[0].partition(b":")[2])) if lengths else b"{}"
                await self.answer(self, writer, head.partition(b" ")[0], json.loads(body))
        writer.transport.abort()

    async def pour(self, writer: asyncio.StreamWriter, head: bytes, parts: Iterator[bytes]) -> None:
        writer.write(b"HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n\r\n" % head)
        for part in parts:
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            # Small parts fill no buffer, and nobody else would ever have a turn.
            await asyncio.sleep(0.001)
            self.given += len(part)


async def say(writer: asyncio.StreamWriter, asked: dict[str, object], result: Mapping[str, object]) -> None:
    said = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    head = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: it\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % len(said) + said)
    await writer.drain()


async def drip(writer: asyncio.StreamWriter) -> None:
    """A head that never ends: every byte begins a client's time-out again."""
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        writer.write(b"y")
        await writer.drain()
        await asyncio.sleep(0.01)


async def answer_until_called(
    _own: Hostile, writer: asyncio.StreamWriter, method: bytes, asked: dict[str, object]
) -> None:
    server = {"name": "x", "version": "1"}
    match method, asked.get("method"):
        case b"POST", "initialize":
            told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
            await say(writer, asked, told)
        case b"POST", "tools/list":
            await say(writer, asked, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        case b"POST", "tools/call":
            await drip(writer)
        case b"POST", "notifications/initialized":
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        case b"POST", _:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        case _:
            await drip(writer)


async def with_server(hostile: Hostile, use: Callable[[McpSession], Awaitable[None]], *, seconds: float) -> None:
    server = await asyncio.start_server(hostile.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    session = McpSession(McpServerSpec(name="it", url=address, seconds=seconds), close_timeout=0.6)
    try:
        await use(session)
    finally:
        await session.close()
        server.close()
        for task in hostile.serving:
            task.cancel()
        await asyncio.gather(*hostile.serving)
        await asyncio.sleep(0)


async def refuse_to_list(session: McpSession) -> None:
    with pytest.raises(McpToolError, match="The server it could not be used"):
        await session.list_tools()


@pytest.mark.parametrize("endless", ENDLESS)
def test_endless_answer_is_refused_at_limit(endless: str) -> None:
    head, parts, most = ENDLESS[endless]

    async def answer(hostile: Hostile, writer: asyncio.StreamWriter, _method: bytes, _asked: dict[str, object]) -> None:
        await hostile.pour(writer, head, parts())

    hostile, begun = Hostile(answer), time.monotonic()
    asyncio.run(with_server(hostile, refuse_to_list, seconds=60))
    assert hostile.given < most
    assert time.monotonic() - begun < 60


def test_endless_header_is_given_up() -> None:
    async def use(session: McpSession) -> None:
        assert [name for name, *_ in await session.list_tools()] == ["t"]
        with pytest.raises(McpToolError, match="no answer within 1 seconds"):
            await session.call("t", {})
        assert [name for name, *_ in await session.list_tools()] == ["t"]

    async def within() -> None:
        async with asyncio.timeout(SECONDS):
            await with_server(Hostile(answer_until_called), use, seconds=1)

    asyncio.run(within())


def test_slowly_closing_connection_does_not_affect_new_one() -> None:
    async def use(session: McpSession) -> None:
        assert await session.list_tools()
        ending = asyncio.create_task(session.close())
        await asyncio.sleep(0.1)
        # It is started once more, and not a third time.
        assert await session.list_tools()
        await ending
        assert await session.list_tools()

    async def within() -> None:
        async with asyncio.timeout(SECONDS):
            await with_server(Hostile(answer_until_called), use, seconds=1)

    asyncio.run(within())
