"""A server between a client and PostgreSQL: it can lose the answer to a commit, or end in the middle of one."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from select import select
from types import TracebackType

from tests.waiting import HANG_SECONDS

_NAME = ".s.PGSQL.5432"
# What ends a transaction, and what is one by itself.
_COMMITS = (b"COMMIT\0", b"WITH moved AS", b"WITH wanted AS")
_FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0"
_LAST_WORDS = b"E" + (len(_FIELDS) + 4).to_bytes(4, "big") + _FIELDS
_READY = b"Z\0\0\0\5T"
_LINGERING = 0.3


class Proxy:
    """Passes everything on, until told to lose the next answer to a commit or to let nobody in."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        self.lose_commit = False
        self.shut = False
        self.lost = 0
        # At these statements the server says its last words, as one whose first process died; the line stays a while.
        self.end_at = b""
        # How often the client has sent something.
        self.asked = 0
        self._target = target / _NAME
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / _NAME))
        self._listening.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A shutdown wakes the thread that waits for connections; closing alone does not.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(timeout=HANG_SECONDS)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.shut:
                    client.close()
                    continue
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self._target))
            while self._forward(client, server):
                pass

    def _forward(self, client: socket.socket, server: socket.socket) -> bool:
        """Pass on what has come; whether to go on."""
        ready, _, _ = select([client, server], [], [])
        if server in ready:
            data = server.recv(65536)
            client.sendall(data)
            return bool(data)
        data = client.recv(65536)
        self.asked += 1
        if self.end_at and self.end_at in data:
            self.end_at = b""
            self.lost += 1
            self._end(client, server, data)
            return False
        server.sendall(data)
        if self.lose_commit and any(one in data for one in _COMMITS):
            # The server has committed when it answers; the client never hears of it.
            server.recv(65536)
            self.lose_commit = False
            self.lost += 1
            return False
        return bool(data)

    def _end(self, client: socket.socket, server: socket.socket, asked: bytes) -> None:
        """Pass on what is asked, however many pieces it comes in, and the answer but for the word that it is whole."""
        told = b""
        server.sendall(asked)
        while not told.endswith(_READY):
            ready, _, _ = select([client, server], [], [])
            if client in ready:
                server.sendall(client.recv(65536))
            if server in ready:
                told += server.recv(65536)
        client.sendall(told.removesuffix(_READY) + _LAST_WORDS)
        time.sleep(_LINGERING)
