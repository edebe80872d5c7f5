"""Refreshing: what changed in the vault is put into the index, a batch at a time, and nothing else is.

Each batch is whole once it is written. Whoever is interrupted goes on behind the last one, and whoever comes second
finds the work done: what others have put in meanwhile is left alone.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from time import time_ns
from typing import Any, NamedTuple

from lamella.adapters.retrieval.chunks import name_chunks
from lamella.adapters.retrieval.contents import NoteContents, name_stem, read_contents
from lamella.adapters.retrieval.database import CHUNK_BITS, HEADINGS, IndexFile
from lamella.adapters.retrieval.days import find_named_days
from lamella.adapters.retrieval.files import FileSight, VaultFiles
from lamella.adapters.retrieval.words import extend, is_indonesian
from lamella.adapters.sources.inventory import fold_name
from lamella.errors import ExtraMissingError, LamellaError, NotAvailableError, SettingError
from lamella.holdings import IndexReport

Tell = Callable[[int, int], None]
# In characters: a batch takes about a second, and that is what an interruption costs.
_BATCH = 16_000_000
_LEAST = 2_000
_NAME_CHARS = 2_000
_Row = tuple[object, ...]
_NOTE = """
INSERT INTO notes (path, state, settled, hash, title, modified, chunks, fault, since, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_FOUND = "SELECT path, id, hash, fault FROM notes WHERE path IN (SELECT value FROM json_each(?))"
_CHUNK = """
INSERT INTO chunks (rowid, name, title, tags, headings, path, properties, body, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class _Known(NamedTuple):
    """What the index has of a file."""

    id: int
    stamp: str
    settled: bool
    hash: bytes
    fault: str | None


class _FileEntry(NamedTuple):
    """A file made ready for the index: nothing but its state where it is the same, or why it could not be read."""

    path: str
    state: FileSight
    hash: bytes
    contents: NoteContents | None = None
    rows: Sequence[_Row] = ()
    fault: str | None = None
    size: int = 0


class Refresher:
    """Brings one index up to what one vault holds."""

    def __init__(self, file: IndexFile, files: VaultFiles) -> None:
        self._file = file
        self._files = files

    def refresh(self, *, tell: Tell | None = None, only: Collection[str] | None = None) -> IndexReport:
        """Put in what is new or changed, take out what is gone; ``only`` says that nothing else can have changed."""
        now = time_ns()
        states = self._files.survey(now=now) if only is None else self._look_at(only, now=now)
        known = self._read_known(only)
        gone = [known[path].id for path in known if path not in states]
        stale = [path for path, state in states.items() if not _is_same(known.get(path), state)]
        self._remove(gone)
        read, unread = self._put_in(stale, states, known, tell=tell)
        faults = {path: one.fault for path, one in known.items() if one.fault and path in states and path not in stale}
        return IndexReport(
            read=read,
            removed=len(gone),
            files=len(states),
            unread=tuple(sorted({**faults, **unread}.items())),
        )

    def _look_at(self, paths: Collection[str], *, now: int) -> Mapping[str, FileSight]:
        found = {path: self._files.look_at(path, now=now) for path in sorted(paths)}
        return {path: state for path, state in found.items() if state is not None}

    def _read_known(self, only: Collection[str] | None) -> dict[str, _Known]:
        sql = "SELECT path, id, state, settled, hash, fault FROM notes"
        if only is None:
            return {path: _Known(*rest) for path, *rest in self._file.run(sql)}
        rows = (row for path in only for row in self._file.run(f"{sql} WHERE path = ?", (path,)))
        return {path: _Known(*rest) for path, *rest in rows}

    def _put_in(
        self, stale: Sequence[str], states: Mapping[str, FileSight], known: Mapping[str, _Known], *, tell: Tell | None
    ) -> tuple[int, dict[str, str]]:
        read, unread = 0, dict[str, str]()
        batch: list[_FileEntry] = []
        size = 0
        for done, path in enumerate(stale, start=1):
            entry = self._prepare(path, states[path], known.get(path))
            if entry.fault is not None:
                unread[path] = entry.fault
            if entry.hash:
                batch.append(entry)
                size += entry.size
                read += entry.contents is not None
            if size > _BATCH:
                self._write(batch)
                batch, size = [], 0
            if tell is not None:
                tell(done, len(stale))
        self._write(batch)
        return read, unread

    def _prepare(self, path: str, state: FileSight, known: _Known | None) -> _FileEntry:
        """Read a file and make its rows; no lock is held meanwhile. Without a hash it is left as it was."""
        try:
            found = self._files.open(path)
            if known is not None and known.hash == found.hash and known.fault is None:
                return _FileEntry(path, state, found.hash, size=_LEAST)
            text = found.read()
        except (ExtraMissingError, NotAvailableError, SettingError) as error:
            # What reads it may be installed or set up tomorrow, and the file does not change by that.
            return _FileEntry(path, state, b"", fault=error.message)
        except LamellaError as error:
            return _FileEntry(path, state, b"\0", fault=error.message, size=_LEAST)
        contents = read_contents(path, text, markdown=found.markdown)
        rows = list(_make_rows(path, contents))
        # The rows have all that is in the chunks.
        return _FileEntry(path, state, found.hash, contents._replace(chunks=()), rows, size=len(text) + _LEAST)

    def _write(self, batch: Sequence[_FileEntry]) -> None:
        if not batch:
            return
        with self._file.writing():
            rows = self._file.run(_FOUND, (json.dumps([entry.path for entry in batch]),))
            found = {path: rest for path, *rest in rows}
            written = [(entry, self._write_entry(entry, found.get(entry.path))) for entry in batch]
            added = [(note, entry) for entry, note in written if note is not None and entry.contents is not None]
            # In the order of the table, whose pages are then filled one after the other.
            names = sorted((name, note) for note, entry in added for name in _list_names(entry))
            self._file.run_each("INSERT INTO names VALUES (?, ?)", names)
            tags = sorted((tag, note) for note, entry in added if entry.contents for tag in entry.contents.tags)
            self._file.run_each("INSERT INTO tags VALUES (?, ?)", tags)
            self._count(sum(len(entry.rows) for _, entry in added))

    def _write_entry(self, entry: _FileEntry, found: Sequence[Any] | None) -> int | None:
        """Write one file in the place of what was there; gives its new number, none where nothing is new."""
        state = entry.state
        if found is not None and found[1] == entry.hash and found[2] == entry.fault:
            update = "UPDATE notes SET state = ?, settled = ?, modified = ? WHERE id = ?"
            self._file.run(update, (state.stamp, state.settled, state.modified, found[0]))
            return None
        if entry.contents is None and entry.fault is None:
            # Somebody else has put in another text, and will see that this one is newer.
            return None
        if found is not None:
            self._delete(found[0])
        title = "" if entry.contents is None else entry.contents.title
        days = find_named_days(name_stem(entry.path))
        named = (None, None) if days is None else (days.start.isoformat(), days.end.isoformat())
        told = (entry.path, state.stamp, state.settled, entry.hash, title, state.modified, len(entry.rows))
        note = self._file.insert(_NOTE, (*told, entry.fault, *named))
        first = note << CHUNK_BITS
        self._file.run_each(_CHUNK, [(first + at, *row) for at, row in enumerate(entry.rows)])
        return note

    def _remove(self, gone: Sequence[int]) -> None:
        if gone:
            with self._file.writing():
                for note in gone:
                    self._delete(note)

    def _delete(self, note: int) -> None:
        """Take a file out of the index."""
        rows = self._file.run("SELECT chunks FROM notes WHERE id = ?", (note,))
        span = (note << CHUNK_BITS, (note + 1) << CHUNK_BITS)
        self._file.run("DELETE FROM chunks WHERE rowid >= ? AND rowid < ?", span)
        for table in ("names", "tags"):
            self._file.run(f"DELETE FROM {table} WHERE note = ?", (note,))
        self._file.run("DELETE FROM notes WHERE id = ?", (note,))
        self._count(-sum(count for (count,) in rows))

    def _count(self, added: int) -> None:
        if added:
            self._file.run("UPDATE facts SET value = CAST(value AS INTEGER) + ? WHERE name = 'chunks'", (added,))


def _list_names(entry: _FileEntry) -> list[str]:
    """What a link may call a note: its path or its file's name, both without their ending, its title, its aliases."""
    assert entry.contents is not None
    whole = entry.path.rpartition(".")[0] or entry.path
    names = (whole, whole.rpartition("/")[2], entry.contents.title, *entry.contents.aliases)
    return list(dict.fromkeys(map(fold_name, names)))


def _make_rows(path: str, contents: NoteContents) -> Iterator[_Row]:
    """A row for each chunk. The title stands in all of them; tags, path and properties in the first alone."""
    chunks, properties = contents.chunks, contents.properties
    indonesian = is_indonesian(chunks[0].text + chunks[-1].text)
    title, tags = "\n".join((contents.title, *contents.aliases)), " ".join(contents.tags)
    place = path.rpartition(".")[0] or path
    names = f"{title} {place} {tags}"
    named = extend(names, indonesian=indonesian)
    # What stands in every row must not be long: a note has thousands of them if it wants to.
    short, titled = title[:_NAME_CHARS], extend(names[:_NAME_CHARS], indonesian=indonesian)
    for chunk, name in zip(chunks, name_chunks(path, chunks), strict=True):
        headings = HEADINGS.join(chunk.headings)
        extra = extend(f"{headings} {chunk.text}" if headings else chunk.text, indonesian=indonesian)
        yield name, title, tags, headings, place, properties, chunk.text, f"{named} {extra}"
        title, named = short, titled
        properties = place = tags = ""


def _is_same(known: _Known | None, state: FileSight) -> bool:
    return known is not None and known.stamp == state.stamp and bool(known.settled)
