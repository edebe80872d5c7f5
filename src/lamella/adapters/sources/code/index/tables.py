"""Tables: what is kept of a repository, in a file of its own or in memory."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from lamella.adapters.retrieval.database import IndexTables, Values
from lamella.adapters.retrieval.words import RULES, TOKENIZER

# Raised with any change of the tables, of what stands in them, or of what leaves a file out.
_FORMAT = 1
_SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, state TEXT NOT NULL, settled INTEGER NOT NULL,
    hash BLOB NOT NULL, fault TEXT
);
CREATE VIRTUAL TABLE words USING fts5(path, symbols, body, extra, tokenize = '{TOKENIZER}');
CREATE VIRTUAL TABLE subjects USING fts5(subject, tokenize = '{TOKENIZER}');
CREATE TABLE touches (path TEXT NOT NULL, made INTEGER NOT NULL, PRIMARY KEY (path, made)) WITHOUT ROWID;
CREATE INDEX touches_of_commits ON touches (made);
CREATE TABLE skeletons (hash BLOB PRIMARY KEY, rules TEXT NOT NULL, text TEXT) WITHOUT ROWID;
"""
CODE_TABLES = IndexTables(
    schema=_SCHEMA,
    names=("skeletons", "touches", "subjects", "words", "files", "facts"),
    words="words",
    version=f"code {_FORMAT} {RULES}",
)


class CodeTables(Protocol):
    """Where an index of code is kept."""

    def run(self, sql: str, values: Values = ()) -> list[Any]: ...

    def run_each(self, sql: str, rows: Sequence[Values]) -> None: ...

    def insert(self, sql: str, values: Values) -> int: ...

    def writing(self) -> AbstractContextManager[None]: ...


class MemoryTables:
    """An index that nobody needs a second time."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in CODE_TABLES.schema.split(";\n"):
            self._connection.execute(statement)
        self._connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'words', 'row')")

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def run_each(self, sql: str, rows: Sequence[Values]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, sql: str, values: Values) -> int:
        return int(self._connection.execute(sql, values).lastrowid or 0)

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def close(self) -> None:
        self._connection.close()
