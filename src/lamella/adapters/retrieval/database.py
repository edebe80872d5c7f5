"""The file of an index: opened by any number of processes, and made anew when it is damaged or not of this version."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from lamella.adapters.files.locking import locked
from lamella.adapters.files.privacy import close_file, make_file, make_own_folder
from lamella.adapters.retrieval.words import RULES, TOKENIZER
from lamella.errors import IndexUnavailableError

PATIENCE = 30.0
# Raised with any change of the tables below, or of what stands in them.
_FORMAT = 2
# The number of a chunk has that of its note in front: a chunk tells its note without a look elsewhere, and all
# rows of a note stand together.
CHUNK_BITS = 20
# Between the headings that a chunk stands below.
HEADINGS = " > "
_BESIDE = ("", "-wal", "-shm")
# A chunk is a page of text: pages of 8 KB are filled with fewer steps than SQLite's own of 4 KB, and writing takes a
# fifth less (2026-11-17). A file that was made before keeps the size that it has. What waits beside the file comes into
# it every 2 MB.
_PRAGMAS = (
    *("page_size = 8192", "synchronous = NORMAL", "wal_autocheckpoint = 256"),
    *("mmap_size = 0", "cache_size = -16000", "temp_store = MEMORY"),
)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, state TEXT NOT NULL, settled INTEGER NOT NULL,
    hash BLOB NOT NULL, title TEXT NOT NULL, modified INTEGER NOT NULL, chunks INTEGER NOT NULL, fault TEXT,
    since TEXT, until TEXT
);
CREATE TABLE names (name TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (name, note)) WITHOUT ROWID;
CREATE INDEX names_of_notes ON names (note);
CREATE TABLE tags (tag TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (tag, note)) WITHOUT ROWID;
CREATE INDEX tags_of_notes ON tags (note);
CREATE VIRTUAL TABLE chunks USING fts5(
    name UNINDEXED, title, tags, headings, path, properties, body, extra, tokenize = '{tokenizer}'
);
INSERT INTO chunks (chunks, rank) VALUES ('hashsize', {words});
INSERT INTO chunks (chunks, rank) VALUES ('automerge', {segments});
"""
# How many bytes of words are gathered before they are written as one segment. With FTS5's own megabyte a batch becomes
# many segments, which are merged level by level: putting in ten times the chunks took 13 to 15 times as long, with one
# segment for a batch 11 times (2026-11-17). An index that was made before keeps the megabyte, and finds the same.
_WORDS = 32 * 2**20
# How many segments of a level there are before they are merged. With FTS5's own four, 10,000 notes are merged while
# they are put in and 1,000 are not, a tenth of the time that writing takes (2026-11-17). A question is asked of each
# segment, so that there are not to be many.
_SEGMENTS = 8
Values = Sequence[object] | dict[str, object]


class IndexTables(NamedTuple):
    """What is in an index: the statements that make its tables, their names, the one with words, and its version."""

    schema: str
    names: tuple[str, ...]
    words: str
    version: str
    facts: tuple[tuple[str, str], ...] = ()


NOTE_TABLES = IndexTables(
    schema=_SCHEMA.format(tokenizer=TOKENIZER, words=_WORDS, segments=_SEGMENTS),
    names=("chunks", "tags", "names", "notes", "facts"),
    words="chunks",
    version=f"{_FORMAT} {RULES}",
    facts=(("chunks", "0"),),
)


class IndexFile:
    """One file that SQLite keeps. ``rebuilt`` says why it was made anew since it was opened, if it was."""

    def __init__(self, path: Path, *, tables: IndexTables = NOTE_TABLES, patience: float = PATIENCE) -> None:
        self.path = path
        self._tables = tables
        self.rebuilt: str | None = None
        self._patience = patience
        self._lock = RLock()
        self._connection = self._open()

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        """The rows that a statement gives."""
        with self._lock, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def run_each(self, sql: str, rows: Sequence[Values]) -> None:
        """The same statement for each of these rows."""
        with self._lock, self._explained():
            self._connection.executemany(sql, rows)

    def insert(self, sql: str, values: Values) -> int:
        """Put in one row, and give its number."""
        with self._lock, self._explained():
            return int(self._connection.execute(sql, values).lastrowid or 0)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One state of the index, whatever others write meanwhile."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written in this block, or nothing of it; nobody else writes meanwhile."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock:
            self.run(begin)
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise

    def make_anew(self, why: str, *, damaged: bool = False) -> None:
        """Begin with an empty index: what was in it can be read again from the vault."""
        with self._lock:
            if damaged and not is_sound(self.path):
                self._connection.close()
                self._remove_damaged()
                self._connection = self._open()
            else:
                # SQLite may find nothing wrong with pages whose words are in disorder.
                with self.writing():
                    self._make_tables()
            self.rebuilt = why

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        with self._explained():
            try:
                return self._connect()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.rebuilt = f"it was damaged ({error})"
                self._remove_damaged()
                return self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            make_own_folder(self.path.parent)
        except OSError as error:
            raise _unavailable(self.path, error.strerror or str(error)) from error
        make_file(self.path)
        for suffix in _BESIDE:
            close_file(self.path.with_name(self.path.name + suffix))
        connection = sqlite3.connect(
            self.path, timeout=self._patience, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("PRAGMA journal_mode = WAL")
            self._connection = connection
            self._settle_tables()
            connection.execute(
                f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', '{self._tables.words}', 'row')"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _settle_tables(self) -> None:
        if self._read_version() == self._tables.version:
            return
        with self.writing():
            # Somebody else may have made them meanwhile.
            found = self._read_version()
            if found == self._tables.version:
                return
            if found is not None:
                self.rebuilt = "it was made by another version"
            self._make_tables()

    def _read_version(self) -> str | None:
        """What the index was made by; none for a file without any tables."""
        found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if not found:
            return None
        if ("facts",) not in found:
            return ""
        row = self._connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
        return str(row[0]) if row else ""

    def _make_tables(self) -> None:
        for table in self._tables.names:
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in self._tables.schema.split(";\n"):
            self._connection.execute(statement)
        facts = (("version", self._tables.version), *self._tables.facts)
        self._connection.executemany("INSERT INTO facts VALUES (?, ?)", facts)

    def _remove_damaged(self) -> None:
        """Remove the file, unless somebody else has done that by now and begun another."""
        with locked(self.path.with_name(f"{self.path.name}.lock")):
            if is_sound(self.path):
                return
            for suffix in _BESIDE:
                with suppress(OSError):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                raise
            raise _unavailable(self.path, str(error)) from error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is not what was written."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGED


def is_sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with a file."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()
            return found is not None and found[0] == "ok"
    except sqlite3.Error:
        return False


def _unavailable(path: Path, why: str) -> IndexUnavailableError:
    return IndexUnavailableError(
        f"The index {path} cannot be used: {why}.",
        hint="The notes are as they were. Try again, or set `index_folder` to a folder that can be written to.",
    )
