"""The SQLite database: one file for several processes.

Every write transaction takes the write lock when it begins. So no transaction reads first and then fails because
another one wrote meanwhile.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from threading import RLock

from lamella.errors import InvalidOperationError, LamellaError, StoreCorruptedError, StoreUnavailableError
from lamella.hints import Hint, Hints
from lamella.ports import StoreProblem
from lamella.stores.commit_queue import BatchedAppend, CommitQueue, PendingWrite, append_all_or_need_rollback
from lamella.stores.sql_schema import Result, Row, Transaction

IN_MEMORY_PATH = ":memory:"

# A commit is durable when it is acknowledged: the log is synced at every commit, on macOS beyond the disk's own cache.
# Deleted data is overwritten with zeros. The file is not mapped into memory: if it were truncated while it is read, the
# process would be killed by a signal, where a normal read reports the damage.
_PRAGMAS = (
    "synchronous = FULL",
    "fullfsync = ON",
    "foreign_keys = ON",
    "secure_delete = ON",
    "mmap_size = 0",
)
# A reader uses each page only once, so it keeps almost none. Allocating memory for a page cache took a fifth of the
# time of opening a conversation in a new process (2026-11-18).
_READER_PRAGMAS = ("query_only = ON", "mmap_size = 0", "cache_size = -100")
_RETRY_SECONDS = 0.02
_UNDECODABLE_MESSAGE = "Could not decode to UTF-8"


class SqliteDatabase:
    """Two connections to one file, each shared by all threads of this process: one writes, one reads.

    Writes that threads request during a commit are committed together, so the disk is synced once for all of them. A
    query does not wait for that sync.
    """

    dialect = "sqlite"
    # A write transaction is the only one, so no row needs a lock of its own.
    row_lock_clause = ""
    has_multi_table_statements = False

    def __init__(self, path: str, *, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._lock = RLock()
        self._queue = CommitQueue(self._write_pending)
        # The reader is opened by the first query. A database in memory has one connection only.
        self._reader_lock = RLock()
        self._reader: sqlite3.Connection | None = None
        self._connection = self._connect()
        try:
            self._apply_pragmas()
        except LamellaError:
            self._connection.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._to_lamella_error(error) from error

    def _apply_pragmas(self) -> None:
        for pragma in _PRAGMAS:
            self._fetch_rows(f"PRAGMA {pragma}")
        # SQLite's busy timeout does not apply to a change of the journal mode, so it is retried here. The mode is
        # stored in the file.
        self._retry_while_locked(lambda: self._fetch_rows("PRAGMA journal_mode = WAL"))

    def _retry_while_locked(self, work: Callable[[], Result]) -> Result:
        """Repeat ``work`` while the database is locked, until the timeout."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return work()
            except StoreUnavailableError as error:
                if not _is_busy(error.__cause__) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)

    def run(self, sql: str, *values: object) -> int:
        return self.run_write_transaction(lambda transaction: transaction.run(sql, *values))

    def compute_deadline(self) -> float:
        return time.time() + self._timeout

    def query(self, sql: str, *values: object) -> list[Row]:
        return self._query_reader(sqlite3.Cursor.fetchall, sql, values)

    def query_map(self, convert: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        return self._query_reader(lambda rows: [convert(row) for row in rows], sql, values)

    def _query_reader(
        self, read_cursor: Callable[[sqlite3.Cursor], list[Result]], sql: str, values: Sequence[object]
    ) -> list[Result]:
        """Run a query on the connection for reading."""
        if self._path == IN_MEMORY_PATH:
            with self._lock:
                return self._execute(read_cursor, sql, values)
        with self._reader_lock:
            return self._execute(read_cursor, sql, values, connection=self._open_reader())

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            reader = self._connect()
            for pragma in _READER_PRAGMAS:
                self._fetch_rows(f"PRAGMA {pragma}", (), reader)
            self._reader = reader
        return self._reader

    def run_read_transaction(self, work: Callable[[Transaction], Result]) -> Result:
        return self._run_transaction("BEGIN", work)

    def run_write_transaction(self, work: Callable[[Transaction], Result]) -> Result:
        result: Result = self._queue.submit_and_wait(work)
        return result

    def _write_pending(self, writes: Sequence[PendingWrite]) -> None:
        """Make the waiting writes of several threads; called by the commit queue."""
        with self._lock:
            # Time in the queue counts towards the timeout. If it was short, the usual busy timeout stays.
            waited = time.monotonic() - min([one.queued_at for one in writes])
            if waited < self._timeout / 10:
                self._write_each(writes)
            else:
                self._write_with_remaining_timeout(writes, waited)

    def _write_with_remaining_timeout(self, writes: Sequence[PendingWrite], waited_seconds: float) -> None:
        """Make the writes with a busy timeout that is reduced by the time they have waited already."""
        self._fetch_rows(f"PRAGMA busy_timeout = {max(1, ceil((self._timeout - waited_seconds) * 1000))}")
        try:
            self._write_each(writes)
        finally:
            self._fetch_rows(f"PRAGMA busy_timeout = {ceil(self._timeout * 1000)}")

    def _write_each(self, writes: Sequence[PendingWrite]) -> None:
        """Make the writes in one transaction; if one fails, with savepoints; if that fails, each in its own.

        Failures are rare, so the fast way is tried first.
        """
        if len(writes) == 1 or not any(
            self._write_together(writes, with_savepoints=with_savepoints) for with_savepoints in (False, True)
        ):
            for one in writes:
                self._write_alone(one)

    def _write_together(self, writes: Sequence[PendingWrite], *, with_savepoints: bool) -> bool:
        """Commit all writes at once and return whether that worked.

        With ``with_savepoints``, each write has a savepoint, and a failed one does not affect the others. Without it,
        one failure rolls all of them back.
        """
        write = self._write_with_savepoints if with_savepoints else _write_batch
        try:
            self._run_transaction("BEGIN IMMEDIATE", lambda transaction: write(writes, transaction))
        except Exception as error:  # noqa: BLE001 - the separate attempt shows which write failed, and with what error
            # If another process holds the lock, all writes have waited for it by now, so all get this error.
            if not _is_busy(error.__cause__):
                return False
            for one in writes:
                one.error = error
        for one in writes:
            one.is_done = True
        return True

    def _write_with_savepoints(self, writes: Sequence[PendingWrite], transaction: Transaction) -> None:
        """Make each write in a savepoint; a failed one is rolled back and gets its error, the others continue."""
        for one in writes:
            self._fetch_rows("SAVEPOINT apart")
            try:
                one.result = one.work(transaction)
            except Exception as error:
                # If the disk is full, SQLite may have rolled back the whole transaction.
                if not self._connection.in_transaction:
                    raise
                one.error = error
                self._fetch_rows("ROLLBACK TO apart")
            self._fetch_rows("RELEASE apart")

    def _write_alone(self, pending: PendingWrite) -> None:
        """Make one write in its own transaction and set its result or error."""
        pending.error = None
        try:
            pending.result = self._run_transaction("BEGIN IMMEDIATE", pending.work)
        except Exception as error:  # noqa: BLE001 - any error is raised in the thread that waits for this write
            pending.error = error
        pending.is_done = True

    def migrate(self, work: Callable[[Transaction], Result]) -> Result:
        return self._run_transaction("BEGIN IMMEDIATE", work)

    def _run_transaction(self, begin: str, work: Callable[[Transaction], Result]) -> Result:
        """Run ``work`` between ``begin`` and COMMIT, and roll back on any error."""
        with self._lock:
            self._fetch_rows(begin)
            try:
                result = work(_SqliteTransaction(self._fetch_rows, self._execute_change, self._run_each))
                self._fetch_rows("COMMIT")
            except BaseException:
                # If the disk is full, SQLite may have rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            return result

    def list_tables(self, transaction: Transaction) -> set[str]:
        return {name for (name,) in transaction.query("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def prepare_erase(self, transaction: Transaction) -> None:
        """Count the erasure in the file's header, until a purge resets the count.

        No lock is needed, because a write transaction is the only one.
        """
        transaction.run(f"PRAGMA user_version = {self._count_unpurged_erasures() + 1}")

    def _count_unpurged_erasures(self) -> int:
        """Return the number of erasures since the last purge."""
        return int(self._fetch_rows("PRAGMA user_version")[0][0])

    def purge_erased_data(self) -> None:
        """Rewrite the file and truncate the write-ahead log, so that no bytes of erased data remain.

        Overwriting deleted rows is not enough: when SQLite splits a page, copies of rows remain in its free space.
        """
        with self._lock:
            erasures = self._count_unpurged_erasures()
            self._retry_while_locked(lambda: self._fetch_rows("VACUUM"))
            # Not through the commit queue: its leader may be waiting for the lock that is held here.
            self._run_transaction("BEGIN IMMEDIATE", lambda _: self._finish_purge(erasures))
            self._retry_while_locked(self._truncate_wal)

    def _finish_purge(self, erasures: int) -> None:
        """Reset the count of erasures, unless another process has erased meanwhile; that process purges its own."""
        if self._count_unpurged_erasures() == erasures:
            self._fetch_rows("PRAGMA user_version = 0")

    def _truncate_wal(self) -> None:
        """Truncate the write-ahead log; raises an error that can be retried while another process reads it."""
        [(busy, *_)] = self._fetch_rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            locked = sqlite3.OperationalError("the write-ahead log is being read")
            raise self._to_lamella_error(locked) from locked

    def check_files(self) -> Iterator[StoreProblem]:
        """Yield the problems that SQLite's checks of pages, indexes and foreign keys find."""
        with self._lock:
            found = [str(what) for (what,) in self._fetch_rows("PRAGMA integrity_check") if what != "ok"]
            found += [
                f"a row of {table} refers to nothing" for table, *_ in self._fetch_rows("PRAGMA foreign_key_check")
            ]
        yield from (StoreProblem(conversation=None, location="file", description=what) for what in found)

    def find_unpurged_data(self) -> Iterator[StoreProblem]:
        """Yield a problem for an erasure that was not purged, and for a log that other processes still read."""
        if self._count_unpurged_erasures():
            yield StoreProblem(
                conversation=None, location="file", description="may hold it until the erasure is repeated"
            )
        try:
            with self._lock:
                self._retry_while_locked(self._truncate_wal)
        except StoreUnavailableError as error:
            yield StoreProblem(
                conversation=None, location="write-ahead log", description=f"may hold it: {error.message}"
            )

    def close(self) -> None:
        # The writing connection closes last, because SQLite empties the write-ahead log with the last connection.
        with self._reader_lock, self._lock:
            if self._reader is not None:
                self._reader.close()
            self._connection.close()
            # Later queries use this closed connection and get an error, where None would open a new reader.
            self._reader = self._connection

    def _fetch_rows(
        self, sql: str, values: Sequence[object] = (), connection: sqlite3.Connection | None = None
    ) -> list[Row]:
        return self._execute(sqlite3.Cursor.fetchall, sql, values, connection=connection)

    def _execute(
        self,
        read_cursor: Callable[[sqlite3.Cursor], list[Result]],
        sql: str,
        values: Sequence[object],
        *,
        connection: sqlite3.Connection | None = None,
    ) -> list[Result]:
        """Execute a statement and return what ``read_cursor`` makes of its cursor; errors become ``LamellaError``."""
        used = connection or self._connection
        try:
            return read_cursor(used.execute(sql, values))
        except sqlite3.Error as error:
            if not str(error).startswith(_UNDECODABLE_MESSAGE):
                raise self._to_lamella_error(error) from error
        # A text that is not UTF-8 must not hide the other rows, so it is read with replacement characters. ``verify``
        # reports it.
        used.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            return read_cursor(used.execute(sql, values))
        finally:
            used.text_factory = str

    def _execute_change(self, sql: str, values: Sequence[object]) -> int:
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise self._to_lamella_error(error) from error

    def _run_each(self, sql: str, rows: Sequence[Row]) -> int:
        try:
            return self._connection.executemany(sql, rows).rowcount
        except sqlite3.Error as error:
            raise self._to_lamella_error(error) from error

    def _to_lamella_error(self, error: sqlite3.Error) -> LamellaError:
        return to_lamella_error(error, self._path, timeout=self._timeout)


class _BatchConflict(Exception):  # noqa: N818 - it is no failure: each write is then made separately
    """An append of a batch does not follow the event that it was made for."""


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

    def query(self, sql: str, *values: object) -> list[Row]:
        return self._run(sql, values)


def _write_batch(writes: Sequence[PendingWrite], transaction: Transaction) -> None:
    """Make all writes in one transaction, the appends with shared statements; any error affects all of them."""
    appends = [one for one in writes if isinstance(one.work, BatchedAppend)]
    if not append_all_or_need_rollback(transaction, [one.work for one in appends]):
        raise _BatchConflict
    for one in writes:
        one.result = isinstance(one.work, BatchedAppend) or one.work(transaction)


def _is_busy(error: BaseException | None) -> bool:
    """Return whether an error means that another process or connection holds a lock."""
    return isinstance(error, sqlite3.Error) and _get_primary_error_code(error) in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _get_primary_error_code(error: sqlite3.Error) -> int:
    """Return the primary code of an error, which is the lowest byte of SQLite's extended code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_BUSY) & 0xFF


def to_lamella_error(error: sqlite3.Error, path: str, *, timeout: float) -> LamellaError:
    """Translate an error of SQLite to a ``LamellaError`` with a hint."""
    if isinstance(error, sqlite3.ProgrammingError):
        return InvalidOperationError(f"The store {path} is closed.", hint="Open it again.")
    kind, what, hint = _ERROR_BY_CODE.get(
        _get_primary_error_code(error), (StoreUnavailableError, "cannot be used: {error}", _RETRY_HINT)
    )
    message = what.format(error=error, patience=f"{timeout:g}", why=_open_failure_reason(path))
    return kind(f"The store {path} {message}.", hint=hint)


def _restore_hint(hints: Hints) -> str:
    return f"{hints.verify_store_hint()} tells what is left of it; restore the file from a backup."


_RETRY_HINT = "What was acknowledged is safe. Try again."
_PERMISSION_HINT = "Permit writing to the file and to its folder."
_ERROR_BY_CODE: dict[int, tuple[type[StoreUnavailableError | StoreCorruptedError], str, Hint]] = {
    sqlite3.SQLITE_BUSY: (StoreUnavailableError, "was locked by someone else for {patience} s", _RETRY_HINT),
    sqlite3.SQLITE_LOCKED: (StoreUnavailableError, "was locked by someone else for {patience} s", _RETRY_HINT),
    sqlite3.SQLITE_FULL: (
        StoreUnavailableError,
        "is on a disk that is full",
        "What was acknowledged is safe. Make room and try again.",
    ),
    sqlite3.SQLITE_READONLY: (StoreUnavailableError, "is read-only", _PERMISSION_HINT),
    sqlite3.SQLITE_PERM: (StoreUnavailableError, "may not be read", _PERMISSION_HINT),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailableError, "cannot be opened: {why}", "Make the folder, or permit it."),
    sqlite3.SQLITE_IOERR: (StoreUnavailableError, "is on a disk that failed: {error}", _RETRY_HINT),
    sqlite3.SQLITE_NOTADB: (
        StoreCorruptedError,
        "is not a SQLite database, or its first page is damaged",
        "Name another file, or restore this one from a backup.",
    ),
    sqlite3.SQLITE_CORRUPT: (StoreCorruptedError, "is damaged: {error}", _restore_hint),
    sqlite3.SQLITE_CONSTRAINT: (StoreCorruptedError, "is damaged: {error}", _restore_hint),
    sqlite3.SQLITE_ERROR: (StoreCorruptedError, "is damaged: {error}", _restore_hint),
}


def _open_failure_reason(path: str) -> str:
    """Return why a file cannot be opened."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return "it is a folder" if Path(path).is_dir() else "the system does not permit it"
