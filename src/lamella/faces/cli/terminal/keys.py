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
    if not _is_ours():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    after = before.copy()
    after[_LOCAL_MODES] &= ~termios.ECHO
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
