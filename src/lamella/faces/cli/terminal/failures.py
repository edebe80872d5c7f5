"""How a failure is told: a sentence and a hint on stderr, and as JSON on stdout where that was asked for."""

from contextlib import suppress

from lamella.doors import Door
from lamella.errors import BadInputError, LamellaError
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.errors import view_error


def exit_code(error: LamellaError) -> int:
    """2 for what the caller can mend, 1 for work that could not be done."""
    return 2 if isinstance(error, BadInputError) else 1


def word_failure(error: LamellaError, door: Door) -> dict[str, object]:
    """A failure as data, in the words of a door."""
    message, hint = _word(error, door)
    return view_error(error, message=message, hint=hint)


def print_failure(error: LamellaError, door: Door, *, as_json: bool) -> None:
    """Tell people, and programs that asked for JSON; where no one listens any more, the exit code has to do."""
    message, hint = _word(error, door)
    with suppress(OSError):
        tell(f"error: {message}", err=True)
        tell(f"hint: {hint}", err=True)
        if as_json:
            tell_json(word_failure(error, door))


def _word(error: LamellaError, door: Door) -> tuple[str, str]:
    from lamella.wiring import mask_keys  # only those who fail need it

    return mask_keys(show_line(error.message)), show_line(error.hint_at(door))
