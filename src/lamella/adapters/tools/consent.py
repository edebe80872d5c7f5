"""Consent: a change that a model wants made is shown to whoever may say yes, and made after that."""

from inspect import isawaitable

from lamella.errors import WriteRefusedError
from lamella.holdings import NoteChange
from lamella.ports import AllowWrite


async def seek_yes(change: NoteChange, allow: AllowWrite | None) -> None:
    """Have a change allowed; raises where that is no yes, or where nobody can be asked."""
    what, where = ("the fact", "the memory") if change.remembers else (change.path, "notes")
    if allow is None:
        raise WriteRefusedError(
            f"{what} was not written: changes to {where} need the user's yes, and nobody can be asked here.",
            hint="Tell the user what you would write.",
        )
    # On the loop, not beside it: whoever asks at a terminal must be the one whom Ctrl-C reaches.
    answer = allow(change)
    if (await answer if isawaitable(answer) else answer) is not True:
        raise WriteRefusedError(
            f"{what} was not written: the user said no.", hint="Ask the user what they want instead."
        )
