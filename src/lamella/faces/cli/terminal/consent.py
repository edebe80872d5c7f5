"""Consent: a place that only somebody else's words name is used once the person at the terminal says yes to it."""

import sys
from collections.abc import Callable
from typing import TypeVar

from lamella.commands import write_command
from lamella.errors import UntrustedError
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import ask_yes, is_terminal, tell

_Result = TypeVar("_Result")


def go_on_trusted(refused: UntrustedError, run: Callable[[], _Result]) -> _Result:
    """Do what a place was refused for, once the person at the terminal says yes to it; else it stays refused.

    Places are looked at before anything is done there, so it is safe to begin anew.
    """
    while True:
        if refused.settled or not _ask(refused):
            refused.settled = True
            refused.hint = f"If you trust it, say so once: `{_tell_command('add', refused)}`."
            raise refused
        try:
            return run()
        except UntrustedError as another:
            refused = another


def _ask(refused: UntrustedError) -> bool:
    """Whether the person says yes, once and for good; through a pipe nobody is asked."""
    if not all(map(is_terminal, (sys.stdin, sys.stderr))):
        return False
    tell(show_line(refused.message), err=True)
    if not ask_yes(f"Use {refused.place} from now on?", err=True):
        return False
    from lamella.wiring import add_trust  # only those who are asked need it

    add_trust(refused.field, refused.place)
    tell(f"Trusted. Take it back with: {_tell_command('remove', refused)}", err=True)
    return True


def _tell_command(verb: str, refused: UntrustedError) -> str:
    return write_command(f"trust {verb}", refused.field, refused.place)
