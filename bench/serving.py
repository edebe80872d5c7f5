"""Many chats that stream at once from one worker: how soon each answer begins, beside a bare framework's stream.

A worker is a process of its own, ``python -m bench.serving STORE`` or ``BARE``: in one process with those who ask, each
would wait for the interpreter while the other has it.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import uvicorn

from bench.verdicts import Verdicts
from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.testing import ScriptedProvider

BARE = "bare"
CHATS = 200
SECONDS = 60.0
# An answer of forty words at the pace of a model: some eight seconds.
_WORDS, _PACE = 40, 0.2


class PacedProvider(ScriptedProvider):
    """Speaks as a model does, word by word."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        async for word in speak():
            yield TextDelta(text=word)
        yield StopDelta(reason=StopReason.END)


async def speak() -> AsyncIterator[str]:
    """Words at the pace of a model, the first at once."""
    for number in range(_WORDS):
        if number:
            await asyncio.sleep(_PACE)
        yield f"word{number} "


def measure_first_events(store: str, *, chats: int = CHATS, seconds: float = SECONDS) -> tuple[float, float]:
    """The 99th percentile of seconds until an answer begins: of the server, and of a stream of the bare framework."""
    with _serve(store) as url:
        ours = asyncio.run(_load(url, "/v1/conversations/{}/messages", chats, seconds))
    with _serve(BARE) as url:
        bare = asyncio.run(_load(url, "/bare/{}", chats, seconds))
    return _find_p99(ours), _find_p99(bare)


@contextmanager
def _serve(what: str) -> Iterator[str]:
    """The address of a worker that serves a store, or the bare framework; it ends when its input does."""
    command = [sys.executable, "-m", "bench.serving", what]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            yield worker.stdout.readline().strip()
        finally:
            worker.stdin.close()


def _make_server(store: str) -> Callable[..., Any]:
    from lamella.server.serving import ServerOptions, make_worker_app
    from lamella.wiring import read_services

    services = read_services({"serve": {"rate": 10_000_000}})
    options = ServerOptions(store=store, model="scripted:paced")
    return make_worker_app(options, services=services, provider=PacedProvider())


def _make_bare() -> Callable[..., Any]:
    from fastapi import Body, FastAPI
    from fastapi.responses import StreamingResponse

    app = FastAPI()

    @app.post("/v1/conversations")
    async def begin(body: dict[str, str] = Body()) -> Mapping[str, str]:  # noqa: B008 - how the framework has it
        return {"conversation": body["name"]}

    @app.post("/bare/{name}")
    async def answer(name: str, body: dict[str, str] = Body()) -> StreamingResponse:  # noqa: B008 - as above
        async def parts() -> AsyncIterator[str]:
            async for word in speak():
                yield f"event: delta\ndata: {word}\n\n"

        return StreamingResponse(parts(), media_type="text/event-stream")

    return app


def main(what: str) -> None:
    """Serve on a free port until there is no more input, and say where."""
    from lamella.server.serving import bind_socket

    app = _make_bare() if what == BARE else _make_server(what)
    listener = bind_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))

    def end() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    # Who asks before it is ready waits in the listener's line.
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server.run([listener])


async def _load(url: str, path: str, chats: int, seconds: float) -> list[float]:
    """Seconds until each answer began, once every chat is under way."""
    firsts: list[float] = []
    ends = time.perf_counter() + seconds

    async def talk(client: httpx2.AsyncClient, number: int) -> None:
        # People do not all begin at one moment.
        await asyncio.sleep(number * _WORDS * _PACE / chats)
        begun = await client.post("/v1/conversations", json={"name": f"chat-{number}"})
        key = begun.json()["conversation"]
        while time.perf_counter() < ends:
            asked = time.perf_counter()
            async with client.stream("POST", path.format(key), json={"text": "And then?"}) as answer:
                lines = [line async for line in _note_first(answer, firsts, asked)]
            assert any(f"word{_WORDS - 1} " in line for line in lines)

    limits = httpx2.Limits(max_connections=chats)
    async with httpx2.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        # What is imported by the first request of all is not what the others wait for.
        await client.post("/v1/conversations", json={"name": "first"})
        await client.post(path.format("first"), json={"text": "And?"})
        await asyncio.gather(*(talk(client, number) for number in range(chats)))
    return firsts


async def _note_first(answer: httpx2.Response, firsts: list[float], asked: float) -> AsyncIterator[str]:
    first = True
    async for line in answer.aiter_lines():
        if first and line.startswith("event: "):
            firsts.append(time.perf_counter() - asked)
            first = False
        yield line


def _find_p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def bench_server(verdicts: Verdicts) -> None:
    """Until an answer begins while many chats stream, beside a stream of the bare framework in the same run."""
    from tests.servers import SAFE, running  # only some measures need a PostgreSQL server

    print(f"server: {CHATS} chats stream from one worker for {SECONDS:g} s, on each store", flush=True)
    with TemporaryDirectory() as folder:
        _bench_store(verdicts, "sqlite", f"sqlite:///{folder}/chats.db")
    with running(SAFE) as server:
        _bench_store(verdicts, "postgresql", server.make_store_url())


def _bench_store(verdicts: Verdicts, name: str, store: str) -> None:
    ours, bare = measure_first_events(store)
    print(
        f"  {name}: first event, 99th percentile: {ours * 1e3:.1f} ms, bare framework {bare * 1e3:.1f} ms", flush=True
    )
    verdicts.at_most(
        f"server, {name}: time to the first event over that of the bare framework, 99th percentile", ours / bare, 3.0
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
