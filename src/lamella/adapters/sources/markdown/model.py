"""What a note says of itself, as values. Offsets are characters of the text as it was given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PropertyValue = None | bool | int | float | str | list["PropertyValue"] | dict[str, "PropertyValue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteHeading:
    """A heading: its level, its words with their marks, the offset and line (from 1) it begins on."""

    level: int
    text: str
    offset: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLink:
    """A link or an embed. ``subpath`` is ``#Heading`` or ``#^block``; an embed's ``alias`` may be a size, as ``100``.

    A link within its own note has no target; one that is external leads to an address of the world.
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
    """All that a note says of itself, each part in the order of the text.

    Tags have no hash sign and their own case; ``fold_tag`` makes two comparable. A block's range has its ``^id``, which
    is in lower case here. What could not be read is a warning.
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
