"""Edits: the new text of a note from its old one, in the line ends and with the mark that it has."""

from lamella.core.text.content import normalise
from lamella.errors import WriteRefusedError

_MARK = "\ufeff"


def replace_text(before: str | None, content: str) -> str:
    """A whole new text, written as the old one was."""
    return _style(normalise(content), before)


def edit_text(before: str, old: str, new: str, *, path: str) -> str:
    """The text with one passage replaced, which stands in it once; an empty one means the end of the note."""
    text, wanted = normalise(before), normalise(old)
    if not wanted:
        joined = text if text.endswith("\n") or not text else f"{text}\n"
        return _style(joined + normalise(new), before)
    found = text.count(wanted)
    if found != 1:
        told = "does not hold that passage" if not found else f"holds that passage {found} times"
        raise WriteRefusedError(
            f"{path} {told}.", hint="Read the note, and give a passage that stands in it exactly once, word for word."
        )
    return _style(text.replace(wanted, normalise(new)), before)


def _style(text: str, before: str | None) -> str:
    if before is None:
        return text
    # Where only some lines end so, nobody knows which are meant to.
    if "\r\n" in before and before.count("\n") == before.count("\r\n"):
        text = text.replace("\n", "\r\n")
    return _MARK + text if before.startswith(_MARK) else text
