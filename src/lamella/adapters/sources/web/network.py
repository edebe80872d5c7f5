"""Network: connects to the very address that was checked, and lets nothing take longer than all of it may.

Names are resolved here, once for each connection. What was resolved is checked, and that is what is connected to: an
answer that changes in between changes nothing. The name stays what the server and its certificate are asked for.
"""

import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from time import monotonic
from typing import Any

from httpcore2 import (
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
    WriteTimeout,
)

from lamella.adapters.sources.web.addresses import Admission
from lamella.errors import SourceRefusedError

# The addresses of a host; whoever tests or has names of their own brings another.
Resolver = Callable[[str, int], Sequence[str]]
_MOST_ADDRESSES = 4


def resolve_host(host: str, port: int) -> Sequence[str]:
    """The addresses that the system knows for a host, each once; ``OSError`` where it knows none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """When everything has to be done, and how long may pass with nothing done at all."""

    at: float
    silence: float

    def left(self, timeout: float | None = None) -> float:
        """How long the next step may take; nothing is left when it is not above zero."""
        return min(self.at - monotonic(), self.silence, self.silence if timeout is None else timeout)


class CheckedBackend(NetworkBackend):
    """Connects where it may."""

    def __init__(self, admission: Admission, deadline: Deadline, *, resolve: Resolver) -> None:
        self._admission = admission
        self._deadline = deadline
        self._resolve = resolve
        self._plain = SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        *_where: Any,  # noqa: ANN401 - from where a connection is made is left to the system
        **_how: Any,  # noqa: ANN401
    ) -> NetworkStream:
        addresses = self._look_up(host, port)
        for address in addresses:
            if not self._admission.admits(host, address):
                raise SourceRefusedError(
                    f"{host} is at {address}, which is not a public address.",
                    hint="Attach its text. Your own settings, not a project's, may allow it in private_addresses.",
                )
        failed: Exception = ConnectError("no address")
        for address in addresses[:_MOST_ADDRESSES]:
            left = self._deadline.left(timeout)
            if left <= 0:
                raise ConnectTimeout("out of time")
            try:
                return TimedStream(self._plain.connect_tcp(address, port, left), self._deadline)
            except (ConnectError, ConnectTimeout) as error:
                failed = error
        raise failed

    def _look_up(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host. The system cannot be told how long that may take, so somebody else waits for it."""
        found: list[Sequence[str] | Exception] = []

        def ask() -> None:
            try:
                found.append(self._resolve(host, port))
            except (OSError, UnicodeError) as error:
                found.append(error)

        asking = Thread(target=ask, daemon=True, name="lamella-resolver")
        asking.start()
        asking.join(max(0, self._deadline.left()))
        if not found:
            raise ConnectTimeout(f"the name {host} is not answered")
        if isinstance(found[0], Exception):
            raise ConnectError(f"there is no host {host}")
        return found[0]


class TimedStream(NetworkStream):
    """A connection whose every step ends when the time for all of them does."""

    def __init__(self, stream: NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._deadline.left(timeout)
        if left <= 0:
            raise ReadTimeout("out of time")
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = self._deadline.left(timeout)
        if left <= 0:
            raise WriteTimeout("out of time")
        self._stream.write(buffer, left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        left = self._deadline.left(timeout)
        if left <= 0:
            raise ConnectTimeout("out of time")
        return TimedStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
