"""Keys: what is typed while an answer comes is not echoed into it, and what is typed to a question is read."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

with suppress(ImportError):  # there are systems without
    import termios

_LOCAL_MODES = 3
# Seconds between two looks for Ctrl-C.
_LOOK = 0.1


@contextmanager
def unseen_keys() -> Iterator[None]:
    """Keys do not show meanwhile. The ^C that a terminal writes would move the cursor from where a line is redrawn."""
    with _echoing(shown=False):
        yield


@contextmanager
def seen_keys() -> Iterator[None]:
    """Keys show again while a question is asked; what was typed before it was asked is no answer to it."""
    with _echoing(shown=True):
        if _is_ours():
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        yield


def read_typed() -> str:
    """The next line that somebody types, empty if there are no more. Ctrl-C ends it, however early it comes.

    A signal that comes just before a read begins is not seen until the read ends, so the read begins when there is
    something to be read.
    """
    if sys.stdin is None:
        return ""
    if "termios" in globals() and sys.stdin.isatty():
        while not select.select([sys.stdin], [], [], _LOOK)[0]:
            pass
    return sys.stdin.readline()


@contextmanager
def _echoing(*, shown: bool) -> Iterator[None]:
    if not _is_ours():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    after = before.copy()
    after[_LOCAL_MODES] = before[_LOCAL_MODES] | termios.ECHO if shown else before[_LOCAL_MODES] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, after)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _is_ours() -> bool:
    """Whether someone types here; who changes a terminal from the background is stopped by the system."""
    if sys.stdin is None or "termios" not in globals() or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
