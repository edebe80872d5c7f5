"""Markdown tables as rows of cells, by the heading above them."""

import re
from collections.abc import Iterator

_HEADING = re.compile(r"^#+ (.+)$")
_RULE = re.compile(r"^\|[-|: ]+\|$")


def rows(text: str, *, under: str | None = None) -> list[list[str]]:
    """The rows of every table of a page, headings left out; or only of those under one heading."""
    return [cells for heading, cells in _walk(text) if under is None or heading == under]


def names(text: str, *, under: str | None = None) -> list[str]:
    """What the first column names in code marks; one cell may name several."""
    return [name for cells in rows(text, under=under) for name in re.findall(r"`([^`]+)`", cells[0])]


def _walk(text: str) -> Iterator[tuple[str, list[str]]]:
    heading = ""
    lines = text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        found = _HEADING.match(line)
        heading = found[1] if found else heading
        if line.startswith("|") and not _RULE.match(line) and not _RULE.match(following):
            yield heading, [cell.replace(r"\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
