"""A server in this process: real uvicorn on a free port of 127.0.0.1, the model being a script."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from tests.waiting import HANG_SECONDS

from lamella.core.messages import Delta, ModelRequest, TextDelta
from lamella.ports import ModelProvider
from lamella.server.app import make_app
from lamella.server.serving import ServerOptions, bind_socket, build_uvicorn_config, open_server_state
from lamella.server.state import ServerState
from lamella.testing import ScriptedProvider
from lamella.wiring import read_services

MODEL = "scripted:tides"


class PausingProvider(ScriptedProvider):
    """Begins its first answer, and goes on with it when it is let go."""

    def __init__(self, *replies: str) -> None:
        super().__init__(*replies)
        self.let_go = threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        begun = False
        async for delta in super().stream(request):
            if begun:
                await asyncio.to_thread(self.let_go.wait)
            begun = begun or isinstance(delta, TextDelta)
            yield delta


@dataclass(slots=True)
class RunningServer:
    """A server that runs, and a client for it."""

    state: ServerState
    url: str
    client: httpx2.Client

    def ask(self, conversation: str, text: str, **more: object) -> dict[str, Any]:
        """A whole answer."""
        body = {"text": text, "stream": False, **more}
        answer = self.client.post(f"/v1/conversations/{conversation}/messages", json=body)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def begin(self, name: str, **more: object) -> str:
        """A new conversation; its key."""
        answer = self.client.post("/v1/conversations", json={"name": name, **more})
        assert answer.status_code == 201, answer.text
        key: str = answer.json()["conversation"]
        return key


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One server-sent event."""

    name: str
    data: dict[str, Any]
    id: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


def read_events(lines: Iterator[str]) -> Iterator[SentEvent]:
    """The events of a stream, as they come."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line and "data" in fields:
            yield SentEvent(fields.get("event", ""), json.loads(fields["data"]), fields.get("id"), fields)
        if not line:
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def open_test_state(
    store: str,
    provider: ModelProvider | None,
    *,
    vault: Path | None = None,
    serve: Mapping[str, object] | None = None,
    model: str = MODEL,
) -> ServerState:
    """The state of a server over a store, as the command opens it."""
    services = read_services({"serve": dict(serve or {})})
    return open_server_state(ServerOptions(store=store, vault=vault, model=model), services=services, provider=provider)


@contextmanager
def running(
    store: str,
    provider: ModelProvider | None,
    *,
    vault: Path | None = None,
    serve: Mapping[str, object] | None = None,
    model: str = MODEL,
) -> Iterator[RunningServer]:
    """A server until the block ends; then it is stopped as a signal stops it."""
    state = open_test_state(store, provider, vault=vault, serve=serve, model=model)
    listener = bind_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(build_uvicorn_config(make_app(state), state.settings))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        threading.Event().wait(0.005)
    try:
        with httpx2.Client(base_url=url, timeout=HANG_SECONDS) as client:
            yield RunningServer(state, url, client)
    finally:
        server.should_exit = True
        thread.join(HANG_SECONDS)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"
