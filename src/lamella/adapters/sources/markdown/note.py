"""A note's text becomes what it says of itself. Nothing in a note is an error: what cannot be read is a warning."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from lamella.adapters.sources.markdown.blocks import find_blocks
from lamella.adapters.sources.markdown.front import read_front, split_front
from lamella.adapters.sources.markdown.links import find_front_links, make_markdown_link, make_wiki_link
from lamella.adapters.sources.markdown.model import NoteHeading, NoteLink, ParsedNote
from lamella.adapters.sources.markdown.places import Ranges, place_structure
from lamella.adapters.sources.markdown.structure import Mark, read_structure
from lamella.adapters.sources.markdown.tags import find_inline_tags, fold_tag, read_aliases, read_front_tags

_HASHES = re.compile(r"^#{1,6}(?=\s|$)|(?:^|[ \t])#+[ \t]*$")
_COMMENT = re.compile("%%")


def parse_note(text: str) -> ParsedNote:
    """All that a note says of itself. Offsets are characters of the text as it is given."""
    text = _without_halves(text)
    begin, end, offset = split_front(text)
    properties, warning = read_front(text[begin:end])
    body = _Body(text, offset)
    links = [*find_front_links(text, begin, end), *body.links()]
    return ParsedNote(
        properties=properties,
        aliases=tuple(read_aliases(properties)),
        tags=_each_once(chain(read_front_tags(properties), body.tags())),
        headings=tuple(body.headings()),
        links=tuple(link for link in links if not link.is_embed),
        embeds=tuple(link for link in links if link.is_embed),
        blocks=body.blocks(),
        body_offset=offset,
        warnings=(warning,) if warning else (),
    )


class _Body:
    """The body of a note with its parts, each where it stands in the whole text."""

    def __init__(self, text: str, offset: int) -> None:
        self._text, self._offset = text, offset
        body = text[offset:] if offset else text
        self._found = place_structure(read_structure(body), body, offset)
        self._verbatim = Ranges(self._found.verbatim)
        self._comments = Ranges(self._list_comments())

    def headings(self) -> Iterator[NoteHeading]:
        line, counted = 1, 0
        for mark in self._list_marks("Heading"):
            line += self._text.count("\n", counted, mark.start)
            counted = mark.start
            title = _read_title(self._text[mark.start : mark.end])
            yield NoteHeading(level=mark.level, text=title, offset=mark.start, line=line)

    def links(self) -> Iterator[NoteLink]:
        for mark in self._list_marks("Link", "Image"):
            source = self._text[mark.start : mark.end]
            if mark.target is None:
                link = make_wiki_link(source, mark.start)
            else:
                link = make_markdown_link(source, mark.start, target=mark.target, is_embed=mark.what == "Image")
            if link is not None:
                yield link

    def tags(self) -> Iterator[str]:
        if "#" not in self._text:
            return
        links = Ranges((mark.start, mark.end) for mark in self._found.marks if mark.what != "Heading")
        hidden = (self._verbatim, self._comments, links)
        for tag, start in find_inline_tags(self._text, self._offset):
            if not any(start in ranges for ranges in hidden):
                yield tag

    def blocks(self) -> Mapping[str, tuple[int, int]]:
        found = find_blocks(self._text, self._offset, self._found.spans)
        return {name: place for name, place in found.items() if place[0] not in self._comments}

    def _list_marks(self, *what: str) -> Iterator[Mark]:
        return (mark for mark in self._found.marks if mark.what in what and mark.start not in self._comments)

    def _list_comments(self) -> Iterable[tuple[int, int]]:
        """What stands between two ``%%``; a lone one is just two signs."""
        if "%%" not in self._text:
            return []
        signs = [at.start() for at in _COMMENT.finditer(self._text, self._offset)]
        shown = [sign for sign in signs if sign not in self._verbatim]
        return zip(shown[::2], (sign + 2 for sign in shown[1::2]), strict=False)


def _read_title(source: str) -> str:
    """The words of a heading: what stands behind its hashes, or above the line that underlines it."""
    if not source.startswith("#"):
        return " ".join(source.rstrip().rpartition("\n")[0].split())
    return _HASHES.sub("", _HASHES.sub("", source.strip(), count=1).strip()).strip()


def _each_once(tags: Iterable[str]) -> tuple[str, ...]:
    once: dict[str, str] = {}
    for tag in tags:
        once.setdefault(fold_tag(tag), tag)
    return tuple(once.values())


def _without_halves(text: str) -> str:
    """Halves of pairs, which no UTF-8 has, become question marks, in as many characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
