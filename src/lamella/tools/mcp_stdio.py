"""The connection to an MCP server that runs as a program: messages are lines on its standard input and output.

The SDK's own transport reads a line of any length into memory. ``open_stdio`` limits what is read, per message and per
request, and ends the connection at a limit.
"""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamella.providers.connection import ResponseLimits

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process

# A large result is cut to what a turn keeps, so its message may be larger than an event of a provider.
STDIO_LIMITS = ResponseLimits(max_event_bytes=16 * 1_024 * 1_024, max_stream_bytes=64 * 1_024 * 1_024)
_READ_BYTES = 65_536
# The shutdown that the protocol asks for: seconds to exit after standard input was closed, then after SIGTERM.
_EXIT_SECONDS = 2.0
_TERMINATE_SECONDS = 2.0
_POLL_SECONDS = 0.01


class StdioStatus(Struct):
    """Why a connection was ended here; empty if it was not."""

    failure: str = ""


class MessageSplitter:
    """Splits the output of a server into lines, within limits.

    ``max_event_bytes`` limits one line, ``max_stream_bytes`` everything that follows one request.
    """

    def __init__(self, limits: ResponseLimits) -> None:
        self._limits = limits
        self._pending = bytearray()
        self._bytes_since_request = 0

    def reset_request_limit(self) -> None:
        """Note that a request is sent: the server may send as much again."""
        self._bytes_since_request = 0

    def feed(self, part: bytes) -> list[bytes]:
        """Return the lines that are complete now; raises ``ValueError`` at a limit."""
        *ends, rest = part.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._add_to_unfinished_line(end)
            lines.append(bytes(self._pending))
            self._pending.clear()
        self._add_to_unfinished_line(rest)
        self._bytes_since_request += len(part)
        if self._bytes_since_request > self._limits.max_stream_bytes:
            raise ValueError(f"it sent more than {self._limits.max_stream_bytes:,} bytes after one request")
        return lines

    def _add_to_unfinished_line(self, part: bytes) -> None:
        if len(self._pending) + len(part) > self._limits.max_event_bytes:
            raise ValueError(f"it sent a message of more than {self._limits.max_event_bytes:,} bytes")
        self._pending += part


@asynccontextmanager
async def open_stdio(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: str | None,
    status: StdioStatus,
    limits: ResponseLimits = STDIO_LIMITS,
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and yield the streams of its messages; at the end, shut it down as the protocol says.

    At a limit, the stream of its messages ends, and ``status`` has the reason. The standard error of a server is
    discarded: its control characters would act on the user's terminal.
    """
    import subprocess

    import anyio
    from mcp.client.stdio import get_default_environment
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

    process = await anyio.open_process(
        list(command),
        env=get_default_environment() | dict(environment),
        cwd=folder,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    stdin, stdout = process.stdin, process.stdout
    # From here on nothing waits until the tasks have started, so that a cancelled start leaves no process behind.
    came, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    splitter = MessageSplitter(limits)
    closed_errors = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

    async def read() -> None:
        async with came:
            with suppress(*closed_errors):
                while True:
                    part = await stdout.receive(_READ_BYTES)
                    try:
                        lines = splitter.feed(part)
                    except ValueError as error:
                        status.failure = str(error)
                        break
                    for line in lines:
                        message: SessionMessage | Exception
                        try:
                            text = line.decode("utf-8", "replace")
                            message = SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
                        except ValueError as error:
                            message = error
                        await came.send(message)
        await _discard_rest_of_output(stdout)

    async def write() -> None:
        with suppress(*closed_errors):
            async with to_send:
                async for message in to_send:
                    if isinstance(message.message, JSONRPCRequest):
                        splitter.reset_request_limit()
                    json = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(json.encode() + b"\n")
                return
        # The program closed its input: without this, a request would wait for an answer that cannot come.
        await came.aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await _stop_server_process(process)
            tasks.cancel_scope.cancel()


async def _discard_rest_of_output(stream: "ByteReceiveStream") -> None:
    """Read and discard the rest of the output, so that a server which still writes can end."""
    import anyio

    with (
        suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError),
        anyio.CancelScope(shield=True),
    ):
        while True:
            await stream.receive(_READ_BYTES)


async def _stop_server_process(process: "Process") -> None:
    """Close the input of a server, wait for it to exit, and otherwise end it with its descendants."""
    import anyio

    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    if not await _wait_for_exit(process, _EXIT_SECONDS):
        if sys.platform == "win32":
            process.kill()
        else:
            from mcp.os.posix.utilities import terminate_posix_process_tree

            await terminate_posix_process_tree(process, _TERMINATE_SECONDS)
        await _wait_for_exit(process, _TERMINATE_SECONDS)
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdout.aclose()


async def _wait_for_exit(process: "Process", seconds: float) -> bool:
    """Return whether the process ends in time. ``Process.wait`` would also wait for children that have its pipes."""
    import anyio

    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110 - the process sets no event
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None
