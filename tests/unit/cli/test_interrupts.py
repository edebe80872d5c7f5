"""``cli.interrupts``: terminating signals cancel an answer, and Ctrl-C is ignored or raised where it must be."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamella.cli.chat.opening import ChatOptions, open_for_chat
from lamella.cli.chat.output import PlainOutput, show_events
from lamella.cli.interrupts import (
    TerminatedBySignal,
    cancel_on_signals,
    ignore_interrupts,
    ignore_interrupts_until_exit,
    raise_on_interrupt,
    raise_resume_hint_on_interrupt,
)
from lamella.conversation.turn import TurnRequest
from lamella.errors import LamellaError

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
    ignore_interrupts_until_exit()
    os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def stop_during(folder: Path, *, answers: bool, store: str | None = None) -> LamellaError:
    """The error after Ctrl-C, once a question was stored, and answered or not."""
    (folder / "replies.json").write_text('["Peas.", "Beans."]')
    options = ChatOptions(
        store=store or f"sqlite:///{folder}/chats.db",
        chat="garden",
        model=f"scripted:{folder}/replies.json",
        vault=folder,
    )
    with open_for_chat(options, PlainOutput(quiet=True)) as opened, raise_resume_hint_on_interrupt(opened, options):
        if answers:
            asyncio.run(show_events(opened.run(TurnRequest(text="What grows?")), PlainOutput(quiet=True)))
        else:
            opened.conversation.ask("What grows?")
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("answers", "hint"),
    [
        (
            False,
            "The question is saved. Continue with: lamella chats resume garden --model scripted:FOLDER/replies.json"
            " --store sqlite:///FOLDER/chats.db --vault FOLDER",
        ),
        (
            True,
            "The partial answer is saved. Continue it with: lamella chats resume garden --store"
            " sqlite:///FOLDER/chats.db (read it with: lamella chats show garden --store sqlite:///FOLDER/chats.db)",
        ),
    ],
)
def test_interrupted_question_says_how_to_continue(tmp_path: Path, *, answers: bool, hint: str) -> None:
    with pytest.raises(LamellaError, match=r"Stopped\.") as stopped:
        stop_during(tmp_path, answers=answers)
    assert stopped.value.hint.replace(str(tmp_path), "FOLDER") == hint
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_interrupt_before_anything_was_asked_or_stored_has_no_hint(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        stop_during(tmp_path, answers=False, store="memory:")
