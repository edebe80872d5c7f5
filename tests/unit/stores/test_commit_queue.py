"""A commit queue: waiting writes are done together, and no writer waits for later ones."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Semaphore

import pytest
from tests.waiting import HANG_SECONDS

from lamella.stores.commit_queue import CommitQueue, PendingWrite, wait_for_other_writers

FAR = HANG_SECONDS
# Long enough for threads to wait in line.
A_WHILE = 0.2


class Press:
    """Writes once for each time that it may; in ``written`` stands what it was given, each time as one word."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.may = Semaphore(0)
        self._queue = CommitQueue(self._write)
        self._threads = ThreadPoolExecutor(8)

    def put(self, *letters: str) -> list["Future[str]"]:
        """Hand over letters, each from a thread of its own, and wait until all wait in line."""
        futures = [self._threads.submit(self._queue.submit_and_wait, letter) for letter in letters]
        wait(futures, timeout=A_WHILE)
        return futures

    def _write(self, together: Sequence[PendingWrite]) -> None:
        assert self.may.acquire(timeout=FAR)
        self.written.append("".join(sorted(one.work for one in together)))
        for one in together:
            if one.work == "!":
                raise KeyboardInterrupt
            one.error = ValueError("refused") if one.work == "?" else None
            one.result, one.is_done = one.work.upper(), True


def test_queued_writes_are_done_together_with_own_results() -> None:
    press = Press()
    first, *others = [*press.put("a"), *press.put("b", "?", "d")]
    press.may.release(2)
    assert (first.result(FAR), others[0].result(FAR), others[2].result(FAR)) == ("A", "B", "D")
    with pytest.raises(ValueError, match="refused"):
        others[1].result(FAR)
    assert press.written == ["a", "?bd"]


def test_finished_writer_does_not_wait_for_later_ones() -> None:
    press = Press()
    early = [*press.put("a"), *press.put("b", "c")]
    press.may.release()
    wait(early, timeout=A_WHILE)
    late = press.put("d", "e")
    press.may.release()
    assert [one.result(FAR) for one in early] == ["A", "B", "C"]
    assert not any(one.done() for one in late)
    press.may.release()
    assert [one.result(FAR) for one in late] == ["D", "E"]
    assert press.written == ["a", "bc", "de"]


def test_writes_of_others_survive_interrupted_writer() -> None:
    press = Press()
    broken = press.put("!")
    others = press.put("a", "b")
    press.may.release(2)
    with pytest.raises(KeyboardInterrupt):
        broken[0].result(FAR)
    assert [one.result(FAR) for one in others] == ["A", "B"]
    assert press.written == ["!", "ab"]


def test_concurrent_writers_are_batched_and_single_one_does_not_wait() -> None:
    ways: list[int] = []

    def come(waiting: list[str], until: int) -> None:
        ways.append(len(waiting))
        waiting += ["another"] * (len(waiting) < until)

    wait_for_other_writers(alone := ["own"], partial(come, alone, 4))
    assert (ways, alone) == ([], ["own"])
    wait_for_other_writers(several := ["own", "other"], partial(come, several, 4))
    assert ways == [2, 3, 4]
