"""Shelves: what one process of a store lays down another finds, until it ends or its conversation is erased."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import attach, erasure, say

from lamella.core.text.content import hash_bytes
from lamella.ports import Store
from lamella.stores.sharing import OwnedStore

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_shared_row_expires_and_last_value_wins(store: Store) -> None:
    store.shared_table.set("tide", "at noon", at=NOW, expires_at=NOW + HOUR)
    store.shared_table.set("tide", "at six", at=NOW, expires_at=NOW + HOUR)
    assert store.shared_table.get_many("tide", at=NOW + HOUR - timedelta(microseconds=1)) == {"tide": "at six"}
    assert store.shared_table.get_many("tide", at=NOW + HOUR) == {}
    assert store.shared_table.get_many("ebb", at=NOW) == {}
    store.shared_table.remove("tide")
    store.shared_table.remove("tide")
    assert store.shared_table.get_many("tide", at=NOW) == {}


def test_expired_rows_are_removed_on_next_write(store: Store) -> None:
    store.shared_table.set("old", "x", at=NOW, expires_at=NOW + HOUR)
    store.shared_table.set("new", "y", at=NOW + 2 * HOUR, expires_at=NOW + 3 * HOUR)
    assert store.shared_table.get_many("old", at=NOW) == {}


def test_shared_row_is_visible_to_other_processes(url: str, opened: OpenStore, tmp_path: Path) -> None:
    opened(url).shared_table.set("tide", "at \u0022noon\u0022 🦉", at=NOW, expires_at=NOW + HOUR)
    assert opened(url).shared_table.get_many("tide", at=NOW) == {"tide": 'at "noon" 🦉'}
    assert OwnedStore(opened(url), "ana").shared_table.get_many("tide", at=NOW) == {"tide": 'at "noon" 🦉'}


def test_erasing_conversation_removes_its_shared_rows_only(store: Store) -> None:
    secret = b"a secret"
    for name in ("whole", "part", "other"):
        store.append(name, attach(secret), expected=0)
        store.shared_table.set(name, "said of it", at=NOW, expires_at=NOW + HOUR, conversation_key=name)
    store.shared_table.set("nobody's", "of no conversation", at=NOW, expires_at=NOW + HOUR)
    store.erase_conversation("whole", at="2026-11-17T12:00:00Z")
    store.erase_contents("part", [hash_bytes(secret)], erasure(hash_bytes(secret)), expected=1)
    store.append("other", say("and on"), expected=1)
    left = store.shared_table.get_many("whole", "part", "other", "nobody's", at=NOW)
    assert left == {"other": "said of it", "nobody's": "of no conversation"}
    assert list(store.verify_erased("whole")) == []
