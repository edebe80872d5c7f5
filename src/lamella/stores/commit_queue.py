"""Commit queues: the writes that wait at the same time are committed together.

``CommitQueue`` makes the writes of all waiting threads in the thread of one of them. ``AppendQueue`` appends to a
database server (PostgreSQL) with one auto-committed statement, because the round trip is most of the cost there and a
transaction needs four. ``append_all_or_need_rollback`` appends several changes in one transaction of an embedded database
(SQLite), because each statement releases the interpreter lock and then competes with all other threads to get it back.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence, Sized
from functools import lru_cache, partial
from threading import Lock
from typing import Any

from msgspec import Struct, field, json

from lamella.errors import LamellaError, StoreUnavailableError
from lamella.stores.append import (
    COLUMN_TYPES,
    EVENT_COLUMNS,
    INSERT_EVENT,
    SCHEMA_VERSION_QUERY,
    AppendChange,
    build_event_rows,
    conversation_row_statement,
    conversation_row_values,
)
from lamella.stores.sql_schema import Database, Row, Transaction, placeholders

_yield_thread = partial(time.sleep, 0)


def _make_acquired_lock() -> Lock:
    """Return a lock that is already acquired, so that the next ``acquire`` waits for a ``release``."""
    lock = Lock()
    lock.acquire()
    return lock


class PendingWrite(Struct, eq=False):
    """A write that a thread requested, and its result or error once it is ``is_done``."""

    work: Any
    queued_at: float
    is_done: bool = False
    result: Any = None
    error: BaseException | None = None
    # Set if the thread that requested it was interrupted.
    is_abandoned: bool = False
    # The finished writes of the same batch whose threads have not been woken yet.
    unwoken: "deque[PendingWrite] | None" = None
    # Released when the write is done, or when its thread becomes the leader that writes for all.
    wake_lock: Lock = field(default_factory=_make_acquired_lock)


class CommitQueue:
    """Makes all waiting writes with one call of ``write``, in the thread of one of them; one call at a time.

    ``write`` sets the result or error of each write. Threads whose write is done continue at once. When they were
    woken only after the next writers, every second commit had half of the writes that it could have shared (2.1 writes
    per commit with 6 threads, now 3.5; 2026-11-18).
    """

    def __init__(self, write: Callable[[Sequence[PendingWrite]], None]) -> None:
        self._write = write
        self._lock = Lock()
        self._pending: deque[PendingWrite] = deque()
        self._leader: PendingWrite | None = None
        # Whether the last batch had several writes.
        self._had_several_writers = False

    def submit_and_wait(self, work: object) -> Any:  # noqa: ANN401 - the caller knows the type of its result
        """Queue a write, wait until it is done, and return its result or raise its error."""
        own = PendingWrite(work, time.monotonic())
        try:
            with self._lock:
                self._pending.append(own)
                self._leader = self._leader or own
            if self._leader is not own:
                own.wake_lock.acquire()
            if not own.is_done:
                self._write_pending()
        finally:
            # An interrupted thread leaves the queue. A leader, interrupted or not, hands over to the next thread.
            if not own.is_done or self._leader is own:
                self._remove_write(own)
            self._wake_next(own.unwoken)
        if own.error is not None:
            raise own.error
        return own.result

    def _write_pending(self) -> None:
        """Take all waiting writes and make them; runs in the thread of the leader."""
        wait_for_other_writers(self._pending, had_several_writers=self._had_several_writers)
        with self._lock:
            together = list(self._pending)
            self._pending.clear()
        self._had_several_writers = len(together) > 1
        try:
            self._write(together)
        finally:
            with self._lock:
                # After an interruption the unfinished writes of the other threads go back to the front of the queue.
                self._pending.extendleft(one for one in reversed(together) if not (one.is_done or one.is_abandoned))
            line = deque(one for one in together if one.is_done and one is not self._leader)
            for one in together:
                one.unwoken = line

    def _wake_next(self, finished: deque[PendingWrite] | None) -> None:
        """Wake the next thread whose write is done; that thread wakes the one after it.

        If all were woken at once, all would compete for the interpreter lock, and the event loop would be one of many.
        """
        while finished:
            with self._lock:
                one = finished.popleft() if finished else None
            if one is not None and not one.is_abandoned:
                one.wake_lock.release()
                return

    def _remove_write(self, pending: PendingWrite) -> None:
        """Remove a write from the queue; if its thread was the leader, the next waiting thread becomes the leader."""
        with self._lock:
            pending.is_abandoned = True
            if pending in self._pending:
                self._pending.remove(pending)
            if self._leader is pending:
                self._leader = self._pending[0] if self._pending else None
                if self._leader is not None:
                    self._leader.wake_lock.release()


def wait_for_other_writers(
    queue: Sized, yield_thread: Callable[[], None] = _yield_thread, *, had_several_writers: bool = False
) -> None:
    """Let other threads run as long as more of them join the queue, if several write now or did last time.

    A commit costs as much as many rows. A leader that commits at once would leave out threads that need the
    interpreter for only a moment longer. It never blocks for a particular thread, and a single writer does not yield
    at all.
    """
    allowed_others = 0 if had_several_writers else 1
    while allowed_others < len(queue):
        allowed_others = len(queue)
        yield_thread()


# Appends to a database server. Each statement has a deadline: a server that was suspended does not execute it later,
# when its sender has given up.

# Size limit of a shared change, in characters. Sending a larger one takes longer than sharing the round trip saves.
_MAX_SHARED_BYTES = 32_768


class PositionedChange(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A plain change, the hash of the event it follows (``head``), and the hashes of its own events."""

    change: AppendChange
    head: str
    hashes: Sequence[str]

    @property
    def can_share_statement(self) -> bool:
        """Return whether it may share a statement with others: small, and for an existing conversation.

        A new conversation may have to wait for another writer that creates one of the same name.
        """
        return (
            self.change.expected > 0 and sum([len(one.body) for one in self.change.batch.records]) <= _MAX_SHARED_BYTES
        )


class AppendQueue:
    """Appends changes after the last event that this process knows, with one statement each or for several.

    The checks are conditions of the statement. An append returns False if one of them fails. At most one shared
    statement runs at a time. It does not wait for locked conversations: it skips them, and their callers append step
    by step.
    """

    def __init__(self, database: Database, *, schema: int) -> None:
        self._database = database
        self._schema = schema
        self._queue = CommitQueue(self._append_pending)

    def append(self, positioned: PositionedChange) -> bool:
        """Append a change and return whether it was written."""
        return (
            bool(self._queue.submit_and_wait(positioned))
            if positioned.can_share_statement
            else self._append_alone(positioned)
        )

    def _append_pending(self, writes: Sequence[PendingWrite]) -> None:
        """Write all waiting changes and set the result of each."""
        done: set[int] = set()
        failed: StoreUnavailableError | None = None
        try:
            done = self._append_together([one.work for one in writes])
        except StoreUnavailableError as error:
            # The server is unavailable for all of them, and all have waited for it by now.
            failed = error
        except LamellaError:
            # Each caller now appends step by step, which shows whose change failed.
            pass
        for one in writes:
            one.result, one.error, one.is_done = id(one.work) in done, failed, True

    def _append_together(self, changes: Sequence[PositionedChange]) -> set[int]:
        """Return the ``id`` of each change that was written; changes are compared by identity, not by value."""
        if len(changes) == 1:
            return {id(changes[0])} if self._append_alone(changes[0]) else set()
        # Of two changes to one conversation the first is written. The second is a conflict, and its caller finds that
        # out step by step. ``reversed`` makes the first one win.
        firsts = {one.change.conversation: one for one in reversed(changes)}
        moved = _append_to_several_conversations(self._database, list(firsts.values()), schema=self._schema)
        return {id(firsts[conversation]) for conversation in moved}

    def _append_alone(self, positioned: PositionedChange) -> bool:
        change, database = positioned.change, self._database
        moving, values = conversation_row_statement(change, positioned.hashes[-1], head=positioned.head)
        rows = build_event_rows(change, positioned.hashes, with_counts=True)
        flat = [value for row in rows for value in row]
        conversations = (change.conversation,) if positioned.can_share_statement else ()
        sql = _append_statement(moving, len(rows), shared=positioned.can_share_statement)
        return database.run(sql, *values, database.compute_deadline(), self._schema, *conversations, *flat) > 0


def _append_to_several_conversations(
    database: Database, changes: Sequence[PositionedChange], *, schema: int
) -> list[str]:
    """Append to several conversations with one statement and return the keys of those that were written.

    All values are passed as two JSON texts. So the statement is always the same, and the driver has few values to
    convert.
    """
    ends = [(one, conversation_row_values(one.change, one.hashes[-1])) for one in changes]
    statements = [
        {"id": one.change.conversation, "expected": one.change.expected, "head": one.head}
        | dict(zip(_ROW_END_NAMES, end, strict=True))
        for one, end in ends
    ]
    rows = [row for one in changes for row in build_event_rows(one.change, one.hashes, with_counts=True)]
    events = [dict(zip(_EVENT_COLUMN_NAMES, row, strict=True)) for row in rows]
    found = database.query(
        _APPEND_MANY_STATEMENT, _rows_to_json(statements), database.compute_deadline(), schema, _rows_to_json(events)
    )
    return [conversation for (conversation,) in found]


def _rows_to_json(values: Sequence[dict[str, object]]) -> str:
    return json.encode(values).decode()


@lru_cache(maxsize=32)
def _append_statement(row_statement: str, event_count: int, *, shared: bool) -> str:
    """Return a statement that updates a conversation's row and, if it did, inserts ``event_count`` events."""
    in_time = row_statement.replace(SCHEMA_VERSION_QUERY, _SCHEMA_BEFORE_DEADLINE)
    free = f" AND id IN (SELECT id FROM conversations WHERE id = ? {_SKIP_LOCKED})" if shared else ""
    typed = ", ".join(f"CAST(? AS {kind})" for kind in COLUMN_TYPES)
    others = f", {placeholders(COLUMN_TYPES)}" * (event_count - 1)
    return (
        f"WITH moved AS ({in_time}{free} RETURNING 1) INSERT INTO events ({EVENT_COLUMNS})"
        f" SELECT new.* FROM moved, (VALUES ({typed}){others}) AS new"
    )


_SCHEMA_BEFORE_DEADLINE = f"{SCHEMA_VERSION_QUERY} WHERE clock_timestamp() < to_timestamp(?)"
# Skips rows that another transaction has locked.
_SKIP_LOCKED = "FOR NO KEY UPDATE SKIP LOCKED"
_ROW_END_NAMES = ("version", "last", "title", "at")
_READ_COLUMNS = EVENT_COLUMNS.replace("counts", "decode(counts, 'base64')")
_EVENT_COLUMN_NAMES = tuple(EVENT_COLUMNS.split(", "))
# The LATERAL subquery finds each conversation by its key, however many conversations there are: PostgreSQL does not
# merge a subquery with a row lock into another kind of join.
_APPEND_MANY_STATEMENT = (
    "WITH wanted AS MATERIALIZED (SELECT * FROM json_to_recordset(CAST(? AS json))"
    " AS given (id text, expected bigint, head text, version bigint, last text, title text, at text)),"
    " free AS MATERIALIZED (SELECT wanted.* FROM wanted CROSS JOIN LATERAL (SELECT 1 FROM conversations AS found"
    " WHERE found.id = wanted.id AND found.version = wanted.expected AND found.head = wanted.head"
    " AND found.erased IS NULL AND EXISTS (SELECT 1 FROM events WHERE conversation = wanted.id"
    " AND seq = wanted.expected AND hash = wanted.head)"
    f" AND {_SCHEMA_BEFORE_DEADLINE}) <= ? {_SKIP_LOCKED}) AS held),"
    " moved AS (UPDATE conversations AS old SET version = free.version, head = free.last,"
    " title = coalesce(free.title, old.title), updated = free.at FROM free WHERE old.id = free.id RETURNING old.id),"
    f" written AS (INSERT INTO events ({EVENT_COLUMNS})"
    f" SELECT {_READ_COLUMNS} FROM json_to_recordset(CAST(? AS json))"
    " AS given (conversation text, hash text, seq bigint, kind text, at text, body text, contents text, counts text)"
    " WHERE conversation IN (SELECT id FROM moved)) SELECT id FROM moved"
)


# Appends to an embedded database.


class BatchedAppend(Struct, frozen=True, eq=False):
    """A plain append after the last event that this process knows, to run in a transaction alone or with others."""

    positioned: PositionedChange
    schema: int

    def __call__(self, transaction: Transaction) -> bool:
        """Append it alone and return whether that worked; False means that nothing was changed."""
        return append_all_or_need_rollback(transaction, (self,))


def append_all_or_need_rollback(transaction: Transaction, appends: Sequence[BatchedAppend]) -> bool:
    """Append all changes and return whether that worked.

    After False, some may have been written, so the caller must roll the transaction back.
    """
    moves: dict[str, list[Row]] = {}
    rows: list[Row] = []
    for one in appends:
        change, hashes = one.positioned.change, one.positioned.hashes
        moving, values = conversation_row_statement(change, hashes[-1], head=one.positioned.head)
        moves.setdefault(moving, []).append((*values, one.schema))
        rows += build_event_rows(change, hashes, with_counts=True)
    # The rows come before the events: an update that matches no row shows a conflict before any event is inserted.
    for moving, all_values in moves.items():
        if transaction.run_each(moving, all_values) != len(all_values):
            return False
    transaction.run_each(INSERT_EVENT, rows)
    return True
