"""Appending: events after exactly the ones that are expected, with the contents they bring."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from lamella.adapters.stores.chain import FIRST, check_contents, check_known, clean_title, find_erased, link_all
from lamella.adapters.stores.checkpoints import remove_checkpoints
from lamella.adapters.stores.database import Database, Row, Transaction, marks, split
from lamella.adapters.stores.rows import RECORD_COLUMNS, read_record, read_version, tell_repair, write_record
from lamella.adapters.stores.sharing.shelf import clear_shelf
from lamella.core.log.records import EventKind, Written
from lamella.errors import ConflictError, StoreDamagedError


class Change(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """What one caller wants to add to a conversation."""

    conversation: str
    written: Written
    expected: int
    title: str | None = None
    name: str | None = None

    @property
    def erases(self) -> tuple[str, ...]:
        """The contents that its erasure events remove; what it brings itself stays."""
        if self.is_plain:
            return ()
        erased = find_erased(self.written.records)
        return tuple(sorted(erased.difference(self.written.contents))) if erased else ()

    @property
    def is_plain(self) -> bool:
        """Whether it brings events and nothing else, and few of them: there are no contents to look after."""
        records = self.written.records
        return len(records) <= _FEW and not self.written.contents and not any(one.contents for one in records)

    @property
    def version(self) -> int:
        """The number of events once it is done."""
        return self.expected + len(self.written.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedState:
    """Where a conversation stands while it is locked for one writer."""

    version: int
    head: str
    erased: str | None
    schema: int


def lock_state(database: Database, transaction: Transaction, change: Change) -> LockedState:
    """Lock the conversation, made now if it is to be new, and read where it stands."""
    if change.expected == 0:
        at = change.written.records[0].at
        transaction.run(
            "INSERT INTO conversations (id, name, version, head, title, created, updated)"
            " VALUES (?, ?, 0, ?, '', ?, ?) ON CONFLICT DO NOTHING",
            *(change.conversation, change.name or change.conversation, FIRST, at, at),
        )
    found = transaction.rows(
        "SELECT version, head, erased, (SELECT max(version) FROM schema_version) FROM conversations WHERE id = ?"
        + database.lock_row,
        change.conversation,
    )
    if not found:
        raise _refuse(transaction, change)
    version, head, erased, schema = found[0]
    known = read_version(change.conversation, version)
    return LockedState(version=known, head=head, erased=erased, schema=schema)


def _refuse(transaction: Transaction, change: Change) -> ConflictError:
    """A conversation that should be there and is not, or one that is not made because another has its name."""
    name = change.name or change.conversation
    others = transaction.rows("SELECT version FROM conversations WHERE name = ? AND erased IS NULL", name)
    found = read_version(name, others[0][0]) if others and change.expected == 0 else 0
    return ConflictError(conversation=name, expected=change.expected, found=found)


def has_landed(transaction: Transaction, change: Change, state: LockedState) -> bool:
    """Whether the change is what the conversation ends in: an earlier try was committed and its answer lost."""
    if state.version != change.version:
        return False
    before = transaction.rows(
        "SELECT hash FROM events WHERE conversation = ? AND seq = ?", change.conversation, change.expected
    )
    previous = before[0][0] if before else FIRST
    return hash_events(previous, change)[-1] == state.head


def check_head(transaction: Transaction, change: Change, state: LockedState) -> None:
    """Refuse to go on after a false head: what is appended to it could never be verified again."""
    # Not in the statement that locks the row: having waited for it, that one would not see events of others.
    found = transaction.rows(
        "SELECT hash FROM events WHERE conversation = ? AND seq = ?", change.conversation, state.version
    )
    last = found[0][0] if found else FIRST
    if last != state.head:
        raise StoreDamagedError(
            f"The conversation {change.conversation} says that its last event has the hash {state.head}.",
            hint=tell_repair,
        )


def append_events(database: Database, transaction: Transaction, *, change: Change, state: LockedState) -> str:
    """Write the change, and give the new head."""
    erases = change.erases
    if erases:
        database.begin_erasing(transaction)
        _let_go(transaction, change.conversation, erases)
        _forget_counts(transaction, change.conversation)
        remove_checkpoints(transaction, change.conversation)
        clear_shelf(transaction, change.conversation)
    hashes = hash_events(state.head, change)
    _insert(transaction, change, hashes, counted=not erases)
    transaction.run(_MOVE, *tell_end(change, hashes[-1]), change.conversation)
    return hashes[-1]


def append_behind(transaction: Transaction, change: Change, *, head: str, schema: int) -> str | None:
    """Write a change that erases nothing behind the event that this process wrote last, and give the new head.

    That may be none: then the conversation begins. All that is otherwise looked at first are conditions of one
    statement here: none if one of them does not hold.
    """
    hashes = hash_events(head, change)
    moving, values = move_row(change, hashes[-1], head=head)
    if not transaction.run(moving, *values, schema):
        return None
    _insert(transaction, change, hashes, counted=True)
    return hashes[-1]


def move_row(change: Change, last: str, *, head: str) -> tuple[str, tuple[object, ...]]:
    """The statement that makes or changes a conversation's row, if that is as it was expected, and its values.

    The last value, which is not among them, is the number of the newest schema that is known here.
    """
    version, last, title, at = tell_end(change, last)
    if change.expected:
        place = (change.conversation, change.expected, head)
        return _MOVE + _AS_IT_WAS, (version, last, title, at, *place, *place)
    name, begun = change.name or change.conversation, change.written.records[0].at
    return _BEGIN, (change.conversation, name, version, last, title or "", begun, at)


# So many events of one change are written at once.
_FEW = 8
EVENT_COLUMNS = f"conversation, hash, {RECORD_COLUMNS}"
COLUMN_TYPES = ("text", "text", "bigint", "text", "text", "text", "text", "bytea")
KNOWN_SCHEMA = "(SELECT max(version) FROM schema_version"
_BEGIN = (
    "INSERT INTO conversations (id, name, version, head, title, created, updated) SELECT ?, ?, ?, ?, ?, ?, ?"
    f" WHERE {KNOWN_SCHEMA}) <= ? ON CONFLICT DO NOTHING"
)
_MOVE = "UPDATE conversations SET version = ?, head = ?, title = coalesce(?, title), updated = ? WHERE id = ?"
_AS_IT_WAS = (
    " AND version = ? AND head = ? AND erased IS NULL"
    " AND EXISTS (SELECT 1 FROM events WHERE conversation = ? AND seq = ? AND hash = ?)"
    f" AND {KNOWN_SCHEMA}) <= ?"
)


def tell_end(change: Change, head: str) -> tuple[int, str, str | None, str]:
    """What a conversation's row says of its end once a change is written."""
    title = None if change.title is None else clean_title(change.title)
    return change.version, head, title, change.written.records[-1].at


def _insert(transaction: Transaction, change: Change, hashes: Sequence[str], *, counted: bool) -> None:
    """The events of a change, with the contents that they bring."""
    _hold(transaction, change)
    rows = list_rows(change, hashes, counted=counted)
    if len(rows) == 1:
        transaction.run(INSERT, *rows[0])
    else:
        transaction.run_each(INSERT, rows)


INSERT = f"INSERT INTO events ({EVENT_COLUMNS}) VALUES {marks(COLUMN_TYPES)}"


def list_rows(change: Change, hashes: Sequence[str], *, counted: bool) -> list[Row]:
    """The rows of the events of a change, each of the columns that events have."""
    numbered = enumerate(zip(change.written.records, hashes, strict=True), start=change.expected + 1)
    return [
        (change.conversation, name, *write_record(seq, record, counted=counted)) for seq, (record, name) in numbered
    ]


def hash_events(previous: str, change: Change) -> list[str]:
    """The hashes of the events of a change, each over the one before it."""
    return link_all(previous, change.conversation, after=change.expected, records=change.written.records)


def _hold(transaction: Transaction, change: Change) -> None:
    """Hold the contents that are brought, and store those that nobody holds yet."""
    named = {name for record in change.written.records for name in record.contents}
    if not named:
        return
    brought = sorted(change.written.contents)
    _check_named(transaction, change, missing=named.difference(brought))
    if not brought:
        return
    # Holding comes first: from here on nobody erases contents until this transaction is over.
    transaction.run_each(
        "INSERT INTO holdings (conversation, hash) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(change.conversation, name) for name in brought],
    )
    stored = {
        name
        for names in split(brought)
        for (name,) in transaction.rows(f"SELECT hash FROM contents WHERE hash IN {marks(names)}", *names)
    }
    new = {name: change.written.contents[name] for name in brought if name not in stored}
    check_contents(new)
    if new:
        transaction.run_each(
            "INSERT INTO contents (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING", list(new.items())
        )


def _check_named(transaction: Transaction, change: Change, *, missing: set[str]) -> None:
    """Contents that are named without being brought must be held already, or have been erased."""
    for names in split(sorted(missing)):
        held = transaction.rows(
            f"SELECT hash FROM holdings WHERE conversation = ? AND hash IN {marks(names)}", change.conversation, *names
        )
        missing = missing.difference(name for (name,) in held)
    if not missing:
        return
    erasures = transaction.rows(
        f"SELECT {RECORD_COLUMNS} FROM events WHERE conversation = ? AND kind = ?",
        *(change.conversation, EventKind.ERASURE.value),
    )
    logged = [read_record(change.conversation, row) for row in erasures]
    check_known(missing, find_erased([*logged, *change.written.records]))


def _let_go(transaction: Transaction, conversation: str, hashes: tuple[str, ...]) -> None:
    """Let go of contents, and remove those that no conversation holds any more."""
    for names in split(hashes):
        transaction.run(f"DELETE FROM holdings WHERE conversation = ? AND hash IN {marks(names)}", conversation, *names)
        transaction.run(
            f"DELETE FROM contents WHERE hash IN {marks(names)}"
            " AND NOT EXISTS (SELECT 1 FROM holdings WHERE holdings.hash = contents.hash)",
            *names,
        )


def _forget_counts(transaction: Transaction, conversation: str) -> None:
    """Forget what was counted in a conversation: which counts were made of what is erased, nobody can tell."""
    transaction.run("UPDATE events SET counts = NULL WHERE conversation = ? AND counts IS NOT NULL", conversation)
