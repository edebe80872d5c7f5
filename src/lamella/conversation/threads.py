"""Worker threads for conversations, so that no event loop waits for a store or a long history.

``Workers`` runs work in a few threads, and ``run_in_own_thread`` in a daemon thread of its own that blocks nothing if
it never ends. ``synchronized`` makes the public methods of a class hold its lock: a worker thread may still write
after the task that waited for it was cancelled, and a program may rename a conversation while it is being sent.

Besides building the prompt, handing work over and back is most of the cost of a short turn. So it is simple: a queue
that the threads empty, and one list of finished work per event loop, which the loop reads once for all of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial, wraps
from inspect import isfunction
from threading import Lock, RLock, Thread
from time import monotonic
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from lamella.errors import StoreUnavailableError

Result = TypeVar("Result")

# A thread that waits for a commit can do nothing meanwhile, so others must be free to work. On a slow disk more threads
# help: PostgreSQL finished a third more turns with 24 than with 16. On a fast disk they compete for the interpreter:
# SQLite finished a tenth fewer with 24, and with 20 as many as with 10 or 16 (measured 2026-11-18).
_MAX_THREADS = 20
# A store gives up after this many seconds, and so does work that is still waiting for a thread.
_DEFAULT_TIMEOUT = 10.0


class Workers:
    """A few threads, started on demand.

    Work that waits too long for a thread while no other work finishes is rejected with ``StoreUnavailableError``.
    """

    def __init__(self, *, timeout: float = _DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout
        self._executor: ThreadPoolExecutor | None = None
        self._last_finished_at = monotonic()
        self._queue: deque[_ThreadTask[Any]] = deque()
        # How many threads empty the queue. Change it only while holding the lock.
        self._busy_threads = 0
        self._lock = Lock()
        self._result_queue: _ResultQueue | None = None

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run work in a thread and return its result.

        If the task is cancelled before the work started, the work is not done. If it has started, it finishes in the
        background.
        """
        handed = self._submit(function)
        try:
            return await self._wait_for_task(handed)
        except asyncio.CancelledError:
            handed.claim_once()
            raise

    async def run_uncancellable(self, function: Callable[[], Result]) -> Result:
        """Run work that must be completed; a cancelled task still waits for it before the cancellation continues."""
        handed = self._submit(function)
        try:
            return await self._wait_for_task(handed)
        except asyncio.CancelledError:
            await self._wait_for_task(handed)
            raise

    def close(self) -> None:
        """Wait for the current work; later work starts new threads."""
        threads, self._executor = self._executor, None
        if threads is not None:
            threads.shutdown()

    def _submit(self, function: Callable[[], Result]) -> "_ThreadTask[Result]":
        loop = asyncio.get_running_loop()
        # Event loops in other threads may use these workers too. Results go back to the loop that submitted the work.
        box = self._result_queue
        if box is None or box.loop is not loop:
            box = self._result_queue = _ResultQueue(loop)
        handed = _ThreadTask(function, box)
        self._queue.append(handed)
        with self._lock:
            starts = self._busy_threads < _MAX_THREADS
            self._busy_threads += starts
            if starts and self._executor is None:
                self._executor = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="lamella")
            threads = self._executor
        if starts and threads is not None:
            threads.submit(self._run_queued)
        return handed

    def _run_queued(self) -> None:
        """Do queued work until the queue is empty."""
        while True:
            try:
                handed = self._queue.popleft()
            except IndexError:
                with self._lock:
                    # Check again under the lock: work added after popleft() would otherwise find no thread.
                    if self._queue:
                        continue
                    self._busy_threads -= 1
                    return
            if handed.claim_once():
                handed.execute()
                if not isinstance(handed.error, StoreUnavailableError):
                    self._last_finished_at = monotonic()
                handed.result_queue.put(handed)

    async def _wait_for_task(self, task: "_ThreadTask[Result]") -> Result:
        begun = monotonic()
        box = task.result_queue
        while not task.is_returned:
            waiting = task.waiter = box.loop.create_future()
            box.watch_deadline(task, deadline=monotonic() + self._timeout)
            try:
                await waiting
            finally:
                box.stop_watching(task)
            # A store that does not respond can block every thread. As long as other work finishes, it is only a queue.
            if not task.is_returned and self._last_finished_at < begun and task.claim_once():
                raise StoreUnavailableError(
                    f"The store has done nothing for {self._timeout:g} s.",
                    hint="What was acknowledged is safe. Try again when it is back.",
                )
        return task.result()


class _ThreadTask(Generic[Result]):
    """Work on its way to a thread and back; it runs in the context of the task that submitted it."""

    __slots__ = (
        "_claim_token",
        "_context",
        "_function",
        "_results",
        "error",
        "is_returned",
        "result_queue",
        "waiter",
    )

    def __init__(self, function: Callable[[], Result], result_queue: "_ResultQueue") -> None:
        self._function = function
        self._context: Context = copy_context()
        # list.pop() is atomic: either the worker thread gets the item, or the task that no longer wants the work.
        self._claim_token = [None]
        self._results: list[Result] = []
        self.result_queue = result_queue
        self.error: BaseException | None = None
        self.is_returned = False
        self.waiter: asyncio.Future[None] | None = None

    def claim_once(self) -> bool:
        """Return whether the work was still unclaimed; only the first caller gets True."""
        try:
            self._claim_token.pop()
        except IndexError:
            return False
        return True

    def execute(self) -> None:
        try:
            self._results.append(self._context.run(self._function))
        except BaseException as error:  # noqa: BLE001 - every error is raised in the waiting task
            self.error = error

    def result(self) -> Result:
        """Return the result, or raise the error of the work."""
        if self.error is not None:
            raise self.error
        return self._results[0]


class _ResultQueue:
    """Finished work for one event loop; a thread wakes the loop only if no other thread has done so already.

    One timer wakes all tasks that wait too long. A timer per task took a tenth of the loop's time for a turn.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._finished_tasks: deque[_ThreadTask[Any]] = deque()
        self._is_wake_scheduled = False
        # The deadline of each piece of work, earliest first, since all wait equally long.
        self._deadlines: dict[_ThreadTask[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch_deadline(self, task: "_ThreadTask[Any]", *, deadline: float) -> None:
        """Wake the task that waits for this work at a deadline, unless the work is done before."""
        self._deadlines[task] = deadline
        if self._timer is None:
            self._timer = self.loop.call_later(deadline - monotonic(), self._wake_overdue)

    def stop_watching(self, task: "_ThreadTask[Any]") -> None:
        """Stop watching work that is done, abandoned, or being checked now."""
        self._deadlines.pop(task, None)

    def _wake_overdue(self) -> None:
        now = monotonic()
        for handed, until in self._deadlines.items():
            if until <= now and handed.waiter is not None:
                _wake(handed.waiter)
        # Late work is watched again after its task has checked it, so only later deadlines need the timer.
        next_one = next((until for until in self._deadlines.values() if until > now), None)
        self._timer = None if next_one is None else self.loop.call_later(next_one - now, self._wake_overdue)

    def put(self, task: "_ThreadTask[Result]") -> None:
        self._finished_tasks.append(task)
        if not self._is_wake_scheduled:
            self._is_wake_scheduled = True
            # A closed loop raises RuntimeError; then no task waits.
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._deliver_results)

    def _deliver_results(self) -> None:
        # Reset the flag first: work added from now on is either seen below, or its thread wakes the loop again.
        self._is_wake_scheduled = False
        while self._finished_tasks:
            handed = self._finished_tasks.popleft()
            handed.is_returned = True
            if handed.waiter is not None:
                _wake(handed.waiter)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


# Daemon threads: neither cancellation nor program exit waits for them.


_Result = TypeVar("_Result")


async def run_in_own_thread(function: Callable[[], _Result], *, name: str) -> _Result:
    """Run blocking work in a thread of its own and return its result; it blocks nothing if it never ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()
    context = copy_context()

    def run() -> None:
        try:
            tell = partial(_set_result, done, context.run(_call_if_loop_is_open, function))
        except BaseException as error:  # noqa: BLE001 - every error is passed on to the waiting task
            tell = partial(_set_error, done, error)
        # A closed loop raises RuntimeError; then no task waits for the result any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell)

    Thread(target=run, name=name, daemon=True).start()
    return await done


def _call_if_loop_is_open(function: Callable[[], _Result]) -> _Result:
    try:
        return function()
    except (StopIteration, KeyboardInterrupt, GeneratorExit) as error:
        # A future cannot carry StopIteration, and an event loop would take the other two as its own end. Ctrl-C
        # never reaches this thread, so a KeyboardInterrupt here comes from the work itself.
        raise RuntimeError(type(error).__name__) from error


def _set_result(future: "asyncio.Future[_Result]", result: _Result) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: "asyncio.Future[_Result]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


_Parameters = ParamSpec("_Parameters")


class HasLock(Protocol):
    """An object with a lock, so that only one thread uses it at a time."""

    @property
    def lock(self) -> RLock: ...


_Class = TypeVar("_Class", bound=type[HasLock])


def synchronized(*, except_for: Collection[str], properties: Collection[str] = ()) -> Callable[[_Class], _Class]:
    """Return a class decorator that makes public methods hold the lock of their object.

    Methods in ``except_for`` are left out; they change nothing in memory. Most properties only read, so only those in
    ``properties`` hold the lock.
    """

    def lock_all(kind: _Class) -> _Class:
        for name, member in list(vars(kind).items()):
            if isfunction(member) and not name.startswith("_") and name not in except_for:
                setattr(kind, name, _with_lock(member))
            elif isinstance(member, property) and member.fget is not None and name in properties:
                setattr(kind, name, property(_with_lock(member.fget)))
        return kind

    return lock_all


def _with_lock(
    method: Callable[Concatenate[HasLock, _Parameters], _Result],
) -> Callable[Concatenate[HasLock, _Parameters], _Result]:
    @wraps(method)
    def locked(self: HasLock, /, *given: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        with self.lock:
            return method(self, *given, **named)

    return locked
