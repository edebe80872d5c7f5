"""Tasks of a note: list items with a box, what they say of themselves, and which of them stand below others."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lamella.adapters.sources.dataview.language.spans import parse_moment
from lamella.adapters.sources.dataview.language.values import Value
from lamella.adapters.sources.dataview.notes.fields import find_bracketed, gather_fields, hide_code, read_value
from lamella.adapters.sources.markdown.tags import find_inline_tags

_TASK = re.compile(r"([ \t>]{0,200})(?:[-*+]|\d{1,9}[.)])[ \t]+\[(.)\](?:[ \t]+(.*))?$")
_ITEM = re.compile(r"([ \t>]{0,200})(?:[-*+]|\d{1,9}[.)])[ \t]")
_DATE = r"\ufe0f?\s{0,5}(\d{4}-\d\d-\d\d)"
# Dates by the pictures that mark them.
_MARKED = {
    "due": re.compile("[\U0001f4c5\U0001f4c6\U0001f5d3]" + _DATE),
    "created": re.compile("\u2795" + _DATE),
    "start": re.compile("\U0001f6eb" + _DATE),
    "scheduled": re.compile("[\u23f3\u231b]" + _DATE),
    "completion": re.compile("\u2705" + _DATE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskText:
    """A task as its line says it. ``children`` are those directly below it."""

    line: int
    status: str
    text: str
    section: str
    fields: dict[str, Value]
    tags: tuple[str, ...]
    children: list["TaskText"] = field(default_factory=list)

    @property
    def is_completed(self) -> bool:
        return self.status in ("x", "X")


def is_task(line: str) -> bool:
    """Whether a line is a task: its fields are its own and not its note's."""
    return _TASK.match(line) is not None


def find_tasks(lines: Iterable[tuple[int, str, str]]) -> Sequence[TaskText]:
    """The tasks among lines, each given with its number and the heading it stands under."""
    found: list[TaskText] = []
    above: list[tuple[int, TaskText]] = []
    for number, line, section in lines:
        item = _ITEM.match(line)
        if item is None:
            above = above if line.strip() else []
            continue
        width = len(item.group(1).expandtabs(4))
        above = [(indent, task) for indent, task in above if indent < width]
        match = _TASK.match(line)
        if match is None:
            continue
        task = _read_task(number, match.group(2), match.group(3) or "", section=section)
        if above:
            above[-1][1].children.append(task)
        above.append((width, task))
        found.append(task)
    return found


def _read_task(number: int, status: str, text: str, *, section: str) -> TaskText:
    said = hide_code(text)
    marked = [(name, parse_moment(date[1])) for name, mark in _MARKED.items() if (date := mark.search(said))]
    fields = gather_fields([*((key, read_value(value)) for key, value in find_bracketed(said)), *marked])
    tags = tuple(f"#{tag}" for tag, _ in find_inline_tags(said, 0))
    return TaskText(line=number, status=status, text=text.strip(), section=section, fields=fields, tags=tags)
