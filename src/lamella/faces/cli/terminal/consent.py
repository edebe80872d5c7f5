"""Consent: what the person at the terminal says yes to: a place that only others name, a change to a note."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lamella.commands import write_command
from lamella.errors import UntrustedError
from lamella.faces.cli.terminal.keys import seen_keys
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.signals import interrupted_by_keys
from lamella.faces.cli.terminal.telling import ask_yes, clear_status, is_terminal, tell

if TYPE_CHECKING:
    from lamella.holdings import NoteChange

_Result = TypeVar("_Result")


def go_on_trusted(refused: UntrustedError, run: Callable[[], _Result]) -> _Result:
    """Do what a place was refused for, once the person at the terminal says yes to it; else it stays refused.

    Places are looked at before anything is done there, so it is safe to begin anew.
    """
    while True:
        if refused.settled or not _ask(refused):
            refused.settled = True
            raise refused
        try:
            return run()
        except UntrustedError as another:
            refused = another


def can_ask() -> bool:
    """Whether somebody is there who reads a question and can answer it."""
    return all(map(is_terminal, (sys.stdin, sys.stderr)))


def allow_write(change: "NoteChange") -> bool:
    """Show what would change in a note or in the memory, and ask; whatever is no yes is a no, and so is Ctrl-C."""
    clear_status()
    what = "To be remembered" if change.remembers else "A new note" if change.before is None else "A change"
    try:
        with interrupted_by_keys():
            tell(f"{what}: {show_line(change.path)}", err=True)
            tell(change.diff.rstrip("\n"), err=True)
            with seen_keys():
                return ask_yes(f"Write this to {change.path}?", err=True)
    except KeyboardInterrupt:
        return False


def _ask(refused: UntrustedError) -> bool:
    """Whether the person says yes, once and for good; through a pipe nobody is asked."""
    if not can_ask():
        return False
    tell(show_line(refused.message), err=True)
    if not ask_yes(f"Use {refused.place} from now on?", err=True):
        return False
    from lamella.wiring import add_trust  # only those who are asked need it

    add_trust(refused.field, refused.place)
    tell(f"Trusted. Take it back with: {write_command('trust remove', refused.field, refused.place)}", err=True)
    return True
