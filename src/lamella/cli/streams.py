"""Set stdout and stderr to UTF-8, and silence a stream that its reader closed."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO


def force_utf8_output() -> None:
    """Make stdout and stderr write the same bytes on any machine.

    Characters without a UTF-8 form, such as undecodable bytes of a file name, become escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def finish_stdout() -> None:
    """Flush stdout, or discard its buffer if the reader is gone."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard_stdout()


def discard_stdout(out: TextIO | None = None) -> None:
    """Redirect stdout to the null device, so that Python reports no error when it flushes at exit.

    ``out`` is the real stdout if ``sys.stdout`` was replaced.
    """
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (out or sys.stdout).fileno())
