"""SQLite: one file, several processes. Every write begins as a writer, so that none is lost to another."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from threading import RLock

from lamella.adapters.stores.commits.batches import BatchedAppend, append_together
from lamella.adapters.stores.commits.queue import CommitQueue, WaitingWrite
from lamella.adapters.stores.database import Result, Row, Transaction
from lamella.doors import Door, Hint
from lamella.errors import CallError, LamellaError, StoreDamagedError, StoreUnavailableError
from lamella.holdings import Damage

MEMORY = ":memory:"

# Durable when acknowledged: the log is synced at every commit, on macOS past the disk's own cache. What is deleted is
# overwritten with zeros. The file is not mapped into memory: cut short under a reader, it would end the process with a
# signal where reading it says that it is damaged.
_PRAGMAS = (
    "synchronous = FULL",
    "fullfsync = ON",
    "foreign_keys = ON",
    "secure_delete = ON",
    "mmap_size = 0",
)
# Whoever looks something up reads each page once as well: those it kept were a fifth of what opening a conversation in
# a new process took, for the memory that it had to get for them (2026-11-18).
_READING = ("query_only = ON", "mmap_size = 0", "cache_size = -100")
_PAUSE = 0.02
_UNDECODABLE = "Could not decode to UTF-8"


class SqliteDatabase:
    """Two connections to one file, each for all threads of this process in turn: one that writes, one that looks up.

    What threads want to write while one commits is committed together: however many they are, the disk is synced once.
    Who only looks something up does not wait for the disk meanwhile.
    """

    dialect = "sqlite"
    # A transaction that begins as a writer is the only one; no row needs a lock of its own.
    lock_row = ""
    joins = False

    def __init__(self, path: str, *, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._lock = RLock()
        self._queue = CommitQueue(self._write_waiting)
        # Opened by whoever looks something up first. What is in memory alone has one connection.
        self._looking_up = RLock()
        self._reader: sqlite3.Connection | None = None
        self._connection = self._connect()
        try:
            self._prepare()
        except LamellaError:
            self._connection.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self._path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _prepare(self) -> None:
        for pragma in _PRAGMAS:
            self._run(f"PRAGMA {pragma}")
        # Changing the mode does not wait for others by itself; once changed, it stays with the file.
        self._persist(lambda: self._run("PRAGMA journal_mode = WAL"))

    def _persist(self, work: Callable[[], Result]) -> Result:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return work()
            except StoreUnavailableError as error:
                if not _is_busy(error.__cause__) or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)

    def run(self, sql: str, *values: object) -> int:
        return self.write(lambda transaction: transaction.run(sql, *values))

    def find_deadline(self) -> float:
        return time.time() + self._patience

    def query(self, sql: str, *values: object) -> list[Row]:
        return self._look_up(sqlite3.Cursor.fetchall, sql, values)

    def each(self, read: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        return self._look_up(lambda rows: [read(row) for row in rows], sql, values)

    def _look_up(
        self, gather: Callable[[sqlite3.Cursor], list[Result]], sql: str, values: Sequence[object]
    ) -> list[Result]:
        if self._path == MEMORY:
            with self._lock:
                return self._gather(gather, sql, values)
        with self._looking_up:
            return self._gather(gather, sql, values, connection=self._open_reader())

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            reader = self._connect()
            for pragma in _READING:
                self._run(f"PRAGMA {pragma}", (), reader)
            self._reader = reader
        return self._reader

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        return self._transact("BEGIN", work)

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        result: Result = self._queue.put(work)
        return result

    def _write_waiting(self, together: Sequence[WaitingWrite]) -> None:
        with self._lock:
            # In line for a lock one has waited as well; where that was short, somebody else's is waited for as usual.
            waited = time.monotonic() - min([one.since for one in together])
            if waited < self._patience / 10:
                self._write_each(together)
            else:
                self._hurry(together, waited)

    def _hurry(self, together: Sequence[WaitingWrite], waited: float) -> None:
        """Wait for somebody else's lock no longer than for what is left."""
        self._run(f"PRAGMA busy_timeout = {max(1, ceil((self._patience - waited) * 1000))}")
        try:
            self._write_each(together)
        finally:
            self._run(f"PRAGMA busy_timeout = {ceil(self._patience * 1000)}")

    def _write_each(self, together: Sequence[WaitingWrite]) -> None:
        """Together, if that can be. One that fails is rare: only then is each kept apart from the others."""
        if len(together) == 1 or not any(self._write_together(together, apart=apart) for apart in (False, True)):
            for one in together:
                self._write_alone(one)

    def _write_together(self, together: Sequence[WaitingWrite], *, apart: bool) -> bool:
        """Commit all of them at once, each as if it were alone; false if that cannot be done so.

        Unless they are kept ``apart``, one that fails leaves nothing of any.
        """
        write = self._write_apart if apart else _write_all
        try:
            self._transact("BEGIN IMMEDIATE", lambda transaction: write(together, transaction))
        except Exception as error:  # noqa: BLE001 - whose failure it is, and whatever it is, shows when they are apart
            # For somebody else's lock all of them have waited by now.
            if not _is_busy(error.__cause__):
                return False
            for one in together:
                one.error = error
        for one in together:
            one.done = True
        return True

    def _write_apart(self, together: Sequence[WaitingWrite], transaction: Transaction) -> None:
        """What each of several comes to; if one fails, nothing is left of it, and the others go on."""
        for one in together:
            self._run("SAVEPOINT apart")
            try:
                one.result = one.work(transaction)
            except Exception as error:
                # A full disk may have rolled back all of them.
                if not self._connection.in_transaction:
                    raise
                one.error = error
                self._run("ROLLBACK TO apart")
            self._run("RELEASE apart")

    def _write_alone(self, one: WaitingWrite) -> None:
        one.error = None
        try:
            one.result = self._transact("BEGIN IMMEDIATE", one.work)
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits for it, whatever it is
            one.error = error
        one.done = True

    def migrate(self, work: Callable[[Transaction], Result]) -> Result:
        return self._transact("BEGIN IMMEDIATE", work)

    def _transact(self, begin: str, work: Callable[[Transaction], Result]) -> Result:
        with self._lock:
            self._run(begin)
            try:
                result = work(_SqliteTransaction(self._run, self._change, self._run_each))
                self._run("COMMIT")
            except BaseException:
                # A full disk may have rolled it back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            return result

    def tables(self, transaction: Transaction) -> set[str]:
        return {name for (name,) in transaction.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def begin_erasing(self, transaction: Transaction) -> None:
        """A writer is alone already; the number of erasures that were not purged yet stands in the file's header."""
        transaction.run(f"PRAGMA user_version = {self._unpurged() + 1}")

    def _unpurged(self) -> int:
        return int(self._run("PRAGMA user_version")[0][0])

    def purge(self) -> None:
        """Write the file anew and cut the write-ahead log to nothing.

        Overwriting what is deleted is not enough: when a page is split, copies of rows stay behind in its free space.
        """
        with self._lock:
            erasures = self._unpurged()
            self._persist(lambda: self._run("VACUUM"))
            # Not in line: who is about to write for others waits for the lock that is held here.
            self._transact("BEGIN IMMEDIATE", lambda _: self._settle(erasures))
            self._persist(self._empty_log)

    def _settle(self, erasures: int) -> None:
        """Everything is purged, unless someone else has erased meanwhile, who will purge that."""
        if self._unpurged() == erasures:
            self._run("PRAGMA user_version = 0")

    def _empty_log(self) -> None:
        [(busy, *_)] = self._run("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            locked = sqlite3.OperationalError("the write-ahead log is being read")
            raise self._explain(locked) from locked

    def inspect(self) -> Iterator[Damage]:
        """What SQLite's own check of pages, indexes and references finds."""
        with self._lock:
            found = [str(what) for (what,) in self._run("PRAGMA integrity_check") if what != "ok"]
            found += [f"a row of {table} refers to nothing" for table, *_ in self._run("PRAGMA foreign_key_check")]
        yield from (Damage(conversation=None, place="file", what=what) for what in found)

    def find_lingering(self) -> Iterator[Damage]:
        """An erasure that was interrupted before the file was written anew, or a log that others still read."""
        if self._unpurged():
            yield Damage(conversation=None, place="file", what="may hold it until the erasure is repeated")
        try:
            with self._lock:
                self._persist(self._empty_log)
        except StoreUnavailableError as error:
            yield Damage(conversation=None, place="write-ahead log", what=f"may hold it: {error.message}")

    def close(self) -> None:
        # The one that writes goes last: with it the write-ahead log is emptied.
        with self._looking_up, self._lock:
            if self._reader is not None:
                self._reader.close()
            self._connection.close()
            # Whoever comes later is told that it is closed, and opens nothing.
            self._reader = self._connection

    def _run(self, sql: str, values: Sequence[object] = (), connection: sqlite3.Connection | None = None) -> list[Row]:
        return self._gather(sqlite3.Cursor.fetchall, sql, values, connection=connection)

    def _gather(
        self,
        gather: Callable[[sqlite3.Cursor], list[Result]],
        sql: str,
        values: Sequence[object],
        *,
        connection: sqlite3.Connection | None = None,
    ) -> list[Result]:
        used = connection or self._connection
        try:
            return gather(used.execute(sql, values))
        except sqlite3.Error as error:
            if not str(error).startswith(_UNDECODABLE):
                raise self._explain(error) from error
        # One text that is no UTF-8 keeps nobody from the rows beside it; verifying finds what it should be.
        used.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            return gather(used.execute(sql, values))
        finally:
            used.text_factory = str

    def _change(self, sql: str, values: Sequence[object]) -> int:
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _run_each(self, sql: str, rows: Sequence[Row]) -> int:
        try:
            return self._connection.executemany(sql, rows).rowcount
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> LamellaError:
        return explain(error, self._path, patience=self._patience)


class _BatchBroken(Exception):  # noqa: N818 - what happens then is no failure: each is looked at by itself
    """One of the appends of a batch does not stand behind what it was made for."""


class _SqliteTransaction:
    def __init__(
        self,
        run: Callable[[str, Sequence[object]], list[Row]],
        change: Callable[[str, Sequence[object]], int],
        run_each: Callable[[str, Sequence[Row]], int],
    ) -> None:
        self._run = run
        self._change = change
        self.run_each = run_each

    def run(self, sql: str, *values: object) -> int:
        return self._change(sql, values)

    def rows(self, sql: str, *values: object) -> list[Row]:
        return self._run(sql, values)


def _write_all(together: Sequence[WaitingWrite], transaction: Transaction) -> None:
    appends = [one for one in together if isinstance(one.work, BatchedAppend)]
    if not append_together(transaction, [one.work for one in appends]):
        raise _BatchBroken
    for one in together:
        one.result = isinstance(one.work, BatchedAppend) or one.work(transaction)


def _is_busy(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.Error) and _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    """The primary code of an error: the lowest byte of what SQLite gives."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_BUSY) & 0xFF


def explain(error: sqlite3.Error, path: str, *, patience: float) -> LamellaError:
    """What an error of SQLite means here, and what to do next."""
    if isinstance(error, sqlite3.ProgrammingError):
        return CallError(f"The store {path} is closed.", hint="Open it again.")
    kind, what, hint = _MEANINGS.get(_code(error), (StoreUnavailableError, "cannot be used: {error}", _AGAIN))
    told = what.format(error=error, patience=f"{patience:g}", why=_why(path))
    return kind(f"The store {path} {told}.", hint=hint)


def _restore(door: Door) -> str:
    return f"{door.verify_store()} tells what is left of it; restore the file from a backup."


_AGAIN = "What was acknowledged is safe. Try again."
_PERMIT = "Permit writing to the file and to its folder."
_MEANINGS: dict[int, tuple[type[StoreUnavailableError | StoreDamagedError], str, Hint]] = {
    sqlite3.SQLITE_BUSY: (StoreUnavailableError, "was locked by someone else for {patience} s", _AGAIN),
    sqlite3.SQLITE_LOCKED: (StoreUnavailableError, "was locked by someone else for {patience} s", _AGAIN),
    sqlite3.SQLITE_FULL: (
        StoreUnavailableError,
        "is on a disk that is full",
        "What was acknowledged is safe. Make room and try again.",
    ),
    sqlite3.SQLITE_READONLY: (StoreUnavailableError, "is read-only", _PERMIT),
    sqlite3.SQLITE_PERM: (StoreUnavailableError, "may not be read", _PERMIT),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailableError, "cannot be opened: {why}", "Make the folder, or permit it."),
    sqlite3.SQLITE_IOERR: (StoreUnavailableError, "is on a disk that failed: {error}", _AGAIN),
    sqlite3.SQLITE_NOTADB: (
        StoreDamagedError,
        "is not a SQLite database, or its first page is damaged",
        "Name another file, or restore this one from a backup.",
    ),
    sqlite3.SQLITE_CORRUPT: (StoreDamagedError, "is damaged: {error}", _restore),
    sqlite3.SQLITE_CONSTRAINT: (StoreDamagedError, "is damaged: {error}", _restore),
    sqlite3.SQLITE_ERROR: (StoreDamagedError, "is damaged: {error}", _restore),
}


def _why(path: str) -> str:
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return "it is a folder" if Path(path).is_dir() else "the system does not permit it"
