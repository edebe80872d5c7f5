"""The PostgreSQL database, for many processes on many machines.

``open_postgresql`` opens a store, and ``PostgresDatabase`` implements the ``Database`` protocol; an append locks the
row of its conversation. ``ConnectionPool`` has the connections, each used by one thread at a time. The thread that needs a
connection opens it, and gets the server's own error message if that fails. A pool that reconnects in the background
would wait longer after each failure and go on waiting when the server is back.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from math import ceil
from threading import Lock, Semaphore
from typing import TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import errors as pg
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lamella.errors import InvalidOperationError, LamellaError, SettingError, StoreCorruptedError, StoreUnavailableError
from lamella.ports import StoreProblem
from lamella.stores.sql_schema import Result, Row, Transaction
from lamella.stores.sql_store import SqlStore

_Waited = TypeVar("_Waited")
# Seconds between two attempts to connect.
_RECONNECT_SECONDS = 0.1
# How often the driver checks while it waits, in seconds. This is the driver's own default.
_WAIT_INTERVAL = 0.1


class ConnectionSilentError(psycopg.OperationalError):
    """The server keeps the connection open but sends nothing."""


class IdleTimeoutConnection(psycopg.Connection[Row]):
    """A connection that fails if the server sends nothing for ``idle_timeout`` seconds.

    A server that is suspended or cut off does not close its connections, and its own timeouts do not run.
    """

    idle_timeout = 10.0

    @property
    def is_idle(self) -> bool:
        """Return whether the connection can be used for another statement.

        The pipeline status is checked, too: a server that shuts down while several statements are on their way reports
        an error before it closes the connection. The driver then remains inside its pipeline, on a connection that
        does not count as broken.
        """
        status, pipeline = self.info.transaction_status, self.pgconn.pipeline_status
        return status == psycopg.pq.TransactionStatus.IDLE and pipeline == psycopg.pq.PipelineStatus.OFF

    def wait(self, gen: PQGen[_Waited], interval: float = _WAIT_INTERVAL, timeout: float | None = None) -> _Waited:
        """Wait for the server as the driver does, but close the connection after ``idle_timeout`` silent seconds."""
        # ``timeout`` is not passed on: only code that listens for notifications sets it, and older drivers lack it.
        try:
            return super().wait(_with_idle_timeout(gen, self.idle_timeout), interval)
        except ConnectionSilentError:
            self.pgconn.finish()
            raise


def _with_idle_timeout(gen: PQGen[_Waited], idle_timeout: float) -> PQGen[_Waited]:
    """Run the driver's generator unchanged; raise ``ConnectionSilentError`` if no data comes for too long."""
    heard = time.monotonic()
    try:
        timeout = next(gen)
        while True:
            ready = yield timeout
            now = time.monotonic()
            if ready:
                heard = now
            elif now - heard > idle_timeout:
                raise ConnectionSilentError(f"the server said nothing for {idle_timeout:.3g} s")
            timeout = gen.send(ready)
    except StopIteration as end:
        given: _Waited = end.value
        return given


class ConnectionPool:
    """At most ``size`` connections, opened when they are needed and reused."""

    def __init__(self, connect: Callable[[float], IdleTimeoutConnection], *, size: int, timeout: float) -> None:
        self._connect = connect
        self._free_slots = Semaphore(size)
        self._lock = Lock()
        self._idle_connections: list[IdleTimeoutConnection] = []
        self._closed = False
        # The first connection is opened without retries, so that a wrong address fails at once. Later ones are retried,
        # because the server was reachable before.
        self._release(connect(timeout))

    @contextmanager
    def borrow_connection(self, seconds: float, *, idle_timeout: float) -> Iterator[IdleTimeoutConnection]:
        """Yield a connection for the caller alone; afterwards it returns to the pool, or is closed if it was lost.

        Raises ``psycopg.OperationalError`` if there is none within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        if not self._free_slots.acquire(timeout=seconds):
            raise psycopg.OperationalError(f"all connections were in use for {seconds:.3g} s")
        try:
            connection = self._acquire(deadline)
            connection.idle_timeout = idle_timeout
            try:
                yield connection
            finally:
                self._release(connection)
        finally:
            self._free_slots.release()

    def close_unused_connections(self) -> None:
        """Close all unused connections: if one was lost, the others probably are, too."""
        with self._lock:
            idle, self._idle_connections = self._idle_connections, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections; those in use are closed when they are returned."""
        self._closed = True
        self.close_unused_connections()

    def _acquire(self, deadline: float) -> IdleTimeoutConnection:
        """Return an unused connection or open one, with retries until the deadline."""
        with self._lock:
            if self._closed:
                raise psycopg.InterfaceError("the pool is closed")
            if self._idle_connections:
                return self._idle_connections.pop()
        while True:
            try:
                return self._connect(deadline - time.monotonic())
            except psycopg.OperationalError:
                if time.monotonic() + _RECONNECT_SECONDS > deadline:
                    raise
                time.sleep(_RECONNECT_SECONDS)

    def _release(self, connection: IdleTimeoutConnection) -> None:
        """Keep a connection for reuse if it is still usable, otherwise close it."""
        with self._lock:
            if connection.is_idle and not self._closed:
                self._idle_connections.append(connection)
                return
        connection.close()


# The database.

_DEFAULT_SCHEMA = "lamella"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_MAX_CONNECTIONS = 10
# The shortest connection timeout in seconds. After the server was silent, it is also the timeout of every call.
_SHORT_TIMEOUT = 2
# Timeout in seconds for work that may be slow: migrations, reading everything, freeing erased space.
_LONG_TIMEOUT = 600.0
# Share of the timeout after which the server gives up waiting for a lock. It is below 1, so that the server reports the
# lock before its silence counts as a lost connection.
_LOCK_TIMEOUT_SHARE = 0.95
# The number of the advisory lock of migrations. No other program on the server should use it.
_MIGRATION_LOCK_KEY = 7_136_044_918
# Parameters that change neither the target of a connection nor the data sent there.
_HIDDEN_PARAMETERS = ("password", "sslpassword", "client_encoding", "connect_timeout")
_RETRY_HINT = "What was acknowledged is safe. Try again when the server is back."
_WRONG_ADDRESS_ERROR = re.compile(r'(?:database|role) ".*" does not exist|authentication failed')
_ADDRESS_HINT = "Check database, role and password in the address; docs/explanation/storage.md shows how to make them."


def open_postgresql(url: str, *, timeout: float, migrations: Sequence[str] | None = None) -> SqlStore:
    """Open the store in a schema of a PostgreSQL database; the schema is created if it does not exist."""
    conninfo, schema = parse_url(url)
    name = _display_address(conninfo)
    database = PostgresDatabase(conninfo, schema=schema, name=name, timeout=timeout)
    try:
        return SqlStore(database, name=name, migrations=migrations)
    except BaseException:
        database.close()
        raise


def parse_url(url: str) -> tuple[str, str]:
    """Return the connection string for the driver, and the schema from the ``schema`` parameter of the URL.

    Raises ``SettingError`` if the URL or the name of the schema is invalid.
    """
    address, _, query = url.partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    schema = parameters.pop("schema", _DEFAULT_SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise SettingError(
            f"The schema {schema!r} has no plain name.", hint="Use small letters, digits and _, as in ?schema=chats."
        )
    try:
        urlsplit(address)
        rest = urlencode(parameters, quote_via=quote)
        conninfo = make_conninfo(f"{address}?{rest}" if rest else address, client_encoding="utf8")
        if "@" in str(conninfo_to_dict(conninfo).get("host") or ""):
            raise ValueError("a password with an @ runs into the host")
    except (psycopg.Error, ValueError):
        # The driver's message may contain a part of the password, so it is not shown.
        raise SettingError(
            "The address of the PostgreSQL server cannot be read.",
            hint="Write postgresql://user:password@host:5432/database; escape special characters as %40.",
        ) from None
    return conninfo, schema


def canonical_address(url: str) -> str:
    """Return the canonical form of a URL without the password; URLs of the same target give the same text."""
    conninfo, schema = parse_url(url)
    parts = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if name not in _HIDDEN_PARAMETERS}
    user = f"{quote(parts.pop('user'), safe='')}@" if "user" in parts else ""
    hosts = _join_hosts_and_ports(parts.pop("host", ""), parts.pop("port", ""))
    address = f"postgresql://{user}{hosts}/{quote(parts.pop('dbname', ''), safe='')}"
    rest = {**dict(sorted(parts.items())), **({} if schema == _DEFAULT_SCHEMA else {"schema": schema})}
    return f"{address}?{urlencode(rest, quote_via=quote)}" if rest else address


def _join_hosts_and_ports(hosts: str, ports: str) -> str:
    """Return the hosts with their ports as in a URL; several hosts share one port or have one each."""
    names, numbers = hosts.split(","), ports.split(",")
    numbers = numbers if len(numbers) == len(names) else numbers * len(names)
    shown = (f"[{quote(name, safe=':')}]" if ":" in name else quote(name, safe="") for name in names)
    return ",".join(f"{name}:{number}" if number else name for name, number in zip(shown, numbers, strict=False))


def _display_address(conninfo: str) -> str:
    """Return the address for messages, without user and password."""
    parts = conninfo_to_dict(conninfo)
    host = parts.get("host") or "localhost"
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"


class PostgresDatabase:
    """A PostgreSQL database with a pool of connections; lost connections are replaced."""

    dialect = "postgresql"
    row_lock_clause = " FOR UPDATE"
    has_multi_table_statements = True

    def __init__(self, conninfo: str, *, schema: str, name: str, timeout: float) -> None:
        self._conninfo = conninfo
        self._connect_timeout = conninfo_to_dict(conninfo).get("connect_timeout")
        self._schema = schema
        self._name = name
        self._max_wait = timeout
        self._is_server_silent = False
        # Difference between the server's clock and this process's monotonic clock. The system clock is not used,
        # because it can be set.
        self._server_clock_offset = 0.0
        try:
            self._pool = ConnectionPool(self._connect, size=_MAX_CONNECTIONS, timeout=timeout)
        except psycopg.Error as error:
            raise to_lamella_error(error, name) from error

    def _connect(self, seconds: float) -> IdleTimeoutConnection:
        """Open a connection with settings that make a committed write durable, whatever the role's defaults are."""
        conninfo = make_conninfo(
            self._conninfo, connect_timeout=self._connect_timeout or max(_SHORT_TIMEOUT, ceil(seconds))
        )
        connection = IdleTimeoutConnection.connect(conninfo, autocommit=True)
        connection.idle_timeout = max(_SHORT_TIMEOUT, seconds)
        try:
            self._check_encoding(connection)
            statements = (
                f"SET search_path TO {self._schema}",
                f"SET lock_timeout TO {ceil(self._max_wait * _LOCK_TIMEOUT_SHARE * 1000)}",
                "SET default_transaction_isolation TO 'read committed'",
                # Only 'off' is changed: with all other values a commit is on disk, and some are stricter.
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') = 'off'",
            )
            connection.execute("; ".join(statements).encode())
            [(now,)] = connection.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)").fetchall()
            self._server_clock_offset = now - time.monotonic()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_encoding(self, connection: IdleTimeoutConnection) -> None:
        """Raise ``SettingError`` unless the database uses UTF-8."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise SettingError(
                f"The database {self._name} has the encoding {encoding}, which cannot hold every text.",
                hint="CREATE DATABASE chats ENCODING 'UTF8' TEMPLATE template0",
            )

    def run(self, sql: str, *values: object) -> int:
        return self._with_reconnect(lambda connection: _PostgresTransaction(connection).run(sql, *values))

    def compute_deadline(self) -> float:
        return time.monotonic() + self._server_clock_offset + self._current_timeout()

    def _current_timeout(self) -> float:
        """Return the timeout for the next call; it is short while the server is silent."""
        return min(_SHORT_TIMEOUT, self._max_wait) if self._is_server_silent else self._max_wait

    def query(self, sql: str, *values: object) -> list[Row]:
        return self._with_reconnect(lambda connection: _PostgresTransaction(connection).query(sql, *values))

    def query_map(self, convert: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        return self._with_reconnect(
            lambda connection: _PostgresTransaction(connection).query_map(convert, sql, *values)
        )

    def run_read_transaction(self, work: Callable[[Transaction], Result]) -> Result:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._with_reconnect(
            lambda connection: _run_transaction(connection, begin, work), idle_timeout=_LONG_TIMEOUT
        )

    def run_write_transaction(self, work: Callable[[Transaction], Result]) -> Result:
        return self._with_reconnect(lambda connection: _run_transaction(connection, _BEGIN_WRITE, work))

    def migrate(self, work: Callable[[Transaction], Result]) -> Result:
        def alone(transaction: Transaction) -> Result:
            transaction.run("SELECT pg_advisory_xact_lock(?)", _MIGRATION_LOCK_KEY)
            # CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even if the schema exists. A role that only
            # uses the store may not have it.
            if not transaction.query("SELECT 1 FROM pg_namespace WHERE nspname = ?", self._schema):
                transaction.run(f"CREATE SCHEMA {self._schema}")
            return work(transaction)

        return self._with_reconnect(
            lambda connection: _run_transaction(connection, _BEGIN_WRITE, alone), idle_timeout=_LONG_TIMEOUT
        )

    def _with_reconnect(
        self, use: Callable[[IdleTimeoutConnection], Result], *, idle_timeout: float | None = None
    ) -> Result:
        """Call ``use`` with a connection; if a text is not UTF-8, call it once more and read it with replacements.

        A damaged text must not hide the other rows. ``verify`` reports it.
        """
        try:
            return self._use_again_if_lost(use, idle_timeout=idle_timeout)
        except UnicodeDecodeError:
            return self._use_again_if_lost(partial(_use_with_replacements, use), idle_timeout=idle_timeout)

    def _use_again_if_lost(
        self, use: Callable[[IdleTimeoutConnection], Result], *, idle_timeout: float | None
    ) -> Result:
        """Call ``use`` with a connection; if the connection is lost, call it once more with a new one.

        Both calls share one timeout.
        """
        timeout = self._current_timeout()
        deadline = time.monotonic() + timeout
        try:
            return self._use_connection(use, timeout, idle_timeout=idle_timeout or timeout)
        except _ConnectionLostError as error:
            self._pool.close_unused_connections()
            left = deadline - time.monotonic()
            if left <= 0:
                raise to_lamella_error(error.cause, self._name) from error.cause
        try:
            return self._use_connection(use, left, idle_timeout=idle_timeout or left)
        except _ConnectionLostError as error:
            raise to_lamella_error(error.cause, self._name) from error.cause

    def _use_connection(
        self, use: Callable[[IdleTimeoutConnection], Result], seconds: float, *, idle_timeout: float
    ) -> Result:
        """Call ``use`` with a connection.

        Raises ``_ConnectionLostError`` if the work may be repeated, otherwise a ``LamellaError``.
        """
        try:
            with self._pool.borrow_connection(seconds, idle_timeout=idle_timeout) as connection:
                try:
                    result = use(connection)
                except psycopg.Error as error:
                    if not connection.is_idle or isinstance(error, pg.DeadlockDetected | pg.SerializationFailure):
                        raise _ConnectionLostError(error) from error
                    raise
        except (psycopg.Error, _ConnectionLostError) as error:
            cause = error.cause if isinstance(error, _ConnectionLostError) else error
            # While the server is silent, the next calls get a short timeout. Otherwise each would wait as long again.
            self._is_server_silent = isinstance(cause, ConnectionSilentError | psycopg.errors.ConnectionTimeout)
            if isinstance(error, psycopg.Error):
                raise to_lamella_error(error, self._name) from error
            raise
        self._is_server_silent = False
        return result

    def list_tables(self, transaction: Transaction) -> set[str]:
        used = "SELECT has_schema_privilege(nspname, 'USAGE') FROM pg_namespace WHERE nspname = ?"
        if (False,) in transaction.query(used, self._schema):
            raise StoreUnavailableError(
                f"{self._name} does not permit this role to use the schema {self._schema}.",
                hint=f"GRANT USAGE ON SCHEMA {self._schema} to the role, and the rights on its tables.",
            )
        rows = transaction.query("SELECT tablename FROM pg_tables WHERE schemaname = ?", self._schema)
        return {name for (name,) in rows}

    def prepare_erase(self, transaction: Transaction) -> None:
        """Lock the tables of contents until the transaction ends.

        Every append with contents inserts into ``holdings`` first, so it waits for this lock there.
        """
        transaction.run("LOCK TABLE holdings, contents IN SHARE ROW EXCLUSIVE MODE")

    def purge_erased_data(self) -> None:
        """Free the space of deleted rows, so that the server reuses it.

        The space is not returned to the operating system: for that, VACUUM would wait for all other transactions and
        block new ones.
        """
        tables = "conversations, events, holdings, contents, checkpoints"
        free = f"VACUUM (TRUNCATE false) {tables}".encode()
        self._with_reconnect(lambda connection: connection.execute(free), idle_timeout=_LONG_TIMEOUT)

    def check_files(self) -> Iterator[StoreProblem]:
        """Yield nothing: the operator of the server checks its files."""
        return iter(())

    def find_unpurged_data(self) -> Iterator[StoreProblem]:
        """Yield nothing: pages and archives of the server cannot be inspected by a client."""
        return iter(())

    def close(self) -> None:
        self._pool.close()


_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class _ConnectionLostError(Exception):
    """The connection or transaction was lost; the work may be tried again."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _ReplacingTextLoader(Loader):
    """Decodes text, and puts replacement characters for bytes that are not UTF-8."""

    format = psycopg.pq.Format.BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="replace")


def _use_with_replacements(use: Callable[[IdleTimeoutConnection], Result], connection: IdleTimeoutConnection) -> Result:
    """Call ``use`` with a connection that reads any bytes as text. The connection is not used again after that."""
    for name in ("text", "varchar", "name"):
        connection.adapters.register_loader(name, _ReplacingTextLoader)
    try:
        return use(connection)
    finally:
        connection.close()


def _run_transaction(connection: IdleTimeoutConnection, begin: str, work: Callable[[Transaction], Result]) -> Result:
    """Run ``work`` between ``begin`` and COMMIT, and roll back on any error."""
    try:
        connection.execute(begin.encode())
        result = work(_PostgresTransaction(connection))
        connection.execute("COMMIT")
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise
    return result


class _PostgresTransaction:
    def __init__(self, connection: IdleTimeoutConnection) -> None:
        self._connection = connection

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(_translate_placeholders(sql), values).rowcount

    def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translate_placeholders(sql), rows)
            return cursor.rowcount

    def query(self, sql: str, *values: object) -> list[Row]:
        # Binary results: in text format bytes come as hex digits, which takes several times as long.
        return self._connection.execute(_translate_placeholders(sql), values, binary=True).fetchall()

    def query_map(self, convert: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        # Streamed, because ``fetchall`` would keep all rows in memory three times: as received, as a result and as
        # Python values.
        with self._connection.cursor() as cursor:
            return [convert(row) for row in cursor.stream(_translate_placeholders(sql), values, binary=True)]


@lru_cache(maxsize=128)
def _translate_placeholders(sql: str) -> bytes:
    """Return a statement with the placeholders of psycopg."""
    return sql.replace("?", "%s").encode()


def to_lamella_error(error: psycopg.Error, name: str) -> LamellaError:
    """Translate an error of the driver or the server to a ``LamellaError`` with a hint."""
    reason = _first_line(error)
    match error:
        case psycopg.InterfaceError():
            return InvalidOperationError(f"The store {name} is closed.", hint="Open it again.")
        case pg.InsufficientPrivilege():
            return StoreUnavailableError(
                f"{name} does not permit it: {reason}.",
                hint="Grant the role CREATE on the database, or the tables of its schema.",
            )
        case pg.ReadOnlySqlTransaction():
            return StoreUnavailableError(
                f"{name} is read-only: {reason}.", hint="Nothing was written. Use the primary server."
            )
        case pg.DiskFull():
            return StoreUnavailableError(
                f"The disk of {name} is full: {reason}.", hint="Nothing was written. Make room and try again."
            )
        case pg.LockNotAvailable():
            return StoreUnavailableError(f"{name} was locked for too long: {reason}.", hint="Nothing was written.")
        case psycopg.OperationalError():
            hint = _ADDRESS_HINT if _WRONG_ADDRESS_ERROR.search(reason) else _RETRY_HINT
            return StoreUnavailableError(f"{name} cannot be used: {reason}.", hint=hint)
    return StoreCorruptedError(
        f"{name} is damaged: {reason}.",
        hint=lambda hints: f"{hints.verify_store_hint()} tells where; restore it from a backup.",
    )


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
