"""Signals that end the process: while an answer comes, they stop it as Ctrl-C does, so that what was said is kept."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# What says that a process should end: from a supervisor or `kill`, and from a terminal that went away.
_NAMES = ("SIGTERM", "SIGHUP")
# What shells add to a signal's number to make an exit code of it.
_BY_SIGNAL = 128


class SignalEnd(BaseException):
    """The process was told to end. No failure, and nothing that goes on may take it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.exit_code = _BY_SIGNAL + number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within this task, a signal that would end the process cancels the task instead, and is raised once that is done.

    One that is ignored stays so, as whoever started this with ``nohup`` wants it.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    came: list[int] = []

    def stop(number: int) -> None:
        came.append(number)
        if task is not None:
            task.cancel()

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        # Not every loop, and no thread but the first, can be told.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop, number)
    try:
        yield
    except asyncio.CancelledError as stopped:
        if came:
            raise SignalEnd(came[0]) from stopped
        raise
    finally:
        for number in taken:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
    if came:
        # The answer had just ended: nothing was left to stop, and the process ends all the same.
        raise SignalEnd(came[0])


def ignore_keys() -> None:
    """Ctrl-C changes nothing any more: the program ends by itself, and soon."""
    while True:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            # It was pressed while this was being said.
            continue
        except ValueError:
            # Only the first thread is told of signals at all.
            return
        return


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C once more changes nothing while what was begun is ended: that takes seconds, and has an end of its own."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        # Only the first thread is told of signals at all.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted_by_keys() -> Iterator[None]:
    """Ctrl-C ends what waits for somebody's answer, also on a loop that would only be told of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
