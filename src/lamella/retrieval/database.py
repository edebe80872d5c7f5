"""The database file of an index: shared by any number of processes, and rebuilt if damaged or outdated."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from lamella.errors import IndexUnavailableError
from lamella.files import file_lock, make_private_file, make_private_folder, remove_access_of_other_users
from lamella.retrieval.words import TOKENIZER, WORD_RULES_VERSION

DEFAULT_TIMEOUT = 30.0
# Raise this with any change to the tables below or to their contents.
_FORMAT_VERSION = 3
# The upper bits of a chunk's number are the number of its note. The note is thus known without another query, and all
# rows of a note are adjacent.
CHUNK_BITS = 20
# The separator between the headings of a chunk.
HEADING_SEPARATOR = " > "
_FILE_SUFFIXES = ("", "-wal", "-shm")
# A chunk is a page of text. Pages of 8 KB are filled in fewer steps than SQLite's default of 4 KB, and writing takes a
# fifth less time (2026-11-17). An existing file keeps its page size. The write-ahead log is copied into the file every
# 2 MB.
_PRAGMAS = (
    *("page_size = 8192", "synchronous = NORMAL", "wal_autocheckpoint = 256"),
    *("mmap_size = 0", "cache_size = -16000", "temp_store = MEMORY"),
)
_DAMAGE_ERROR_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
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
# How many bytes of words are collected before they are written as one segment. With FTS5's default of one megabyte a
# batch becomes many segments, which are merged level by level: indexing ten times the chunks took 13 to 15 times as
# long, and 11 times with one segment per batch (2026-11-17). An existing index keeps the default and finds the same.
_SEGMENT_BYTES = 32 * 2**20
# How many segments a level has before they are merged. With FTS5's default of four, 10,000 notes are merged during
# indexing and 1,000 are not, which costs a tenth of the write time (2026-11-17). Every query searches each segment, so
# there must not be many.
_SEGMENTS_BEFORE_MERGE = 8
SqlValues = Sequence[object] | dict[str, object]


class IndexTables(NamedTuple):
    """The tables of an index: the SQL that creates them, their names, the full-text table, and a version."""

    schema: str
    table_names: tuple[str, ...]
    full_text_table: str
    version: str
    initial_facts: tuple[tuple[str, str], ...] = ()


NOTE_TABLES = IndexTables(
    schema=_SCHEMA.format(tokenizer=TOKENIZER, words=_SEGMENT_BYTES, segments=_SEGMENTS_BEFORE_MERGE),
    table_names=("chunks", "tags", "names", "notes", "facts"),
    full_text_table="chunks",
    version=f"{_FORMAT_VERSION} {WORD_RULES_VERSION}",
    initial_facts=(("chunks", "0"),),
)


class IndexFile:
    """An index in one SQLite file. ``rebuild_reason`` is why it was rebuilt since it was opened, or None."""

    def __init__(self, path: Path, *, tables: IndexTables = NOTE_TABLES, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.path = path
        self._tables = tables
        self.rebuild_reason: str | None = None
        self._timeout = timeout
        self._lock = RLock()
        self._connection = self._open()

    def execute(self, sql: str, values: SqlValues = ()) -> list[Any]:
        """Run a statement and return its rows."""
        with self._lock, self._convert_sqlite_errors():
            return self._connection.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Sequence[SqlValues]) -> None:
        """Run a statement once for each row of values."""
        with self._lock, self._convert_sqlite_errors():
            self._connection.executemany(sql, rows)

    def insert(self, sql: str, values: SqlValues) -> int:
        """Insert one row and return its number."""
        with self._lock, self._convert_sqlite_errors():
            return int(self._connection.execute(sql, values).lastrowid or 0)

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read a consistent state of the index, while other processes write."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def write_transaction(self) -> Iterator[None]:
        """Write all changes of this block or none. No other process can write meanwhile."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock:
            self.execute(begin)
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise

    def reset(self, reason: str, *, damaged: bool = False) -> None:
        """Start again with an empty index. Its contents can be read again from the vault."""
        with self._lock:
            if damaged and not passes_integrity_check(self.path):
                self._connection.close()
                self._remove_damaged_file()
                self._connection = self._open()
            else:
                # SQLite's integrity check may find nothing wrong with a damaged full-text index.
                with self.write_transaction():
                    self._make_tables()
            self.rebuild_reason = reason

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        with self._convert_sqlite_errors():
            try:
                return self._connect()
            except sqlite3.DatabaseError as error:
                if not is_damage_error(error):
                    raise
                self.rebuild_reason = f"it was damaged ({error})"
                self._remove_damaged_file()
                return self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            make_private_folder(self.path.parent)
        except OSError as error:
            raise _index_unavailable_error(self.path, error.strerror or str(error)) from error
        make_private_file(self.path)
        for suffix in _FILE_SUFFIXES:
            remove_access_of_other_users(self.path.with_name(self.path.name + suffix))
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("PRAGMA journal_mode = WAL")
            # Set before the tables are checked, because the transaction helpers use it.
            self._connection = connection
            self._ensure_tables()
            connection.execute(
                f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', '{self._tables.full_text_table}', 'row')"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _ensure_tables(self) -> None:
        if self._read_version() == self._tables.version:
            return
        with self.write_transaction():
            # Another process may have created the tables before this one got the write lock.
            found = self._read_version()
            if found == self._tables.version:
                return
            if found is not None:
                self.rebuild_reason = "it was made by another version"
            self._make_tables()

    def _read_version(self) -> str | None:
        """Return the version of the index file. None if it has no tables, empty if it has no version."""
        found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if not found:
            return None
        if ("facts",) not in found:
            return ""
        row = self._connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
        return str(row[0]) if row else ""

    def _make_tables(self) -> None:
        for table in self._tables.table_names:
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in self._tables.schema.split(";\n"):
            self._connection.execute(statement)
        facts = (("version", self._tables.version), *self._tables.initial_facts)
        self._connection.executemany("INSERT INTO facts VALUES (?, ?)", facts)

    def _remove_damaged_file(self) -> None:
        """Remove the file, unless another process has already replaced it."""
        with file_lock(self.path.with_name(f"{self.path.name}.lock")):
            if passes_integrity_check(self.path):
                return
            for suffix in _FILE_SUFFIXES:
                with suppress(OSError):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def _convert_sqlite_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if is_damage_error(error):
                raise
            raise _index_unavailable_error(self.path, str(error)) from error


def is_damage_error(error: sqlite3.Error) -> bool:
    """Return whether an error means that the database file is damaged."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGE_ERROR_CODES


def passes_integrity_check(path: Path) -> bool:
    """Return whether SQLite's integrity check accepts a file."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()
            return found is not None and found[0] == "ok"
    except sqlite3.Error:
        return False


def _index_unavailable_error(path: Path, why: str) -> IndexUnavailableError:
    return IndexUnavailableError(
        f"The index {path} cannot be used: {why}.",
        hint="The notes are as they were. Try again, or set `index_folder` to a folder that can be written to.",
    )
