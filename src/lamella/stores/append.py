"""Append events to a conversation of a SQL store, and save checkpoints.

``append_events`` writes a change after exactly the expected number of events; ``append_after_known_event`` is the fast path
after an event that this process knows. ``write_checkpoint`` and ``load_checkpoints`` store encoded state. Checkpoints
are derived data, and any erasure in the conversation removes them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from lamella.core.log.events.kinds import EventBatch, EventKind
from lamella.errors import ConflictError, StoreCorruptedError
from lamella.ports import Checkpoint
from lamella.stores.hash_chain import (
    EMPTY_HASH,
    chain_hashes,
    check_contents,
    check_hashes_known,
    clean_title,
    erased_hashes,
)
from lamella.stores.sharing import remove_shared_entries_of
from lamella.stores.sql_schema import (
    RECORD_COLUMNS,
    Database,
    Result,
    Row,
    Transaction,
    check_row_version,
    placeholders,
    record_from_row,
    record_to_row,
    repair_hint,
    split_into_chunks,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWrite:
    """A checkpoint to save, and the versions of the checkpoints that it replaces."""

    conversation: str
    checkpoint: Checkpoint
    replaced_versions: tuple[int, ...]


def write_checkpoint(database: Database, transaction: Transaction, write: CheckpointWrite) -> bool:
    """Save a checkpoint if the conversation has exactly as many events as it covers; return whether it was saved.

    If contents were erased since it was made, it would bring back token counts of the erased text.
    """
    conversation, checkpoint = write.conversation, write.checkpoint
    found = transaction.query(
        "SELECT version, head FROM conversations WHERE id = ? AND erased IS NULL" + database.row_lock_clause,
        conversation,
    )
    if not found or found[0][0] != checkpoint.version:
        return False
    transaction.run_each(
        "DELETE FROM checkpoints WHERE conversation = ? AND version = ?",
        [(conversation, version) for version in write.replaced_versions],
    )
    transaction.run_each(
        "UPDATE checkpoints SET data = ?, apart = ? WHERE conversation = ? AND version = ?",
        [(one.data, one.separate_data, conversation, one.version) for one in checkpoint.earlier],
    )
    transaction.run(
        "INSERT INTO checkpoints (conversation, version, head, data, apart) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (conversation, version)"
        " DO UPDATE SET head = excluded.head, data = excluded.data, apart = excluded.apart",
        *(conversation, checkpoint.version, found[0][1], checkpoint.data, checkpoint.separate_data),
    )
    return True


def load_checkpoints(
    database: Database, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool
) -> list[Result]:
    """Return the result of ``decode`` for each valid checkpoint, oldest first.

    A checkpoint is valid if the event it follows still has the same hash and the conversation has at least that many
    events. The separate data is loaded only if ``with_separate_data`` is set.
    """
    # A subquery per checkpoint, never a join. If PostgreSQL's statistics are older than the conversation, it expects
    # almost no rows, and with a join it scanned all events for each checkpoint (2026-11-18).
    return database.query_map(
        partial(_decode_row, decode),
        f"SELECT version, data, {'apart' if with_separate_data else 'NULL'} FROM checkpoints WHERE conversation = ? AND head ="
        " (SELECT hash FROM events WHERE events.conversation = checkpoints.conversation AND seq = checkpoints.version)"
        " AND version <= (SELECT version FROM conversations WHERE id = checkpoints.conversation) ORDER BY version",
        conversation_key,
    )


def _decode_row(decode: Callable[[Checkpoint], Result], row: Row) -> Result:
    # A value that is not bytes is damaged. Empty bytes make ``read`` reject the checkpoint.
    data, separate = [some if isinstance(some, bytes) else b"" for some in row[1:]]
    return decode(Checkpoint(version=row[0], data=data, separate_data=separate))


def remove_checkpoints(transaction: Transaction, conversation_key: str) -> None:
    """Remove all checkpoints of a conversation, because they may contain data derived from erased contents."""
    transaction.run("DELETE FROM checkpoints WHERE conversation = ?", conversation_key)


# Appends.


class AppendChange(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """Events that a caller wants to append to a conversation after ``expected`` events.

    ``name`` is the name of a new conversation. A ``title`` that is not None replaces the stored one.
    """

    conversation: str
    batch: EventBatch
    expected: int
    title: str | None = None
    name: str | None = None

    @property
    def erased_hashes(self) -> tuple[str, ...]:
        """Return the hashes of the contents that its erasure events remove, except those it brings itself."""
        if self.fits_fast_path:
            return ()
        erased = erased_hashes(self.batch.records)
        return tuple(sorted(erased.difference(self.batch.contents))) if erased else ()

    @property
    def fits_fast_path(self) -> bool:
        """Return whether it has only a few events and no contents, so that the fast path can write it."""
        records = self.batch.records
        return (
            len(records) <= _MAX_PLAIN_EVENTS and not self.batch.contents and not any(one.contents for one in records)
        )

    @property
    def version_after(self) -> int:
        """Return the number of events after the append."""
        return self.expected + len(self.batch.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedState:
    """The row of a conversation, read while it is locked for one writer; ``schema`` is the store's version."""

    version: int
    head: str
    erased: str | None
    schema: int


def lock_conversation_for_append(database: Database, transaction: Transaction, change: AppendChange) -> LockedState:
    """Lock the row of the conversation and read it; a new conversation gets its row first.

    Raises ``ConflictError`` if the row does not exist or another conversation has the name.
    """
    if change.expected == 0:
        at = change.batch.records[0].at
        transaction.run(
            "INSERT INTO conversations (id, name, version, head, title, created, updated)"
            " VALUES (?, ?, 0, ?, '', ?, ?) ON CONFLICT DO NOTHING",
            *(change.conversation, change.name or change.conversation, EMPTY_HASH, at, at),
        )
    found = transaction.query(
        "SELECT version, head, erased, (SELECT max(version) FROM schema_version) FROM conversations WHERE id = ?"
        + database.row_lock_clause,
        change.conversation,
    )
    if not found:
        raise _conflict_error(transaction, change)
    version, head, erased, schema = found[0]
    known = check_row_version(change.conversation, version)
    return LockedState(version=known, head=head, erased=erased, schema=schema)


def _conflict_error(transaction: Transaction, change: AppendChange) -> ConflictError:
    """Return the error for a conversation that does not exist, or whose name another conversation has."""
    name = change.name or change.conversation
    others = transaction.query("SELECT version FROM conversations WHERE name = ? AND erased IS NULL", name)
    found = check_row_version(name, others[0][0]) if others and change.expected == 0 else 0
    return ConflictError(conversation_key=name, expected=change.expected, found=found)


def is_already_appended(transaction: Transaction, change: AppendChange, state: LockedState) -> bool:
    """Return whether the conversation already ends with this change.

    That happens if an earlier attempt was committed and its answer was lost.
    """
    if state.version != change.version_after:
        return False
    before = transaction.query(
        "SELECT hash FROM events WHERE conversation = ? AND seq = ?", change.conversation, change.expected
    )
    previous = before[0][0] if before else EMPTY_HASH
    return hash_events(previous, change)[-1] == state.head


def check_last_event_hash(transaction: Transaction, change: AppendChange, state: LockedState) -> None:
    """Raise ``StoreCorruptedError`` if the row names a wrong hash for its last event.

    Events appended after a wrong hash could never be verified.
    """
    # This cannot be part of the statement that locks the row. If that statement has waited for the lock, its snapshot
    # is older than the events that the other writer committed.
    found = transaction.query(
        "SELECT hash FROM events WHERE conversation = ? AND seq = ?", change.conversation, state.version
    )
    last = found[0][0] if found else EMPTY_HASH
    if last != state.head:
        raise StoreCorruptedError(
            f"The conversation {change.conversation} says that its last event has the hash {state.head}.",
            hint=repair_hint,
        )


def append_events(database: Database, transaction: Transaction, *, change: AppendChange, state: LockedState) -> str:
    """Write the change to the locked conversation and return the hash of its last event.

    An erasure also removes everything derived from the conversation's contents: token counts, checkpoints and entries
    of the shared table.
    """
    erases = change.erased_hashes
    if erases:
        database.prepare_erase(transaction)
        _remove_use_of_contents(transaction, change.conversation, erases)
        _remove_token_counts(transaction, change.conversation)
        remove_checkpoints(transaction, change.conversation)
        remove_shared_entries_of(transaction, change.conversation)
    hashes = hash_events(state.head, change)
    _insert_events(transaction, change, hashes, with_counts=not erases)
    transaction.run(_UPDATE_CONVERSATION, *conversation_row_values(change, hashes[-1]), change.conversation)
    return hashes[-1]


def append_after_known_event(transaction: Transaction, change: AppendChange, *, head: str, schema: int) -> str | None:
    """Append a change that erases nothing after the last event that this process knows, and return the new hash.

    ``head`` is the hash of that event, or empty for a new conversation. The checks of the slow path (``lock_conversation_for_append``,
    ``check_last_event_hash``) are conditions of a single statement here. Returns None, without writing, if one of them fails.
    """
    hashes = hash_events(head, change)
    moving, values = conversation_row_statement(change, hashes[-1], head=head)
    if not transaction.run(moving, *values, schema):
        return None
    _insert_events(transaction, change, hashes, with_counts=True)
    return hashes[-1]


def conversation_row_statement(change: AppendChange, last_hash: str, *, head: str) -> tuple[str, tuple[object, ...]]:
    """Return the statement that creates or updates a conversation's row, and its values.

    The statement changes nothing unless the row is as expected. Its last placeholder is the newest schema version that
    this process knows; the caller adds that value.
    """
    version, last_hash, title, at = conversation_row_values(change, last_hash)
    if change.expected:
        parameters = (change.conversation, change.expected, head)
        return _UPDATE_CONVERSATION + _UNCHANGED_CONDITION, (version, last_hash, title, at, *parameters, *parameters)
    name, begun = change.name or change.conversation, change.batch.records[0].at
    return _INSERT_CONVERSATION, (change.conversation, name, version, last_hash, title or "", begun, at)


# The most events of a change that the fast path writes.
_MAX_PLAIN_EVENTS = 8
EVENT_COLUMNS = f"conversation, hash, {RECORD_COLUMNS}"
COLUMN_TYPES = ("text", "text", "bigint", "text", "text", "text", "text", "bytea")
# Without the closing parenthesis, so that ``commit_queue`` can add a condition to it.
SCHEMA_VERSION_QUERY = "(SELECT max(version) FROM schema_version"
_INSERT_CONVERSATION = (
    "INSERT INTO conversations (id, name, version, head, title, created, updated) SELECT ?, ?, ?, ?, ?, ?, ?"
    f" WHERE {SCHEMA_VERSION_QUERY}) <= ? ON CONFLICT DO NOTHING"
)
_UPDATE_CONVERSATION = (
    "UPDATE conversations SET version = ?, head = ?, title = coalesce(?, title), updated = ? WHERE id = ?"
)
_UNCHANGED_CONDITION = (
    " AND version = ? AND head = ? AND erased IS NULL"
    " AND EXISTS (SELECT 1 FROM events WHERE conversation = ? AND seq = ? AND hash = ?)"
    f" AND {SCHEMA_VERSION_QUERY}) <= ?"
)


def conversation_row_values(change: AppendChange, head: str) -> tuple[int, str, str | None, str]:
    """Return version, hash of the last event, title and time for a conversation's row after a change."""
    title = None if change.title is None else clean_title(change.title)
    return change.version_after, head, title, change.batch.records[-1].at


def _insert_events(transaction: Transaction, change: AppendChange, hashes: Sequence[str], *, with_counts: bool) -> None:
    """Insert the events of a change and the contents that they bring."""
    _store_contents(transaction, change)
    rows = build_event_rows(change, hashes, with_counts=with_counts)
    if len(rows) == 1:
        transaction.run(INSERT_EVENT, *rows[0])
    else:
        transaction.run_each(INSERT_EVENT, rows)


INSERT_EVENT = f"INSERT INTO events ({EVENT_COLUMNS}) VALUES {placeholders(COLUMN_TYPES)}"


def build_event_rows(change: AppendChange, hashes: Sequence[str], *, with_counts: bool) -> list[Row]:
    """Return a row for each event of a change, in the order of ``EVENT_COLUMNS``.

    Token counts are included only if ``with_counts``.
    """
    numbered = enumerate(zip(change.batch.records, hashes, strict=True), start=change.expected + 1)
    return [
        (change.conversation, name, *record_to_row(seq, record, with_counts=with_counts))
        for seq, (record, name) in numbered
    ]


def hash_events(previous: str, change: AppendChange) -> list[str]:
    """Return the hash of each event of a change; each hash covers the one before it."""
    return chain_hashes(previous, change.conversation, after=change.expected, records=change.batch.records)


def _store_contents(transaction: Transaction, change: AppendChange) -> None:
    """Record that the conversation uses the contents it brings, and store those that are new to the store."""
    named = {name for record in change.batch.records for name in record.contents}
    if not named:
        return
    brought = sorted(change.batch.contents)
    _check_contents_known(transaction, change, missing=named.difference(brought))
    if not brought:
        return
    # The order matters: these rows come before the contents are looked up. From here on, another transaction that
    # erases contents waits until this one ends.
    transaction.run_each(
        "INSERT INTO holdings (conversation, hash) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(change.conversation, name) for name in brought],
    )
    stored = {
        name
        for names in split_into_chunks(brought)
        for (name,) in transaction.query(f"SELECT hash FROM contents WHERE hash IN {placeholders(names)}", *names)
    }
    # Only new contents are hashed. Contents that are stored already were checked when they came.
    new = {name: change.batch.contents[name] for name in brought if name not in stored}
    check_contents(new)
    if new:
        transaction.run_each(
            "INSERT INTO contents (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING", list(new.items())
        )


def _check_contents_known(transaction: Transaction, change: AppendChange, *, missing: set[str]) -> None:
    """Raise an error if an event names a content that is neither brought, nor stored, nor erased."""
    for names in split_into_chunks(sorted(missing)):
        known = transaction.query(
            f"SELECT hash FROM holdings WHERE conversation = ? AND hash IN {placeholders(names)}",
            change.conversation,
            *names,
        )
        missing = missing.difference(name for (name,) in known)
    if not missing:
        return
    erasures = transaction.query(
        f"SELECT {RECORD_COLUMNS} FROM events WHERE conversation = ? AND kind = ?",
        *(change.conversation, EventKind.ERASURE.value),
    )
    logged = [record_from_row(change.conversation, row) for row in erasures]
    check_hashes_known(missing, erased_hashes([*logged, *change.batch.records]))


def _remove_use_of_contents(transaction: Transaction, conversation_key: str, hashes: tuple[str, ...]) -> None:
    """Remove the conversation's use of contents, and delete those that no conversation uses any more."""
    for names in split_into_chunks(hashes):
        transaction.run(
            f"DELETE FROM holdings WHERE conversation = ? AND hash IN {placeholders(names)}", conversation_key, *names
        )
        transaction.run(
            f"DELETE FROM contents WHERE hash IN {placeholders(names)}"
            " AND NOT EXISTS (SELECT 1 FROM holdings WHERE holdings.hash = contents.hash)",
            *names,
        )


def _remove_token_counts(transaction: Transaction, conversation_key: str) -> None:
    """Remove all token counts of a conversation, because it is unknown which of them came from erased contents."""
    transaction.run("UPDATE events SET counts = NULL WHERE conversation = ? AND counts IS NOT NULL", conversation_key)
