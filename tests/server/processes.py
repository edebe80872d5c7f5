"""``lamella serve`` in processes of its own, on a free port, and a model on the loopback that repeats what it hears."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from tests.waiting import HANG_SECONDS, wait_until
from tests.wire.openai_caching import KEY
from tests.wire.openai_chat_server import ChatServer
from tests.wire.script import Say
from tests.wire.serving import Call, Flow, Outcome, serve

COMMAND = [sys.executable, "-c", "import sys; from lamella.cli import main; sys.exit(main(sys.argv[1:]))"]


@contextmanager
def served(store: str, *options: str, model: str, home: Path) -> Iterator[tuple[httpx2.Client, subprocess.Popen[str]]]:
    """``lamella serve`` on a free port, and a client for it."""
    process, address = start_server(store, *options, model=model, home=home)
    try:
        with httpx2.Client(base_url=address, timeout=HANG_SECONDS) as client:
            wait_ready(client)
            yield client, process
    finally:
        if process.poll() is None:
            # One that has workers ends them, which it could not if it were killed.
            process.terminate()
        process.communicate(timeout=HANG_SECONDS)


def start_server(store: str, *options: str, model: str, home: Path) -> tuple[subprocess.Popen[str], str]:
    """The process, which leads a group of its own, and the address that it says it listens at."""
    words = [*COMMAND, "serve", "--port", "0", "--store", store, "--model", model, *options]
    environment = {**os.environ, "HOME": str(home), "LAMELLA_API_KEY": KEY}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stderr is not None
    told: dict[str, Any] = json.loads(process.stderr.readline())
    return process, told["address"]


def wait_ready(client: httpx2.Client) -> None:
    """Until it takes requests."""

    def is_ready() -> bool:
        try:
            return client.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    wait_until(is_ready, "the server takes requests")


@dataclass(slots=True, kw_only=True)
class EchoServer(ChatServer):
    """A model that says the last question again, piece by piece, as slowly as it is told."""

    pace: float = 0.02

    def answer(self, call: Call) -> Outcome:
        asked = [message["content"] for message in call.body["messages"] if message["role"] == "user"][-1]
        outcome = self._say(Say(text=f"You ask: {asked}"), call.body)
        return replace(outcome, pace=self.pace) if isinstance(outcome, Flow) else outcome


@contextmanager
def echo_server() -> Iterator[EchoServer]:
    """The model, for as long as the block runs."""
    server = EchoServer(acts=deque())
    with serve(server.answer, server):
        yield server
