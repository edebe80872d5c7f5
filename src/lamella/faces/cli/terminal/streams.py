"""Streams: stdout and stderr in UTF-8 whatever the locale says, and quiet when no one reads them."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO


def speak_utf8() -> None:
    """Write the same bytes on any machine. What has no UTF-8 form, as in a name the system gave, becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def finish_stdout() -> None:
    """Write what is still buffered, or let it go."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard_stdout()


def discard_stdout(out: TextIO | None = None) -> None:
    """Let what is still buffered go nowhere, so that Python does not complain about it at exit.

    ``out`` is stdout itself where that is led elsewhere.
    """
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (out or sys.stdout).fileno())
