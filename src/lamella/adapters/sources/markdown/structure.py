"""Structure: where the parts of a markdown body stand, in bytes; what the parser says, and no guess by lines."""

from typing import NamedTuple, cast

import pyromark

_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_MATH
    | pyromark.Options.ENABLE_WIKILINKS
)
_LINKS = frozenset(("Link", "Image"))
_INLINE = frozenset(("Emphasis", "Strong", "Strikethrough", *_LINKS))
# A picture in a link is common. Links in links in links are nobody's, and each would be read with all that are in it.
_DEEPEST_LINK = 3
# Embeds in embeds take the parser the square of their number: 50,000 took five seconds (measured 2026-11-17).
_DEEPEST_EMBED = 1_000
_VERBATIM = frozenset(("Code", "InlineMath", "DisplayMath", "Html", "InlineHtml"))
_VERBATIM_BLOCKS = frozenset(("CodeBlock", "HtmlBlock"))


_Data = dict[str, object]
_Nested = dict[str, dict[str, object]]


class Mark(NamedTuple):
    """A link, an image or a heading: where it stands, where a markdown link leads, how high a heading is."""

    what: str
    start: int
    end: int
    target: str | None = None
    level: int = 0


class Span(NamedTuple):
    """A block: its kind, where it stands, and how many blocks it stands in."""

    what: str
    start: int
    end: int
    depth: int


class Structure(NamedTuple):
    """The marks and blocks of a body in its order, and where it is verbatim: in code, math, HTML."""

    marks: list[Mark]
    spans: list[Span]
    verbatim: list[tuple[int, int]]


def read_structure(body: str) -> Structure:
    """What the parser finds in a body. Offsets are bytes of its UTF-8."""
    walk = _EventWalk()
    for event, place in pyromark.events_with_range(body, options=_choose_options(body)):
        # Most events are plain text, which says nothing here.
        if isinstance(event, str) or "Text" in event:
            continue
        key, value = next(iter(cast(_Data, event).items()))
        if key == "Start":
            walk.enter(value, place["start"], place["end"])
        elif key == "End":
            walk.leave(_name(value))
        elif key in _VERBATIM:
            walk.found.verbatim.append((place["start"], place["end"]))
    walk.found.verbatim.extend(_list_definitions(body))
    return walk.found


def _choose_options(body: str) -> pyromark.Options:
    """A text in which nobody can have meant its embeds is read without any."""
    if body.count("![[") <= _DEEPEST_EMBED or max(part.count("![[") for part in body.split("]]")) <= _DEEPEST_EMBED:
        return _OPTIONS
    return _OPTIONS & ~pyromark.Options.ENABLE_WIKILINKS


class _EventWalk:
    """A walk along the parser's events, with what was found so far and how deep it is."""

    def __init__(self) -> None:
        self.found = Structure([], [], [])
        self._depth = 0
        self._links = 0

    def enter(self, value: object, start: int, end: int) -> None:
        what = _name(value)
        if what in _LINKS:
            self._links += 1
            if self._links <= _DEEPEST_LINK:
                self.found.marks.append(_make_link(what, value, start=start, end=end))
        elif what not in _INLINE:
            self.found.spans.append(Span(what, start, end, self._depth))
            self._depth += 1
            if what in _VERBATIM_BLOCKS:
                self.found.verbatim.append((start, end))
            elif what == "Heading":
                self.found.marks.append(Mark(what, start, end, level=_read_level(value)))

    def leave(self, what: str) -> None:
        self._links -= what in _LINKS
        self._depth -= what not in _INLINE


def _list_definitions(body: str) -> list[tuple[int, int]]:
    """Definitions that links refer to: no event tells of them, and ``[here]: #below`` has no tag."""
    if "]:" not in body:
        return []
    spans = (found["span"] for found in pyromark.reference_definitions(body, options=_OPTIONS).values())
    return [(span["start"], span["end"]) for span in spans]


def _name(value: object) -> str:
    return value if isinstance(value, str) else next(iter(cast(_Data, value)))


def _make_link(what: str, value: object, *, start: int, end: int) -> Mark:
    data = cast(_Nested, value)[what]
    is_wiki = isinstance(data["link_type"], dict)
    return Mark(what, start, end, target=None if is_wiki else str(data["dest_url"]))


def _read_level(value: object) -> int:
    data = cast(_Nested, value)["Heading"]
    return int(str(data["level"])[1:])
