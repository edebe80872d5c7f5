"""Code in markdown: what stands inside a fence, or between ticks in a line, is code, whatever it looks like."""

import re
from collections.abc import Iterator

# Backticks after an opening of backticks make it inline code; after a closing of either kind nothing may stand.
_OPENS = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSES = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
# Code in a line, as a part of an expression: it ends with as many ticks as it begins with, neither more nor less.
INLINE_CODE = r"(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"


def walk_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line of a markdown text, and whether it belongs to a fenced code block."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            yield line, True
            fence = "" if is_closing(line, fence) else fence
        else:
            fence = find_opening(line) or ""
            yield line, bool(fence)


def find_opening(line: str) -> str | None:
    """The mark that opens a fence on a line, if one does."""
    mark = _OPENS.match(line)
    return mark.group(1) if mark else None


def is_closing(line: str, fence: str) -> bool:
    """Whether a line closes a fence that was opened by this mark."""
    mark = _CLOSES.match(line)
    return mark is not None and mark.group(1).startswith(fence)
