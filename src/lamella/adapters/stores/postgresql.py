"""PostgreSQL: many processes on many machines. A conversation's row is locked by the one who appends to it."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from math import ceil
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lamella.adapters.stores.database import Result, Row, Transaction
from lamella.adapters.stores.pool import Connection, Pool, SilenceError
from lamella.adapters.stores.store import SqlStore
from lamella.errors import CallError, LamellaError, SettingError, StoreDamagedError, StoreUnavailableError
from lamella.holdings import Damage

_SCHEMA = "lamella"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_CONNECTIONS = 10
# The driver waits at least so many seconds for a connection. A server that was silent before gets no more of anything.
_SHORT = 2
# What may take long by itself: to migrate, to read everything, to free what was erased.
_LONG = 600.0
# Of what is borne: the server says first that something was locked, before its silence would count.
_LOCKED = 0.95
# Whoever migrates holds the advisory lock of this number, which nothing else on the server should use.
_MIGRATION_LOCK = 7_136_044_918
# What changes neither where a connection leads nor what goes there.
_UNTOLD = ("password", "sslpassword", "client_encoding", "connect_timeout")
_AGAIN = "What was acknowledged is safe. Try again when the server is back."
_IN_ADDRESS = re.compile(r'(?:database|role) ".*" does not exist|authentication failed')
_ADDRESS = "Check database, role and password in the address; docs/stores.md shows how to make them."


def open_postgresql(url: str, *, patience: float, migrations: Sequence[str] | None = None) -> SqlStore:
    """The store in a schema of a database on a server, made if it is not there."""
    conninfo, schema = read_url(url)
    name = _show(conninfo)
    database = PostgresDatabase(conninfo, schema=schema, name=name, patience=patience)
    try:
        return SqlStore(database, name=name, migrations=migrations)
    except BaseException:
        database.close()
        raise


def read_url(url: str) -> tuple[str, str]:
    """The URL as the driver takes it, and the schema that Lamella's own parameter names."""
    address, _, query = url.partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    schema = parameters.pop("schema", _SCHEMA)
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
        # The driver's own words may repeat a part of the password.
        raise SettingError(
            "The address of the PostgreSQL server cannot be read.",
            hint="Write postgresql://user:password@host:5432/database; escape special characters as %40.",
        ) from None
    return conninfo, schema


def name_server(url: str) -> str:
    """A URL with everything that says where it leads and how, and without the password: one place, one name."""
    conninfo, schema = read_url(url)
    parts = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if name not in _UNTOLD}
    user = f"{quote(parts.pop('user'), safe='')}@" if "user" in parts else ""
    hosts = _pair(parts.pop("host", ""), parts.pop("port", ""))
    address = f"postgresql://{user}{hosts}/{quote(parts.pop('dbname', ''), safe='')}"
    rest = {**dict(sorted(parts.items())), **({} if schema == _SCHEMA else {"schema": schema})}
    return f"{address}?{urlencode(rest, quote_via=quote)}" if rest else address


def _pair(hosts: str, ports: str) -> str:
    """Each host with its port, as an address has them; several hosts may have one port for all, or each its own."""
    names, numbers = hosts.split(","), ports.split(",")
    numbers = numbers if len(numbers) == len(names) else numbers * len(names)
    shown = (f"[{quote(name, safe=':')}]" if ":" in name else quote(name, safe="") for name in names)
    return ",".join(f"{name}:{number}" if number else name for name, number in zip(shown, numbers, strict=False))


def _show(conninfo: str) -> str:
    """The address as messages may show it: without user and password."""
    parts = conninfo_to_dict(conninfo)
    host = parts.get("host") or "localhost"
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"


class PostgresDatabase:
    """One server, and connections to it that are renewed when they were lost."""

    dialect = "postgresql"
    lock_row = " FOR UPDATE"
    joins = True

    def __init__(self, conninfo: str, *, schema: str, name: str, patience: float) -> None:
        self._conninfo = conninfo
        self._timeout = conninfo_to_dict(conninfo).get("connect_timeout")
        self._schema = schema
        self._name = name
        self._patience = patience
        self._silent = False
        # How far the server's clock is ahead of this process's own, which nobody sets.
        self._ahead = 0.0
        try:
            self._pool = Pool(self._connect, size=_CONNECTIONS, patience=patience)
        except psycopg.Error as error:
            raise explain(error, name) from error

    def _connect(self, seconds: float) -> Connection:
        """A connection set so that acknowledged means durable, whatever the role's defaults are."""
        conninfo = make_conninfo(self._conninfo, connect_timeout=self._timeout or max(_SHORT, ceil(seconds)))
        connection = Connection.connect(conninfo, autocommit=True)
        connection.silence = max(_SHORT, seconds)
        try:
            self._check_encoding(connection)
            statements = (
                f"SET search_path TO {self._schema}",
                f"SET lock_timeout TO {ceil(self._patience * _LOCKED * 1000)}",
                "SET default_transaction_isolation TO 'read committed'",
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') = 'off'",
            )
            connection.execute("; ".join(statements).encode())
            [(now,)] = connection.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)").fetchall()
            self._ahead = now - time.monotonic()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_encoding(self, connection: Connection) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise SettingError(
                f"The database {self._name} has the encoding {encoding}, which cannot hold every text.",
                hint="CREATE DATABASE chats ENCODING 'UTF8' TEMPLATE template0",
            )

    def run(self, sql: str, *values: object) -> int:
        return self._insist(lambda connection: _PostgresTransaction(connection).run(sql, *values))

    def find_deadline(self) -> float:
        return time.monotonic() + self._ahead + self._bear()

    def _bear(self) -> float:
        return min(_SHORT, self._patience) if self._silent else self._patience

    def query(self, sql: str, *values: object) -> list[Row]:
        return self._insist(lambda connection: _PostgresTransaction(connection).rows(sql, *values))

    def each(self, read: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        return self._insist(lambda connection: _PostgresTransaction(connection).each(read, sql, *values))

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._insist(lambda connection: _run(connection, begin, work), silence=_LONG)

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        return self._insist(lambda connection: _run(connection, _WRITE, work))

    def migrate(self, work: Callable[[Transaction], Result]) -> Result:
        def alone(transaction: Transaction) -> Result:
            transaction.run("SELECT pg_advisory_xact_lock(?)", _MIGRATION_LOCK)
            # Even IF NOT EXISTS needs the right to make schemas, which those who only use one may not have.
            if not transaction.rows("SELECT 1 FROM pg_namespace WHERE nspname = ?", self._schema):
                transaction.run(f"CREATE SCHEMA {self._schema}")
            return work(transaction)

        return self._insist(lambda connection: _run(connection, _WRITE, alone), silence=_LONG)

    def _insist(self, use: Callable[[Connection], Result], *, silence: float | None = None) -> Result:
        """Use a connection; once more on a new one, in the time that is left, if the server went away under it."""
        borne = self._bear()
        deadline = time.monotonic() + borne
        try:
            return self._try(use, borne, silence=silence or borne)
        except _LostError as error:
            self._pool.drop_idle()
            left = deadline - time.monotonic()
            if left <= 0:
                raise explain(error.cause, self._name) from error.cause
        try:
            return self._try(use, left, silence=silence or left)
        except _LostError as error:
            raise explain(error.cause, self._name) from error.cause

    def _try(self, use: Callable[[Connection], Result], seconds: float, *, silence: float) -> Result:
        try:
            with self._pool.lend(seconds, silence=silence) as connection:
                try:
                    result = use(connection)
                except psycopg.Error as error:
                    if not connection.idle or isinstance(error, pg.DeadlockDetected | pg.SerializationFailure):
                        raise _LostError(error) from error
                    raise
        except (psycopg.Error, _LostError) as error:
            cause = error.cause if isinstance(error, _LostError) else error
            # Everyone who comes after this would wait as long once more.
            self._silent = isinstance(cause, SilenceError | psycopg.errors.ConnectionTimeout)
            if isinstance(error, psycopg.Error):
                raise explain(error, self._name) from error
            raise
        self._silent = False
        return result

    def tables(self, transaction: Transaction) -> set[str]:
        used = "SELECT has_schema_privilege(nspname, 'USAGE') FROM pg_namespace WHERE nspname = ?"
        if (False,) in transaction.rows(used, self._schema):
            raise StoreUnavailableError(
                f"{self._name} does not permit this role to use the schema {self._schema}.",
                hint=f"GRANT USAGE ON SCHEMA {self._schema} to the role, and the rights on its tables.",
            )
        rows = transaction.rows("SELECT tablename FROM pg_tables WHERE schemaname = ?", self._schema)
        return {name for (name,) in rows}

    def begin_erasing(self, transaction: Transaction) -> None:
        """Whoever takes hold of contents inserts into ``holdings`` first, and waits for this lock there."""
        transaction.run("LOCK TABLE holdings, contents IN SHARE ROW EXCLUSIVE MODE")

    def purge(self) -> None:
        """Free what deleted rows took; the server writes over it.

        To give space back to the system it would wait for everyone else and keep others waiting.
        """
        tables = "conversations, events, holdings, contents, checkpoints"
        free = f"VACUUM (TRUNCATE false) {tables}".encode()
        self._insist(lambda connection: connection.execute(free), silence=_LONG)

    def inspect(self) -> Iterator[Damage]:
        """Nothing: a server's files are its operator's to check."""
        return iter(())

    def find_lingering(self) -> Iterator[Damage]:
        """Nothing that can be seen from here: pages and archives of the server are its operator's."""
        return iter(())

    def close(self) -> None:
        self._pool.close()


_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class _LostError(Exception):
    """The transaction is gone and may be tried again."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _run(connection: Connection, begin: str, work: Callable[[Transaction], Result]) -> Result:
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
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(_translate(sql), values).rowcount

    def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translate(sql), rows)
            return cursor.rowcount

    def rows(self, sql: str, *values: object) -> list[Row]:
        # Bytes come as they are; as text they would come in hex digits, which takes several times as long.
        return self._connection.execute(_translate(sql), values, binary=True).fetchall()

    def each(self, read: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        # All rows at once would be in memory three times over: as they came, as a result, and as values.
        with self._connection.cursor() as cursor:
            return [read(row) for row in cursor.stream(_translate(sql), values, binary=True)]


@lru_cache(maxsize=128)
def _translate(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def explain(error: psycopg.Error, name: str) -> LamellaError:
    """What an error of the driver or the server means here, and what to do next."""
    reason = _first_line(error)
    match error:
        case psycopg.InterfaceError():
            return CallError(f"The store {name} is closed.", hint="Open it again.")
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
            hint = _ADDRESS if _IN_ADDRESS.search(reason) else _AGAIN
            return StoreUnavailableError(f"{name} cannot be used: {reason}.", hint=hint)
    return StoreDamagedError(
        f"{name} is damaged: {reason}.",
        hint=lambda door: f"{door.verify_store()} tells where; restore it from a backup.",
    )


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
