"""The notes of a vault as queries see them: fields, tasks, links and files.

``VaultNotes`` has the notes of a vault snapshot, each read when a query first needs it. ``parse_note_content`` parses
a note once while its file is unchanged (``LruCache``). ``NoteRecord``, ``FileRecord`` and ``TaskRecord`` compute their
fields on demand, with links resolved to notes of the vault.
"""

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from math import isnan
from pathlib import PurePosixPath
from posixpath import normpath
from threading import Lock
from typing import Generic, Protocol, TypeVar

from lamella.core.text.content import hash_text, iter_lines_with_code_flag, normalize_line_ends
from lamella.errors import BadInputError
from lamella.files import FileStat
from lamella.sources.dataview.parser import split_link
from lamella.sources.dataview.values import (
    MAX_VALUE_DEPTH,
    FieldRecord,
    QueryLink,
    Value,
    get_field,
    parse_day_in_name,
    parse_span,
    parse_time,
)
from lamella.sources.inventory import FileInventory, build_inventory
from lamella.sources.markdown import ParsedNote, PropertyValue, has_tag, iter_inline_tags, normalize_tag, parse_note

_Key = TypeVar("_Key", bound=Hashable)
_Cached = TypeVar("_Cached")


class LruCache(Generic[_Key, _Cached]):
    """Caches at most ``maximum`` values by key.

    Threads may share it. If two threads make the same value at once, it is made twice and one of the two is kept.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._entries: OrderedDict[_Key, _Cached] = OrderedDict()
        self._lock = Lock()

    def get_or_make(self, key: _Key, make: Callable[[], _Cached], *, uses_cache: bool = True) -> _Cached:
        """Return the value of a key, made if it is missing; with ``uses_cache=False`` the cache is not used at all."""
        if not uses_cache:
            return make()
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        # Outside the lock, because making a value takes long.
        made = make()
        with self._lock:
            self._entries[key] = made
            self._entries.move_to_end(key)
            while len(self._entries) > self._maximum:
                self._entries.popitem(last=False)
        return made


# Fields: properties and ``key:: value`` lines, each converted to a typed value.

_LONGEST_LINE = 20_000
_LONGEST_KEY = 100
_LONGEST_VALUE = 5_000
_CLOSING_BRACKETS = {"[": "]", "(": ")"}
_BACKTICKS = re.compile(r"`+")
# The key may follow signs of a list, a quotation or a heading, and of bold or italic text.
_LINE_KEY = re.compile(
    r"[\s!-/:-@\[-`{-~]{0,20}((?:[^\W_]|[^\x00-\x7f])(?:[\w\s/-]|[^\x00-\x7f]){0,99}?)[*_~`\s]{0,10}"
)
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]\n]*)\]\]")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_LITERALS: Mapping[str, Value] = {"true": True, "false": False, "null": None}

_LIST_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|!?\[\[[^\[\]\n]*\]\]|[^,"\[\]]*)\s*')


def iter_bracketed_fields(line: str) -> Iterator[tuple[str, str]]:
    """Yield the fields in brackets of a line, as ``[key:: value]`` or ``(key:: value)``."""
    at = line.find("::") if len(line) <= _LONGEST_LINE else -1
    ends = _find_closing_brackets(line) if at >= 0 else {}
    begin = 0
    while at >= 0:
        opened = max(line.rfind(mark, max(begin, at - _LONGEST_KEY), at) for mark in _CLOSING_BRACKETS)
        key = line[opened + 1 : at].strip()
        end = ends.get(opened, -1)
        if end >= 0 and key and not any(mark in key for mark in _CLOSING_BRACKETS.values()):
            yield key, line[at + 2 : end].strip()[:_LONGEST_VALUE]
            begin = at = end + 1
        else:
            at += 2
        at = line.find("::", at)


def _find_closing_brackets(line: str) -> dict[int, int]:
    """Return the position of the closing bracket of each opening one; unclosed brackets are left out."""
    ends: dict[int, int] = {}
    for opening, closing in _CLOSING_BRACKETS.items():
        opened: list[int] = []
        for found in re.finditer(f"[{re.escape(opening + closing)}]", line):
            if found.group() == opening:
                opened.append(found.start())
            elif opened:
                ends[opened.pop()] = found.start()
    return ends


def parse_line_fields(line: str) -> list[tuple[str, str]]:
    """Return the fields of a line: those in brackets, or the one field that the whole line is."""
    if "::" not in line or len(line) > _LONGEST_LINE:
        return []
    line = mask_inline_code(line)
    found = list(iter_bracketed_fields(line))
    if found:
        return found
    written, _, value = line.partition("::")
    key = _LINE_KEY.fullmatch(written) if len(written) <= _LONGEST_KEY else None
    return [(key.group(1).strip(), value.strip()[:_LONGEST_VALUE])] if key else []


def mask_inline_code(line: str) -> str:
    """Return a line with its inline code replaced by blanks, since code contains no fields."""
    if "`" not in line:
        return line
    # Code ends with as many backticks as it begins with. A pass from the end finds, for each run, the next run of the
    # same length, so that the time stays linear.
    runs = [ticks.span() for ticks in _BACKTICKS.finditer(line)]
    following: list[int | None] = []
    seen: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        start, end = runs[index]
        following.append(seen.get(end - start))
        seen[end - start] = index
    following.reverse()
    parts, done, index = list[str](), 0, 0
    while index < len(runs):
        closing = following[index]
        if closing is not None:
            parts += [line[done : runs[index][0]], " " * (runs[closing][1] - runs[index][0])]
            done, index = runs[closing][1], closing
        index += 1
    return "".join((*parts, line[done:]))


def parse_inline_value(text: str) -> Value:
    """Return an inline field's value: a number, date, link, a list of these separated by commas, or its text."""
    text = text.strip()
    if not text:
        return None
    is_one, value = _parse_typed_value(text)
    if is_one or not any(mark in text for mark in ',"['):
        return value
    items = _split_items(text)
    atoms = [_parse_typed_value(item) for item in items]
    return tuple(item for _, item in atoms) if items and all(is_atom for is_atom, _ in atoms) else text


def _split_items(text: str) -> list[str]:
    items: list[str] = []
    position = 0
    while position <= len(text):
        found = _LIST_ITEM.match(text, position)
        if found is None or text[found.end() : found.end() + 1] not in (",", ""):
            return []
        items.append(found.group(1).strip())
        position = found.end() + 1
    return items if all(items) else []


def _parse_typed_value(text: str) -> tuple[bool, Value]:
    """Return whether a text is a typed value, and the value."""
    if text.lower() in _LITERALS:
        return True, _LITERALS[text.lower()]
    if _NUMBER.fullmatch(text):
        return True, float(text) if "." in text else int(text)
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('\\"', ""):
        return True, text[1:-1].replace('\\"', '"')
    value = parse_text_value(text)
    # ``parse_text_value`` returns the same object if the text is only text.
    return value is not text, value


def parse_text_value(text: str) -> Value:
    """Return a text as a date, a duration or a link if it is one, otherwise the same object."""
    link = _WIKI_LINK.fullmatch(text.strip())
    if link:
        path, subpath, shown = split_link(link.group(1))
        return QueryLink(path=path, subpath=subpath, alias=shown)
    if text[:1].isdigit() or text[:1] == "-":
        moment = parse_time(text)
        span = parse_span(text) if moment is None else None
        return moment or span or text
    return text


def parse_property(value: PropertyValue, depth: int = 0) -> Value:
    """Return the value of a property. Dates and links are plain text in front matter and are converted here."""
    if depth >= MAX_VALUE_DEPTH:
        return None
    if isinstance(value, str):
        return parse_text_value(value)
    if isinstance(value, list):
        return tuple(parse_property(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return {key: parse_property(item, depth + 1) for key, item in value.items()}
    # NaN has no order.
    return None if isinstance(value, float) and isnan(value) else value


def gather_fields(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return fields by name; the values of a repeated name become one list."""
    found: dict[str, list[Value]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else _join_values(values) for name, values in found.items()}


def _join_values(values: Iterable[Value]) -> Value:
    return tuple(item for value in values for item in (value if isinstance(value, tuple) else (value,)))


_TASK_LINE = re.compile(r"([ \t>]{0,200})(?:[-*+]|\d{1,9}[.)])[ \t]+\[(.)\](?:[ \t]+(.*))?$")
_LIST_MARKER = re.compile(r"([ \t>]{0,200})(?:[-*+]|\d{1,9}[.)])[ \t]")
_DATE_PATTERN = r"\ufe0f?\s{0,5}(\d{4}-\d\d-\d\d)"
# Dates after the emoji that mark them (the format of Obsidian's Tasks plugin).
_EMOJI_DATES = {
    "due": re.compile("[\U0001f4c5\U0001f4c6\U0001f5d3]" + _DATE_PATTERN),
    "created": re.compile("\u2795" + _DATE_PATTERN),
    "start": re.compile("\U0001f6eb" + _DATE_PATTERN),
    "scheduled": re.compile("[\u23f3\u231b]" + _DATE_PATTERN),
    "completion": re.compile("\u2705" + _DATE_PATTERN),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTask:
    """A task as its line states it. ``children`` are the tasks directly below it."""

    line: int
    status: str
    text: str
    section: str
    fields: dict[str, Value]
    tags: tuple[str, ...]
    children: list["ParsedTask"] = field(default_factory=list)

    @property
    def is_completed(self) -> bool:
        return self.status in ("x", "X")


def is_task(line: str) -> bool:
    """Return whether a line is a task. Its fields then belong to the task and not to the note."""
    return _TASK_LINE.match(line) is not None


def parse_tasks(lines: Iterable[tuple[int, str, str]]) -> Sequence[ParsedTask]:
    """Return the tasks among lines, each given with its number and the heading above it."""
    found: list[ParsedTask] = []
    above: list[tuple[int, ParsedTask]] = []
    for number, line, section in lines:
        item = _LIST_MARKER.match(line)
        if item is None:
            above = above if line.strip() else []
            continue
        width = len(item.group(1).expandtabs(4))
        above = [(indent, task) for indent, task in above if indent < width]
        match = _TASK_LINE.match(line)
        if match is None:
            continue
        task = _build_task(number, match.group(2), match.group(3) or "", section=section)
        if above:
            above[-1][1].children.append(task)
        above.append((width, task))
        found.append(task)
    return found


def _build_task(number: int, status: str, text: str, *, section: str) -> ParsedTask:
    task_text = mask_inline_code(text)
    marked = [(name, parse_time(date[1])) for name, mark in _EMOJI_DATES.items() if (date := mark.search(task_text))]
    fields = gather_fields(
        [*((key, parse_inline_value(value)) for key, value in iter_bracketed_fields(task_text)), *marked]
    )
    tags = tuple(f"#{tag}" for tag, _ in iter_inline_tags(task_text, 0))
    return ParsedTask(line=number, status=status, text=text.strip(), section=section, fields=fields, tags=tags)


# Parsed notes.

_NumberedLine = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryableNote:
    """The parsed content of a note; links are as written.

    A note that cannot be read has only ``read_error``, the reason.
    """

    fields: Mapping[str, Value] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    tasks: Sequence[ParsedTask] = ()
    read_error: str = ""


def parse_note_content(text: str) -> QueryableNote:
    """Parse everything that queries may ask of a note."""
    note = parse_note(text)
    lines = list(_iter_body_lines(text, note))
    inline = (pair for _, line in lines if "::" in line and not is_task(line) for pair in parse_line_fields(line))
    pairs = [(name, parse_property(value)) for name, value in note.properties.items()]
    pairs += [(name, parse_inline_value(value)) for name, value in inline]
    links = dict.fromkeys(link.target for link in (*note.links, *note.embeds) if link.target and not link.is_external)
    return QueryableNote(
        fields=gather_fields(pairs),
        tags=tuple(note.tags),
        aliases=tuple(note.aliases),
        links=tuple(links),
        tasks=parse_tasks(_iter_lines_with_sections(lines, note)),
    )


def _iter_body_lines(text: str, note: ParsedNote) -> Iterator[_NumberedLine]:
    """Yield the lines of a note's body outside code blocks, with their numbers in the whole text."""
    first = text.count("\n", 0, note.body_offset) + 1
    for number, (line, is_code) in enumerate(iter_lines_with_code_flag(text[note.body_offset :]), first):
        if not is_code:
            yield number, line.rstrip("\r")


def _iter_lines_with_sections(lines: Sequence[_NumberedLine], note: ParsedNote) -> Iterator[tuple[int, str, str]]:
    starts = [heading.line for heading in note.headings]
    for number, line in lines:
        above = bisect_right(starts, number)
        yield number, line, note.headings[above - 1].text if above else ""


# Records of notes, files and tasks.

# Returns the path that a link of a note leads to, or the link itself if it leads nowhere.
ResolveLink = Callable[[str], str]
# The state of a file that does not exist.
_MISSING_FILE_STAT = FileStat(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A note's state on disk. While a settled state stays the same, so does the note's text.

    ``is_settled`` is false for a note written just now, which may be written again without a visible change of its
    time.
    """

    path: str
    file_stat: FileStat = _MISSING_FILE_STAT
    is_settled: bool = field(default=True, compare=False)


class NoteRecord(FieldRecord):
    """A note: its fields, and its ``file`` record."""

    def __init__(
        self, file: FileState, text: QueryableNote, *, resolve: ResolveLink, inlinks: Callable[[str], Iterable[str]]
    ) -> None:
        self.state = file
        self.content = text
        self.resolve = resolve
        self.inlinks = inlinks
        self.file = FileRecord(self)

    def get(self, name: str) -> Value:
        if name.lower() == "file":
            return self.file
        return resolve_links(get_field(self.content.fields, name), self.resolve)

    def position(self) -> tuple[str, int]:
        return self.state.path, 0

    def display_text(self) -> str:
        return QueryLink(path=self.state.path).display_text()

    @property
    def tasks(self) -> "tuple[TaskRecord, ...]":
        return tuple(TaskRecord(task, self) for task in self.content.tasks)


class FileRecord(FieldRecord):
    """The ``file`` of a note: its path, size and times, and its tags, links and tasks."""

    def __init__(self, note: NoteRecord) -> None:
        self._note = note
        # A query reads the same links of its own note for each row, so they are computed once.
        self._cached_fields: dict[str, Value] = {}

    def position(self) -> tuple[str, int]:
        return self._note.position()

    def display_text(self) -> str:
        return self._note.display_text()

    def get(self, name: str) -> Value:
        name = name.lower()
        if name not in self._cached_fields and name in _FILE_FIELDS:
            self._cached_fields[name] = _FILE_FIELDS[name](self._note)
        return self._cached_fields.get(name)


def _to_links(paths: Iterable[str]) -> Value:
    return tuple(QueryLink(path=path) for path in paths)


def _get_outgoing_links(note: NoteRecord) -> Value:
    return _to_links(dict.fromkeys(map(note.resolve, note.content.links)))


def _tags_with_parents(note: NoteRecord) -> Value:
    """Return the tags with all their parents: ``#a/b`` includes ``#a``."""
    parts = [tag.split("/") for tag in note.content.tags]
    return tuple(sorted({"#" + "/".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}))


def _get_day_of_note(note: NoteRecord) -> Value:
    for name in ("date", "day"):
        value = get_field(note.content.fields, name)
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, datetime):
            return first
    return parse_day_in_name(PurePosixPath(note.state.path).stem)


def _modified_time(note: NoteRecord) -> datetime | None:
    """Return when the file was last modified, in UTC; None if the disk's time is not a valid date."""
    try:
        return datetime.fromtimestamp(note.state.file_stat.modified_ns // 1_000_000_000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return None


def _get_modified_day(note: NoteRecord) -> Value:
    changed = _modified_time(note)
    return changed and changed.replace(hour=0, minute=0, second=0)


def _get_folder(note: NoteRecord) -> Value:
    parent = PurePosixPath(note.state.path).parent.as_posix()
    return "" if parent == "." else parent


_FILE_FIELDS: Mapping[str, Callable[[NoteRecord], Value]] = {
    "name": lambda note: PurePosixPath(note.state.path).stem,
    "path": lambda note: note.state.path,
    "folder": _get_folder,
    "ext": lambda note: PurePosixPath(note.state.path).suffix.removeprefix("."),
    "link": lambda note: QueryLink(path=note.state.path),
    "size": lambda note: note.state.file_stat.size,
    "mtime": _modified_time,
    "mday": _get_modified_day,
    "day": _get_day_of_note,
    "tags": _tags_with_parents,
    "etags": lambda note: tuple(sorted({f"#{tag}" for tag in note.content.tags})),
    "aliases": lambda note: note.content.aliases,
    "inlinks": lambda note: _to_links(note.inlinks(note.state.path)),
    "outlinks": _get_outgoing_links,
    "tasks": lambda note: note.tasks,
}


class TaskRecord(FieldRecord):
    """A task: the fields of its line, and for other names those of its note."""

    def __init__(self, task: ParsedTask, note: NoteRecord) -> None:
        self.task = task
        self.note = note

    def get(self, name: str) -> Value:
        found = _TASK_FIELDS.get(name.lower())
        if found is not None:
            return found(self)
        if name.lower() in map(str.lower, self.task.fields):
            return resolve_links(get_field(self.task.fields, name.lower()), self.note.resolve)
        return self.note.get(name)

    def position(self) -> tuple[str, int]:
        return self.note.state.path, self.task.line

    def display_text(self) -> str:
        return " ".join(self.task.text.split())


def _is_fully_completed(task: ParsedTask) -> bool:
    return task.is_completed and all(map(_is_fully_completed, task.children))


def _get_section_link(task: TaskRecord) -> Value:
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
    "section": _get_section_link,
    "tags": lambda task: task.task.tags,
    "children": lambda task: tuple(TaskRecord(child, task.note) for child in task.task.children),
}


def resolve_links(value: Value, resolve: ResolveLink) -> Value:
    """Return a value with its links resolved to paths."""
    if isinstance(value, QueryLink):
        return QueryLink(path=resolve(value.path), subpath=value.subpath, alias=value.alias)
    if isinstance(value, tuple):
        return tuple(resolve_links(item, resolve) for item in value)
    if isinstance(value, Mapping):
        return {key: resolve_links(item, resolve) for key, item in value.items()}
    return value


# All notes of a snapshot.


class NoteFiles(Protocol):
    """The notes of a vault as files."""

    def list_states(self) -> Sequence[FileState]:
        """Return every note with its state on disk, sorted by path."""
        ...

    def read_text(self, path: str) -> str:
        """Return a note's text; a ``BadInputError`` says why it cannot be read."""
        ...

    def list_unreadable(self) -> Sequence[str]:
        """Return descriptions of entries that could not be examined."""
        ...


ParsedNoteCache = LruCache[FileState, QueryableNote]


class VaultNotes:
    """The notes of a vault snapshot. ``memory`` caches parsed notes while their files are unchanged."""

    def __init__(self, files: NoteFiles, cache: ParsedNoteCache) -> None:
        self._files = files
        self._cache = cache
        self._records: dict[str, NoteRecord] = {}

    @cached_property
    def states(self) -> dict[str, FileState]:
        return {state.path: state for state in self._files.list_states()}

    @cached_property
    def digest(self) -> str:
        """A hash of the states of all files; it changes when one of them does."""
        return hash_text("\n".join(f"{one.path}\0{one.file_stat}" for one in self.states.values()))

    def find_note(self, path: str) -> NoteRecord | None:
        """Return the note at a path, or None."""
        if path not in self._records and path in self.states:
            self._records[path] = self._make_record(self.states[path])
        return self._records.get(path)

    def _make_record(self, state: FileState) -> NoteRecord:
        return NoteRecord(
            state,
            self._cache.get_or_make(state, lambda: self._parse_note(state.path), uses_cache=state.is_settled),
            resolve=lambda target: self.resolve_link(target, note_path=state.path),
            inlinks=lambda path: sorted(self._inlinks.get(path, ())),
        )

    def _parse_note(self, path: str) -> QueryableNote:
        try:
            return parse_note_content(normalize_line_ends(self._files.read_text(path)))
        except BadInputError as error:
            return QueryableNote(read_error=error.message)

    def resolve_link(self, target: str, *, note_path: str) -> str:
        """Return the path that a link leads to, or the link as written if it leads nowhere.

        An empty target is the note itself. Otherwise the target is tried as a path from the note, a path from the
        root, and a name. Of several notes with the name, the one beside the note wins, then the one nearest to the
        root.
        """
        if not target:
            return note_path
        folder = PurePosixPath(note_path).parent
        plain = [normpath(path) for path in ((folder / target).as_posix(), target.lstrip("/"))]
        exact = [path for one in plain for path in (one, f"{one}.md") if path in self.states]
        named = exact or self._inventory.find_notes_named(target)
        nearby = [path for path in named if PurePosixPath(path).parent == folder]
        return next(iter(exact or nearby or named), target)

    @cached_property
    def _inventory(self) -> FileInventory:
        return build_inventory(self.states, ())

    @cached_property
    def unreadable(self) -> Sequence[str]:
        """Descriptions of entries of the vault that could not be examined."""
        return self._files.list_unreadable()

    @cached_property
    def is_settled(self) -> bool:
        """Whether an answer over these notes stays valid as long as their digest is the same."""
        return all(state.is_settled for state in self.states.values())

    @cached_property
    def _inlinks(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for path in self.states:
            for target in self._outgoing_links(path):
                found.setdefault(target, set()).add(path)
        return found

    def _outgoing_links(self, path: str) -> set[str]:
        record = self.find_note(path)
        return {self.resolve_link(target, note_path=path) for target in record.content.links} if record else set()

    def select_linking_to(self, path: str) -> frozenset[str]:
        return frozenset(self._inlinks.get(path, ()))

    def select_linked_from(self, path: str) -> frozenset[str]:
        return frozenset(self._outgoing_links(path) & self.states.keys())

    def select_tagged(self, tag: str) -> frozenset[str]:
        return frozenset(path for path, tags in self._tags.items() if has_tag(tags, tag))

    @cached_property
    def _tags(self) -> dict[str, frozenset[str]]:
        records = (self.find_note(path) for path in self.states)
        return {
            one.state.path: frozenset(map(normalize_tag, one.content.tags))
            for one in records
            if one and one.content.tags
        }

    def select_below(self, name: str) -> frozenset[str]:
        name = name.strip("/")
        if not name:
            return frozenset(self.states)
        found = {path for path in self.states if path.startswith(f"{name}/")}
        return frozenset(found | ({name, f"{name}.md"} & self.states.keys()))
