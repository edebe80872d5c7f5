"""Workers: threads that do the work of conversations, so that no event loop waits for a store or a long history."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from time import monotonic
from typing import TypeVar

from lamella.errors import StoreUnavailableError

Result = TypeVar("Result")

# Each takes the interpreter from the loop now and then: on a busy machine the 99th percentile of its gaps was 14 ms
# with 4, 35 ms with 10. Fewer commit less together: 3 did three quarters of the turns that 10 did (2026-11-17).
_THREADS = 6
# A store gives up after this long, and so does whoever has not even come to it.
_PATIENCE = 10.0


class Workers:
    """A few threads, started when they are needed. Work that waits for one too long while none gets done is refused."""

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._threads: ThreadPoolExecutor | None = None
        self._answered = monotonic()

    async def run(self, work: Callable[[], Result]) -> Result:
        """What work gives. Cancelled before it has begun it is not done; once begun it is, and nobody waits for it."""
        future = self._submit(work)
        waiting = asyncio.wrap_future(future)
        try:
            return await self._wait(future, waiting)
        except asyncio.CancelledError:
            waiting.cancel()
            raise

    async def finish(self, work: Callable[[], Result]) -> Result:
        """What work gives that must be done: cancelled, it is waited for all the same, and then that goes its way."""
        future = self._submit(work)
        waiting = asyncio.wrap_future(future)
        try:
            return await self._wait(future, waiting)
        except asyncio.CancelledError:
            await self._wait(future, waiting)
            raise

    def close(self) -> None:
        """Wait for the work that is under way. Whoever comes later finds new threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()

    def _submit(self, work: Callable[[], Result]) -> Future[Result]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lamella")
        return self._threads.submit(self._do, copy_context(), work)

    def _do(self, context: Context, work: Callable[[], Result]) -> Result:
        answered = True
        try:
            return context.run(work)
        except StoreUnavailableError:
            answered = False
            raise
        finally:
            if answered:
                self._answered = monotonic()

    async def _wait(self, future: Future[Result], waiting: "asyncio.Future[Result]") -> Result:
        begun = monotonic()
        while not (await asyncio.wait({waiting}, timeout=self._patience))[0]:
            # Every thread may be held up by a store that does not answer. As long as some get on, it is only a queue.
            if self._answered < begun and future.cancel():
                raise StoreUnavailableError(
                    f"The store has done nothing for {self._patience:g} s.",
                    hint="What was acknowledged is safe. Try again when it is back.",
                )
        return waiting.result()
