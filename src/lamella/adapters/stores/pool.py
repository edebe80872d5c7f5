"""Connections to one PostgreSQL server, lent to one thread at a time and kept for the next.

A pool that reconnects in the background waits longer after each failure, and goes on waiting when the server is back.
Here whoever needs a connection makes it, and gets the server's own words if that fails.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen

from lamella.adapters.stores.database import Row

_Given = TypeVar("_Given")
_PAUSE = 0.1
# How often the driver looks up while it waits; its own default.
_LOOK = 0.1


class SilenceError(psycopg.OperationalError):
    """A server keeps the line open and says nothing."""


class Connection(psycopg.Connection[Row]):
    """A connection that bears ``silence`` for so many seconds.

    A server that is stopped, or cut off, closes nothing, and what it would time out by itself stands still with it.
    """

    silence = 10.0

    @property
    def idle(self) -> bool:
        """Whether it can be used for the next thing.

        A server that ends while several statements are on their way to it says so before it hangs up: the driver is
        then left in the middle of its pipeline, on a line that does not count as broken.
        """
        status, pipeline = self.info.transaction_status, self.pgconn.pipeline_status
        return status == psycopg.pq.TransactionStatus.IDLE and pipeline == psycopg.pq.PipelineStatus.OFF

    def wait(self, gen: PQGen[_Given], interval: float = _LOOK, timeout: float | None = None) -> _Given:
        """What the driver waits for; once the server was silent for too long, an error, and the connection is lost."""
        # Only who listens for notifications gives a time-out, and older drivers do not take one.
        try:
            return super().wait(_listen(gen, self.silence), interval)
        except SilenceError:
            self.pgconn.finish()
            raise


def _listen(gen: PQGen[_Given], silence: float) -> PQGen[_Given]:
    """The steps of the driver as they are, as long as something comes."""
    heard = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready:
                heard = now
            elif now - heard > silence:
                raise SilenceError(f"the server said nothing for {silence:.3g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        given: _Given = end.value
        return given


class Pool:
    """At most ``size`` connections, made when they are needed."""

    def __init__(self, connect: Callable[[float], Connection], *, size: int, patience: float) -> None:
        self._connect = connect
        self._room = Semaphore(size)
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._closed = False
        # What is wrong with the address shows at once: only a server that was there before is waited for.
        self._give_back(connect(patience))

    @contextmanager
    def lend(self, seconds: float, *, silence: float) -> Iterator[Connection]:
        """A connection of one's own within so many seconds, given back at the end, or closed if it was lost."""
        deadline = time.monotonic() + seconds
        if not self._room.acquire(timeout=seconds):
            raise psycopg.OperationalError(f"all connections were in use for {seconds:.3g} s")
        try:
            connection = self._take(deadline)
            connection.silence = silence
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

    def _take(self, deadline: float) -> Connection:
        with self._lock:
            if self._closed:
                raise psycopg.InterfaceError("the pool is closed")
            if self._idle:
                return self._idle.pop()
        while True:
            try:
                return self._connect(deadline - time.monotonic())
            except psycopg.OperationalError:
                if time.monotonic() + _PAUSE > deadline:
                    raise
                time.sleep(_PAUSE)

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if connection.idle and not self._closed:
                self._idle.append(connection)
                return
        connection.close()
