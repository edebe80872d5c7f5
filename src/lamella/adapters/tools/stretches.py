"""Stretches: as much of a text as is read at once, with where it stands and how to read on."""

from collections.abc import Sequence

from lamella.adapters.tools.schema import ToolParameter

# What one call gives at most, in characters: about five thousand tokens.
ROOM = 20_000
START = ToolParameter("start", "The character to begin at, to read on where an earlier call ended.", "integer", least=0)


def cut_stretch(text: str, start: int, *, title: str) -> str:
    """A stretch of a text under a line that says which; all of it where that fits."""
    if start >= len(text) > 0 or (start and not text):
        raise ValueError(f"there are {len(text):,} characters, and nothing from {start:,} on")
    end = min(start + ROOM, len(text))
    if (start, end) == (0, len(text)):
        return f"[{title}]\n{text}"
    more = f"; go on with start {end}" if end < len(text) else ", to the end"
    return f"[{title}, characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"


def list_stretch(lines: Sequence[str], start: int, *, title: str, most: int) -> str:
    """Some lines of a list under one that says which; all of them where they fit."""
    shown: list[str] = []
    room = ROOM
    for line in lines[start : start + most]:
        room -= len(line) + 1
        if shown and room < 0:
            break
        shown.append(line)
    end = start + len(shown)
    if (start, end) == (0, len(lines)):
        return "\n".join((f"[{title}: {len(lines):,}]", *shown))
    more = f"; go on with start {end}" if end < len(lines) else ", to the end"
    return "\n".join((f"[{title}: {start} to {end} of {len(lines)}{more}]", *shown))
