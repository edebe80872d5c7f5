"""Verifying: every kind of damage is found, where it is and nowhere else."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import LATER, attach, erasure, say, tamper

from lamella.core.text.content import hash_bytes
from lamella.errors import StoreCorruptedError
from lamella.ports import Store, StoreProblem

DATA = b"attached"
NAME = hash_bytes(DATA)


@pytest.fixture
def filled(url: str, opened: OpenStore) -> Store:
    """A conversation of five events and one content, and another of two that shares the content."""
    store = opened(url)
    store.append("c", attach(DATA, text="one"), expected=0)
    store.append("c", say("two", "three", "four", "five"), expected=1)
    store.append("d", attach(DATA, text="other"), expected=0)
    store.append("d", say("end"), expected=1)
    store.erase_conversation("gone", at=LATER)
    assert list(store.verify()) == []
    return store


def _places(store: Store, conversation: str | None = None) -> list[tuple[str | None, str]]:
    return [(damage.conversation, damage.location) for damage in store.verify(conversation)]


EVENT = "UPDATE events SET {} WHERE conversation = 'c' AND seq = {}"
DAMAGES = {
    "a text was changed": (EVENT.format('body = \'{"text": "twO"}\'', 2), ["event 2"]),
    "a time was changed": (EVENT.format("at = '2026-01-01T00:00:01Z'", 3), ["event 3"]),
    "a kind was changed": (EVENT.format("kind = 'reply'", 1), ["event 1"]),
    "the named contents were changed": (EVENT.format("contents = '[]'", 1), ["event 1", f"content {NAME}"]),
    "a hash was changed": (EVENT.format("hash = 'sha256:0'", 3), ["event 3"]),
    "the last hash was changed": (EVENT.format("hash = 'sha256:0'", 5), ["event 5"]),
    "a kind that nobody knows": (EVENT.format("kind = 'nonsense'", 4), ["event 4"]),
    "contents that are no list": (EVENT.format("contents = '{}'", 4), ["event 4"]),
    "contents that are no JSON": (EVENT.format("contents = '['", 4), ["event 4"]),
    "an event is gone": ("DELETE FROM events WHERE conversation = 'c' AND seq = 3", ["event 3", "event 4"]),
    "two events are gone": (
        "DELETE FROM events WHERE conversation = 'c' AND seq IN (2, 3)",
        ["events 2 to 3", "event 4"],
    ),
    "the first event is gone": (
        "DELETE FROM events WHERE conversation = 'c' AND seq = 1",
        ["event 1", "event 2", f"content {NAME}"],
    ),
    "the end is gone": ("DELETE FROM events WHERE conversation = 'c' AND seq > 3", ["events 4 to 5"]),
    "an event too many": (
        "INSERT INTO events SELECT conversation, 6, kind, at, body, contents, hash, counts FROM events"
        " WHERE conversation = 'c' AND seq = 5",
        ["event 6", "conversation"],
    ),
    "the head was changed": ("UPDATE conversations SET head = 'sha256:0' WHERE id = 'c'", ["conversation"]),
    "the count is too large": ("UPDATE conversations SET version = 9 WHERE id = 'c'", ["conversation"]),
    "the beginning is another": ("UPDATE conversations SET created = '2020' WHERE id = 'c'", ["conversation"]),
    "the last change is another": ("UPDATE conversations SET updated = '2020' WHERE id = 'c'", ["conversation"]),
    "the name is gone": ("UPDATE conversations SET name = NULL WHERE id = 'c'", ["conversation"]),
    "the count is too small": ("UPDATE conversations SET version = 4 WHERE id = 'c'", ["conversation"]),
    "nobody holds the content": ("DELETE FROM holdings WHERE conversation = 'c'", [f"content {NAME}"]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_located(url: str, filled: Store, damage: str) -> None:
    statement, places = DAMAGES[damage]
    tamper(url, statement)
    assert _places(filled) == [("c", place) for place in places]
    assert _places(filled, "c") == [("c", place) for place in places]
    assert _places(filled, "d") == []


def test_damaged_token_counts_are_ignored_by_hashes(url: str, filled: Store) -> None:
    column = "counts = 'nonsense'" if url.startswith("sqlite") else "counts = '\\x00'"
    tamper(url, EVENT.format(column, 2))
    assert _places(filled) == []
    left = b"" if url.startswith("sqlite") else b"\0"
    assert [record.counts for record in filled.load("c")] == [b"", left, b"", b"", b""]


def test_changed_content_is_reported_for_each_conversation(url: str, filled: Store) -> None:
    tamper(url, "UPDATE contents SET data = ?", b"Attached")
    assert _places(filled) == [("c", f"content {NAME}"), ("d", f"content {NAME}")]
    what = [damage.description for damage in filled.verify("c")]
    assert what == [f"its 8 bytes have the hash {hash_bytes(b'Attached')}"]
    with pytest.raises(StoreCorruptedError, match=NAME):
        filled.read_contents("c", [NAME])


def test_missing_content_is_found(url: str, filled: Store) -> None:
    tamper(url, "DELETE FROM contents")
    missing = [damage for damage in filled.verify() if damage.location == f"content {NAME}"]
    assert missing == [
        StoreProblem(conversation=name, location=f"content {NAME}", description="missing, and never erased")
        for name in ("c", "d")
    ]
    with pytest.raises(StoreCorruptedError, match="is missing"):
        filled.read_contents("c", [NAME])


def test_erased_content_is_not_called_missing(filled: Store) -> None:
    filled.append("c", erasure(NAME), expected=5)
    assert list(filled.verify()) == []


def test_orphaned_content_is_reported(url: str, filled: Store) -> None:
    tamper(url, "INSERT INTO contents (hash, data) VALUES (?, ?)", hash_bytes(b"stray"), b"stray")
    assert _places(filled) == [(None, f"content {hash_bytes(b'stray')}")]


def test_events_of_no_conversation_are_found(url: str, filled: Store) -> None:
    tamper(url, "DELETE FROM conversations WHERE id = 'd'")
    assert {("d", "events"), ("d", "holdings")} <= set(_places(filled))


def test_invalid_key_is_reported_and_blocks_no_other_conversation(url: str, filled: Store) -> None:
    tamper(url, "UPDATE conversations SET id = '' WHERE id = 'c'")
    assert {("c", "events"), ("c", "conversation")} <= set(_places(filled))
    tamper(url, "UPDATE conversations SET head = 'sha256:0' WHERE id = ''")
    assert (None, "conversation") in _places(filled)
    assert [one.conversation for one in filled.list_conversations() if one.erased_at is None] == ["d"]


def test_events_moved_to_another_conversation_are_found(url: str, filled: Store) -> None:
    tamper(url, "UPDATE events SET conversation = 'x' WHERE conversation = 'd'")
    tamper(url, "UPDATE holdings SET conversation = 'x' WHERE conversation = 'd'")
    tamper(url, "UPDATE conversations SET id = 'x' WHERE id = 'd'")
    assert [place for place in _places(filled) if place[0] == "x"] == [("x", "event 1"), ("x", "event 2")]


def test_missing_conversation_is_reported(store: Store) -> None:
    assert [damage.description for damage in store.verify("nowhere")] == ["is not in this store"]


@pytest.mark.parametrize("damage", ["an event is gone", "the end is gone", "a kind that nobody knows"])
def test_damaged_conversation_is_not_loaded(url: str, filled: Store, damage: str) -> None:
    tamper(url, DAMAGES[damage][0])
    with pytest.raises(StoreCorruptedError) as caught:
        filled.load("c")
    assert "`engine.verify()`" in caught.value.hint
    assert len(filled.load("d")) == 2


def test_damaged_file_is_reported_and_not_raised(tmp_path: Path, opened: OpenStore) -> None:
    path = tmp_path / "chats.db"
    store = opened(f"sqlite:///{path}")
    store.append("c", attach(b"x" * 100_000), expected=0)
    store.close()
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 4)
    assert {damage.location for damage in opened(f"sqlite:///{path}").verify()} & {"file", "database"}


def test_dangling_reference_is_found_by_database_check(tmp_path: Path, opened: OpenStore) -> None:
    path = tmp_path / "chats.db"
    store = opened(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO holdings VALUES ('nobody', 'nothing')")
    assert "file" in [damage.location for damage in store.verify()]
