"""Chunks: a note in pieces that can be shown by themselves, one for each heading, several where much stands below it.

Only what an index needs is read, and with few steps for each line: to parse a note whole takes three times as long as
to put it into an index (2026-11-17).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lamella.adapters.sources.markdown.tags import find_inline_tags
from lamella.core.text.fences import INLINE_CODE

# A passage of about a page: longer ones bury what they say, and are no help to whoever reads them.
CHUNK_CHARS = 2_000
# Every chunk has the headings that it stands below, so that one long line above ten thousand sections would be stored
# ten thousand times: of a longer one the beginning counts as heading, and all of it as text. Notes that people write
# have fewer; what follows is divided as text.
_HEADING_CHARS, _MOST_HEADINGS = 300, 10_000
_MARKED = re.compile(r"\n {0,3}+(?=[#`~])(?:(#{1,6})(?:[ \t]+([^\n]*))?(?=\n|\Z)|(`{3,}|~{3,})([^\n]*))")
_TAG = re.compile(r"#[^\s#]")
_INLINE_CODE = re.compile(INLINE_CODE)
_BEFORE_TAG = frozenset("*~=|>")
_BREAKS = ("\n\n", "\n", " ")


class Chunk(NamedTuple):
    """A piece of a note: the headings that it stands below, the highest first, and its text without them."""

    headings: tuple[str, ...]
    text: str


class _Heading(NamedTuple):
    level: int
    text: str
    start: int
    end: int


def divide(body: str) -> tuple[list[Chunk], list[str]]:
    """The chunks of the body of a note, and the tags that stand in its text. An empty body has one empty chunk."""
    text = f"\n{body}"
    headings, code = _read_lines(text)
    chunks = [Chunk(path, piece) for path, section in _list_sections(text, headings) for piece in _cut(section)]
    return chunks or [Chunk((), "")], list(_find_tags(text, code))


def name_chunks(path: str, chunks: Sequence[Chunk]) -> list[str]:
    """An id for each chunk: the path, the headings, and which one it is of those with the same; it has no other source.

    So a chunk keeps its id as long as it stays where it is, whatever else becomes of the note and of the index.
    """
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    names = []
    for chunk in chunks:
        name = place = "#".join((path, *chunk.headings))
        while name in taken:
            numbers[place] = numbers.get(place, 0) + 1
            name = f"{place}~{numbers[place]}"
        taken.add(name)
        names.append(name)
    return names


def _read_lines(text: str) -> tuple[list[_Heading], list[tuple[int, int]]]:
    """The headings of a text that stand in no code, and from where to where it is code."""
    headings: list[_Heading] = []
    code: list[tuple[int, int]] = []
    fence, since = "", 0
    for match in _MARKED.finditer(text):
        hashes, title, marks, words = match.groups()
        if fence:
            if marks and marks.startswith(fence) and not words.strip():
                code.append((since, match.end()))
                fence = ""
        elif hashes:
            if len(headings) < _MOST_HEADINGS:
                headings.append(_make_heading(len(hashes), (title or "").strip(), match.span()))
        elif marks[0] == "~" or "`" not in words:
            fence, since = marks, match.start()
    if fence:
        code.append((since, len(text)))
    return headings, code


def _make_heading(level: int, title: str, span: tuple[int, int]) -> _Heading:
    # Hash signs that close a heading are no part of it, those at the end of a word are.
    bare = title.rstrip("#")
    title = bare.rstrip() if not bare or bare[-1] in " \t" else title
    start, end = span
    if len(title) > _HEADING_CHARS:
        return _Heading(level, title[:_HEADING_CHARS].strip(), start, start)
    return _Heading(level, title, start, end)


def _list_sections(text: str, headings: Sequence[_Heading]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What stands below each heading, up to the next one; a heading with nothing below it but others is none."""
    opening = text[: headings[0].start if headings else len(text)].strip()
    if opening:
        yield (), opening
    above: list[_Heading] = []
    # What follows the last one is higher than all, so that it is not left out.
    for heading, after in pairwise((*headings, _Heading(0, "", len(text), len(text)))):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        section = text[heading.end : after.start].strip()
        if section or after.level <= heading.level:
            yield tuple(one.text for one in above), section


def _cut(section: str) -> Iterator[str]:
    """A section in pieces of about a page, cut between paragraphs, else lines, else words, else anywhere."""
    if len(section) <= CHUNK_CHARS:
        yield section
        return
    start = 0
    while len(section) - start > CHUNK_CHARS:
        least, most = start + CHUNK_CHARS // 2, start + CHUNK_CHARS
        found = (section.rfind(mark, least, most) for mark in _BREAKS)
        end = next((at for at in found if at > 0), most)
        yield section[start:end].strip()
        start = end
    yield section[start:].strip()


def _find_tags(text: str, code: Sequence[tuple[int, int]]) -> Iterator[str]:
    # Without code, in one piece each; most notes have none of it, or no tag.
    ends = [0, *(at for span in code for at in span), len(text)]
    for start, end in list(pairwise(ends))[::2]:
        seen = start
        for match in _TAG.finditer(text, start, end):
            at = match.start()
            if at >= seen and (text[at - 1] in _BEFORE_TAG or text[at - 1].isspace()):
                seen = _end_of_line(text, at)
                line = text[text.rfind("\n", 0, at) + 1 : seen]
                yield from (tag for tag, _ in find_inline_tags(_INLINE_CODE.sub("", line), 0))


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
