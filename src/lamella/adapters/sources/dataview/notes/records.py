"""Records: a note, its file and its tasks as a query asks for them, with links that lead to notes of the vault."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

from lamella.adapters.files.reading import DiskState
from lamella.adapters.sources.dataview.language.spans import find_day
from lamella.adapters.sources.dataview.language.values import FieldRecord, QueryLink, Value, find_field
from lamella.adapters.sources.dataview.notes.tasks import TaskText
from lamella.adapters.sources.dataview.notes.texts import NoteText

# The path that a link of a note leads to, or the link itself where it leads nowhere.
Resolve = Callable[[str], str]
# What a disk tells of a file that is gone.
_GONE = DiskState(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A note as the disk tells it: as long as this is the same, so is its text, once it is settled.

    ``is_settled`` is false of one that was written just now, and may be written again before its time is another.
    """

    path: str
    disk: DiskState = _GONE
    is_settled: bool = field(default=True, compare=False)


class NoteRecord(FieldRecord):
    """A note: its fields, and ``file``."""

    def __init__(
        self, file: FileState, text: NoteText, *, resolve: Resolve, inlinks: Callable[[str], Iterable[str]]
    ) -> None:
        self.state = file
        self.text = text
        self.resolve = resolve
        self.inlinks = inlinks
        self.file = FileRecord(self)

    def find(self, name: str) -> Value:
        if name.lower() == "file":
            return self.file
        return lead(find_field(self.text.fields, name), self.resolve)

    def place(self) -> tuple[str, int]:
        return self.state.path, 0

    def told(self) -> str:
        return QueryLink(path=self.state.path).told()

    @property
    def tasks(self) -> "tuple[TaskRecord, ...]":
        return tuple(TaskRecord(task, self) for task in self.text.tasks)


class FileRecord(FieldRecord):
    """What is known of a note without its fields: its path and what follows from it, its tags, links and tasks."""

    def __init__(self, note: NoteRecord) -> None:
        self._note = note
        # A query asks the note that it stands in for the same links with each row.
        self._found: dict[str, Value] = {}

    def place(self) -> tuple[str, int]:
        return self._note.place()

    def told(self) -> str:
        return self._note.told()

    def find(self, name: str) -> Value:
        name = name.lower()
        if name not in self._found and name in _FILE_FIELDS:
            self._found[name] = _FILE_FIELDS[name](self._note)
        return self._found.get(name)


def _links(paths: Iterable[str]) -> Value:
    return tuple(QueryLink(path=path) for path in paths)


def _outlinks(note: NoteRecord) -> Value:
    return _links(dict.fromkeys(map(note.resolve, note.text.links)))


def _tags(note: NoteRecord) -> Value:
    """The tags with all that they are below: ``#a/b`` carries ``#a``."""
    parts = [tag.split("/") for tag in note.text.tags]
    return tuple(sorted({"#" + "/".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}))


def _day(note: NoteRecord) -> Value:
    for name in ("date", "day"):
        value = find_field(note.text.fields, name)
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, datetime):
            return first
    return find_day(PurePosixPath(note.state.path).stem)


def _changed(note: NoteRecord) -> datetime | None:
    """When the file was written last, in UTC; nothing where a disk says what no calendar has."""
    try:
        return datetime.fromtimestamp(note.state.disk.modified // 1_000_000_000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return None


def _day_of_change(note: NoteRecord) -> Value:
    changed = _changed(note)
    return changed and changed.replace(hour=0, minute=0, second=0)


def _folder(note: NoteRecord) -> Value:
    parent = PurePosixPath(note.state.path).parent.as_posix()
    return "" if parent == "." else parent


_FILE_FIELDS: Mapping[str, Callable[[NoteRecord], Value]] = {
    "name": lambda note: PurePosixPath(note.state.path).stem,
    "path": lambda note: note.state.path,
    "folder": _folder,
    "ext": lambda note: PurePosixPath(note.state.path).suffix.removeprefix("."),
    "link": lambda note: QueryLink(path=note.state.path),
    "size": lambda note: note.state.disk.size,
    "mtime": _changed,
    "mday": _day_of_change,
    "day": _day,
    "tags": _tags,
    "etags": lambda note: tuple(sorted({f"#{tag}" for tag in note.text.tags})),
    "aliases": lambda note: note.text.aliases,
    "inlinks": lambda note: _links(note.inlinks(note.state.path)),
    "outlinks": _outlinks,
    "tasks": lambda note: note.tasks,
}


class TaskRecord(FieldRecord):
    """A task: what its line says, else what its note does."""

    def __init__(self, task: TaskText, note: NoteRecord) -> None:
        self.task = task
        self.note = note

    def find(self, name: str) -> Value:
        found = _TASK_FIELDS.get(name.lower())
        if found is not None:
            return found(self)
        if name.lower() in map(str.lower, self.task.fields):
            return lead(find_field(self.task.fields, name.lower()), self.note.resolve)
        return self.note.find(name)

    def place(self) -> tuple[str, int]:
        return self.note.state.path, self.task.line

    def told(self) -> str:
        return " ".join(self.task.text.split())


def _is_fully_completed(task: TaskText) -> bool:
    return task.is_completed and all(map(_is_fully_completed, task.children))


def _section(task: TaskRecord) -> Value:
    section = task.task.section
    return QueryLink(path=task.note.state.path, subpath=f"#{section}" if section else "")


_TASK_FIELDS: Mapping[str, Callable[[TaskRecord], Value]] = {
    "text": lambda task: task.task.text,
    "status": lambda task: task.task.status,
    "completed": lambda task: task.task.is_completed,
    "fullycompleted": lambda task: _is_fully_completed(task.task),
    "checked": lambda task: task.task.status != " ",
    "line": lambda task: task.task.line,
    "path": lambda task: task.note.state.path,
    "section": _section,
    "tags": lambda task: task.task.tags,
    "children": lambda task: tuple(TaskRecord(child, task.note) for child in task.task.children),
}


def lead(value: Value, resolve: Resolve) -> Value:
    """A value with its links led to where they go."""
    if isinstance(value, QueryLink):
        return QueryLink(path=resolve(value.path), subpath=value.subpath, shown=value.shown)
    if isinstance(value, tuple):
        return tuple(lead(item, resolve) for item in value)
    if isinstance(value, Mapping):
        return {key: lead(item, resolve) for key, item in value.items()}
    return value
