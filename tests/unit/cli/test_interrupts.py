"""``cli.interrupts``: terminating signals cancel an answer, and Ctrl-C is ignored or raised where it must be."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from lamella.cli.interrupts import (
    TerminatedBySignal,
    cancel_on_signals,
    ignore_ctrl_c,
    ignore_interrupts,
    raise_on_interrupt,
)

SIGNALS = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def _default_signals() -> Iterator[None]:
    numbers = (signal.SIGINT, *SIGNALS)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_cancels_what_runs_and_gives_the_exit_code_of_shells(number: signal.Signals) -> None:
    was_cancelled = False

    async def answer() -> None:
        nonlocal was_cancelled
        with cancel_on_signals():
            os.kill(os.getpid(), number)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                was_cancelled = True
                raise

    with pytest.raises(TerminatedBySignal) as stopped:
        asyncio.run(answer())
    assert was_cancelled
    assert stopped.value.exit_code == 128 + number
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_at_the_end_of_an_answer_still_ends_the_program(number: signal.Signals) -> None:
    async def answer() -> None:
        with cancel_on_signals():
            os.kill(os.getpid(), number)
            # The task swallows the cancellation, as one does that has already finished its work.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    with pytest.raises(TerminatedBySignal) as stopped:
        asyncio.run(answer())
    assert stopped.value.exit_code == 128 + number


def test_ignored_signal_stays_ignored() -> None:
    async def answer() -> str:
        with cancel_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
            return "done"

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert asyncio.run(answer()) == "done"
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_cancellation_without_a_signal_stays_a_cancellation() -> None:
    async def answer() -> None:
        with cancel_on_signals():
            await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.ensure_future(answer())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_interrupts_are_ignored_only_inside() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ignore_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


def test_question_raises_on_interrupt_whatever_handler_is_set() -> None:
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: received.append(number))
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), raise_on_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler
    assert received == []


def test_ctrl_c_is_ignored_before_the_program_ends() -> None:
    ignore_ctrl_c()
    os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
