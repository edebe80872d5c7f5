"""Shared parts of all SQL stores: the protocol of a database, migrations, and the conversion of rows.

``Database`` and ``Transaction`` hide the differences between databases. ``migrate`` applies numbered SQL files in
order, in one transaction, when a store is opened. ``record_from_row`` and ``record_to_row`` convert rows and check
their values.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Protocol, TypeGuard, TypeVar

from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.text.content import hash_bytes
from lamella.errors import SettingError, StoreCorruptedError, StoreVersionError
from lamella.hints import Hints
from lamella.ports import ConversationListItem, StoreProblem

Result = TypeVar("Result")
Row = tuple[Any, ...]

# The databases accept far more values in one statement. This limit keeps statements short.
_MAX_CHUNK_VALUES = 500


class Transaction(Protocol):
    """Statements that are committed together or not at all; values are written as ``?`` in SQL."""

    def run(self, sql: str, *values: object) -> int:
        """Execute a statement and return the number of changed rows."""
        ...

    def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        """Execute a statement once per row of values and return the total number of changed rows."""
        ...

    def query(self, sql: str, *values: object) -> list[Row]: ...


class Database(Protocol):
    """A SQL database: connections, transactions, locks, and translation of its errors."""

    @property
    def dialect(self) -> str:
        """Return the name of the folder with its migrations."""
        ...

    @property
    def row_lock_clause(self) -> str:
        """Return the end of a SELECT that locks the row until the transaction ends; empty if not needed."""
        ...

    @property
    def has_multi_table_statements(self) -> bool:
        """Return whether one statement can change several tables, so that an append needs no transaction."""
        ...

    def run(self, sql: str, *values: object) -> int:
        """Execute one statement without a transaction and return the number of changed rows.

        It is durable when this returns, and may be executed again, as with ``write``.
        """
        ...

    def compute_deadline(self) -> float:
        """Return the time until which a caller waits for a statement sent now.

        It is in seconds since 1970 by the clock of the database.
        """
        ...

    def query(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of one statement, without a transaction."""
        ...

    def query_map(self, convert: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        """Return the result of ``convert`` for each row of a statement, without keeping all rows in memory.

        ``convert`` may get the same rows again if the connection was lost meanwhile.
        """
        ...

    def run_read_transaction(self, work: Callable[[Transaction], Result]) -> Result:
        """Run ``work`` in a read transaction, which sees one consistent state."""
        ...

    def run_write_transaction(self, work: Callable[[Transaction], Result]) -> Result:
        """Run ``work`` in a transaction and commit it; it is durable when this returns.

        ``work`` may run again if the connection was lost.
        """
        ...

    def migrate(self, work: Callable[[Transaction], Result]) -> Result:
        """Run ``work`` in a transaction while no other process migrates."""
        ...

    def list_tables(self, transaction: Transaction) -> set[str]:
        """Return the names of the existing tables."""
        ...

    def prepare_erase(self, transaction: Transaction) -> None:
        """Keep other transactions from using contents until this one ends, and record that it erases."""
        ...

    def purge_erased_data(self) -> None:
        """Remove the bytes of erased data from the places where they may remain after a DELETE."""
        ...

    def check_files(self) -> Iterator[StoreProblem]:
        """Yield the problems that the database's own checks find in its files."""
        ...

    def find_unpurged_data(self) -> Iterator[StoreProblem]:
        """Yield the places where bytes of erased data may still exist."""
        ...

    def close(self) -> None: ...


def split_into_chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the values in chunks that fit into one statement."""
    for start in range(0, len(values), _MAX_CHUNK_VALUES):
        yield values[start : start + _MAX_CHUNK_VALUES]


def placeholders(values: Sequence[object]) -> str:
    """Return a parenthesised list of ``?``, one per value."""
    return f"({', '.join('?' * len(values))})"


# Migrations.

_VERSION_TABLE = "schema_version"


def load_migrations(dialect: str) -> tuple[str, ...]:
    """Return the SQL of every migration of a dialect, in order; the first one creates the tables."""
    folder = files("lamella.stores") / "migrations" / dialect
    scripts = sorted((file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir())
    return tuple(script for name, script in scripts if name.endswith(".sql"))


def migrate(database: Database, migrations: Sequence[str], *, database_name: str) -> int:
    """Migrate a database to the newest schema version and return that version; all migrations apply or none."""
    newest = len(migrations)
    # The version is read without a lock first, since most stores need no migration.
    version = database.run_read_transaction(
        lambda transaction: _read_version(database, transaction, name=database_name)
    )
    check_version(version, newest, name=database_name)
    if version == newest:
        return newest
    return database.migrate(
        lambda transaction: _apply_migrations(database, transaction, migrations=migrations, name=database_name)
    )


def _read_version(database: Database, transaction: Transaction, *, name: str) -> int:
    """Return the schema version, or 0 for an empty database.

    Raises ``SettingError`` if the database has tables of another program.
    """
    tables = database.list_tables(transaction)
    if _VERSION_TABLE in tables:
        return int(transaction.query(f"SELECT coalesce(max(version), 0) FROM {_VERSION_TABLE}")[0][0])
    if tables:
        raise SettingError(
            f"{name} is a database of something else: it has the table {min(tables)} and no table {_VERSION_TABLE}.",
            hint="Name a new file or database; Lamella adds nothing to other programs' data.",
        )
    return 0


def _apply_migrations(database: Database, transaction: Transaction, *, migrations: Sequence[str], name: str) -> int:
    # Read again under the lock: another process may have migrated the store meanwhile.
    version, newest = _read_version(database, transaction, name=name), len(migrations)
    check_version(version, newest, name=name)
    for number, script in enumerate(migrations[version:], start=version + 1):
        for statement in _split_statements(script):
            transaction.run(statement)
        transaction.run(f"INSERT INTO {_VERSION_TABLE} (version) VALUES (?)", number)
    return newest


def check_version(found: int, known: int, *, name: str) -> None:
    """Raise ``StoreVersionError`` if a newer version of Lamella migrated the store."""
    if found > known:
        raise StoreVersionError(
            f"{name} has schema version {found}; this version of Lamella knows up to {known}.",
            hint="Use the newer version of Lamella that migrated it.",
        )


def _split_statements(script: str) -> list[str]:
    """Return the statements of a script.

    A comment must be a line of its own. A statement ends with ``;`` at the end of a line.
    """
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    return [statement for part in "\n".join(lines).split(";\n") if (statement := part.strip().removesuffix(";"))]


# Rows.

RECORD_COLUMNS = "seq, kind, at, body, contents, counts"
SUMMARY_COLUMNS = "id, name, title, created, updated, version, erased"
_KIND_BY_VALUE = {kind.value: kind for kind in EventKind}


def damage_hint(hints: Hints) -> str:
    """Return the hint for damage that only a backup can repair."""
    return f"{hints.verify_store_hint()} tells what is damaged; restore it from a backup."


def repair_hint(hints: Hints) -> str:
    """Return the hint for a damaged row that can be rebuilt from the events."""
    return f"{hints.repair_store_hint()} derives again what the events still tell."


def record_from_row(conversation_key: str, row: Row) -> EventRecord:
    """Return the event record in a row; raises ``StoreCorruptedError`` with the number of the event."""
    seq, kind, at, body, contents, counts = row
    try:
        if not (isinstance(at, str) and isinstance(body, str)):
            raise ValueError(f"{at!r} or its body is no text")
        return EventRecord(
            kind=_KIND_BY_VALUE.get(kind) or EventKind(kind),
            at=at,
            body=body,
            contents=() if contents == "[]" else _split_hashes(contents),
            # Counts that are not bytes are ignored; without them the texts are counted again.
            counts=counts if isinstance(counts, bytes) else b"",
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreCorruptedError(
            f"Event {seq} of the conversation {conversation_key} cannot be read: {error}.", hint=damage_hint
        ) from error


def summary_from_row(row: Row) -> ConversationListItem:
    """Return the summary of a conversation in a row.

    A value of a wrong type is left out, so that the list can still be read; ``verify`` reports it.
    """
    key, name, title, created, updated, version, erased = row
    return ConversationListItem(
        conversation=_require_text(key),
        name=name if is_valid_key(name) else _require_text(key),
        title=_require_text(title),
        created=_require_text(created),
        updated=_require_text(updated),
        event_count=version if isinstance(version, int) else 0,
        erased_at=None if erased is None else _require_text(erased),
    )


def _require_text(value: object) -> str:
    return value if is_valid_utf8_text(value) else ""


def is_valid_utf8_text(value: object) -> TypeGuard[str]:
    """Return whether a value is a text that can be encoded as UTF-8; a SQLite column may contain any type."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value))


def is_valid_key(value: object) -> TypeGuard[str]:
    """Return whether a value can be a conversation's key in every store."""
    return is_valid_utf8_text(value) and bool(value) and "\0" not in value


def check_row_version(conversation_key: str, version: object) -> int:
    """Return the number of events in a conversation's row; raises ``StoreCorruptedError`` if it is no number."""
    if isinstance(version, int):
        return version
    raise StoreCorruptedError(
        f"The conversation {conversation_key} has {version!r} where the number of its events should be.",
        hint=repair_hint,
    )


def record_to_row(seq: int, record: EventRecord, *, with_counts: bool) -> Row:
    """Return the row of an event record; its token counts are included only if ``with_counts``."""
    counts = record.counts if with_counts and record.counts else None
    contents = json.dumps(record.contents) if record.contents else "[]"
    return seq, record.kind.value, record.at, record.body, contents, counts


def is_data_of_hash(name: object, data: object) -> bool:
    """Return whether the data are bytes with the hash ``name``."""
    return isinstance(data, bytes) and hash_bytes(data) == name


def _split_hashes(contents: str) -> tuple[str, ...]:
    names = json.loads(contents)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its contents are not a list of hashes")
    return tuple(names)
