"""The search index of a vault, updated with the files that changed.

``VaultIndex`` is updated and searched, and repaired automatically if its file is damaged; ``DeferredIndex`` opens it
with the first search. ``IndexRefresher`` reads changed files batch by batch. Each batch is written as a whole, an
interrupted refresh continues after the last one, and a second process skips files that another one has indexed
meanwhile. ``parse_contents`` extracts what is searchable in a file.
"""

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import time_ns
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from lamella.attach import attachment_for_path
from lamella.core.artifacts.kinds import KINDS, SourceMedium, kind_of_file
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.text.content import normalize_line_ends
from lamella.errors import ExtraNotInstalledError, LamellaError, NotAvailableError, SettingError
from lamella.files import to_file_stat
from lamella.ports import IndexReport, NoteHit, NoteRetriever, OpenSources
from lamella.retrieval.chunks import Chunk, chunk_ids, split_into_chunks_and_tags
from lamella.retrieval.database import CHUNK_BITS, HEADING_SEPARATOR, IndexFile, is_damage_error
from lamella.retrieval.dates import parse_day_span_in_name
from lamella.retrieval.search import NoteSearcher
from lamella.retrieval.words import extra_search_words, is_indonesian
from lamella.sources.inventory import normalize_name
from lamella.sources.markdown import (
    PropertyValue,
    find_front_matter,
    is_conversation_archive,
    normalize_tag,
    parse_front_matter,
    read_aliases,
    read_front_tags,
)
from lamella.sources.vault import Vault


class DeferredIndex:
    """A retriever that opens its index on first use and closes it only if it was opened."""

    def __init__(self, open_index: Callable[[], NoteRetriever]) -> None:
        self._open_index = open_index
        self._opening = Lock()
        self._opened: NoteRetriever | None = None

    def refresh(
        self,
        *,
        on_progress: Callable[[int, int], None] | None = None,
        only_paths: Collection[str] | None = None,
        rebuild: bool = False,
    ) -> IndexReport:
        return self._index.refresh(on_progress=on_progress, only_paths=only_paths, rebuild=rebuild)

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        return self._index.search(query, now=now, limit=limit)

    def rank_notes(self, question: str, *, paths: Sequence[str]) -> Sequence[str]:
        return self._index.rank_notes(question, paths=paths)

    def close(self) -> None:
        """Close the index if it is open. The next use opens it again."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    @property
    def _index(self) -> NoteRetriever:
        with self._opening:
            if self._opened is None:
                self._opened = self._open_index()
            return self._opened


# Searchable files, each with the state that shows whether it has changed.

# Kinds of files that contain prose. Images and program code are not searched.
_SEARCHED_MEDIA = (SourceMedium.PDF, SourceMedium.OFFICE)
_SEARCHED_KINDS = (ArtifactKind.NOTE, ArtifactKind.CANVAS)
# Scanning a vault enters no linked folder, so only the file itself can be a link. These flags do not follow it.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_MAX_DIRECT_READ_BYTES = 1_000_000


class FileFingerprint(Struct, frozen=True, gc=False):
    """The state of a file when it was checked.

    ``stamp`` changes with the file. ``settled`` is whether the last change is old enough that any further change
    alters the stamp. There is one object for every file of a vault, so they are kept out of garbage collection
    (``gc=False``).
    """

    stamp: str
    modified: int
    settled: bool


class LazyFileText(NamedTuple):
    """A file that was read: its content hash, and a function that returns its text, which may take long."""

    hash: bytes
    read_text: Callable[[], str]
    is_markdown: bool


class VaultFiles:
    """The files of one vault. Notes are read directly; the text of other files comes from their source readers."""

    def __init__(self, root: Path, open_readers: OpenSources) -> None:
        self._root = root.resolve()
        self._vault = Vault(root)
        self._open_readers = open_readers

    def list_files(self, *, now: int) -> Mapping[str, FileFingerprint]:
        """Return the state of every searchable file, ordered by path. ``now`` is the time in nanoseconds."""
        found = {}
        for path in self._vault.snapshot().list_files():
            if is_searchable(path):
                state = self.stat_file(path, now=now)
                if state is not None:
                    found[path] = state
        return found

    def stat_file(self, path: str, *, now: int) -> FileFingerprint | None:
        """Return the current state of one file, or None if it does not exist."""
        try:
            found = to_file_stat(os.stat(self._disk_path(path)))  # noqa: PTH116 - a Path object per file is slow
        except (OSError, ValueError):
            return None
        return FileFingerprint(
            stamp=" ".join(map(str, found.persistent_fields)),
            modified=found.modified_ns,
            settled=found.is_settled(now),
        )

    def read_file(self, path: str) -> LazyFileText:
        """Read a file and return its hash and text. Raises an error if it cannot be read."""
        data = self._read(path)
        if _is_note(path):
            return LazyFileText(_hash_file_content(data), lambda: self._decode(path, data), is_markdown=True)
        return LazyFileText(_hash_file_content(data), lambda: self._convert_file_to_text(path), is_markdown=False)

    def _read(self, path: str) -> bytes:
        """Return the bytes of a file.

        Links, large files and special files go through the vault's own reader, which checks more and is slower.
        """
        disk_path = self._disk_path(path)
        try:
            handle = os.open(disk_path, _OPEN_FLAGS)
        except (OSError, ValueError):
            return self._vault.read_bytes(path)
        try:
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_size <= _MAX_DIRECT_READ_BYTES:
                # One byte more than expected, so that a file that has just grown is noticed and read again.
                data = os.read(handle, found.st_size + 1)
                if len(data) == found.st_size:
                    return data
        except OSError:
            pass  # the vault's own reader raises a clear error
        finally:
            os.close(handle)
        return self._vault.read_bytes(path)

    def _decode(self, path: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return self._vault.read_text(path)  # raises an error that describes the problem

    def _disk_path(self, path: str) -> str:
        """Return a file's absolute path. Vault paths are encoded as UTF-8 in any locale."""
        return f"{self._root}{os.sep}{os.fsdecode(path.encode())}"

    def _convert_file_to_text(self, path: str) -> str:
        return self._open_readers().read(attachment_for_path(path).to_unresolved()).text


def is_searchable(path: str) -> bool:
    """Return whether a file with this name is searchable."""
    kind = kind_of_file(path)
    return kind is not None and (kind in _SEARCHED_KINDS or KINDS[kind].medium in _SEARCHED_MEDIA)


def _is_note(path: str) -> bool:
    return kind_of_file(path) is ArtifactKind.NOTE


def _hash_file_content(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


# Searchable contents: names, tags and properties of a note, the text of other files.

# Text beyond this length is treated as data and not indexed. The file itself is unchanged.
MAX_INDEXED_CHARS = 4_000_000
_KNOWN_PROPERTIES = re.compile(
    r"^(?:title|tags?|alias(?:es)?)[ \t]*:.*(?:\n(?:[ \t]+|-|(?=\n)).*)*\n?", re.MULTILINE | re.IGNORECASE
)
_PLAIN_TITLE = re.compile(r"title:[ \t]+([A-Za-z][\w ,.()/-]*)\n?")


class NoteContents(NamedTuple):
    """The searchable contents of a file: title, aliases, tags, the rest of its front matter, and chunks."""

    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    properties: str
    chunks: Sequence[Chunk]


def parse_contents(path: str, text: str, *, is_markdown: bool) -> NoteContents:
    """Return the contents of a file that go into the index."""
    text = (
        normalize_line_ends(text[:MAX_INDEXED_CHARS])
        if "\r" in text or text.startswith("\ufeff")
        else text[:MAX_INDEXED_CHARS]
    )
    stem = file_stem(path)
    if not is_markdown:
        chunks, _ = split_into_chunks_and_tags(text)
        return NoteContents(stem, (), (), "", chunks)
    if is_conversation_archive(text):
        # The answers in it quote the notes that were asked about, so it would be found before them.
        return NoteContents(stem, (), (), "", ())
    begin, end, start = find_front_matter(text)
    front, rest = _parse_known_properties(text[begin:end])
    chunks, inline = split_into_chunks_and_tags(text[start:])
    title = front.get("title")
    return NoteContents(
        title=title if isinstance(title, str) and title.strip() else stem,
        aliases=tuple(read_aliases(front)),
        tags=_normalize_tags([*read_front_tags(front), *inline]),
        properties=rest,
        chunks=chunks,
    )


def file_stem(path: str) -> str:
    """Return the name of a file without its folder and its extension."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _parse_known_properties(block: str) -> tuple[Mapping[str, PropertyValue], str]:
    """Return the title, tags and aliases of a front matter block, and the text of the other properties.

    Only these properties are parsed, because parsing YAML is slow and the values of the others are not needed.
    """
    own = _KNOWN_PROPERTIES.findall(block)
    if not own and not block.lstrip().startswith("{"):
        return {}, block
    plain = _PLAIN_TITLE.fullmatch(own[0]) if len(own) == 1 else None
    if plain:
        return {"title": plain[1].strip()}, _KNOWN_PROPERTIES.sub("", block)
    found, warning = parse_front_matter("".join(own) if own else block)
    return {name.lower(): value for name, value in found.items()} if not warning else {}, _KNOWN_PROPERTIES.sub(
        "", block
    )


def _normalize_tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(folded for tag in tags if (folded := normalize_tag(tag))))


# Updates, one batch at a time.

ProgressCallback = Callable[[int, int], None]
# The size of a batch in characters. A batch takes about a second, which is what an interruption costs.
_BATCH_CHARS = 16_000_000
_FILE_OVERHEAD_CHARS = 2_000
_MAX_NAME_CHARS = 2_000
_Row = tuple[object, ...]
_INSERT_NOTE = """
INSERT INTO notes (path, state, settled, hash, title, modified, chunks, fault, since, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SELECT_NOTES = "SELECT path, id, hash, fault FROM notes WHERE path IN (SELECT value FROM json_each(?))"
_INSERT_CHUNK = """
INSERT INTO chunks (rowid, name, title, tags, headings, path, properties, body, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class _IndexedFile(NamedTuple):
    """The facts that the index has about a file."""

    id: int
    stamp: str
    settled: bool
    hash: bytes
    read_error: str | None


class _FileEntry(NamedTuple):
    """A file prepared for the index.

    ``contents`` is None if the text is unchanged or could not be read. ``read_error`` is why it could not be read.
    """

    path: str
    state: FileFingerprint
    hash: bytes
    contents: NoteContents | None = None
    rows: Sequence[_Row] = ()
    read_error: str | None = None
    size: int = 0


class IndexRefresher:
    """Updates one index from the files of one vault."""

    def __init__(self, file: IndexFile, files: VaultFiles) -> None:
        self._file = file
        self._files = files

    def refresh(
        self, *, on_progress: ProgressCallback | None = None, only: Collection[str] | None = None
    ) -> IndexReport:
        """Index new and changed files and remove deleted ones.

        With ``only``, just these paths are checked, because nothing else can have changed.
        """
        now = time_ns()
        states = self._files.list_files(now=now) if only is None else self._stat_files(only, now=now)
        known = self._load_indexed_files(only)
        deleted_ids = [known[path].id for path in known if path not in states]
        stale = [path for path, state in states.items() if not _is_up_to_date(known.get(path), state)]
        self._remove_notes(deleted_ids)
        read, unread = self._index_files(stale, states, known, report=on_progress)
        faults = {
            path: one.read_error
            for path, one in known.items()
            if one.read_error and path in states and path not in stale
        }
        return IndexReport(
            read_count=read,
            removed_count=len(deleted_ids),
            file_count=len(states),
            unread=tuple(sorted({**faults, **unread}.items())),
        )

    def _stat_files(self, paths: Collection[str], *, now: int) -> Mapping[str, FileFingerprint]:
        found = {path: self._files.stat_file(path, now=now) for path in sorted(paths)}
        return {path: state for path, state in found.items() if state is not None}

    def _load_indexed_files(self, only: Collection[str] | None) -> dict[str, _IndexedFile]:
        sql = "SELECT path, id, state, settled, hash, fault FROM notes"
        if only is None:
            return {path: _IndexedFile(*rest) for path, *rest in self._file.execute(sql)}
        rows = (row for path in only for row in self._file.execute(f"{sql} WHERE path = ?", (path,)))
        return {path: _IndexedFile(*rest) for path, *rest in rows}

    def _index_files(
        self,
        stale: Sequence[str],
        states: Mapping[str, FileFingerprint],
        known: Mapping[str, _IndexedFile],
        *,
        report: ProgressCallback | None,
    ) -> tuple[int, dict[str, str]]:
        """Index the given files in batches. Returns how many were read, and why others could not be read."""
        read, unread = 0, dict[str, str]()
        batch: list[_FileEntry] = []
        size = 0
        for done, path in enumerate(stale, start=1):
            entry = self._prepare_entry(path, states[path], known.get(path))
            if entry.read_error is not None:
                unread[path] = entry.read_error
            if entry.hash:
                batch.append(entry)
                size += entry.size
                read += entry.contents is not None
            if size > _BATCH_CHARS:
                self._write_batch(batch)
                batch, size = [], 0
            if report is not None:
                report(done, len(stale))
        self._write_batch(batch)
        return read, unread

    def _prepare_entry(self, path: str, state: FileFingerprint, known: _IndexedFile | None) -> _FileEntry:
        """Read a file and build its rows, without holding a lock.

        An entry without a hash is not written to the index.
        """
        try:
            found = self._files.read_file(path)
            if known is not None and known.hash == found.hash and known.read_error is None:
                return _FileEntry(path, state, found.hash, size=_FILE_OVERHEAD_CHARS)
            text = found.read_text()
        except (ExtraNotInstalledError, NotAvailableError, SettingError) as error:
            # The missing reader may be installed or configured later, which does not change the file. Not stored as a
            # fault, so that the file is tried again with the next refresh.
            return _FileEntry(path, state, b"", read_error=error.message)
        except LamellaError as error:
            return _FileEntry(path, state, b"\0", read_error=error.message, size=_FILE_OVERHEAD_CHARS)
        contents = parse_contents(path, text, is_markdown=found.is_markdown)
        rows = list(_make_rows(path, contents))
        # The rows already contain the text of the chunks, so it is not kept twice.
        return _FileEntry(
            path, state, found.hash, contents._replace(chunks=()), rows, size=len(text) + _FILE_OVERHEAD_CHARS
        )

    def _write_batch(self, batch: Sequence[_FileEntry]) -> None:
        """Write a batch in one transaction."""
        if not batch:
            return
        with self._file.write_transaction():
            rows = self._file.execute(_SELECT_NOTES, (json.dumps([entry.path for entry in batch]),))
            found = {path: rest for path, *rest in rows}
            written = [(entry, self._write_entry(entry, found.get(entry.path))) for entry in batch]
            added = [(note, entry) for entry, note in written if note is not None and entry.contents is not None]
            # In the order of the table's key, so that its pages are filled one after the other.
            names = sorted((name, note) for note, entry in added for name in _list_link_names(entry))
            self._file.execute_many("INSERT INTO names VALUES (?, ?)", names)
            tags = sorted((tag, note) for note, entry in added if entry.contents for tag in entry.contents.tags)
            self._file.execute_many("INSERT INTO tags VALUES (?, ?)", tags)
            self._update_chunk_count(sum(len(entry.rows) for _, entry in added))

    def _write_entry(self, entry: _FileEntry, found: Sequence[Any] | None) -> int | None:
        """Write one file instead of its old entry. Returns its new number, or None if nothing is new."""
        state = entry.state
        if found is not None and found[1] == entry.hash and found[2] == entry.read_error:
            update = "UPDATE notes SET state = ?, settled = ?, modified = ? WHERE id = ?"
            self._file.execute(update, (state.stamp, state.settled, state.modified, found[0]))
            return None
        if entry.contents is None and entry.read_error is None:
            # Another process has indexed another text meanwhile. It will notice that the file has changed.
            return None
        if found is not None:
            self._delete_note(found[0])
        title = "" if entry.contents is None else entry.contents.title
        days = parse_day_span_in_name(file_stem(entry.path))
        named = (None, None) if days is None else (days.start.isoformat(), days.end.isoformat())
        values = (entry.path, state.stamp, state.settled, entry.hash, title, state.modified, len(entry.rows))
        note = self._file.insert(_INSERT_NOTE, (*values, entry.read_error, *named))
        first = note << CHUNK_BITS
        self._file.execute_many(_INSERT_CHUNK, [(first + at, *row) for at, row in enumerate(entry.rows)])
        return note

    def _remove_notes(self, note_ids: Sequence[int]) -> None:
        if note_ids:
            with self._file.write_transaction():
                for note in note_ids:
                    self._delete_note(note)

    def _delete_note(self, note_id: int) -> None:
        """Remove a file from the index."""
        rows = self._file.execute("SELECT chunks FROM notes WHERE id = ?", (note_id,))
        span = (note_id << CHUNK_BITS, (note_id + 1) << CHUNK_BITS)
        self._file.execute("DELETE FROM chunks WHERE rowid >= ? AND rowid < ?", span)
        for table in ("names", "tags"):
            self._file.execute(f"DELETE FROM {table} WHERE note = ?", (note_id,))
        self._file.execute("DELETE FROM notes WHERE id = ?", (note_id,))
        self._update_chunk_count(-sum(count for (count,) in rows))

    def _update_chunk_count(self, added: int) -> None:
        """Update the stored total number of chunks."""
        if added:
            self._file.execute("UPDATE facts SET value = CAST(value AS INTEGER) + ? WHERE name = 'chunks'", (added,))


def _list_link_names(entry: _FileEntry) -> list[str]:
    """Return the names that a link may use: path and file name without extension, title, and aliases."""
    assert entry.contents is not None
    whole = entry.path.rpartition(".")[0] or entry.path
    names = (whole, whole.rpartition("/")[2], entry.contents.title, *entry.contents.aliases)
    return list(dict.fromkeys(map(normalize_name, names)))


def _make_rows(path: str, contents: NoteContents) -> Iterator[_Row]:
    """Yield a row for each chunk. Every row has the title; only the first has tags, path and properties."""
    chunks, properties = contents.chunks, contents.properties
    if not chunks:
        return
    indonesian = is_indonesian(chunks[0].text + chunks[-1].text)
    title, tags = "\n".join((contents.title, *contents.aliases)), " ".join(contents.tags)
    stem = path.rpartition(".")[0] or path
    names = f"{title} {stem} {tags}"
    named = extra_search_words(names, is_indonesian_text=indonesian)
    # Text that is repeated in every row must be short, because a note may have thousands of rows.
    short, titled = title[:_MAX_NAME_CHARS], extra_search_words(names[:_MAX_NAME_CHARS], is_indonesian_text=indonesian)
    for chunk, name in zip(chunks, chunk_ids(path, chunks), strict=True):
        headings = HEADING_SEPARATOR.join(chunk.headings)
        extra = extra_search_words(
            f"{headings} {chunk.text}" if headings else chunk.text, is_indonesian_text=indonesian
        )
        yield name, title, tags, headings, stem, properties, chunk.text, f"{named} {extra}"
        title, named = short, titled
        properties = stem = tags = ""


def _is_up_to_date(known: _IndexedFile | None, state: FileFingerprint) -> bool:
    """Return whether the index is up to date for a file.

    A file that had just been modified when it was indexed is read again, because it may have changed since without
    another stamp.
    """
    return known is not None and known.stamp == state.stamp and bool(known.settled)


# The index.

_Result = TypeVar("_Result")


class VaultIndex:
    """The search index of one folder of notes, in a file that several processes may use at once."""

    def __init__(self, file: Path, *, vault: Path, open_readers: OpenSources) -> None:
        self._files = VaultFiles(vault, open_readers)
        self._file = IndexFile(file)
        self._refresher = IndexRefresher(self._file, self._files)
        self._finder = NoteSearcher(self._file)

    @property
    def file(self) -> Path:
        return self._file.path

    def refresh(
        self,
        *,
        on_progress: ProgressCallback | None = None,
        only_paths: Collection[str] | None = None,
        rebuild: bool = False,
    ) -> IndexReport:
        """Update the index with the changes in the vault since the last refresh.

        ``only_paths`` limits the check to these paths. ``rebuild`` rebuilds the index. ``on_progress`` is called with
        the progress.
        """
        if rebuild:
            self._run_with_rebuild(lambda: self._file.reset("it was asked for"))
        # A rebuilt index is empty, so all files have to be read, not only the named ones.
        selected_paths = None if self._file.rebuild_reason else only_paths
        report = self._run_with_rebuild(
            lambda: self._refresher.refresh(
                on_progress=on_progress, only=None if self._file.rebuild_reason else selected_paths
            )
        )
        why, self._file.rebuild_reason = self._file.rebuild_reason, None
        return IndexReport(
            read_count=report.read_count,
            removed_count=report.removed_count,
            file_count=report.file_count,
            unread=report.unread,
            rebuild_reason=why,
        )

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        """Return the best matching passages. One passage of every matching note comes before the second of any."""
        return self._run_with_rebuild(lambda: self._finder.search(query, now=now, limit=limit), refreshes=True)

    def rank_notes(self, question: str, *, paths: Sequence[str]) -> Sequence[str]:
        """Return all the given paths, ordered by how well the notes match the question."""
        return self._run_with_rebuild(lambda: self._finder.rank_notes(question, paths), refreshes=True)

    def close(self) -> None:
        self._file.close()

    def _run_with_rebuild(self, operation: Callable[[], _Result], *, refreshes: bool = False) -> _Result:
        """Return the result of ``operation``. If the file is damaged, rebuild it and run ``operation`` once more.

        ``refreshes`` reads the vault into the new index before that.
        """
        try:
            return operation()
        except sqlite3.DatabaseError as error:
            if not is_damage_error(error):
                raise
            self._file.reset(f"it was damaged ({error})", damaged=True)
        if refreshes:
            self._refresher.refresh()
        return operation()
