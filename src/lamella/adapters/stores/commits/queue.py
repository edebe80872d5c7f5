"""A commit queue: what threads want to have written while one of them writes is written together, by one of them."""

import time
from collections import deque
from collections.abc import Callable, Sequence, Sized
from functools import partial
from threading import Lock
from typing import Any

from msgspec import Struct, field

_GIVE_WAY = partial(time.sleep, 0)


def _make_closed() -> Lock:
    lock = Lock()
    lock.acquire()
    return lock


class WaitingWrite(Struct, eq=False):
    """What somebody wants to have written, and what came of it once that is done."""

    work: Any
    since: float
    done: bool = False
    result: Any = None
    error: BaseException | None = None
    # Whoever wanted it was interrupted.
    left: bool = False
    # Those who are done with it and were not told yet.
    line: "deque[WaitingWrite] | None" = None
    # Opened once it is done, or once it is this one's turn to write all that wait.
    called: Lock = field(default_factory=_make_closed)


class CommitQueue:
    """Writes all that wait at one moment with one call, in the thread of one of them; one such call at a time.

    ``write`` tells of each what came of it. Whoever is done goes on at once: in line behind those who write next, each
    second commit had half of those who could have shared it (2.1 of 6 threads before, 3.5 since, 2026-11-18).
    """

    def __init__(self, write: Callable[[Sequence[WaitingWrite]], None]) -> None:
        self._write = write
        self._lock = Lock()
        self._waiting: deque[WaitingWrite] = deque()
        self._leader: WaitingWrite | None = None
        # Whether several wrote together the last time.
        self._shared = False

    def put(self, work: object) -> Any:  # noqa: ANN401 - what came of it is for whoever gave it to know
        """What came of a piece of work, once it is written: its result, or its error is raised."""
        own = WaitingWrite(work, time.monotonic())
        try:
            with self._lock:
                self._waiting.append(own)
                self._leader = self._leader or own
            if self._leader is not own:
                own.called.acquire()
            if not own.done:
                self._write_waiting()
        finally:
            # Interrupted, one leaves the line; if it was one's turn, it is the next one's.
            if not own.done or self._leader is own:
                self._leave(own)
            self._call_next(own.line)
        if own.error is not None:
            raise own.error
        return own.result

    def _write_waiting(self) -> None:
        let_others_come(self._waiting, shared=self._shared)
        with self._lock:
            together = list(self._waiting)
            self._waiting.clear()
        self._shared = len(together) > 1
        try:
            self._write(together)
        finally:
            with self._lock:
                # Interrupted: what the others want is still theirs to write.
                self._waiting.extendleft(one for one in reversed(together) if not (one.done or one.left))
            line = deque(one for one in together if one.done and one is not self._leader)
            for one in together:
                one.line = line

    def _call_next(self, line: deque[WaitingWrite] | None) -> None:
        """Have the next one go on of those that are done: one calls the other.

        Called all at once, they would all want the interpreter at once, and the event loop be one of many.
        """
        while line:
            with self._lock:
                one = line.popleft() if line else None
            if one is not None and not one.left:
                one.called.release()
                return

    def _leave(self, own: WaitingWrite) -> None:
        with self._lock:
            own.left = True
            if own in self._waiting:
                self._waiting.remove(own)
            if self._leader is own:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.called.release()


def let_others_come(waiting: Sized, give_way: Callable[[], None] = _GIVE_WAY, *, shared: bool = False) -> None:
    """Where several write, or did the last time, let others come to write with them, as long as more do.

    A commit costs as much as many rows, and who commits at once leaves those out that need the interpreter for a moment
    longer to get here. None is waited for, and who writes alone has nobody to let in.
    """
    there = 0 if shared else 1
    while there < len(waiting):
        there = len(waiting)
        give_way()
