"""Stores as SQL text, and back: one statement a line, so that the text can be read and compared."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg import sql
from tests.conformance.stores.material import split_schema

from lamella.stores.sql_schema import load_migrations

FOLDER = Path(__file__).parent
# Each table with its columns, and by how many of them its rows are ordered; a row comes after those it refers to.
TABLES = {
    "schema_version": (("version",), 1),
    "conversations": (("id", "version", "head", "title", "created", "updated", "erased", "name"), 1),
    "events": (("conversation", "seq", "kind", "at", "body", "contents", "hash", "counts"), 2),
    "contents": (("hash", "data"), 1),
    "holdings": (("conversation", "hash"), 2),
    "checkpoints": (("conversation", "version", "head", "data", "apart"), 2),
    "shelf": (("name", "conversation", "text", "ends"), 1),
}


def golden_file(dialect: str, version: int) -> Path:
    return FOLDER / f"{dialect}.{version:04}.sql"


def dump(url: str) -> str:
    """The statements that make a store again."""
    lines = _dump_sqlite(url) if url.startswith("sqlite") else _dump_postgresql(url)
    return "".join(f"{line}\n" for line in lines)


def restore(url: str, text: str) -> None:
    """Make a store from its statements, where there is none yet."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(text)
        return
    address, schema = split_schema(url)
    with psycopg.connect(address) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {0}; SET search_path TO {0}").format(sql.Identifier(schema)))
        connection.execute(text.encode())


def _dump_sqlite(url: str) -> Iterator[str]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        made = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        yield from (f"{statement};" for (statement,) in made)
        for table, query in _queries("quote"):
            yield from (_insert(table, row) for row in connection.execute(query))


def _dump_postgresql(url: str) -> Iterator[str]:
    """The migrations as they are, then every row: PostgreSQL has no short text for a table as it became."""
    yield from (script.rstrip() for script in load_migrations("postgresql"))
    address, schema = split_schema(url)
    with psycopg.connect(address) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        for table, query in _queries("quote_nullable"):
            yield from (_insert(table, row) for row in connection.execute(query.encode()))


def _queries(quote: str) -> Iterator[tuple[str, str]]:
    for table, (columns, keys) in TABLES.items():
        quoted = ", ".join(f"{quote}({column})" for column in columns)
        yield table, f"SELECT {quoted} FROM {table} ORDER BY {', '.join(columns[:keys])}"


def _insert(table: str, row: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(TABLES[table][0])}) VALUES ({', '.join(row)});"
