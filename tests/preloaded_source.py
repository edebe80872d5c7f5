"""The source of warm processes: it has imported what commands need, and forks one on request."""

import atexit
import fcntl
import gc
import json
import os
import socket
import sys
import termios
import threading
import time
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pkgutil import walk_packages
from typing import Never

from tests.preloaded import LENGTH, STREAMS, Order

import lamella

# What commands load late besides Lamella itself. Of the clients of providers most tests use one.
LATE = (
    "asyncio",
    "genai_prices.data",
    "openai.resources.chat",
    "prompt_toolkit.shortcuts",
    "psycopg",
    "rich.markdown",
    "rich.table",
    "splintr",
    "typer._adapters",
    "yaml",
)
# Packages whose modules load the client of a provider, an agent framework, or the model itself.
CLIENTS = ("lamella.integrations.", *(f"lamella.providers.{name}." for name in ("anthropic", "gemini", "local")))
# The exit code of a Python that could not write what was left in a buffer.
UNWRITTEN = 120
_MOST_OPEN = 256


def serve(number: int) -> None:
    """Fork a process for each order that comes, until no more can come. In such a process, do what was ordered."""
    _import_ahead()
    with socket.socket(fileno=number) as channel:
        while (taken := _take(channel)) is not None:
            order, streams = taken
            _reap()
            if _fork(streams[STREAMS]):
                break
            for stream in streams:
                os.close(stream)
        else:
            return
    _set_up_process(order, streams[:STREAMS])
    sys.argv = ["-c", *order.words]
    _end(_do(order.program))


def _do(program: str) -> int:
    """Run a program; its exit code."""
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - told as Python tells it
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(code: int) -> Never:
    """End as Python does, and leave its memory to the system: to clear it would take longer than most commands do."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = UNWRITTEN
    os._exit(code)


def _import_ahead() -> None:
    modules = [module.name for module in walk_packages(lamella.__path__, "lamella.")]
    for name in (*LATE, *(name for name in modules if not name.startswith(CLIENTS))):
        import_module(name)
    # What is there now stays, and need not be looked at again in each process.
    gc.collect()
    gc.freeze()


def _take(channel: socket.socket) -> tuple[Order, list[int]] | None:
    head, streams, *_ = socket.recv_fds(channel, LENGTH, STREAMS + 1)
    if not head:
        return None
    left, parts = int.from_bytes(head, "big"), []
    while left:
        parts.append(channel.recv(left))
        left -= len(parts[-1])
    return Order(**json.loads(b"".join(parts))), streams


def _fork(telling: int) -> bool:
    """True in the new process. Another one waits for it, and tells first its number and then its exit code."""
    if os.fork() != 0:
        return False
    process = os.fork()
    if process == 0:
        os.close(telling)
        return True
    os.closerange(0, telling)
    os.closerange(telling + 1, _MOST_OPEN)
    os.write(telling, f"{process}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.write(telling, f"{code}\n".encode())
    os._exit(0)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _set_up_process(order: Order, streams: list[int]) -> None:
    """Set the streams, folder and environment of the process as ordered."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if order.at_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout, sys.stderr = (_reopen(number) for number in range(STREAMS))
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()


def _reopen(number: int) -> TextIOWrapper:
    """A stream as a Python that starts would open it here."""
    old = (sys.stdin, sys.stdout, sys.stderr)[number]
    assert isinstance(old, TextIOWrapper)
    binary = open(number, "wb" if number else "rb", buffering=0 if old.write_through else -1, closefd=False)  # noqa: SIM115
    return TextIOWrapper(
        binary,
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=os.isatty(number) or number == STREAMS - 1,
        write_through=old.write_through,
    )
