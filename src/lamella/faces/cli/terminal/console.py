"""The console that people read: plain when it is not a terminal, and never clever about what it prints."""

import sys

from rich.console import Console


def make_console() -> Console:
    """A console on stdout that prints text as it is."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=True, emoji=False, markup=False)
