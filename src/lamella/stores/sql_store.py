"""A store in a SQL database, written once for all dialects.

``SqlStore`` implements the ``Store`` port on any ``Database``. ``delete_conversation`` erases a whole conversation,
which is the only exception to the append-only log; a tombstone stays.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.errors import ConflictError, InvalidOperationError, StoreCorruptedError, StoreUnavailableError
from lamella.ports import Checkpoint, ConversationListItem, StoreProblem, StoreStats
from lamella.stores.append import (
    AppendChange,
    CheckpointWrite,
    append_after_known_event,
    append_events,
    check_last_event_hash,
    hash_events,
    is_already_appended,
    load_checkpoints,
    lock_conversation_for_append,
    remove_checkpoints,
    write_checkpoint,
)
from lamella.stores.commit_queue import AppendQueue, BatchedAppend, PositionedChange
from lamella.stores.hash_chain import EMPTY_HASH, check_batch, check_erasure_listed, check_name, check_not_erased
from lamella.stores.sharing import SqlSharedTable, remove_shared_entries_of
from lamella.stores.sql_schema import (
    RECORD_COLUMNS,
    SUMMARY_COLUMNS,
    Database,
    Result,
    Transaction,
    check_row_version,
    check_version,
    damage_hint,
    is_data_of_hash,
    is_valid_key,
    is_valid_utf8_text,
    load_migrations,
    migrate,
    placeholders,
    record_from_row,
    split_into_chunks,
    summary_from_row,
)
from lamella.stores.verification import rebuild_row, verify_conversation, verify_orphaned_rows, verify_tombstone


def delete_conversation(database: Database, transaction: Transaction, conversation_key: str, *, at: str) -> None:
    """Remove a conversation's events and the contents that no other conversation uses; leave a tombstone.

    A conversation that does not exist gets a tombstone, too, so that no copy of it is imported later. If it was erased
    before, the tombstone keeps the time of the first erasure.
    """
    transaction.run(
        "INSERT INTO conversations (id, version, head, title, created, updated) VALUES (?, 0, ?, '', ?, ?)"
        " ON CONFLICT DO NOTHING",
        *(conversation_key, EMPTY_HASH, at, at),
    )
    # The same lock order as in an append, first the conversation, then the contents. Another order could deadlock.
    transaction.query("SELECT id FROM conversations WHERE id = ?" + database.row_lock_clause, conversation_key)
    database.prepare_erase(transaction)
    transaction.run(
        "DELETE FROM contents WHERE hash IN (SELECT hash FROM holdings WHERE conversation = ?) AND NOT EXISTS"
        " (SELECT 1 FROM holdings WHERE holdings.hash = contents.hash AND conversation <> ?)",
        *(conversation_key, conversation_key),
    )
    transaction.run("DELETE FROM holdings WHERE conversation = ?", conversation_key)
    transaction.run("DELETE FROM events WHERE conversation = ?", conversation_key)
    remove_checkpoints(transaction, conversation_key)
    remove_shared_entries_of(transaction, conversation_key)
    transaction.run(
        "UPDATE conversations SET version = 0, head = ?, title = '', updated = ?, erased = ?"
        " WHERE id = ? AND erased IS NULL",
        *(EMPTY_HASH, at, at, conversation_key),
    )


# The store.


class SqlStore:
    """A store in a SQL database; ``name`` is the name of the store in error messages."""

    def __init__(self, database: Database, *, name: str, migrations: Sequence[str] | None = None) -> None:
        self._database = database
        self._name = name
        self._process_id = os.getpid()
        # The last hash of appends whose commit may have succeeded although no answer came. If the caller repeats such
        # an append, it is recognised and not written twice.
        self._unconfirmed_heads: dict[str, str] = {}
        # For each conversation that this process wrote or read lately: its number of events and the hash of the last.
        self._known_heads: OrderedDict[str, tuple[int, str]] = OrderedDict()
        scripts = load_migrations(database.dialect) if migrations is None else migrations
        self._schema = migrate(database, scripts, database_name=name)
        self._append_queue = AppendQueue(database, schema=self._schema)
        self.shared_table = SqlSharedTable(self._get_database)

    def append(
        self,
        conversation_key: str,
        batch: EventBatch,
        *,
        expected: int,
        title: str | None = None,
        name: str | None = None,
    ) -> int:
        """Append events after exactly ``expected`` events and return the new number of events.

        A caller that got no answer may repeat the call: the events are not written twice.
        """
        if name is not None:
            check_name(name)
        change = AppendChange(conversation=conversation_key, batch=batch, expected=expected, title=title, name=name)
        return self._write_change(change)

    def erase_contents(self, conversation_key: str, hashes: Sequence[str], batch: EventBatch, *, expected: int) -> int:
        """Remove contents, with an erasure event that lists them all."""
        check_erasure_listed(hashes, batch)
        return self.append(conversation_key, batch, expected=expected)

    def _write_change(self, change: AppendChange) -> int:
        """Write a change, by the fast path if possible, and return the new number of events."""
        check_batch(change.conversation, change.batch)
        database = self._get_database()
        plain, version = change.fits_fast_path, change.version_after
        try:
            if not (plain and self._try_fast_append(change)):
                version = database.run_write_transaction(
                    lambda transaction: self._append_in_transaction(transaction, change)
                )
            if not plain and change.erased_hashes:
                database.purge_erased_data()
        except StoreUnavailableError:
            # It is unknown whether the change was committed. The remembered hash stays, so that a repetition finds out.
            raise
        except Exception:
            self._unconfirmed_heads.pop(change.conversation, None)
            raise
        head = self._unconfirmed_heads.pop(change.conversation, None)
        if head is not None:
            self._remember_last_event(change.conversation, version, head)
        return version

    def _remember_last_event(self, conversation_key: str, version: int, head: str) -> None:
        """Remember the last event of a conversation, and forget the least recently used one beyond the limit."""
        self._known_heads[conversation_key] = (version, head)
        self._known_heads.move_to_end(conversation_key)
        if len(self._known_heads) > _MAX_CACHED_HEADS:
            self._known_heads.popitem(last=False)

    def _try_fast_append(self, change: AppendChange) -> bool:
        """Try to append without reading the row first, and return whether that worked.

        It needs the last event of the conversation to be known here. If the answer was lost, or the change was written
        before, the step-by-step way in ``_append_in_transaction`` finds out.
        """
        version, written = self._known_heads.get(change.conversation, (0, EMPTY_HASH))
        if version != change.expected:
            return False
        hashes = hash_events(written, change)
        self._unconfirmed_heads[change.conversation] = hashes[-1]
        placed = PositionedChange(change=change, head=written, hashes=hashes)
        if self._database.has_multi_table_statements:
            return self._append_queue.append(placed)
        return self._database.run_write_transaction(BatchedAppend(placed, self._schema))

    def _append_in_transaction(self, transaction: Transaction, change: AppendChange) -> int:
        """Write a change in a transaction, step by step, and return the new number of events.

        Raises ``ConflictError`` if the conversation has another number of events, unless this same change is already
        written.
        """
        version, written = self._known_heads.get(change.conversation, (0, EMPTY_HASH))
        if version == change.expected and not change.erased_hashes:
            head = append_after_known_event(transaction, change, head=written, schema=self._schema)
            if head is not None:
                self._unconfirmed_heads[change.conversation] = head
                return change.version_after
        state = lock_conversation_for_append(self._database, transaction, change)
        check_version(state.schema, self._schema, name=self._name)
        check_not_erased(change.name or change.conversation, state.erased)
        if state.version == change.expected:
            check_last_event_hash(transaction, change, state)
            head = append_events(self._database, transaction, change=change, state=state)
            self._unconfirmed_heads[change.conversation] = head
        elif self._unconfirmed_heads.get(change.conversation) != state.head or not is_already_appended(
            transaction, change, state
        ):
            name = change.name or change.conversation
            raise ConflictError(conversation_key=name, expected=change.expected, found=state.version)
        return change.version_after

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        """Return the events after a number of events; raises ``StoreCorruptedError`` if some are missing."""
        check_name(conversation_key)
        records, version, head = _load_events(self._get_database(), conversation_key, after=after)
        if head:
            # A conversation that is loaded is usually continued, so the next append can use the fast path.
            self._remember_last_event(conversation_key, version, head)
        return records

    def save_checkpoint(
        self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
    ) -> bool:
        """Save a checkpoint of all events so far; return False, without saving, if there are other events by now."""
        check_name(conversation_key)
        database = self._get_database()
        kept = CheckpointWrite(
            conversation=conversation_key, checkpoint=checkpoint, replaced_versions=tuple(replaced_versions)
        )
        return database.run_write_transaction(lambda transaction: write_checkpoint(database, transaction, kept))

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        """Return the result of ``decode`` for each checkpoint, oldest first, whose events are still the same."""
        check_name(conversation_key)
        return load_checkpoints(self._get_database(), conversation_key, decode, with_separate_data=with_separate_data)

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of this conversation by hash, each checked against its hash."""
        check_name(conversation_key)
        return _read_contents(self._get_database(), conversation_key, list(dict.fromkeys(hashes)))

    def list_conversations(self) -> Sequence[ConversationListItem]:
        """Return every conversation, the last changed first; erased ones as tombstones."""
        rows = self._get_database().query(f"SELECT {SUMMARY_COLUMNS} FROM conversations ORDER BY updated DESC, id")
        return [summary_from_row(row) for row in rows if is_valid_key(row[0])]

    def find_conversation(self, name: str) -> ConversationListItem | None:
        """Return the conversation of that name, or else of that key; None if there is none or it was erased."""
        check_name(name)
        # ``erased IS NULL`` is repeated on purpose. Factored out, SQLite does not see that the partial index on names
        # covers the condition, and scans all conversations.
        rows = self._get_database().query(
            f"SELECT {SUMMARY_COLUMNS} FROM conversations WHERE name = ? AND erased IS NULL OR id = ? AND erased IS NULL"
            " ORDER BY CASE WHEN name = ? THEN 0 ELSE 1 END",
            *(name, name, name),
        )
        return summary_from_row(rows[0]) if rows else None

    def erase_conversation(self, conversation_key: str, *, at: str) -> None:
        """Remove a conversation and leave a tombstone.

        Repeating it also removes bytes that an interrupted erasure may have left in the files.
        """
        check_name(conversation_key)
        database = self._get_database()
        database.run_write_transaction(
            lambda transaction: delete_conversation(database, transaction, conversation_key, at=at)
        )
        self._unconfirmed_heads.pop(conversation_key, None)
        self._known_heads.pop(conversation_key, None)
        database.purge_erased_data()

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        """Recompute every hash, one conversation at a time, and yield each problem.

        Without a key, all conversations are verified, and the database's own checks come first.
        """
        database = self._get_database()
        try:
            if conversation_key is None:
                yield from database.check_files()
                names = database.run_read_transaction(
                    lambda transaction: [key for (key,) in transaction.query(_SELECT_KEYS) if is_valid_key(key)]
                )
                yield from database.run_read_transaction(verify_orphaned_rows)
            else:
                names = [conversation_key]
            for name in names:
                yield from database.run_read_transaction(partial(verify_conversation, conversation_key=name))
        except StoreCorruptedError as error:
            yield StoreProblem(conversation=None, location="database", description=error.message)

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        """Yield what is left of an erased conversation, in the tables or where deleted bytes may remain."""
        database = self._get_database()
        yield from database.run_read_transaction(lambda transaction: verify_tombstone(transaction, conversation_key))
        yield from database.find_unpurged_data()

    def rebuild_list_row(self, conversation_key: str, get_title: Callable[[Sequence[EventRecord]], str]) -> None:
        """Rebuild a conversation's row from its events; raises ``StoreCorruptedError`` if these are damaged."""
        check_name(conversation_key)
        database = self._get_database()
        database.run_write_transaction(
            lambda transaction: rebuild_row(database, transaction, conversation_key, get_title=get_title)
        )

    def stats(self) -> StoreStats:
        # A read transaction, because it has the long timeout: adding up the sizes of all contents may be slow.
        rows = self._get_database().run_read_transaction(lambda transaction: transaction.query(_SELECT_STATS))
        schema, conversations, erased, events, contents, content_bytes = (int(number) for number in rows[0])
        return StoreStats(
            schema=schema,
            conversations=conversations,
            erased=erased,
            events=events,
            contents=contents,
            content_bytes=content_bytes,
        )

    def close(self) -> None:
        self._database.close()

    def _get_database(self) -> Database:
        """Return the database; raises an error after a fork, because connections cannot be shared by processes."""
        if os.getpid() != self._process_id:
            raise InvalidOperationError(
                f"The store {self._name} was opened in another process.", hint="Open it in each process that uses it."
            )
        return self._database


# The number of conversations whose last event is remembered. Appends to others read the row first.
_MAX_CACHED_HEADS = 4_096
_SELECT_KEYS = "SELECT id FROM conversations ORDER BY id"
_SELECT_STATS = (
    "SELECT (SELECT max(version) FROM schema_version), (SELECT count(*) FROM conversations WHERE erased IS NULL),"
    " (SELECT count(*) FROM conversations WHERE erased IS NOT NULL), (SELECT count(*) FROM events),"
    " (SELECT count(*) FROM contents), (SELECT coalesce(sum(length(data)), 0) FROM contents)"
)


def _load_events(database: Database, conversation_key: str, *, after: int) -> tuple[list[EventRecord], int, str]:
    """Return the events after a number of events, the number of all events, and the last hash in the row."""
    found = database.query(
        f"SELECT version, erased, conversations.head, {RECORD_COLUMNS} FROM conversations LEFT JOIN events"
        " ON conversation = id AND seq > ? WHERE id = ? ORDER BY seq",
        *(after, conversation_key),
    )
    stored, erased, head = found[0][:3] if found else (0, None, "")
    check_not_erased(conversation_key, erased)
    version = check_row_version(conversation_key, stored)
    rows = [row[3:] for row in found if row[3] is not None]
    # Numbers are unique within a conversation. So if the count and the last number are right, no event is missing.
    if len(rows) != max(0, version - after) or (rows and rows[-1][0] != version):
        raise StoreCorruptedError(
            f"The conversation {conversation_key} has {version:,} events; "
            f"after {after:,} of them {len(rows):,} are there.",
            hint=damage_hint,
        )
    return [record_from_row(conversation_key, row) for row in rows], version, head if is_valid_utf8_text(head) else ""


def _read_contents(database: Database, conversation_key: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return contents by hash; raises ``StoreCorruptedError`` if one is missing or damaged."""
    found: dict[str, bytes] = {}
    for some in split_into_chunks(names):
        rows = database.query(
            "SELECT holdings.hash, data FROM holdings LEFT JOIN contents ON contents.hash = holdings.hash"
            f" WHERE conversation = ? AND holdings.hash IN {placeholders(some)}",
            *(conversation_key, *some),
        )
        for name, data in rows:
            if not is_data_of_hash(name, data):
                what = "is missing" if data is None else "is not what was written"
                raise StoreCorruptedError(f"The content {name} of {conversation_key} {what}.", hint=damage_hint)
            found[name] = data
    return found
