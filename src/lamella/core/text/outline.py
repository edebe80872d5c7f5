"""Outlines: the short form of a long text that can be read again, for previews in later turns."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lamella.core.text.content import iter_lines_with_code_flag

PREVIEW_THRESHOLD_CHARS = 5_000
SECTION_CHARS = 500
MAX_SHOWN_SECTIONS = 20
# Maximum size of a list in bytes. It is at most 300 tokens of paths in any script, measured with the vocabularies of
# o200k and SmolLM2.
MAX_LIST_BYTES = 300

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]|$)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")


class _Section(NamedTuple):
    heading: str | None
    body: list[str]


def build_outline(text: str, *, section_chars: int = SECTION_CHARS) -> str:
    """Return every heading, the first ``section_chars`` characters of the first 20 sections, and a count of the rest.

    With ``section_chars`` of 0 it returns the headings alone.
    """
    shown: list[str] = []
    left_out = 0
    for index, section in enumerate(split_sections(text)):
        if section.heading is not None:
            shown.append(section.heading)
        body = "\n".join(section.body).strip("\n")
        if not body:
            continue
        if index < MAX_SHOWN_SECTIONS and section_chars:
            shown.append(_truncate_section_body(body, section_chars))
        else:
            left_out += 1
    if left_out and section_chars:
        plural = "section" if left_out == 1 else "sections"
        shown.append(f"[The text of {left_out} more {plural} is left out.]")
    return "\n".join(shown)


def shorten_list(text: str) -> str:
    """Return the first line of a list, up to 300 bytes of the other lines, and how many more there are."""
    first, *lines = text.split("\n")
    shown, remaining = [first], MAX_LIST_BYTES
    for line in lines:
        remaining -= len(line.encode()) + 1
        if remaining < 0:
            break
        shown.append(line)
    more = len(lines) + 1 - len(shown)
    return "\n".join((*shown, f"and {more:,} more")) if more else text


def split_sections(text: str) -> list[_Section]:
    """Split a text before each heading; headings inside code fences are code."""
    sections = [_Section(heading=None, body=[])]
    for line, is_code in iter_lines_with_code_flag(text):
        if not is_code and _HEADING.match(line):
            sections.append(_Section(heading=line, body=[]))
            continue
        sections[-1].body.append(line)
    return sections if sections[0].body and any(sections[0].body) else sections[1:] or sections


def iter_headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield each heading as its line number from 1, its level, and its words without markup."""
    for number, (line, is_code) in enumerate(iter_lines_with_code_flag(text), start=1):
        found = None if is_code else _HEADING.match(line)
        if found is not None:
            words = line[found.end(1) :].strip()
            yield number, len(found[1]), _CLOSING_HASHES.sub("", words).strip()


def _truncate_section_body(body: str, chars: int) -> str:
    if len(body) <= chars:
        return body
    cut = body[:chars]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > chars // 2 else cut).rstrip() + " …"
