"""Code fences in markdown: what stands inside one is code, whatever it looks like."""

import re
from collections.abc import Iterator

# Backticks after an opening of backticks make it inline code; after a closing of either kind nothing may stand.
_OPENS = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSES = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")


def walk_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line of a markdown text, and whether it belongs to a fenced code block."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            mark = _CLOSES.match(line)
            closes = mark is not None and mark.group(1).startswith(fence)
            yield line, True
            fence = "" if closes else fence
        else:
            mark = _OPENS.match(line)
            fence = mark.group(1) if mark else ""
            yield line, bool(fence)
