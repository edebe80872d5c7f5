"""Ask the user at the terminal for consent: to an untrusted location, or to a change of a note."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lamella.cli.interrupts import raise_on_interrupt
from lamella.cli.output import confirm, echo_and_flush_input, escape_to_short_line, is_terminal, print_text
from lamella.errors import UntrustedError
from lamella.hints import format_command_line

if TYPE_CHECKING:
    from lamella.cli.chat.output import AnswerDisplay
    from lamella.ports import FileChange

_Result = TypeVar("_Result")


def retry_after_trust(error: UntrustedError, run: Callable[[], _Result]) -> _Result:
    """Ask the user about an untrusted location and run the command again; raise the refusal if they decline.

    Running it again is safe, because trust is checked before anything is done at a location.
    """
    while True:
        if error.is_decided or not _ask_to_trust(error):
            # Marks that the user was already asked, so that an outer caller does not ask again.
            error.is_decided = True
            raise error
        try:
            return run()
        except UntrustedError as another:
            error = another


def can_ask_user() -> bool:
    """Return whether a user at a terminal can read a question and answer it."""
    return all(map(is_terminal, (sys.stdin, sys.stderr)))


def confirm_write(change: "FileChange", *, output: "AnswerDisplay") -> bool:
    """Show a change of a note or of the memory and ask the user; only a clear yes allows it, Ctrl-C does not.

    The display of the answer is paused meanwhile: it would draw over the question.
    """
    what = "Fact to save" if change.is_memory else "New note" if change.before is None else "Change"
    try:
        with output.pause(), raise_on_interrupt():
            print_text(f"{what}: {escape_to_short_line(change.path)}", err=True)
            print_text(change.diff.rstrip("\n"), err=True)
            with echo_and_flush_input():
                return confirm(f"Write this to {change.path}?", err=True)
    except KeyboardInterrupt:
        return False


def _ask_to_trust(error: UntrustedError) -> bool:
    """Return whether the user trusts the location, and remember a yes; without a terminal the answer is no."""
    if not can_ask_user():
        return False
    print_text(escape_to_short_line(error.message), err=True)
    if not confirm(f"Use {error.location} from now on?", err=True):
        return False
    from lamella.wiring import add_trust  # only needed after a yes

    add_trust(error.field, error.location)
    print_text(f"Trusted. To undo: {format_command_line('trust remove', error.field, error.location)}", err=True)
    return True
