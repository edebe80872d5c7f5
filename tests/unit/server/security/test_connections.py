"""Unread responses: the connection is closed, but a slow reader gets all of it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.waiting import HANG_SECONDS

from lamella.server.security import TimeLimitedConfig

# More than systems keep for a connection that nobody reads from.
LONG = 3_000_000
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n"
Visit = Callable[[uvicorn.Server, socket.socket], Awaitable[None]]


async def send_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer that is over before anybody has read it."""
    headers = [(b"content-length", str(LONG).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * LONG})


async def send_in_parts(scope: Scope, receive: Receive, send: Send) -> None:
    """A stream that goes on only as it is read."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(LONG // 10_000):
        await send({"type": "http.response.body", "body": b"x" * 10_000, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def visit(app: Callable[..., object], *, seconds: float, do: Visit) -> None:
    """Serve an application to one client that keeps little of what it was not asked for."""

    async def live() -> None:
        config = TimeLimitedConfig(
            app, head_seconds=30, unread_seconds=seconds, lifespan="off", log_config=None, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            running = asyncio.ensure_future(server.serve([listener]))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, listener.getsockname())
            try:
                await asyncio.wait_for(do(server, client), HANG_SECONDS)
            finally:
                server.should_exit = True
                await running

    asyncio.run(live())


@pytest.mark.parametrize("app", [send_at_once, send_in_parts])
@pytest.mark.parametrize("kept", [b"keep-alive", b"close"])
def test_connection_nobody_reads_from_is_closed(app: Callable[..., object], kept: bytes) -> None:
    async def do(server: uvicorn.Server, client: socket.socket) -> None:
        await asyncio.get_running_loop().sock_sendall(client, HEAD % kept)
        while not server.server_state.connections:  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)
        while server.server_state.connections:  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)

    visit(app, seconds=0.2, do=do)


@pytest.mark.parametrize("app", [send_at_once, send_in_parts])
def test_slow_reader_gets_everything(app: Callable[..., object]) -> None:
    async def do(server: uvicorn.Server, client: socket.socket) -> None:
        loop, heard = asyncio.get_running_loop(), 0
        await loop.sock_sendall(client, HEAD % b"close")
        begun = loop.time()
        while part := await loop.sock_recv(client, 100_000):
            heard += len(part)
            # Until it has taken longer than it may take to read nothing.
            await asyncio.sleep(0.02 if loop.time() - begun < 3 else 0)
        assert heard > LONG
        assert loop.time() - begun > 2

    visit(app, seconds=2, do=do)
