"""Code fences in markdown: what stands inside one is code, whatever it looks like."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def walk_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line of a markdown text, and whether it belongs to a fenced code block."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            closes = mark is not None and mark.group(1)[0] == fence[0] and len(mark.group(1)) >= len(fence)
            yield line, True
            fence = "" if closes else fence
        else:
            fence = mark.group(1) if mark else ""
            yield line, bool(fence)
