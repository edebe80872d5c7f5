"""Workers: threads that do the work of conversations, so that no event loop waits for a store or a long history.

Handing work over and back is most of what a short turn takes beside building it, so there is little to it: a queue
that threads empty, and a box in each loop that is looked into once, however much came back meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

from lamella.errors import StoreUnavailableError

Result = TypeVar("Result")

# Those that wait for a commit do nothing else meanwhile, so that there are others who do. Where a disk is slow more of
# them help: PostgreSQL got a third more turns done with 24 than with 16. Where it is quick they only take the
# interpreter from each other: SQLite got a tenth fewer done with 24, and with 20 as many as with 10 or 16 (2026-11-18).
_THREADS = 20
# A store gives up after this long, and so does whoever has not even come to it.
_PATIENCE = 10.0


class Workers:
    """A few threads, started when they are needed. Work that waits for one too long while none gets done is refused."""

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._threads: ThreadPoolExecutor | None = None
        self._answered = monotonic()
        self._queue: deque[_HandedWork[Any]] = deque()
        # Of those that empty the queue: how many there are is only changed by who holds the lock.
        self._busy = 0
        self._lock = Lock()
        self._box: _ReturnBox | None = None

    async def run(self, work: Callable[[], Result]) -> Result:
        """What work gives. Cancelled before it has begun it is not done; once begun it is, and nobody waits for it."""
        handed = self._submit(work)
        try:
            return await self._wait(handed)
        except asyncio.CancelledError:
            handed.claim()
            raise

    async def finish(self, work: Callable[[], Result]) -> Result:
        """What work gives that must be done: cancelled, it is waited for all the same, and then that goes its way."""
        handed = self._submit(work)
        try:
            return await self._wait(handed)
        except asyncio.CancelledError:
            await self._wait(handed)
            raise

    def close(self) -> None:
        """Wait for the work that is under way. Whoever comes later finds new threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()

    def _submit(self, work: Callable[[], Result]) -> "_HandedWork[Result]":
        loop = asyncio.get_running_loop()
        # Loops of other threads may come between: what is handed over here goes back here.
        box = self._box
        if box is None or box.loop is not loop:
            box = self._box = _ReturnBox(loop)
        handed = _HandedWork(work, box)
        self._queue.append(handed)
        with self._lock:
            starts = self._busy < _THREADS
            self._busy += starts
            if starts and self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lamella")
            threads = self._threads
        if starts and threads is not None:
            threads.submit(self._empty)
        return handed

    def _empty(self) -> None:
        """Do what waits, one after the other, as long as something does."""
        while True:
            try:
                handed = self._queue.popleft()
            except IndexError:
                with self._lock:
                    if self._queue:
                        continue
                    self._busy -= 1
                    return
            if handed.claim():
                handed.do()
                if not isinstance(handed.error, StoreUnavailableError):
                    self._answered = monotonic()
                handed.box.put(handed)

    async def _wait(self, handed: "_HandedWork[Result]") -> Result:
        begun = monotonic()
        box = handed.box
        while not handed.returned:
            waiting = handed.waiting = box.loop.create_future()
            box.watch(handed, until=monotonic() + self._patience)
            try:
                await waiting
            finally:
                box.forget(handed)
            # Every thread may be held up by a store that does not answer. As long as some get on, it is only a queue.
            if not handed.returned and self._answered < begun and handed.claim():
                raise StoreUnavailableError(
                    f"The store has done nothing for {self._patience:g} s.",
                    hint="What was acknowledged is safe. Try again when it is back.",
                )
        return handed.give()


class _HandedWork(Generic[Result]):
    """Work on its way to a thread and back, done in the context of whoever asked for it."""

    __slots__ = ("_claims", "_context", "_given", "_work", "box", "error", "returned", "waiting")

    def __init__(self, work: Callable[[], Result], box: "_ReturnBox") -> None:
        self._work = work
        self._context: Context = copy_context()
        # Whoever takes this out has it: the thread that does the work, or who no longer wants it. One of them can.
        self._claims = [None]
        self._given: list[Result] = []
        self.box = box
        self.error: BaseException | None = None
        self.returned = False
        self.waiting: asyncio.Future[None] | None = None

    def claim(self) -> bool:
        """Whether it was still nobody's."""
        try:
            self._claims.pop()
        except IndexError:
            return False
        return True

    def do(self) -> None:
        try:
            self._given.append(self._context.run(self._work))
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it, whatever it is
            self.error = error

    def give(self) -> Result:
        """What it came to."""
        if self.error is not None:
            raise self.error
        return self._given[0]


class _ReturnBox:
    """What came back to one loop. A thread wakes the loop only if no other did since it last looked in.

    Whoever waits too long is woken as well, by one timer for all of them: each of its own was a tenth of what the loop
    does for a turn.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._returned: deque[_HandedWork[Any]] = deque()
        self._called = False
        # Until when each is waited for before somebody has a look, the first one first.
        self._watched: dict[_HandedWork[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, handed: "_HandedWork[Any]", *, until: float) -> None:
        """Wake who waits for a piece of work at some time, unless it is back before; all wait equally long."""
        self._watched[handed] = until
        if self._timer is None:
            self._timer = self.loop.call_later(until - monotonic(), self._look)

    def forget(self, handed: "_HandedWork[Any]") -> None:
        """Nobody waits for it any more, or it is looked at now."""
        self._watched.pop(handed, None)

    def _look(self) -> None:
        now = monotonic()
        for handed, until in self._watched.items():
            if until <= now and handed.waiting is not None:
                _wake(handed.waiting)
        # Those that are late are watched anew once they had their look.
        next_one = next((until for until in self._watched.values() if until > now), None)
        self._timer = None if next_one is None else self.loop.call_later(next_one - now, self._look)

    def put(self, handed: "_HandedWork[Result]") -> None:
        self._returned.append(handed)
        if not self._called:
            self._called = True
            # The loop may be closed by now: then nobody waits.
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        # What is put in from here on is either seen below, or its thread calls again.
        self._called = False
        while self._returned:
            handed = self._returned.popleft()
            handed.returned = True
            if handed.waiting is not None:
                _wake(handed.waiting)


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
