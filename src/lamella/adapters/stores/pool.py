"""Connections to one PostgreSQL server, lent to one thread at a time and kept for the next.

A pool that reconnects in the background waits longer after each failure, and goes on waiting when the server is back.
Here whoever needs a connection makes it, and gets the server's own words if that fails.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore

import psycopg

from lamella.adapters.stores.database import Row

Connection = psycopg.Connection[Row]

_PAUSE = 0.1


class Pool:
    """At most ``size`` connections, made when they are needed."""

    def __init__(self, connect: Callable[[], Connection], *, size: int, patience: float) -> None:
        self._connect = connect
        self._patience = patience
        self._room = Semaphore(size)
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._closed = False
        # What is wrong with the address shows at once: only a server that was there before is waited for.
        self._give_back(connect())

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection of one's own, given back at the end, or closed if it was lost."""
        if not self._room.acquire(timeout=self._patience):
            raise psycopg.OperationalError(f"all connections were in use for {self._patience:g} s")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._room.release()

    def drop_idle(self) -> None:
        """Close what nobody uses: when one connection was lost, the others are most likely dead too."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections, those in use when they are given back."""
        self._closed = True
        self.drop_idle()

    def _take(self) -> Connection:
        with self._lock:
            if self._closed:
                raise psycopg.InterfaceError("the pool is closed")
            if self._idle:
                return self._idle.pop()
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._connect()
            except psycopg.OperationalError:
                if time.monotonic() + _PAUSE > deadline:
                    raise
                time.sleep(_PAUSE)

    def _give_back(self, connection: Connection) -> None:
        usable = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if usable and not self._closed:
                self._idle.append(connection)
                return
        connection.close()
