"""Parts of a note: what stands under a heading, or the block of a name."""

import re

from lamella.adapters.sources.markdown.model import NoteHeading, ParsedNote

_NO_WORD = re.compile(r"[\W_]+")


def find_part(note: ParsedNote, subpath: str, *, length: int) -> tuple[int, int] | None:
    """Where the part of a note stands that a link names, in a text of this length; none where it has no such part.

    ``#Above#Below`` goes down two steps, and ``#^id`` is a block.
    """
    name = subpath.removeprefix("#")
    if name.startswith("^"):
        return note.blocks.get(name[1:].strip().lower())
    start, end, found = 0, length, False
    for step in filter(None, (_plain(step) for step in name.split("#"))):
        at = next((one for one in note.headings if start <= one.offset < end and _plain(one.text) == step), None)
        if at is None:
            return None
        start, end, found = at.offset, _find_end(note, at, end), True
    return (start, end) if found else None


def _find_end(note: ParsedNote, heading: NoteHeading, end: int) -> int:
    """Where the next heading of its level, or one above it, begins."""
    after = (one.offset for one in note.headings if one.offset > heading.offset and one.level <= heading.level)
    return min(next(after, end), end)


def _plain(title: str) -> str:
    """A heading as it is compared: whatever its case, its marks, and the dashes that addresses put for blanks."""
    return _NO_WORD.sub(" ", title).strip().casefold()
