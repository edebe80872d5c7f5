"""Workers: they block no event loop, run each task once, and time out only without progress."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from threading import Event, Timer, current_thread, main_thread

import pytest
from tests.waiting import HANG_SECONDS

from lamella.conversation.threads import Workers
from lamella.errors import ConflictError, StoreUnavailableError

FAR = HANG_SECONDS
THREADS = 20
NAME: ContextVar[str] = ContextVar("name", default="nobody")


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


def test_work_runs_in_other_thread_with_context(workers: Workers) -> None:
    async def ask() -> tuple[bool, str]:
        NAME.set("ada")
        return await workers.run(lambda: (current_thread() is main_thread(), NAME.get()))

    assert asyncio.run(ask()) == (False, "ada")


def test_failure_is_raised_to_waiter(workers: Workers) -> None:
    def fail() -> None:
        raise ConflictError(conversation_key="c", expected=1, found=2)

    with pytest.raises(ConflictError):
        asyncio.run(workers.run(fail))


def test_event_loop_runs_meanwhile(workers: Workers) -> None:
    going = Event()

    async def wait() -> bool:
        asyncio.get_running_loop().call_later(0.01, going.set)
        return await workers.run(lambda: going.wait(FAR))

    assert asyncio.run(wait())


def _block_all_threads(workers: Workers, until: Event) -> list["asyncio.Task[bool]"]:
    """More work than there are threads, none of which ends before it is told to."""
    return [asyncio.create_task(workers.run(lambda: until.wait(FAR))) for _ in range(THREADS + 4)]


def test_work_cancelled_before_start_is_not_done(workers: Workers) -> None:
    done: list[str] = []

    async def cancel() -> None:
        free = Event()
        busy = _block_all_threads(workers, free)
        late = asyncio.create_task(workers.run(lambda: done.append("late")))
        await asyncio.sleep(0.01)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        free.set()
        await asyncio.gather(*busy)

    asyncio.run(cancel())
    workers.close()
    assert done == []


@pytest.mark.parametrize("begun", [True, False])
def test_essential_work_is_awaited_despite_cancellation(workers: Workers, begun: bool) -> None:  # noqa: FBT001 - a parameter of the test
    done: list[str] = []

    async def cancel() -> None:
        free = Event()
        busy = [] if begun else _block_all_threads(workers, free)
        lasting = asyncio.create_task(
            workers.run_uncancellable(lambda: done.append("lasts") if free.wait(FAR) else None)
        )
        await asyncio.sleep(0.01)
        lasting.cancel()
        await asyncio.sleep(0.01)
        assert not lasting.done()
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await lasting
        assert done == ["lasts"]
        await asyncio.gather(*busy)

    asyncio.run(cancel())


def test_stuck_threads_raise_store_unavailable() -> None:
    workers = Workers(timeout=0.1)

    async def wait_in_queue() -> None:
        free = Event()
        busy = _block_all_threads(workers, free)
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailableError, match=r"nothing for 0\.1 s"):
            await workers.run(lambda: None)
        free.set()
        ended = await asyncio.gather(*busy, return_exceptions=True)
        # Those that had begun are waited for, however long they take.
        assert ended.count(True) == THREADS

    asyncio.run(wait_in_queue())
    workers.close()


def test_later_waiters_time_out_too() -> None:
    workers = Workers(timeout=0.2)

    async def start_one_by_one() -> None:
        free = Event()
        busy = _block_all_threads(workers, free)
        waiting = []
        for _ in range(3):
            waiting.append(asyncio.create_task(workers.run(lambda: None)))
            await asyncio.sleep(0.05)
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), FAR)
        assert [type(one) for one in ended] == [StoreUnavailableError] * 3
        free.set()
        await asyncio.gather(*busy, return_exceptions=True)

    asyncio.run(start_one_by_one())
    workers.close()


def test_waiters_behind_progress_do_not_time_out() -> None:
    workers = Workers(timeout=0.1)

    async def wait_in_queue() -> list[bool]:
        pause = Event()
        return await asyncio.gather(*(workers.run(lambda: pause.wait(0.05)) for _ in range(60)))

    assert asyncio.run(wait_in_queue()) == [False] * 60
    workers.close()


def test_close_waits_for_running_work_and_later_work_gets_new_threads(workers: Workers) -> None:
    done: list[str] = []
    begun, free = Event(), Event()

    def work() -> None:
        begun.set()
        done.append("late" if free.wait(FAR) else "never")

    async def leave() -> None:
        left = asyncio.create_task(workers.run(work))
        await asyncio.to_thread(begun.wait, FAR)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left

    asyncio.run(leave())
    Timer(0.05, free.set).start()
    workers.close()
    assert done == ["late"]
    assert asyncio.run(workers.run(lambda: "again")) == "again"


def test_result_for_closed_loop_is_ignored(workers: Workers) -> None:
    begun, free = Event(), Event()

    def hold() -> bool:
        begun.set()
        return free.wait(FAR)

    async def leave() -> None:
        left = asyncio.create_task(workers.run(hold))
        await asyncio.to_thread(begun.wait, FAR)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)

    asyncio.run(leave())
    free.set()
    assert asyncio.run(workers.run(lambda: "next")) == "next"


def test_loops_of_several_threads_get_their_own_results(workers: Workers) -> None:
    async def count(start: int) -> list[int]:
        return [await workers.run(partial(abs, number)) for number in range(start, start + 50)]

    with ThreadPoolExecutor(3) as threads:
        given = list(threads.map(lambda start: asyncio.run(count(start)), (0, 100, 200)))
    assert given == [list(range(start, start + 50)) for start in (0, 100, 200)]


def test_failure_despite_cancellation_is_raised(workers: Workers) -> None:
    begun, free = Event(), Event()

    def fail() -> None:
        begun.set()
        free.wait(FAR)
        raise ConflictError(conversation_key="c", expected=1, found=2)

    async def cancel() -> None:
        lasting = asyncio.create_task(workers.run_uncancellable(fail))
        await asyncio.to_thread(begun.wait, FAR)
        lasting.cancel()
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(ConflictError):
            await lasting

    asyncio.run(cancel())
