"""Keys: what is typed while an answer comes is not echoed into it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

with suppress(ImportError):  # there are systems without
    import termios

_LOCAL_MODES = 3


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
