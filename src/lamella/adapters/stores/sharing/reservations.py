"""Reservations: in one conversation one process answers at a time, however many share a store.

Where one process has a store to itself there is nothing to do beyond what it keeps in mind. On a PostgreSQL server each
process keeps one connection, and an advisory lock on it for each conversation that it is answering in: a process that
dies lets go of them with its connection.
"""

from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

# The first of the two numbers of a lock: those of Lamella's conversations.
_SPACE = 713_604_491


class OpenReservations:
    """For a store that no other process answers from: whoever asks may."""

    waits = False

    def take(self, conversation: str) -> bool:
        return True

    def release(self, conversation: str) -> None:
        """Nothing was taken."""

    def close(self) -> None:
        """Nothing is open."""


class ServerReservations:
    """Advisory locks of a PostgreSQL server. One that was lost is made again when it is next needed."""

    waits = True

    def __init__(self, url: str, *, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._lock = Lock()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None

    def take(self, conversation: str) -> bool:
        """Whether this process may answer in a conversation; until it is released no other may."""
        return self._ask("SELECT pg_try_advisory_lock(%s, %s)", conversation)

    def release(self, conversation: str) -> None:
        self._ask("SELECT pg_advisory_unlock(%s, %s)", conversation)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _ask(self, sql: str, conversation: str) -> bool:
        import psycopg

        from lamella.adapters.stores.postgresql import explain

        digest = sha256(f"{self._schema}\0{conversation}".encode()).digest()
        number = int.from_bytes(digest[:4], "big", signed=True)
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(self._url, autocommit=True)
                row = self._connection.execute(sql.encode(), (_SPACE, number)).fetchone()
            except psycopg.Error as error:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                raise explain(error, "The server of the store") from error
        return bool(row and row[0])


def open_reservations(url: str) -> OpenReservations | ServerReservations:
    """What processes that share the store at a URL take turns by."""
    if not url.startswith("postgres"):
        return OpenReservations()
    from lamella.adapters.stores.postgresql import read_url

    conninfo, schema = read_url(url)
    return ServerReservations(conninfo, schema=schema)
