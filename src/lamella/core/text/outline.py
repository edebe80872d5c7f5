"""The outline: what a long recoverable text shrinks to when it is carried forward as a preview."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lamella.core.text.fences import walk_lines

PREVIEW_OVER = 5_000
SECTION_CHARS = 500
SECTIONS_SHOWN = 20
# Of a list in bytes: at most 300 tokens of paths in any script, measured with o200k and SmolLM2's vocabulary.
LIST_BYTES = 300

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]|$)")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")


class _Section(NamedTuple):
    heading: str | None
    body: list[str]


def build_outline(text: str, *, chars: int = SECTION_CHARS) -> str:
    """Every heading; so many characters of each of the first 20 sections; how many bodies are left out.

    With no characters it is the headings alone.
    """
    shown: list[str] = []
    left_out = 0
    for index, section in enumerate(split_sections(text)):
        if section.heading is not None:
            shown.append(section.heading)
        body = "\n".join(section.body).strip("\n")
        if not body:
            continue
        if index < SECTIONS_SHOWN and chars:
            shown.append(_clip(body, chars))
        else:
            left_out += 1
    if left_out and chars:
        plural = "section" if left_out == 1 else "sections"
        shown.append(f"[The text of {left_out} more {plural} is left out.]")
    return "\n".join(shown)


def build_list(text: str) -> str:
    """The first line of a list, as many of the others as are 300 bytes, and how many more there are."""
    first, *lines = text.split("\n")
    shown, room = [first], LIST_BYTES
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        shown.append(line)
    more = len(lines) + 1 - len(shown)
    return "\n".join((*shown, f"and {more:,} more")) if more else text


def split_sections(text: str) -> list[_Section]:
    """A text cut before each heading; a heading inside a code fence is code."""
    sections = [_Section(heading=None, body=[])]
    for line, is_code in walk_lines(text):
        if not is_code and _HEADING.match(line):
            sections.append(_Section(heading=line, body=[]))
            continue
        sections[-1].body.append(line)
    return sections if sections[0].body and any(sections[0].body) else sections[1:] or sections


def find_headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Each heading: its line counted from 1, its level, and its words without the marks around them."""
    for number, (line, is_code) in enumerate(walk_lines(text), start=1):
        found = None if is_code else _HEADING.match(line)
        if found is not None:
            words = line[found.end(1) :].strip()
            yield number, len(found[1]), _CLOSING.sub("", words).strip()


def _clip(body: str, chars: int) -> str:
    if len(body) <= chars:
        return body
    cut = body[:chars]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > chars // 2 else cut).rstrip() + " …"
