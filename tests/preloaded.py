"""Processes that begin warm: forked from one that has imported Lamella, in a tenth of the time that a new one takes.

Each has its own memory, folder, environment and streams, and ends as any Python does. What it cannot show is what a
Python does as it starts: reading ``PYTHON...`` and locales, importing. Tests of those start Python itself.
"""

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[1]
# Read by a Python as it starts, and by nothing after that.
AT_START = ("PYTHON", "LC_", "LANG")
LENGTH = 8
STREAMS = 3
_SOURCE = "import sys; from tests.preloaded_source import serve; serve(int(sys.argv[1]))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a process is to do: a program as after ``python -c``, its words, and where it stands."""

    program: str
    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    at_terminal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a process ended, and what it wrote."""

    exit: int
    out: bytes
    err: bytes


class Process:
    """A process that runs; whoever started it waits for it."""

    def __init__(self, told: int) -> None:
        self._told = os.fdopen(told, encoding="ascii")
        self.pid = int(self._told.readline())
        self._exit: int | None = None

    def kill(self) -> None:
        """Kill it. The number of one that has ended is its own no more."""
        if self._exit is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, once it has ended; that of one which a signal ended is below zero."""
        if self._exit is None:
            with self._told:
                self._exit = int(self._told.readline())
        return self._exit


class Writing:
    """A process that writes lines, until it is killed at the end of its block at the latest."""

    def __init__(self, program: str, *words: str, folder: Path = ROOT) -> None:
        read, write = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        order = Order(program=program, words=words, environment=dict(os.environ), folder=str(folder))
        self._process = start(order, (nothing, write, os.dup(2)))
        self.lines = os.fdopen(read, encoding="utf-8")

    def kill(self) -> None:
        self._process.kill()

    def finish(self) -> tuple[int, list[str]]:
        """Its exit code and the lines that are left, once it has ended by itself."""
        left = self.lines.readlines()
        return self._process.wait(), left

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.lines.close()
        self._process.wait()


def is_warm(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment may begin warm: nothing is in it that a Python reads as it starts."""
    here = {name: value for name, value in os.environ.items() if name.startswith(AT_START)}
    return here == {name: value for name, value in environment.items() if name.startswith(AT_START)}


def start(order: Order, streams: Sequence[int]) -> Process:
    """Start a process on three streams, which are its own from here on."""
    channel = _shared_source()
    told, telling = os.pipe()
    body = json.dumps(asdict(order)).encode()
    socket.send_fds(channel, [len(body).to_bytes(LENGTH, "big")], [*streams, telling])
    channel.sendall(body)
    for stream in {*streams, telling}:
        os.close(stream)
    return Process(told)


def run(order: Order, *, stdin: bytes = b"", seconds: float) -> Done:
    """Run a process to its end; one that hangs is killed, and an error."""
    pipes = [os.pipe() for _ in range(STREAMS)]
    (read_in, write_in), (read_out, write_out), (read_err, write_err) = pipes
    process = start(order, (read_in, write_out, write_err))
    try:
        out, err = _exchange(write_in, stdin, (read_out, read_err), deadline=time.monotonic() + seconds)
    except TimeoutError:
        process.kill()
        raise
    finally:
        code = process.wait()
    return Done(exit=code, out=out, err=err)


def _exchange(into: int, data: bytes, outs: tuple[int, int], *, deadline: float) -> tuple[bytes, bytes]:
    """Write all of the data, if it is taken, and read all that comes."""
    came: dict[int, list[bytes]] = {out: [] for out in outs}
    left = memoryview(data)
    os.set_blocking(into, False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(into, selectors.EVENT_WRITE)
        for out in outs:
            waiting.register(out, selectors.EVENT_READ)
        while waiting.get_map():
            if time.monotonic() > deadline:
                raise TimeoutError(b"".join(part for parts in came.values() for part in parts).decode())
            for key, _ in waiting.select(timeout=1.0):
                if key.fd == into:
                    left = _write(into, left)
                    ended = not left
                else:
                    came[key.fd].append(os.read(key.fd, 1 << 16))
                    ended = not came[key.fd][-1]
                if ended:
                    waiting.unregister(key.fd)
                    os.close(key.fd)
    first, second = (b"".join(came[out]) for out in outs)
    return first, second


def _write(into: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(into, left) :] if left else left
    except BrokenPipeError:
        return left[:0]


@cache
def _shared_source() -> socket.socket:
    """The way to the process that the others are forked from; it ends when this one does."""
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, "-c", _SOURCE, str(number)]
        source = subprocess.Popen(command, cwd=ROOT, pass_fds=[number], start_new_session=True)

    def end() -> None:
        ours.close()
        source.wait()

    atexit.register(end)
    return ours
