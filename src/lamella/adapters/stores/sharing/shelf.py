"""Shelves: what one process of a store lays down for a while, so that another can go on where it stopped."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock

from lamella.adapters.stores.database import Database, Transaction, marks, split


class SqlShelf:
    """Lines in a table of the store, as durable as conversations are."""

    def __init__(self, find_database: Callable[[], Database]) -> None:
        self._find_database = find_database

    def put(self, name: str, text: str, *, at: datetime, ends: datetime, conversation: str = "") -> None:
        """Lay a line down in place of the one of that name; those that ended go."""

        def put(transaction: Transaction) -> None:
            transaction.run("DELETE FROM shelf WHERE ends <= ?", _write(at))
            transaction.run(
                "INSERT INTO shelf (name, conversation, text, ends) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
                " SET conversation = excluded.conversation, text = excluded.text, ends = excluded.ends",
                *(name, conversation, text, _write(ends)),
            )

        self._find_database().write(put)

    def find(self, *names: str, at: datetime) -> Mapping[str, str]:
        """Those of these names that there are, with what they say."""
        found: dict[str, str] = {}
        for some in split(names):
            sql = f"SELECT name, text FROM shelf WHERE name IN {marks(some)} AND ends > ?"
            found |= dict(self._find_database().query(sql, *some, _write(at)))
        return found

    def remove(self, name: str) -> None:
        self._find_database().write(lambda transaction: transaction.run("DELETE FROM shelf WHERE name = ?", name))


class MemoryShelf:
    """Lines in this process's memory, safe for its threads."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[str, str, datetime]] = {}
        self._lock = Lock()

    def put(self, name: str, text: str, *, at: datetime, ends: datetime, conversation: str = "") -> None:
        """Lay a line down in place of the one of that name; those that ended go."""
        with self._lock:
            self._lines = {one: line for one, line in self._lines.items() if line[2] > at}
            self._lines[name] = (conversation, text, ends)

    def find(self, *names: str, at: datetime) -> Mapping[str, str]:
        """Those of these names that there are, with what they say."""
        with self._lock:
            return {name: self._lines[name][1] for name in names if name in self._lines and self._lines[name][2] > at}

    def remove(self, name: str) -> None:
        with self._lock:
            self._lines.pop(name, None)

    def clear(self, conversation: str) -> None:
        """Remove what is about a conversation in which something is erased."""
        with self._lock:
            self._lines = {one: line for one, line in self._lines.items() if line[0] != conversation}


def clear_shelf(transaction: Transaction, conversation: str) -> None:
    """Remove what is about a conversation in which something is erased."""
    transaction.run("DELETE FROM shelf WHERE conversation = ?", conversation)


def _write(at: datetime) -> str:
    """A time that sorts as it follows on others."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
