"""The protocol's messages over stdin and stdout, one JSON object per line.

``claim_stdio`` takes both streams for the protocol: whatever else prints goes to stderr from then on. A line that is no
message gets an error response, and the connection continues.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from threading import Thread
from typing import Any, BinaryIO

# The longest message; images come in one.
MAX_MESSAGE_BYTES = 50 * 1024 * 1024
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class StdioTransport:
    """Sends and receives messages over a pair of binary streams. It must be used on one event loop."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        # One thread writes, so that messages stay in order even if a sender is cancelled meanwhile.
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lamella-acp-write")
        # A daemon, because reading cannot be interrupted.
        Thread(target=self._read_lines, name="lamella-acp-read", daemon=True).start()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message; raises ``ConnectionError`` if nobody reads any more."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            await self._loop.run_in_executor(self._writer, self._write, line)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConnectionError("The editor has closed the connection.") from error

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end."""
        return await self._received.get()

    async def close(self) -> None:
        """Write what was sent so far, and send nothing more."""
        await asyncio.to_thread(self._writer.shutdown)

    def _write(self, line: bytes) -> None:
        self._target.write(line)
        self._target.flush()

    def _read_lines(self) -> None:
        try:
            while line := self._source.readline(MAX_MESSAGE_BYTES + 1):
                if len(line) > MAX_MESSAGE_BYTES:
                    while line and not line.endswith(b"\n"):
                        line = self._source.readline(MAX_MESSAGE_BYTES)
                    self._reject(_INVALID_REQUEST, f"A message has at most {MAX_MESSAGE_BYTES:,} bytes.")
                elif line.strip():
                    self._deliver(line)
        except (OSError, ValueError):
            # The stream was closed while it was read.
            pass
        finally:
            self._put(None)

    def _deliver(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._reject(_PARSE_ERROR, "A line is not JSON. Send one JSON object per line.")
            return
        if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
            self._reject(_INVALID_REQUEST, "A message is a JSON object with a method.")
            return
        self._put(message)

    def _put(self, message: dict[str, Any] | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._received.put_nowait, message)

    def _reject(self, code: int, message: str) -> None:
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
        self._writer.submit(self._write, json.dumps(error).encode() + b"\n")


@contextmanager
def claim_stdio() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield stdin and stdout for the protocol. Meanwhile everything that is printed goes to stderr."""
    with (
        os.fdopen(os.dup(sys.stdin.fileno()), "rb") as source,
        os.fdopen(os.dup(sys.stdout.fileno()), "wb") as target,
    ):
        sys.stdout.flush()
        # Also for libraries and programs that write to the file descriptor and not to ``sys.stdout``.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with redirect_stdout(sys.stderr):
            yield source, target
