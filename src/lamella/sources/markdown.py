"""Parse Markdown notes: front matter, headings, links, embeds, tags and named blocks.

``parse_note`` returns a ``ParsedNote`` with all parts; its offsets count characters of the text. A malformed note is
never an error: what cannot be read becomes a warning. ``parse_front_matter`` parses YAML properties as plain values,
``find_section_range`` finds the part that a link names, and ``has_tag`` compares tags.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple, cast
from unicodedata import normalize
from urllib.parse import unquote

import pyromark
import yaml

PropertyValue = None | bool | int | float | str | list["PropertyValue"] | dict[str, "PropertyValue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteHeading:
    """A heading: its level, its text with inline markup, its offset and its line counted from 1."""

    level: int
    text: str
    offset: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLink:
    """A link or an embed of a note.

    ``subpath`` is ``#Heading`` or ``#^block``. The ``alias`` of an embed may be a size such as ``100``. A link within
    its own note has an empty target. An external link leads to a URL.
    """

    target: str
    subpath: str
    alias: str
    start: int
    end: int
    is_embed: bool
    is_wiki: bool
    is_external: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedNote:
    """All parts of a note, each kind in text order.

    Tags have no ``#`` and keep their case; ``normalize_tag`` makes two comparable. A block's range includes its
    ``^id``; the ids are lower case. ``warnings`` says what could not be read.
    """

    properties: Mapping[str, PropertyValue]
    aliases: Sequence[str]
    tags: Sequence[str]
    headings: Sequence[NoteHeading]
    links: Sequence[NoteLink]
    embeds: Sequence[NoteLink]
    blocks: Mapping[str, tuple[int, int]]
    body_offset: int
    warnings: Sequence[str]


# Front matter, parsed within limits.

# A typical note has a few hundred characters of front matter. Far more than that is data in the wrong place.
_MAX_FRONT_MATTER_CHARS = 100_000
_MAX_FRONT_MATTER_VALUES = 10_000
_MAX_ALIAS_VALUES = 1_000
_MAX_FRONT_MATTER_DEPTH = 30
_FRONT_MATTER_START = re.compile(r"\ufeff?---[ \t]*\r?\n")
_FRONT_MATTER_END = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# YAML reads an unquoted [[link]] as a list in a list, and a template's {{title}} as a mapping. Both are kept as text.
_LINK_OR_TEMPLATE = re.compile(r"\[\[[^\[\]\n]+\]\]|\{\{[^{}\n]*\}\}")
# Only these plain scalars are converted; all other words stay text. So a date stays its ISO text, NO stays a country
# code, and 12:30 is not a number of seconds. Integers beyond 64 bits and digits after a leading zero stay text too,
# because they are usually names or ids.
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.\d{1,30}|\d{1,30}(?:\.\d{0,30}|(?=[eE])))(?:[eE][-+]?\d{1,2})?", re.ASCII)


def find_front_matter(text: str) -> tuple[int, int, int]:
    """Return the start and end of the front matter and the start of the body; three zeros without front matter."""
    opening = _FRONT_MATTER_START.match(text)
    closing = _FRONT_MATTER_END.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return 0, 0, 0
    return opening.end(), closing.start(), closing.end()


def parse_front_matter(block: str) -> tuple[Mapping[str, PropertyValue], str]:
    """Return the properties of a front matter block, and a warning if they cannot be read."""
    if not block:
        return {}, ""
    if len(block) > _MAX_FRONT_MATTER_CHARS:
        return {}, f"The front matter has {len(block):,} characters; {_MAX_FRONT_MATTER_CHARS:,} are read."
    try:
        found = _YamlValueBuilder(block).build()
    except yaml.YAMLError as error:
        return {}, f"The front matter is not YAML{_format_yaml_location(error)}."
    except _FrontMatterTooLarge as bound:
        return {}, str(bound)
    if found is None:
        return {}, ""
    return (found, "") if isinstance(found, dict) else ({}, "The front matter has no properties.")


class _FrontMatterTooLarge(Exception):  # noqa: N818 - it never leaves this file
    """Valid YAML that exceeds the limits for front matter."""


class _YamlValueBuilder:
    """Builds the values of a front matter block from the YAML parser's events.

    PyYAML builds its own tree by recursion, and some ten thousand nested brackets crash the process there. Values that
    an alias repeats count each time. Beyond the limit an alias gives None.
    """

    def __init__(self, block: str) -> None:
        self._block = block
        self._values_left = _MAX_FRONT_MATTER_VALUES
        self._repeats_left = _MAX_ALIAS_VALUES
        self._anchors: dict[str, PropertyValue] = {}
        self._events: Iterator[yaml.Event] = iter(())

    def build(self) -> PropertyValue:
        self._events = iter(yaml.parse(self._block, Loader=yaml.CSafeLoader))
        for event in self._events:
            if isinstance(event, yaml.NodeEvent):
                return self._build_value(event, 0)
        return None

    def _build_value(self, event: yaml.Event, depth: int) -> PropertyValue:
        self._values_left -= 1
        if self._values_left < 0:
            raise _FrontMatterTooLarge(f"The front matter has more than {_MAX_FRONT_MATTER_VALUES:,} values.")
        if depth > _MAX_FRONT_MATTER_DEPTH:
            raise _FrontMatterTooLarge(f"The front matter is nested more than {_MAX_FRONT_MATTER_DEPTH} deep.")
        match event:
            case yaml.AliasEvent():
                return self._copy_aliased_value(self._anchors.get(event.anchor or ""), depth)
            case yaml.ScalarEvent():
                value = event.value if event.style else _parse_scalar(event.value)
            case _:
                value = self._build_list_or_mapping(event, depth)
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _build_list_or_mapping(self, begin: yaml.Event, depth: int) -> PropertyValue:
        """Return the list or mapping that began with this event, reading events up to its end."""
        items: list[PropertyValue] = []
        last = begin
        for event in self._events:
            if isinstance(event, yaml.CollectionEndEvent):
                last = event
                break
            items.append(self._build_value(event, depth + 1))
        source = self._block[_get_mark_index(begin.start_mark) : _get_mark_index(last.end_mark)]
        if _LINK_OR_TEMPLATE.fullmatch(source):
            return source
        if isinstance(begin, yaml.MappingStartEvent):
            return {_property_name(key): value for key, value in zip(items[::2], items[1::2], strict=True)}
        return items

    def _copy_aliased_value(self, value: PropertyValue, depth: int) -> PropertyValue:
        self._repeats_left -= 1
        if self._repeats_left < 0 or depth > _MAX_FRONT_MATTER_DEPTH:
            return None
        if isinstance(value, list):
            return [self._copy_aliased_value(item, depth + 1) for item in value[: self._repeats_left]]
        if isinstance(value, dict):
            return {key: self._copy_aliased_value(item, depth + 1) for key, item in value.items()}
        return value


def _property_name(key: PropertyValue) -> str:
    """Return a property's name as text; keys such as ``null`` and ``true`` become words."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)


def _get_mark_index(mark: object) -> int:
    return int(getattr(mark, "index", 0))


def _parse_scalar(text: str) -> PropertyValue:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _format_yaml_location(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    # One for counting from 1, one for the ``---`` line above the block.
    return "" if mark is None else f" (line {mark.line + 2})"


# Links: ``[[Note#Part|words]]`` and ``[words](note.md#part)``.

_WIKI_LINK = re.compile(r"\[\[[^\[\]\n]+\]\]")
# Inside a table, the bar between target and alias is escaped with a backslash.
_ALIAS_SEPARATOR = re.compile(r"\\?\|")
_URL_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def parse_wiki_link(source: str, start: int) -> NoteLink | None:
    """Return the wiki link of a source in double brackets; None if it spans lines or names nothing."""
    is_embed = source.startswith("!")
    inner = source[2 + is_embed : -2]
    name, *words = _ALIAS_SEPARATOR.split(inner, maxsplit=1)
    target, _, subpath = name.partition("#")
    if "\n" in inner or not (target.strip() or subpath.strip()):
        return None
    return NoteLink(
        target=target.strip(),
        subpath=f"#{subpath.strip()}" if subpath.strip() else "",
        alias=words[0].strip() if words else "",
        start=start,
        end=start + len(source),
        is_embed=is_embed,
        is_wiki=True,
    )


def make_markdown_link(source: str, start: int, *, target: str, is_embed: bool) -> NoteLink | None:
    """Return the link of a markdown source with this target; None if the target is empty.

    An external address is kept whole, as it is written. Other targets are percent-decoded and split at ``#``.
    """
    is_external = _URL_SCHEME.match(target) is not None
    path, _, subpath = (target, "", "") if is_external else target.partition("#")
    if not path and not subpath:
        return None
    return NoteLink(
        target=path if is_external else unquote(path),
        subpath=f"#{unquote(subpath)}" if subpath else "",
        alias=_get_link_text(source[2 if is_embed else 1 :]),
        start=start,
        end=start + len(source),
        is_embed=is_embed,
        is_wiki=False,
        is_external=is_external,
    )


def iter_property_links(text: str, begin: int, end: int) -> Iterator[NoteLink]:
    """Yield the links in front matter properties. None of them is an embed, since properties show no content."""
    for match in _WIKI_LINK.finditer(text, begin, end):
        link = parse_wiki_link(match.group(), match.start())
        if link is not None:
            yield link


def _get_link_text(source: str) -> str:
    """Return the text up to the bracket that closes the link text, ignoring balanced inner brackets."""
    depth = 0
    for at, sign in enumerate(source):
        if sign == "[":
            depth += 1
        elif sign == "]":
            if not depth:
                return source[:at]
            depth -= 1
    return ""


# Parts of a note that a link names: a section under a heading, or a named block.

_NON_WORD = re.compile(r"[\W_]+")


def find_section_range(note: ParsedNote, subpath: str, *, length: int) -> tuple[int, int] | None:
    """Return the range of the part that a link's subpath names, or None if the note has no such part.

    ``#Above#Below`` names a heading below another heading. ``#^id`` names a block. ``length`` is the length of the
    text, where the last section ends.
    """
    name = subpath.removeprefix("#")
    if name.startswith("^"):
        return note.blocks.get(name[1:].strip().lower())
    start, end, found = 0, length, False
    for step in filter(None, (_normalize_heading(step) for step in name.split("#"))):
        at = next(
            (one for one in note.headings if start <= one.offset < end and _normalize_heading(one.text) == step), None
        )
        if at is None:
            return None
        start, end, found = at.offset, _find_section_end(note, at, end), True
    return (start, end) if found else None


def _find_section_end(note: ParsedNote, heading: NoteHeading, end: int) -> int:
    """Return where the next heading of the same or a higher level begins, at most ``end``."""
    after = (one.offset for one in note.headings if one.offset > heading.offset and one.level <= heading.level)
    return min(next(after, end), end)


def _normalize_heading(title: str) -> str:
    """Return a heading in the form used for comparison, without case, markup and punctuation.

    URLs write dashes instead of blanks; both become a blank.
    """
    return _NON_WORD.sub(" ", title).strip().casefold()


# The structure of a body as the CommonMark parser reports it, with offsets in bytes.

_PARSER_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_MATH
    | pyromark.Options.ENABLE_WIKILINKS
)
_LINK_ELEMENTS = frozenset(("Link", "Image"))
_INLINE_ELEMENTS = frozenset(("Emphasis", "Strong", "Strikethrough", *_LINK_ELEMENTS))
# An image in a link is common. Deeper nesting of links is not meaningful, and each level would be read again with all
# levels inside it.
_DEEPEST_LINK = 3
# The parser needs quadratic time for embeds in embeds: 50,000 of them took five seconds (measured 2026-11-17).
_DEEPEST_EMBED = 1_000
_VERBATIM_ELEMENTS = frozenset(("Code", "InlineMath", "DisplayMath", "Html", "InlineHtml"))
_VERBATIM_BLOCKS = frozenset(("CodeBlock", "HtmlBlock"))


_EventData = dict[str, object]
_NestedEventData = dict[str, dict[str, object]]


class MarkdownElement(NamedTuple):
    """A link, an image or a heading with its range.

    ``target`` is the address of a markdown link; it is None for wiki links and headings. ``level`` is that of a
    heading.
    """

    kind: str
    start: int
    end: int
    target: str | None = None
    level: int = 0


class BlockSpan(NamedTuple):
    """A block: its type, its range, and the number of blocks around it."""

    kind: str
    start: int
    end: int
    depth: int


class MarkdownStructure(NamedTuple):
    """The links, images, headings and blocks of a body in text order, and its verbatim ranges (code, math, HTML)."""

    elements: list[MarkdownElement]
    blocks: list[BlockSpan]
    verbatim: list[tuple[int, int]]


def parse_structure_in_bytes(body: str) -> MarkdownStructure:
    """Parse a body. Offsets count bytes of its UTF-8 encoding."""
    walk = _EventWalk()
    for event, byte_range in pyromark.events_with_range(body, options=_choose_options(body)):
        # Skip plain text, which most events are.
        if isinstance(event, str) or "Text" in event:
            continue
        key, value = next(iter(cast(_EventData, event).items()))
        if key == "Start":
            walk.enter(value, byte_range["start"], byte_range["end"])
        elif key == "End":
            walk.exit_element(_element_name(value))
        elif key in _VERBATIM_ELEMENTS:
            walk.structure.verbatim.append((byte_range["start"], byte_range["end"]))
    walk.structure.verbatim.extend(_find_link_definitions(body))
    return walk.structure


def _choose_options(body: str) -> pyromark.Options:
    """Return the parser options; wiki links are off if embeds are nested too deeply to be meant."""
    if body.count("![[") <= _DEEPEST_EMBED or max(part.count("![[") for part in body.split("]]")) <= _DEEPEST_EMBED:
        return _PARSER_OPTIONS
    return _PARSER_OPTIONS & ~pyromark.Options.ENABLE_WIKILINKS


class _EventWalk:
    """A walk along the parser's events, with the structure found so far and the nesting depth."""

    def __init__(self) -> None:
        self.structure = MarkdownStructure([], [], [])
        self._depth = 0
        self._link_depth = 0

    def enter(self, value: object, start: int, end: int) -> None:
        what = _element_name(value)
        if what in _LINK_ELEMENTS:
            self._link_depth += 1
            if self._link_depth <= _DEEPEST_LINK:
                self.structure.elements.append(_make_link(what, value, start=start, end=end))
        elif what not in _INLINE_ELEMENTS:
            self.structure.blocks.append(BlockSpan(what, start, end, self._depth))
            self._depth += 1
            if what in _VERBATIM_BLOCKS:
                self.structure.verbatim.append((start, end))
            elif what == "Heading":
                self.structure.elements.append(MarkdownElement(what, start, end, level=_heading_level(value)))

    def exit_element(self, kind: str) -> None:
        self._link_depth -= kind in _LINK_ELEMENTS
        self._depth -= kind not in _INLINE_ELEMENTS


def _find_link_definitions(body: str) -> list[tuple[int, int]]:
    """Return the ranges of link reference definitions.

    The parser emits no event for them. Without this, ``[here]: #below`` would be read as a tag.
    """
    if "]:" not in body:
        return []
    spans = (found["span"] for found in pyromark.reference_definitions(body, options=_PARSER_OPTIONS).values())
    return [(span["start"], span["end"]) for span in spans]


def _element_name(value: object) -> str:
    return value if isinstance(value, str) else next(iter(cast(_EventData, value)))


def _make_link(kind: str, value: object, *, start: int, end: int) -> MarkdownElement:
    data = cast(_NestedEventData, value)[kind]
    is_wiki = isinstance(data["link_type"], dict)
    return MarkdownElement(kind, start, end, target=None if is_wiki else str(data["dest_url"]))


def _heading_level(value: object) -> int:
    data = cast(_NestedEventData, value)["Heading"]
    return int(str(data["level"])[1:])


# Named blocks: ``^id`` after a paragraph or list item, or on its own line after any other block.

_BLOCK_NAME = re.compile(r"(?:^|(?<=\s))\^([A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
_NAMEABLE_BLOCKS = frozenset(("Paragraph", "Heading", "Item"))
# Any character except white space and the ``>`` that begins each line of a quotation.
_VISIBLE_CHAR = re.compile(r"[^\s>]")


def parse_named_blocks(text: str, offset: int, blocks: Sequence[BlockSpan]) -> Mapping[str, tuple[int, int]]:
    """Return the named blocks of a text from an offset on, with their ranges.

    If two blocks have the same name, the first is returned.
    """
    found: dict[str, tuple[int, int]] = {}
    if "^" not in text:
        return found
    way, at = _BlockPath(), 0
    for match in _BLOCK_NAME.finditer(text, offset):
        while at < len(blocks) and blocks[at].start <= match.start():
            way.enter(blocks[at])
            at += 1
        way.exit_blocks(match.start())
        until = blocks[at].start if at < len(blocks) else len(text)
        block = way.named_block(text, match.start(), match.end(), until=until)
        if block is not None:
            stop = block.start + len(text[block.start : block.end].rstrip())
            found.setdefault(match.group(1).lower(), (block.start, stop))
    return found


class _BlockPath:
    """The open blocks at an offset, outermost first, each with the sibling block before it."""

    def __init__(self) -> None:
        self._open_blocks: list[tuple[BlockSpan, BlockSpan | None]] = []
        self._latest_by_depth: dict[int, BlockSpan] = {}

    def enter(self, span: BlockSpan) -> None:
        del self._open_blocks[span.depth :]
        before = self._latest_by_depth.get(span.depth)
        parent = self._open_blocks[-1][0].start if self._open_blocks else 0
        self._open_blocks.append((span, before if before is not None and before.start >= parent else None))
        self._latest_by_depth[span.depth] = span

    def exit_blocks(self, offset: int) -> None:
        while self._open_blocks and self._open_blocks[-1][0].end <= offset:
            self._open_blocks.pop()

    def named_block(self, text: str, start: int, end: int, *, until: int) -> BlockSpan | None:
        """Return the block that the name between ``start`` and ``end`` belongs to.

        Returns None if the name is inside code or is followed by more words of its block.
        """
        if not self._open_blocks or self._open_blocks[-1][0].kind not in _NAMEABLE_BLOCKS:
            return None
        span, before = self._open_blocks[-1]
        if _VISIBLE_CHAR.search(text, end, min(span.end, until)):
            return None
        if span.kind != "Paragraph":
            return span
        # A paragraph that consists only of the name refers to the block before it.
        if span.start == start:
            return before
        # A name at the end of an item's first paragraph refers to the whole item.
        item = self._open_blocks[-2][0] if len(self._open_blocks) > 1 else None
        return item if item is not None and item.kind == "Item" and before is None else span


# Offsets and ranges.


class TextRanges:
    """Ranges of a text that can be tested for containing an offset. Overlapping ranges are merged."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]


def to_text_offsets(structure: MarkdownStructure, body: str, offset: int) -> MarkdownStructure:
    """Return a structure with its offsets converted to characters of the whole text.

    The parser counts bytes from the start of the body.
    """
    if not offset and body.isascii():
        return structure
    ends = [*structure.verbatim, *(mark[1:3] for mark in structure.elements), *(span[1:3] for span in structure.blocks)]
    at = _count_characters(body, set(chain.from_iterable(ends)), offset)
    return MarkdownStructure(
        [
            MarkdownElement(what, at[start], at[end], target, level)
            for what, start, end, target, level in structure.elements
        ],
        [BlockSpan(what, at[start], at[end], depth) for what, start, end, depth in structure.blocks],
        [(at[start], at[end]) for start, end in structure.verbatim],
    )


def _count_characters(body: str, byte_positions: set[int], offset: int) -> Mapping[int, int]:
    """Return, for each byte position, the number of characters before it plus ``offset``."""
    if body.isascii():
        return {at: at + offset for at in byte_positions}
    data, counts_by_offset, counted = body.encode(), {}, offset
    # Sorted, so that the text is decoded only once, piece by piece.
    for before, at in pairwise((0, *sorted(byte_positions))):
        counted += len(data[before:at].decode())
        counts_by_offset[at] = counted
    return counts_by_offset


# A tag may contain any character except white space and punctuation other than - / _. The zero-width joiner is allowed
# too, because some emoji consist of several joined characters.
_TAG_CHAR = (
    r"[^\s!-,.:-@\[-^`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f"
    r"\u3001-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
# A tag begins a line or a word, or follows a sign of emphasis, a table bar or a quotation sign.
_INLINE_TAG = re.compile(rf"#(?<![^\s*~=|>]#)({_TAG_CHAR}+)")
_ALIAS_LIST_SEPARATOR = re.compile(",")
_TAG_LIST_SEPARATOR = re.compile(r"[,\s]+")


_ARCHIVE_FIELD = re.compile(r"^(lamella|conversation|created):[ \t]*\S", re.MULTILINE)


def is_conversation_archive(text: str) -> bool:
    """Return whether a note is an archive of a conversation, by the fields that Lamella writes into its front matter.

    ``text`` may be the beginning of the note.
    """
    text = text.removeprefix("\ufeff")
    if not text.startswith("---"):
        return False
    begin, end, _ = find_front_matter(text)
    return len({match[1] for match in _ARCHIVE_FIELD.finditer(text, begin, end)}) == 3


def normalize_tag(tag: str) -> str:
    """Return a tag in the form used for comparison: NFC, case-folded, without ``#`` and outer slashes."""
    return normalize("NFC", normalize("NFC", tag.strip().lstrip("#").strip("/")).casefold())


def has_tag(tags: Iterable[str], tag: str) -> bool:
    """Return whether one of these normalised tags is the tag or is nested below it.

    ``project/beta`` is nested below ``project``.
    """
    normalized_tag = normalize_tag(tag)
    return any(found == normalized_tag or found.startswith(normalized_tag + "/") for found in tags)


def iter_inline_tags(text: str, offset: int) -> Iterator[tuple[str, int]]:
    """Yield each possible tag of a text from an offset on, with its position.

    Text inside code is not excluded here; the caller does that.
    """
    for match in _INLINE_TAG.finditer(text, offset):
        tag = match.group(1).strip("/")
        if _is_tag(tag):
            yield tag, match.start()


def read_front_tags(properties: Mapping[str, PropertyValue]) -> list[str]:
    """Return the tags among the properties: a list, or one text separated by commas or blanks."""
    return [
        tag
        for word in _list_property_texts(properties, "tags", "tag", separator=_TAG_LIST_SEPARATOR)
        if _is_tag(tag := _strip_tag(word))
    ]


def read_aliases(properties: Mapping[str, PropertyValue]) -> list[str]:
    """Return the aliases among the properties: a list, or one text separated by commas."""
    return _list_property_texts(properties, "aliases", "alias", separator=_ALIAS_LIST_SEPARATOR)


def _list_property_texts(properties: Mapping[str, PropertyValue], *names: str, separator: re.Pattern[str]) -> list[str]:
    """Return the texts of the first property with one of these names: list items, or parts of a text."""
    for name, value in properties.items():
        if name.lower() in names and value is not None:
            items = value if isinstance(value, list) else separator.split(value) if isinstance(value, str) else []
            return [item.strip() for item in items if isinstance(item, str) and item.strip()]
    return []


def _strip_tag(word: str) -> str:
    return word.lstrip("#").strip("/")


def _is_tag(word: str) -> bool:
    """Return whether a word can be a tag. Digits alone are a number, for example of an issue."""
    return any(not character.isdigit() and character not in "/_-" for character in word)


# Whole notes.

_HEADING_HASHES = re.compile(r"^#{1,6}(?=\s|$)|(?:^|[ \t])#+[ \t]*$")
_COMMENT_MARK = re.compile("%%")


def parse_note(text: str) -> ParsedNote:
    """Return all parts of a note. Offsets count characters of ``text``."""
    text = _replace_surrogates(text)
    begin, end, offset = find_front_matter(text)
    properties, warning = parse_front_matter(text[begin:end])
    body = _NoteBody(text, offset)
    links = [*iter_property_links(text, begin, end), *body.links()]
    return ParsedNote(
        properties=properties,
        aliases=tuple(read_aliases(properties)),
        tags=_unique_tags(chain(read_front_tags(properties), body.tags())),
        headings=tuple(body.headings()),
        links=tuple(link for link in links if not link.is_embed),
        embeds=tuple(link for link in links if link.is_embed),
        blocks=body.blocks(),
        body_offset=offset,
        warnings=(warning,) if warning else (),
    )


class _NoteBody:
    """The body of a note with its parts; offsets refer to the whole text including front matter."""

    def __init__(self, text: str, offset: int) -> None:
        self._text, self._offset = text, offset
        body = text[offset:] if offset else text
        self._structure = to_text_offsets(parse_structure_in_bytes(body), body, offset)
        self._verbatim = TextRanges(self._structure.verbatim)
        self._comments = TextRanges(self._find_comments())

    def headings(self) -> Iterator[NoteHeading]:
        line, counted = 1, 0
        for mark in self._iter_elements("Heading"):
            # Count from the previous heading on, so that a note with many headings is scanned once.
            line += self._text.count("\n", counted, mark.start)
            counted = mark.start
            title = _heading_text(self._text[mark.start : mark.end])
            yield NoteHeading(level=mark.level, text=title, offset=mark.start, line=line)

    def links(self) -> Iterator[NoteLink]:
        for mark in self._iter_elements("Link", "Image"):
            source = self._text[mark.start : mark.end]
            if mark.target is None:
                link = parse_wiki_link(source, mark.start)
            else:
                link = make_markdown_link(source, mark.start, target=mark.target, is_embed=mark.kind == "Image")
            if link is not None:
                yield link

    def tags(self) -> Iterator[str]:
        if "#" not in self._text:
            return
        links = TextRanges((mark.start, mark.end) for mark in self._structure.elements if mark.kind != "Heading")
        hidden = (self._verbatim, self._comments, links)
        for tag, start in iter_inline_tags(self._text, self._offset):
            if not any(start in ranges for ranges in hidden):
                yield tag

    def blocks(self) -> Mapping[str, tuple[int, int]]:
        found = parse_named_blocks(self._text, self._offset, self._structure.blocks)
        return {name: lines for name, lines in found.items() if lines[0] not in self._comments}

    def _iter_elements(self, *kinds: str) -> Iterator[MarkdownElement]:
        return (mark for mark in self._structure.elements if mark.kind in kinds and mark.start not in self._comments)

    def _find_comments(self) -> Iterable[tuple[int, int]]:
        """Return the ranges between pairs of ``%%`` (Obsidian comments). A lone ``%%`` is plain text."""
        if "%%" not in self._text:
            return []
        signs = [at.start() for at in _COMMENT_MARK.finditer(self._text, self._offset)]
        shown = [sign for sign in signs if sign not in self._verbatim]
        return zip(shown[::2], (sign + 2 for sign in shown[1::2]), strict=False)


def _heading_text(source: str) -> str:
    """Return the text of a heading, which is after its ``#`` signs or above its underline."""
    if not source.startswith("#"):
        return " ".join(source.rstrip().rpartition("\n")[0].split())
    return _HEADING_HASHES.sub("", _HEADING_HASHES.sub("", source.strip(), count=1).strip()).strip()


def _unique_tags(tags: Iterable[str]) -> tuple[str, ...]:
    once: dict[str, str] = {}
    for tag in tags:
        once.setdefault(normalize_tag(tag), tag)
    return tuple(once.values())


def _replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by ``?``, since UTF-8 has none; the length and all offsets stay the same."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
