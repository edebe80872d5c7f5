"""Handle signals that end the process: while an answer streams, they cancel it as Ctrl-C does.

The text received so far is then stored.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lamella.cli.access import format_command
from lamella.errors import LamellaError

if TYPE_CHECKING:
    from lamella.cli.chat.opening import ChatOptions, OpenedConversation

# Sent by a supervisor or ``kill``, and by a terminal that was closed.
_SIGNAL_NAMES = ("SIGTERM", "SIGHUP")
# Shells report a signal as 128 plus its number.
_SIGNAL_EXIT_BASE = 128


class TerminatedBySignal(BaseException):
    """The process was asked to end by a signal.

    A ``BaseException``, so that no handler for ordinary failures swallows it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.exit_code = _SIGNAL_EXIT_BASE + number


@contextmanager
def cancel_on_signals() -> Iterator[None]:
    """Cancel the current task if a terminating signal arrives, and raise ``TerminatedBySignal`` afterwards.

    A signal that is ignored already stays ignored, as ``nohup`` requires.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    came: list[int] = []

    def stop(number: int) -> None:
        came.append(number)
        if task is not None:
            task.cancel()

    numbers = [getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name)]
    handled_signals = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled_signals:
        # Windows event loops and threads other than the main thread cannot handle signals.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop, number)
    try:
        yield
    except asyncio.CancelledError as stopped:
        if came:
            raise TerminatedBySignal(came[0]) from stopped
        raise
    finally:
        for number in handled_signals:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
    if came:
        # The signal arrived just as the answer ended: there was nothing to cancel, but the process must still end.
        raise TerminatedBySignal(came[0])


def ignore_interrupts_until_exit() -> None:
    """Ignore Ctrl-C from now on, because the program is about to end."""
    while True:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            # Ctrl-C arrived while the handler was being replaced.
            continue
        except ValueError:
            # Only the main thread can set signal handlers.
            return
        return


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C while a cancelled answer is cleaned up, which takes seconds and ends by itself."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        # Only the main thread can set signal handlers.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def raise_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt`` at once, even if asyncio installed a handler that only cancels a task."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# Show the user how to continue after Ctrl-C stopped a stored question.


@contextmanager
def raise_resume_hint_on_interrupt(opened: "OpenedConversation", options: "ChatOptions") -> Iterator[None]:
    """On Ctrl-C, raise an error whose hint shows how to resume the question or read the partial answer."""
    conversation_log, store = opened.conversation, options.store
    before = conversation_log.head
    try:
        yield
    except KeyboardInterrupt as stopped:
        # An impatient user presses Ctrl-C again; the hint must still be printed.
        ignore_interrupts_until_exit()
        records = () if opened.stored_id is None else conversation_log.turns()
        if not records or (records[-1].reply is not None and conversation_log.head == before):
            raise
        if records[-1].reply is None:
            model = opened.model_option_value()
            again = format_command("chats resume", conversation_log.name, model=model, store=store, vault=options.vault)
            hint = f"The question is saved. Continue with: {again}"
        else:
            show = format_command("chats show", conversation_log.name, store=store)
            again = format_command("chats resume", conversation_log.name, store=store)
            hint = f"The partial answer is saved. Continue it with: {again} (read it with: {show})"
        raise LamellaError("Stopped.", hint=hint) from stopped
