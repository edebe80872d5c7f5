"""Stores that several owners or processes share.

``OwnedStore`` shows the conversations of one owner only. The owner is part of a conversation's name: ``~ana/garden``
is the conversation that Ana calls ``garden``. So ownership needs no table of its own, copies and archives keep it, and
the operator of the store sees it in every list.

``open_conversation_locks`` returns locks by which only one process at a time answers in a conversation. ``SqlSharedTable``
has short texts by name that one process stores for another for a limited time.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.ports import Checkpoint, ConversationListItem, Store, StoreProblem, StoreStats
from lamella.stores.sql_schema import Database, Result, Transaction, placeholders, split_into_chunks

if TYPE_CHECKING:
    import psycopg


class OwnedStore:
    """The conversations of one owner in a store; a key of another owner is treated as nonexistent."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self.shared_table = store.shared_table
        self._name_prefix = f"~{owner}/"
        # Keys that were found to be this owner's, so that each is looked up only once.
        self._own_keys: set[str] = set()

    def append(
        self,
        conversation_key: str,
        batch: EventBatch,
        *,
        expected: int,
        title: str | None = None,
        name: str | None = None,
    ) -> int:
        """Append to a conversation of this owner, or create one."""
        self._check_own_key(conversation_key)
        return self._store.append(
            conversation_key, batch, expected=expected, title=title, name=self._name_prefix + (name or conversation_key)
        )

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        return self._store.load(conversation_key, after=after) if self._is_own_key(conversation_key) else ()

    def save_checkpoint(
        self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
    ) -> bool:
        self._check_own_key(conversation_key)
        return self._store.save_checkpoint(conversation_key, checkpoint, replaced_versions=replaced_versions)

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        return (
            self._store.read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)
            if self._is_own_key(conversation_key)
            else ()
        )

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        return self._store.read_contents(conversation_key, hashes) if self._is_own_key(conversation_key) else {}

    def list_conversations(self) -> Sequence[ConversationListItem]:
        """Return the conversations of this owner, including tombstones, by the names that the owner uses."""
        return [own for one in self._store.list_conversations() if (own := self.to_owner_view(one)) is not None]

    def find_conversation(self, name: str) -> ConversationListItem | None:
        named = self._store.find_conversation(self._name_prefix + name)
        # The store falls back to keys, so the name is compared: another conversation may have it as its key.
        if named is not None and named.name == self._name_prefix + name:
            return self.to_owner_view(named)
        keyed = self._store.find_conversation(name)
        return self.to_owner_view(keyed) if keyed is not None and keyed.conversation == name else None

    def erase_conversation(self, conversation_key: str, *, at: str) -> None:
        self._check_own_key(conversation_key)
        self._store.erase_conversation(conversation_key, at=at)

    def erase_contents(self, conversation_key: str, hashes: Sequence[str], batch: EventBatch, *, expected: int) -> int:
        self._check_own_key(conversation_key)
        return self._store.erase_contents(conversation_key, hashes, batch, expected=expected)

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        """Yield the problems of one conversation of this owner, or of all."""
        keys = [one.conversation for one in self.list_conversations() if one.erased_at is None]
        for key in keys if conversation_key is None else [one for one in keys if one == conversation_key]:
            yield from self._store.verify(key)

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        return self._store.verify_erased(conversation_key) if self._is_own_key(conversation_key) else iter(())

    def rebuild_list_row(self, conversation_key: str, get_title: Callable[[Sequence[EventRecord]], str]) -> None:
        self._check_own_key(conversation_key)
        self._store.rebuild_list_row(conversation_key, get_title)

    def stats(self) -> StoreStats:
        """Return the totals of this owner; contents are reported as 0, because owners may share them."""
        listed = self.list_conversations()
        alive = [one for one in listed if one.erased_at is None]
        return StoreStats(
            schema=self._store.stats().schema,
            conversations=len(alive),
            erased=len(listed) - len(alive),
            events=sum(one.event_count for one in alive),
            contents=0,
            content_bytes=0,
        )

    def close(self) -> None:
        """Do nothing: the store is shared, and the code that opened it closes it."""

    def to_owner_view(self, summary: ConversationListItem) -> ConversationListItem | None:
        """Return a conversation with the name that its owner uses, or None if it belongs to another owner."""
        if not summary.name.startswith(self._name_prefix):
            return None
        self._own_keys.add(summary.conversation)
        return replace(summary, name=summary.name.removeprefix(self._name_prefix))

    def _is_own_key(self, conversation_key: str) -> bool:
        """Return whether a key belongs to this owner, or to no conversation yet."""
        if conversation_key in self._own_keys:
            return True
        found = self._store.find_conversation(conversation_key)
        if found is None or found.conversation != conversation_key:
            # A key that no conversation has is allowed, so that one can be created. It is not remembered,
            # because another owner may create it first.
            return not any(one.conversation == conversation_key for one in self._conversations_of_others(found))
        return self.to_owner_view(found) is not None

    def _conversations_of_others(self, found: ConversationListItem | None) -> Sequence[ConversationListItem]:
        """Return the conversations of other owners if ``found`` has the wanted key as its name; usually nothing.

        The lookup by name then hides a conversation with that key, so the whole list is needed.
        """
        listed = () if found is None else self._store.list_conversations()
        return [one for one in listed if not one.name.startswith(self._name_prefix)]

    def _check_own_key(self, conversation_key: str) -> None:
        """Raise an error if the key belongs to another owner; the message does not reveal that it exists."""
        if not self._is_own_key(conversation_key):
            raise InvalidOperationError(
                f"There is no conversation {conversation_key!r}.",
                hint=lambda hints: f"{hints.list_chats_hint()} lists the conversations.",
            )


# Reservations. A store that one process has to itself needs none. On a PostgreSQL server each process keeps one
# connection, with an advisory lock per conversation it answers in; if it dies, its connection closes and its locks go.

# The first of the two numbers of an advisory lock. It separates Lamella's locks from those of other programs.
_LOCK_NAMESPACE = 713_604_491


class NoReservations:
    """Reservations for a store that only one process uses: every request is granted."""

    needs_thread = False

    def acquire(self, conversation_key: str) -> bool:
        return True

    def release(self, conversation_key: str) -> None:
        """Do nothing: there is no lock."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


class PostgresReservations:
    """Advisory locks of a PostgreSQL server; a lost connection is opened again when it is next needed."""

    needs_thread = True

    def __init__(self, url: str, *, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._lock = Lock()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None

    def acquire(self, conversation_key: str) -> bool:
        """Try to lock a conversation for this process until ``release``, and return whether that worked."""
        return self._call_lock_function("SELECT pg_try_advisory_lock(%s, %s)", conversation_key)

    def release(self, conversation_key: str) -> None:
        self._call_lock_function("SELECT pg_advisory_unlock(%s, %s)", conversation_key)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _call_lock_function(self, sql: str, conversation_key: str) -> bool:
        import psycopg

        from lamella.stores.postgresql import to_lamella_error

        # An advisory lock has two 32-bit numbers, so the second one is a hash of schema and key.
        digest = sha256(f"{self._schema}\0{conversation_key}".encode()).digest()
        number = int.from_bytes(digest[:4], "big", signed=True)
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(self._url, autocommit=True)
                row = self._connection.execute(sql.encode(), (_LOCK_NAMESPACE, number)).fetchone()
            except psycopg.Error as error:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                raise to_lamella_error(error, "The server of the store") from error
        return bool(row and row[0])


def open_conversation_locks(url: str) -> NoReservations | PostgresReservations:
    """Return the reservations for the processes that share the store at a URL."""
    if not url.startswith("postgres"):
        return NoReservations()
    from lamella.stores.postgresql import parse_url

    conninfo, schema = parse_url(url)
    return PostgresReservations(conninfo, schema=schema)


# Shared tables.


class SqlSharedTable:
    """A shared table in the database of the store, as durable as conversations are."""

    def __init__(self, get_database: Callable[[], Database]) -> None:
        self._get_database = get_database

    def set(self, name: str, text: str, *, at: datetime, expires_at: datetime, conversation_key: str = "") -> None:
        """Store a text until ``expires_at``, instead of an earlier one of that name; expired entries are deleted.

        If ``conversation_key`` is given, an erasure in that conversation deletes the entry.
        """

        def put(transaction: Transaction) -> None:
            transaction.run("DELETE FROM shelf WHERE ends <= ?", _to_sortable_time(at))
            transaction.run(
                "INSERT INTO shelf (name, conversation, text, ends) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
                " SET conversation = excluded.conversation, text = excluded.text, ends = excluded.ends",
                *(name, conversation_key, text, _to_sortable_time(expires_at)),
            )

        self._get_database().run_write_transaction(put)

    def get_many(self, *names: str, at: datetime) -> Mapping[str, str]:
        """Return the texts of those names that exist and have not expired."""
        found: dict[str, str] = {}
        for some in split_into_chunks(names):
            sql = f"SELECT name, text FROM shelf WHERE name IN {placeholders(some)} AND ends > ?"
            found |= dict(self._get_database().query(sql, *some, _to_sortable_time(at)))
        return found

    def remove(self, name: str) -> None:
        self._get_database().run_write_transaction(
            lambda transaction: transaction.run("DELETE FROM shelf WHERE name = ?", name)
        )


class InMemorySharedTable:
    """A shared table in this process's memory, safe for threads."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[str, str, datetime]] = {}
        self._lock = Lock()

    def set(self, name: str, text: str, *, at: datetime, expires_at: datetime, conversation_key: str = "") -> None:
        """Store a text until ``expires_at``, instead of an earlier one of that name; expired entries are deleted."""
        with self._lock:
            self._entries = {one: line for one, line in self._entries.items() if line[2] > at}
            self._entries[name] = (conversation_key, text, expires_at)

    def get_many(self, *names: str, at: datetime) -> Mapping[str, str]:
        """Return the texts of those names that exist and have not expired."""
        with self._lock:
            return {
                name: self._entries[name][1] for name in names if name in self._entries and self._entries[name][2] > at
            }

    def remove(self, name: str) -> None:
        with self._lock:
            self._entries.pop(name, None)

    def remove_entries_about_conversation(self, conversation_key: str) -> None:
        """Delete all entries about a conversation in which something is erased."""
        with self._lock:
            self._entries = {one: line for one, line in self._entries.items() if line[0] != conversation_key}


def remove_shared_entries_of(transaction: Transaction, conversation_key: str) -> None:
    """Delete all entries about a conversation in which something is erased."""
    transaction.run("DELETE FROM shelf WHERE conversation = ?", conversation_key)


def _to_sortable_time(at: datetime) -> str:
    """Return a time as text that sorts chronologically, since the databases compare it as text."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
