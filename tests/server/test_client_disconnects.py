"""Clients that want a whole answer and go away before it is there: as those that follow a stream do."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator
from time import monotonic, sleep
from typing import Any

import httpx2
import pytest
from tests.server.running import RunningServer, running
from tests.waiting import HANG_SECONDS

from lamella.core.messages import Delta, ModelRequest, TextDelta
from lamella.testing import ScriptedProvider, ScriptedReply

ASKED = [{"role": "user", "content": "When?"}]
LONG = 300


class EndlessProvider(ScriptedProvider):
    """Says how its answer begins, and then nothing for longer than anybody waits."""

    def __init__(self) -> None:
        super().__init__(ScriptedReply(text="At noon.", chunk_size=4))
        self.said = threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        async for delta in super().stream(request):
            yield delta
            if isinstance(delta, TextDelta):
                self.said.set()
                await asyncio.sleep(LONG)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/conversations/left/messages", {"text": "When?", "stream": False}),
        ("/v1/solution", {"prompt": "When?", "conversation": "left"}),
    ],
)
def test_disconnected_client_of_whole_answer_stops_model(path: str, body: dict[str, Any]) -> None:
    provider = EndlessProvider()
    with running("memory:", provider, serve={"grace": 2, "stop_seconds": 1}) as server:
        server.begin("left")
        _ask_and_leave(server, path, body, said=provider.said)
        assert _wait_for_reply(server) == "At n"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": ASKED}),
        ("/v1/messages", {"messages": ASKED, "max_tokens": 90}),
        ("/v1/responses", {"input": "When?"}),
    ],
)
def test_compat_client_that_leaves_stops_the_model(path: str, body: dict[str, Any], *, stream: bool) -> None:
    provider = EndlessProvider()
    with running("memory:", provider, serve={"grace": 2, "stop_seconds": 1}) as server:
        _ask_and_leave(server, path, {**body, "stream": stream}, said=provider.said)
        ends = monotonic() + 20
        while not provider.cancelled and monotonic() < ends:
            sleep(0.05)
        assert provider.cancelled == 1


def _ask_and_leave(server: RunningServer, path: str, body: dict[str, Any], *, said: threading.Event) -> None:
    address, sent = httpx2.URL(server.url), json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}"
    with socket.create_connection((address.host, address.port or 0)) as client:
        client.sendall(head.encode() + b"\r\n\r\n" + sent)
        assert said.wait(HANG_SECONDS)


def _wait_for_reply(server: RunningServer) -> str:
    ends = monotonic() + HANG_SECONDS
    while monotonic() < ends:
        turns = server.client.get("/v1/conversations/left").json()["turns"]
        if turns and turns[-1]["reply"] is not None:
            return str(turns[-1]["reply"]["text"])
        sleep(0.2)
    raise AssertionError("nothing was written down")
