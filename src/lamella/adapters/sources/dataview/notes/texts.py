"""The text of a note as queries see it, read once for as long as its file stays as it is."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lamella.adapters.sources.dataview.language.values import Value
from lamella.adapters.sources.dataview.notes.fields import find_fields, gather_fields, read_property, read_value
from lamella.adapters.sources.dataview.notes.tasks import TaskText, find_tasks, is_task
from lamella.adapters.sources.markdown.model import ParsedNote
from lamella.adapters.sources.markdown.note import parse_note
from lamella.core.text.fences import walk_lines

_NUMBERED_LINE = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteText:
    """What a note says; its links lead where it wrote. One that cannot be read has nothing but ``unread``: why."""

    fields: Mapping[str, Value] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    tasks: Sequence[TaskText] = ()
    unread: str = ""


def read_note(text: str) -> NoteText:
    """What queries may ask of a note."""
    note = parse_note(text)
    lines = list(_list_lines(text, note))
    inline = (pair for _, line in lines if "::" in line and not is_task(line) for pair in find_fields(line))
    pairs = [(name, read_property(value)) for name, value in note.properties.items()]
    pairs += [(name, read_value(value)) for name, value in inline]
    links = dict.fromkeys(link.target for link in (*note.links, *note.embeds) if link.target and not link.is_external)
    return NoteText(
        fields=gather_fields(pairs),
        tags=tuple(note.tags),
        aliases=tuple(note.aliases),
        links=tuple(links),
        tasks=find_tasks(_with_sections(lines, note)),
    )


def _list_lines(text: str, note: ParsedNote) -> Iterator[_NUMBERED_LINE]:
    """The lines of a note's body that are no code, with their numbers in the whole text."""
    first = text.count("\n", 0, note.body_offset) + 1
    for number, (line, is_code) in enumerate(walk_lines(text[note.body_offset :]), first):
        if not is_code:
            yield number, line.rstrip("\r")


def _with_sections(lines: Sequence[_NUMBERED_LINE], note: ParsedNote) -> Iterator[tuple[int, str, str]]:
    starts = [heading.line for heading in note.headings]
    for number, line in lines:
        above = bisect_right(starts, number)
        yield number, line, note.headings[above - 1].text if above else ""
