"""The store: conversations in a SQL database, written once for every dialect."""

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from lamella.adapters.stores.appending import (
    Change,
    append_behind,
    append_events,
    check_head,
    has_landed,
    hash_events,
    lock_state,
)
from lamella.adapters.stores.chain import FIRST, check_name, check_named, check_written, refuse_erased
from lamella.adapters.stores.checkpoints import CheckpointWrite, find_checkpoints, write_checkpoint
from lamella.adapters.stores.commits.batches import BatchedAppend
from lamella.adapters.stores.commits.joined import AppendQueue, PlacedChange
from lamella.adapters.stores.database import Database, Result, Transaction, marks, split
from lamella.adapters.stores.erasing import bury
from lamella.adapters.stores.repairing import derive_row
from lamella.adapters.stores.rows import (
    LISTED_COLUMNS,
    RECORD_COLUMNS,
    is_content,
    is_key,
    is_text,
    read_listing,
    read_record,
    read_version,
    tell_damage,
)
from lamella.adapters.stores.schema import check_version, load_migrations, migrate
from lamella.adapters.stores.sharing.shelf import SqlShelf
from lamella.adapters.stores.verifying import verify_conversation, verify_strays, verify_tombstone
from lamella.core.log.records import Record, Written
from lamella.errors import CallError, ConflictError, StoreDamagedError, StoreUnavailableError
from lamella.holdings import ChatListing, Checkpoint, Damage, StoreStats


class SqlStore:
    """Conversations in a SQL database; ``name`` is how errors call it."""

    def __init__(self, database: Database, *, name: str, migrations: Sequence[str] | None = None) -> None:
        self._database = database
        self._name = name
        self._process = os.getpid()
        # Heads of appends that were written and whose commit may have been lost: repeated, they are recognised.
        self._unsettled: dict[str, str] = {}
        # How many events the conversations have that were written or read here last, and the hash of the last of them.
        self._written: OrderedDict[str, tuple[int, str]] = OrderedDict()
        scripts = load_migrations(database.dialect) if migrations is None else migrations
        self._schema = migrate(database, scripts, name=name)
        self._joined = AppendQueue(database, schema=self._schema)
        self.shelf = SqlShelf(self._opened)

    def append(
        self, conversation: str, written: Written, *, expected: int, title: str | None = None, name: str | None = None
    ) -> int:
        """Append after exactly ``expected`` events; repeated after a lost answer, it is not written twice."""
        if name is not None:
            check_name(name)
        change = Change(conversation=conversation, written=written, expected=expected, title=title, name=name)
        return self._change(change)

    def erase_contents(self, conversation: str, hashes: Sequence[str], written: Written, *, expected: int) -> int:
        """Remove contents, with an erasure event that names them all."""
        check_named(hashes, written)
        return self.append(conversation, written, expected=expected)

    def _change(self, change: Change) -> int:
        check_written(change.conversation, change.written)
        database = self._opened()
        plain, version = change.is_plain, change.version
        try:
            if not (plain and self._append_at_once(change)):
                version = database.write(lambda transaction: self._apply(transaction, change))
            if not plain and change.erases:
                database.purge()
        except StoreUnavailableError:
            # Whether it was committed is not known here: repeated, it finds out.
            raise
        except Exception:
            self._unsettled.pop(change.conversation, None)
            raise
        head = self._unsettled.pop(change.conversation, None)
        if head is not None:
            self._remember(change.conversation, version, head)
        return version

    def _remember(self, conversation: str, version: int, head: str) -> None:
        self._written[conversation] = (version, head)
        self._written.move_to_end(conversation)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _append_at_once(self, change: Change) -> bool:
        """Whether it could be done so. If its answer is lost, or it was done before, the step by step way finds out."""
        version, written = self._written.get(change.conversation, (0, FIRST))
        if version != change.expected:
            return False
        hashes = hash_events(written, change)
        self._unsettled[change.conversation] = hashes[-1]
        placed = PlacedChange(change=change, head=written, hashes=hashes)
        if self._database.joins:
            return self._joined.append(placed)
        return self._database.write(BatchedAppend(placed, self._schema))

    def _apply(self, transaction: Transaction, change: Change) -> int:
        version, written = self._written.get(change.conversation, (0, FIRST))
        if version == change.expected and not change.erases:
            head = append_behind(transaction, change, head=written, schema=self._schema)
            if head is not None:
                self._unsettled[change.conversation] = head
                return change.version
        state = lock_state(self._database, transaction, change)
        check_version(state.schema, self._schema, name=self._name)
        refuse_erased(change.name or change.conversation, state.erased)
        if state.version == change.expected:
            check_head(transaction, change, state)
            head = append_events(self._database, transaction, change=change, state=state)
            self._unsettled[change.conversation] = head
        elif self._unsettled.get(change.conversation) != state.head or not has_landed(transaction, change, state):
            name = change.name or change.conversation
            raise ConflictError(conversation=name, expected=change.expected, found=state.version)
        return change.version

    def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
        """The events after a number of events; an error if some of them are missing."""
        check_name(conversation)
        records, version, head = _load(self._opened(), conversation, after=after)
        if head:
            # Whoever opens a conversation mostly goes on with it: behind this event, if it is still the last then.
            self._remember(conversation, version, head)
        return records

    def keep_checkpoint(self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()) -> bool:
        """Keep what all events up to now come to; nothing happens if others were written meanwhile."""
        check_name(conversation)
        database = self._opened()
        kept = CheckpointWrite(conversation=conversation, checkpoint=checkpoint, instead_of=tuple(instead_of))
        return database.write(lambda transaction: write_checkpoint(database, transaction, kept))

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        """What was kept, oldest first, where the events it was made of are still there."""
        check_name(conversation)
        return find_checkpoints(self._opened(), conversation, read, apart=apart)

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """The contents this conversation holds, each checked against its hash."""
        check_name(conversation)
        return _read_contents(self._opened(), conversation, list(dict.fromkeys(hashes)))

    def list_conversations(self) -> Sequence[ChatListing]:
        """Every conversation, the last changed first."""
        rows = self._opened().query(f"SELECT {LISTED_COLUMNS} FROM conversations ORDER BY updated DESC, id")
        return [read_listing(row) for row in rows if is_key(row[0])]

    def find_conversation(self, name: str) -> ChatListing | None:
        """The conversation of that name, else of that key."""
        check_name(name)
        # Each condition whole: else SQLite does not see that the index of names has all that is asked for, and looks at
        # every conversation there is.
        rows = self._opened().query(
            f"SELECT {LISTED_COLUMNS} FROM conversations WHERE name = ? AND erased IS NULL OR id = ? AND erased IS NULL"
            " ORDER BY CASE WHEN name = ? THEN 0 ELSE 1 END",
            *(name, name, name),
        )
        return read_listing(rows[0]) if rows else None

    def erase_conversation(self, conversation: str, *, at: str) -> None:
        """Leave a tombstone. Repeated, it removes what an interrupted erasure may have left in the files."""
        check_name(conversation)
        database = self._opened()
        database.write(lambda transaction: bury(database, transaction, conversation, at=at))
        self._unsettled.pop(conversation, None)
        self._written.pop(conversation, None)
        database.purge()

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """Every hash derived again, a conversation at a time; for all, the database's own checks come first."""
        database = self._opened()
        try:
            if conversation is None:
                yield from database.inspect()
                names = database.read(lambda transaction: [key for (key,) in transaction.rows(_KEYS) if is_key(key)])
                yield from database.read(verify_strays)
            else:
                names = [conversation]
            for name in names:
                yield from database.read(partial(verify_conversation, conversation=name))
        except StoreDamagedError as error:
            yield Damage(conversation=None, place="database", what=error.message)

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """What is left of an erased conversation: in the tables, or where deleted bytes may linger."""
        database = self._opened()
        yield from database.read(lambda transaction: verify_tombstone(transaction, conversation))
        yield from database.find_lingering()

    def repair(self, conversation: str, tell_title: Callable[[Sequence[Record]], str]) -> None:
        """Derive a conversation's row again from its events, if these are whole."""
        check_name(conversation)
        database = self._opened()
        database.write(lambda transaction: derive_row(database, transaction, conversation, tell_title=tell_title))

    def stats(self) -> StoreStats:
        # It weighs every content, which may take long.
        rows = self._opened().read(lambda transaction: transaction.rows(_STATS))
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

    def _opened(self) -> Database:
        if os.getpid() != self._process:
            raise CallError(
                f"The store {self._name} was opened in another process.", hint="Open it in each process that uses it."
            )
        return self._database


# Of so many conversations it is known where they end; others are looked at first.
_REMEMBERED = 4_096
_KEYS = "SELECT id FROM conversations ORDER BY id"
_STATS = (
    "SELECT (SELECT max(version) FROM schema_version), (SELECT count(*) FROM conversations WHERE erased IS NULL),"
    " (SELECT count(*) FROM conversations WHERE erased IS NOT NULL), (SELECT count(*) FROM events),"
    " (SELECT count(*) FROM contents), (SELECT coalesce(sum(length(data)), 0) FROM contents)"
)


def _load(database: Database, conversation: str, *, after: int) -> tuple[list[Record], int, str]:
    """The events after a number of them, how many there are, and the hash that the conversation says the last has."""
    found = database.query(
        f"SELECT version, erased, conversations.head, {RECORD_COLUMNS} FROM conversations LEFT JOIN events"
        " ON conversation = id AND seq > ? WHERE id = ? ORDER BY seq",
        *(after, conversation),
    )
    said, erased, head = found[0][:3] if found else (0, None, "")
    refuse_erased(conversation, erased)
    version = read_version(conversation, said)
    rows = [row[3:] for row in found if row[3] is not None]
    # No two of them have one number: as many as there should be, up to the last, are all of them.
    if len(rows) != max(0, version - after) or (rows and rows[-1][0] != version):
        raise StoreDamagedError(
            f"The conversation {conversation} has {version:,} events; after {after:,} of them {len(rows):,} are there.",
            hint=tell_damage,
        )
    return [read_record(conversation, row) for row in rows], version, head if is_text(head) else ""


def _read_contents(database: Database, conversation: str, names: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for some in split(names):
        rows = database.query(
            "SELECT holdings.hash, data FROM holdings LEFT JOIN contents ON contents.hash = holdings.hash"
            f" WHERE conversation = ? AND holdings.hash IN {marks(some)}",
            *(conversation, *some),
        )
        for name, data in rows:
            if not is_content(name, data):
                what = "is missing" if data is None else "is not what was written"
                raise StoreDamagedError(f"The content {name} of {conversation} {what}.", hint=tell_damage)
            found[name] = data
    return found
