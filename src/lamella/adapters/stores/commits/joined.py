"""Joined appends: each in one statement, which commits itself, and those that wait together in one for all of them.

On a server the way there and back is most of what an append takes, and a transaction goes it four times. What a server
that stood still finds when it is back is done only if whoever sent it still waits.
"""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct, json

from lamella.adapters.stores.appending import (
    COLUMN_TYPES,
    EVENT_COLUMNS,
    KNOWN_SCHEMA,
    Change,
    list_rows,
    move_row,
    tell_end,
)
from lamella.adapters.stores.commits.queue import CommitQueue, WaitingWrite
from lamella.adapters.stores.database import Database, marks
from lamella.errors import LamellaError, StoreUnavailableError

# Of more letters the way takes longer than what is saved by sharing it.
_SMALL = 32_768


class PlacedChange(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A plain change behind the event of the hash ``head``, and the hashes of its own events."""

    change: Change
    head: str
    hashes: Sequence[str]

    @property
    def is_shared(self) -> bool:
        """Whether it may be written with others: a conversation that begins may have to wait for one of its name."""
        return self.change.expected > 0 and sum([len(one.body) for one in self.change.written.records]) <= _SMALL


class AppendQueue:
    """Appends behind what this process wrote last, as conditions of one statement; false if one of them fails.

    One statement with shared ones is under way at a time. It waits for nobody who holds a conversation: what is held
    is left to whoever wants it, to be done step by step.
    """

    def __init__(self, database: Database, *, schema: int) -> None:
        self._database = database
        self._schema = schema
        self._queue = CommitQueue(self._append_waiting)

    def append(self, placed: PlacedChange) -> bool:
        """Whether it was done."""
        return bool(self._queue.put(placed)) if placed.is_shared else self._append_alone(placed)

    def _append_waiting(self, together: Sequence[WaitingWrite]) -> None:
        done: set[int] = set()
        failed: StoreUnavailableError | None = None
        try:
            done = self._append_together([one.work for one in together])
        except StoreUnavailableError as error:
            # That is so for all of them, and all of them have waited by now.
            failed = error
        except LamellaError:
            # Whose failure it is shows when each is done step by step.
            pass
        for one in together:
            one.result, one.error, one.done = id(one.work) in done, failed, True

    def _append_together(self, together: Sequence[PlacedChange]) -> set[int]:
        if len(together) == 1:
            return {id(together[0])} if self._append_alone(together[0]) else set()
        # Of two to one conversation the second is a conflict, which it finds by itself.
        firsts = {one.change.conversation: one for one in reversed(together)}
        moved = _append_all(self._database, list(firsts.values()), schema=self._schema)
        return {id(firsts[conversation]) for conversation in moved}

    def _append_alone(self, placed: PlacedChange) -> bool:
        change, database = placed.change, self._database
        moving, values = move_row(change, placed.hashes[-1], head=placed.head)
        rows = list_rows(change, placed.hashes, counted=True)
        flat = [value for row in rows for value in row]
        held = (change.conversation,) if placed.is_shared else ()
        sql = _join(moving, len(rows), shared=placed.is_shared)
        return database.run(sql, *values, database.find_deadline(), self._schema, *held, *flat) > 0


def _append_all(database: Database, together: Sequence[PlacedChange], *, schema: int) -> list[str]:
    """Append to several conversations with one statement, and tell to which of them it was done.

    The values go as two texts, however many they are: the statement stays the same, and the driver has little to do.
    """
    ends = [(one, tell_end(one.change, one.hashes[-1])) for one in together]
    wanted = [
        {"id": one.change.conversation, "expected": one.change.expected, "head": one.head}
        | dict(zip(_END, end, strict=True))
        for one, end in ends
    ]
    rows = [row for one in together for row in list_rows(one.change, one.hashes, counted=True)]
    events = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    found = database.query(_JOIN_ALL, _write(wanted), database.find_deadline(), schema, _write(events))
    return [conversation for (conversation,) in found]


def _write(values: Sequence[dict[str, object]]) -> str:
    return json.encode(values).decode()


@lru_cache(maxsize=32)
def _join(moving: str, rows: int, *, shared: bool) -> str:
    """A statement that moves a conversation's row and, where it did, inserts so many events."""
    in_time = moving.replace(KNOWN_SCHEMA, _IN_TIME)
    free = f" AND id IN (SELECT id FROM conversations WHERE id = ? {_FREE})" if shared else ""
    typed = ", ".join(f"CAST(? AS {kind})" for kind in COLUMN_TYPES)
    others = f", {marks(COLUMN_TYPES)}" * (rows - 1)
    return (
        f"WITH moved AS ({in_time}{free} RETURNING 1) INSERT INTO events ({EVENT_COLUMNS})"
        f" SELECT new.* FROM moved, (VALUES ({typed}){others}) AS new"
    )


_IN_TIME = f"{KNOWN_SCHEMA} WHERE clock_timestamp() < to_timestamp(?)"
# Of what somebody else holds there is no row.
_FREE = "FOR NO KEY UPDATE SKIP LOCKED"
_END = ("version", "last", "title", "at")
_READ_COLUMNS = EVENT_COLUMNS.replace("counts", "decode(counts, 'base64')")
_NAMES = tuple(EVENT_COLUMNS.split(", "))
# Each conversation is looked for by its key, however many there are: one that is locked in a query of its own is not
# joined with others in any other way.
_JOIN_ALL = (
    "WITH wanted AS MATERIALIZED (SELECT * FROM json_to_recordset(CAST(? AS json))"
    " AS given (id text, expected bigint, head text, version bigint, last text, title text, at text)),"
    " free AS MATERIALIZED (SELECT wanted.* FROM wanted CROSS JOIN LATERAL (SELECT 1 FROM conversations AS found"
    " WHERE found.id = wanted.id AND found.version = wanted.expected AND found.head = wanted.head"
    " AND found.erased IS NULL AND EXISTS (SELECT 1 FROM events WHERE conversation = wanted.id"
    " AND seq = wanted.expected AND hash = wanted.head)"
    f" AND {_IN_TIME}) <= ? {_FREE}) AS held),"
    " moved AS (UPDATE conversations AS old SET version = free.version, head = free.last,"
    " title = coalesce(free.title, old.title), updated = free.at FROM free WHERE old.id = free.id RETURNING old.id),"
    f" written AS (INSERT INTO events ({EVENT_COLUMNS})"
    f" SELECT {_READ_COLUMNS} FROM json_to_recordset(CAST(? AS json))"
    " AS given (conversation text, hash text, seq bigint, kind text, at text, body text, contents text, counts text)"
    " WHERE conversation IN (SELECT id FROM moved)) SELECT id FROM moved"
)
