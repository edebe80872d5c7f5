"""The compatibility endpoints: the cost of a note chat that glues its documents, and CPU time beside a bare proxy."""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from bench.text import make_text
from bench.verdicts import Verdicts
from lamella.server.compat.requests import (
    build_passthrough_body,
    is_equivalent_body,
    parse_request,
    plan_document_references,
)
from lamella.server.compat.wires import ApiFormat

TURNS = 40
WIRES = (ApiFormat.CHAT, ApiFormat.MESSAGES, ApiFormat.RESPONSES)
_DOCUMENTS = 8
_GLUED = 3
_CHARACTERS = 4_000
# Prices relative to plain input, as Anthropic bills its cache.
_READ, _WRITE = 0.1, 1.25
_MODEL = "openai-compatible:http://127.0.0.1:{port}/v1#tides"
_REQUESTS = 60
_WARM_UP = 10
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GluedCost:
    """The cost of a note chat with Lamella and sent directly, in tokens of plain input.

    Of the ``glued`` documents of all questions so many were ``readable`` in the request that answered theirs.
    """

    through: float
    directly: float
    readable: int
    glued: int

    @property
    def ratio(self) -> float:
        return self.through / self.directly


def measure_cost(wire: ApiFormat, turns: int = TURNS) -> GluedCost:
    """Return the cost of the same note chat with Lamella and directly; each request extends the one before."""
    field = "input" if wire is ApiFormat.RESPONSES else "messages"
    history: list[dict[str, Any]] = []
    written: list[str] = []
    laid_out: list[str] = []
    readable = 0
    for number in range(turns):
        history.append({"role": "user", "content": ask(number)})
        request = parse_request(wire, json.dumps({"model": "m", "max_tokens": 500, field: history}).encode())
        sent = build_passthrough_body(request, model="m", layout=plan_document_references(request))
        assert is_equivalent_body(request, sent, model="m", has_added_breakpoints=False), "nothing is lost"
        written.append(_prompt_text(history))
        laid_out.append(_prompt_text(json.loads(sent)[field]))
        readable += sum(make_text(name, _CHARACTERS).strip() in laid_out[-1] for name in list_glued(number))
        history.append({"role": "assistant", "content": f"That is answer {number}."})
    glued = sum(len(list_glued(number)) for number in range(turns))
    return GluedCost(through=_price(laid_out), directly=_price(written), readable=readable, glued=glued)


def list_glued(number: int) -> list[int]:
    """The documents that a host glues to a question: those that its user has open, which change slowly."""
    return [(number // 5 + shift) % _DOCUMENTS for shift in range(_GLUED)]


def ask(number: int) -> str:
    """A question as a host writes it: its documents first, in frames."""
    frames = [
        f'<document path="note-{name}.md">\n{make_text(name, _CHARACTERS)}\n</document>' for name in list_glued(number)
    ]
    return "\n".join((*frames, f"What of point {number}?"))


def _prompt_text(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"{one['role']}: {one['content']}" for one in messages)


def _price(prompts: Sequence[str]) -> float:
    """Return the price of the prompts, of which each reads what it shares with the one before from a cache."""
    cost = _WRITE * len(prompts[0])
    for before, after in pairwise(prompts):
        shared = next(
            (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before)
        )
        cost += _READ * shared + _WRITE * (len(after) - shared)
    return cost / 4


# CPU time, of processes that do nothing else.

_UPSTREAM = """
import json, sys, uvicorn
BODY = json.dumps({"id": "c1", "object": "chat.completion", "created": 1, "model": "tides", "choices": [{"index": 0,
    "message": {"role": "assistant", "content": "At noon."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}).encode()
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False, lifespan="off")
"""
_PROXY = """
import sys, httpx2, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
client = httpx2.AsyncClient()
async def pass_on(request):
    body = await request.body()
    answer = await client.post(sys.argv[2], content=body, headers={"content-type": "application/json"})
    return Response(answer.content, answer.status_code, media_type="application/json")
app = Starlette(routes=[Route("/v1/chat/completions", pass_on, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False, http="h11", loop="asyncio")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """The median CPU time of a request in milliseconds, of Lamella's server and of a bare proxy."""

    lamella: float
    proxy: float


def measure_overhead(messages: int, requests: int = _REQUESTS) -> Overhead:
    """Return the CPU time of a request with a history of so many messages."""
    with TemporaryDirectory() as folder, _run(_UPSTREAM) as (_, upstream):
        address = f"http://127.0.0.1:{upstream}/v1/chat/completions"
        lamella = ["serve", "--store", f"sqlite:///{folder}/store.db", "--model", _MODEL.format(port=upstream)]
        with _run(_PROXY, address) as proxy, _run_lamella(lamella, folder) as server:
            histories = [_history(messages, number) for number in range(requests)]
            measured = [[_measure(*one, body) for body in histories] for one in (proxy, server)]
    bare, ours = (statistics.median(times[_WARM_UP:]) for times in measured)
    return Overhead(lamella=ours, proxy=bare)


def _history(messages: int, number: int) -> bytes:
    """Return a request whose last question is new."""
    words = "The sluice opens at noon, and closes when the heron leaves. " * 5
    roles = ("user", "assistant")
    said = [{"role": roles[at % 2], "content": f"{at} {words}"} for at in range(messages - 1)]
    asked = [*said, {"role": "user", "content": f"What of point {number}?"}]
    return json.dumps({"model": "lamella", "messages": asked}).encode()


def _measure(process: int, port: int, body: bytes) -> float:
    before = _cpu_nanoseconds(process)
    answer = httpx2.post(
        f"http://127.0.0.1:{port}/v1/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    answer.raise_for_status()
    # What a server does after its answer belongs to the request.
    time.sleep(0.02)
    return (_cpu_nanoseconds(process) - before) / 1e6


def _cpu_nanoseconds(process: int) -> int:
    """Return the time that all threads of a process have run, from Linux's scheduler."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{process}/task").glob("*/schedstat"))


@contextmanager
def _run(program: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run a program that listens at a free port; yield its process id and the port."""
    port = _free_port()
    with _started([sys.executable, "-c", program, str(port), *arguments], port, {}) as process:
        yield process, port


@contextmanager
def _run_lamella(arguments: Sequence[str], folder: str) -> Iterator[tuple[int, int]]:
    port = _free_port()
    own = {"LAMELLA_CONFIG": os.devnull, "XDG_CONFIG_HOME": folder, "LAMELLA_MEMORY_FOLDER": folder}
    program = "import sys; from lamella.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *arguments, "--port", str(port)]
    with _started(command, port, own) as process:
        yield process, port


@contextmanager
def _started(command: Sequence[str], port: int, environment: dict[str, str]) -> Iterator[int]:
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        ends = time.monotonic() + _START_SECONDS
        while not _listens(port):
            assert process.poll() is None, f"the program ended: {command[-6:]}"
            assert time.monotonic() < ends, "the program does not listen"
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def bench_compat(verdicts: Verdicts) -> None:
    """A note chat that glues its documents into messages, and the CPU time of requests beside a bare proxy."""
    print(
        f"compat: {TURNS} turns, {_GLUED} of {_DOCUMENTS} documents of {_CHARACTERS:,} characters with each", flush=True
    )
    for wire in WIRES:
        cost = measure_cost(wire)
        print(f"  {wire}: {cost.through:,.0f} tokens of plain input with Lamella, {cost.directly:,.0f} directly")
        verdicts.at_most(f"{wire}: cost over that of sending directly", cost.ratio, 0.7)
        verdicts.at_most(f"{wire}: documents that cannot be read", cost.glued - cost.readable, 0)
    for messages, bound in ((1, 8), (40, 15)):
        overhead = measure_overhead(messages)
        print(f"  {messages} messages: {overhead.lamella:.1f} ms CPU, a bare proxy {overhead.proxy:.1f} ms", flush=True)
        verdicts.at_most(f"{messages} messages: milliseconds of CPU per request", overhead.lamella, bound)
