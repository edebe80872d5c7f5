"""Connections: how long the head of a request may take to arrive, and what is sent may lie unread.

Neither is anything that the application could see. Whoever opens connections and says little on each, or asks for much
and reads none of it, would otherwise keep them all: a machine whose window is shut answers for as long as it likes.
"""

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from fastapi.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from lamella.errors import BadInputError
from lamella.faces.server.failures import tell_error
from lamella.faces.server.guard.guard import HEADERS

# Of what waits to be sent, so many bytes have to leave for each second: slow lines take more by far.
_LEAST = 1_000
# What the system keeps for who reads slowly. Left to itself it keeps megabytes, and asks for more only when a third of
# them is read: whoever is slow would look like who reads nothing.
_KEPT_BYTES = 131_072


class BoundConnection(H11Protocol):
    """Speaks HTTP, and closes a connection on which a head does not arrive or what is sent is not read in time."""

    config: "BoundConfig"
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        super().connection_made(transport)
        # Writing is paused as soon as the system takes no more, so that also the last bytes of an answer are waited for
        # no longer than this: what closes a connection would wait for them for ever.
        transport.set_write_buffer_limits(high=0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KEPT_BYTES)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._settle()
        elif self._late is None:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Tell what is no HTTP at all as every other failure is told, and close the connection."""
        status, told = tell_error(
            BadInputError(msg, hint="Send it as HTTP has it; GET /openapi.json has what is taken.")
        )
        body = JSONResponse(told, status, headers={**HEADERS, "Connection": "close"})
        parts = (
            h11.Response(status_code=status, headers=body.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(body.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(part) or b"" for part in parts))
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_read()

    def resume_writing(self) -> None:
        self._settle_read()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        self._settle_read()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(self.config.head_seconds, self._close)

    def _settle(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        self._late = None
        self.transport.close()

    def _wait_read(self) -> None:
        seconds, waiting = self.config.unread_seconds, self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(seconds, self._look, waiting - _LEAST * seconds)

    def _settle_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _look(self, most: float) -> None:
        """Give up who reads nothing, or next to nothing; whoever reads a long answer slowly has more time."""
        self._unread = None
        if self.transport.get_write_buffer_size() > most:
            # What was said is in the log: whoever comes back hears it there.
            self.transport.abort()
        else:
            self._wait_read()


class BoundConfig(uvicorn.Config):
    """How uvicorn runs an application, and within which seconds. Processes are handed it whole."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - as uvicorn has it
        *,
        head_seconds: float,
        unread_seconds: float,
        **more: Any,  # noqa: ANN401 - as uvicorn has it
    ) -> None:
        self.head_seconds = head_seconds
        self.unread_seconds = unread_seconds
        super().__init__(app, http=BoundConnection, **more)
