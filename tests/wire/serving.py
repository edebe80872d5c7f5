"""A real HTTP server on 127.0.0.1 that answers from a function, a thread per connection."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from typing import Any

from tests.waiting import HANG_SECONDS
from tests.wire.script import Act, Cut, Endless, Garbage, Page, Silence

# How long a silent server waits for the client to leave before it gives up and lets the test fail.
_LONGEST = HANG_SECONDS
_PACE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        found = json.loads(self.raw)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A stream of chunks; ``whole`` says whether it ends as HTTP wants it, ``pace`` waits between chunks."""

    chunks: Iterable[bytes]
    whole: bool = True
    pace: float = 0.0
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """No answer."""


Outcome = Plain | Flow | Nothing


class Loopback:
    """What a server has seen. ``arrived`` is set by the first request, ``left`` by a client that left too early."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.arrived = threading.Event()
        self.left = threading.Event()
        self.ending = threading.Event()
        self.url = ""
        self.connections = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [call.body for call in self.calls]


def json_answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Plain:
    return Plain(
        status=status, body=json.dumps(value).encode(), headers={"content-type": "application/json", **(headers or {})}
    )


def misbehave(act: Act, opening: list[bytes], *, idle: bytes, word: bytes) -> Outcome | None:
    """The outcome of an act that needs no wire format beyond the events a stream opens with; none for the others."""
    match act:
        case Page():
            return Plain(status=404, body=b"<html><h1>Not Found</h1></html>", headers={"content-type": "text/html"})
        case Silence(late=late):
            return Flow(chunks=opening, hangs=True) if late else Nothing()
        case Garbage():
            return Flow(chunks=[b"event: message_start\ndata: {{{ not json\n\n", b"\x00\xff\xfe\n\n"])
        case Cut(clean=clean):
            return Flow(chunks=opening, whole=clean)
        case Endless(text=text):
            return Flow(chunks=chain(opening, repeat(word if text else idle)), pace=_PACE)
    return None


class _Server(ThreadingHTTPServer):
    # The default is 5, and many clients that connect at once would be reset.
    request_queue_size = 128


@contextmanager
def serve(answer: Callable[[Call], Outcome], seen: Loopback) -> Iterator[Loopback]:
    """A server for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            seen.connections += 1
            super().setup()

        def log_message(self, format: str, *args: object) -> None:
            """Tests read what they need from the recorded calls."""

        def _handle(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(method=self.command, path=self.path, headers=headers, raw=raw)
            seen.calls.append(call)
            seen.arrived.set()
            _reply(self, answer(call), seen)

        do_POST = do_GET = do_PATCH = do_DELETE = _handle  # noqa: N815 - names that http.server looks for

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield seen
    finally:
        seen.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _reply(handler: BaseHTTPRequestHandler, outcome: Outcome, seen: Loopback) -> None:
    try:
        match outcome:
            case Plain(status=status, body=body, headers=headers):
                _head(handler, status, {**headers, "content-length": str(len(body))})
                handler.wfile.write(body)
            case Flow():
                _flow(handler, outcome, seen)
            case Nothing():
                _wait_until_left(handler, seen)
    except (BrokenPipeError, ConnectionResetError):
        seen.left.set()
        handler.close_connection = True


def _head(handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str]) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()


def _flow(handler: BaseHTTPRequestHandler, flow: Flow, seen: Loopback) -> None:
    _head(handler, 200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
    for chunk in flow.chunks:
        if seen.ending.wait(flow.pace) if flow.pace else seen.ending.is_set():
            return
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        handler.wfile.flush()
    if flow.hangs:
        _wait_until_left(handler, seen)
    elif flow.whole:
        handler.wfile.write(b"0\r\n\r\n")
    handler.close_connection = not flow.whole


def _wait_until_left(handler: BaseHTTPRequestHandler, seen: Loopback) -> None:
    handler.close_connection = True
    handler.connection.settimeout(_LONGEST)
    try:
        if handler.connection.recv(1) == b"":
            seen.left.set()
    except (TimeoutError, OSError):
        seen.left.set()
