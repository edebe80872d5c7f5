"""Keys and names: a key is never used again; a name belongs to one conversation, until that is erased."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Barrier, Thread

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import LATER, say, tamper, texts

from lamella.core.log.events.kinds import EventRecord
from lamella.errors import ConflictError, ConversationErasedError, LamellaError, StoreCorruptedError, TextError
from lamella.ports import Store


def _find(store: Store, name: str) -> tuple[str, str] | None:
    found = store.find_conversation(name)
    return None if found is None else (found.conversation, found.name)


def test_conversation_is_found_by_name_and_key(store: Store) -> None:
    store.append("k1", say("one"), expected=0, name="garden")
    assert _find(store, "garden") == _find(store, "k1") == ("k1", "garden")
    assert _find(store, "gard") is None
    assert [(one.conversation, one.name) for one in store.list_conversations()] == [("k1", "garden")]


def test_unnamed_conversation_is_named_by_key(store: Store) -> None:
    store.append("garden", say("one"), expected=0)
    assert _find(store, "garden") == ("garden", "garden")


def test_first_conversation_keeps_name(store: Store) -> None:
    store.append("k1", say("one"), expected=0, name="garden")
    with pytest.raises(ConflictError, match="garden has 1 events; 0 were expected"):
        store.append("k2", say("other"), expected=0, name="garden")
    assert [one.conversation for one in store.list_conversations()] == ["k1"]
    assert store.load("k2") == () or list(store.load("k2")) == []


def test_name_is_free_after_erasure_and_key_is_not(store: Store) -> None:
    store.append("k1", say("one"), expected=0, name="garden")
    store.erase_conversation("k1", at=LATER)
    assert _find(store, "garden") is None
    store.append("k2", say("another"), expected=0, name="garden")
    assert _find(store, "garden") == ("k2", "garden")
    with pytest.raises(ConversationErasedError):
        store.append("k1", say("again"), expected=0, name="other")
    assert texts(store, "k2") == ["another"]


def test_name_wins_over_key(store: Store) -> None:
    store.append("boat", say("one"), expected=0, name="ship")
    store.append("k2", say("two"), expected=0, name="boat")
    assert _find(store, "boat") == ("k2", "boat")


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_name_that_any_store_rejects_is_refused(store: Store, name: str) -> None:
    with pytest.raises(TextError if name else LamellaError):
        store.append("k1", say("one"), expected=0, name=name)
    with pytest.raises(LamellaError):
        store.find_conversation(name)
    assert list(store.list_conversations()) == []


def test_one_of_concurrent_creations_gets_name(url: str, opened: OpenStore) -> None:
    store, together = opened(url), Barrier(8)
    won: list[str] = []

    def begin(key: str) -> None:
        together.wait()
        try:
            store.append(key, say(key), expected=0, name="garden")
            won.append(key)
        except ConflictError:
            pass

    threads = [Thread(target=begin, args=(f"k{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.conversation for one in store.list_conversations()] == won
    assert _find(store, "garden") == (won[0], "garden")


def _title(records: Sequence[EventRecord]) -> str:
    return f"{len(records)} events"


FALSE = {
    "a title": "title = 'something else'",
    "a beginning": "created = '2020-01-01T00:00:00Z'",
    "a last change": "updated = '2020-01-01T00:00:00Z'",
    "more events": "version = 77",
    "fewer events": "version = 1",
    "another last event": "head = 'sha256:0'",
    "no name": "name = NULL",
    "an erasure": "erased = '2020-01-01T00:00:00Z'",
}
OF_ANOTHER_TYPE = {
    "a title of bytes": "title = x'00ff'",
    "a title that is no UTF-8": "title = CAST(x'ff66' AS TEXT)",
    "a time of bytes": "updated = x'00'",
    "a time that is no UTF-8": "created = CAST(x'ff' AS TEXT)",
    "a number in words": "version = 'many'",
    "half a number": "version = 2.5",
    "a name of bytes": "name = x'6162'",
    "a head of bytes": "head = x'6162'",
    "an erasure that is a number": "erased = 0",
}


@pytest.fixture
def two(url: str, opened: OpenStore) -> Store:
    """Two conversations, the first of three events and named otherwise than by its key."""
    store = opened(url)
    store.append("k1", say("one", "two", "three"), expected=0, title="3 events", name="garden")
    store.append("k2", say("one", "two"), expected=0, title="2 events", name="house")
    return store


def _check_repaired(store: Store, *, name: str) -> None:
    store.rebuild_list_row("k1", _title)
    assert list(store.verify()) == []
    [found] = [one for one in store.list_conversations() if one.conversation == "k1"]
    assert (found.title, found.event_count, found.name) == ("3 events", 3, name)
    assert store.append("k1", say("four"), expected=3) == 4
    assert list(store.verify()) == []


@pytest.mark.parametrize("what", FALSE)
def test_false_row_is_repaired_from_events(url: str, two: Store, what: str) -> None:
    tamper(url, f"UPDATE conversations SET {FALSE[what]} WHERE id = 'k1'")
    # Titles are the engine's to read in events.
    assert [damage.is_repairable for damage in two.verify()] == ([] if what == "a title" else [True])
    _check_repaired(two, name="k1" if what == "no name" else "garden")


@pytest.mark.parametrize("what", OF_ANOTHER_TYPE)
def test_value_of_wrong_type_is_repaired_and_blocks_no_other_conversation(
    tmp_path: Path, opened: OpenStore, what: str
) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    store = opened(url)
    store.append("k1", say("one", "two", "three"), expected=0, title="3 events", name="garden")
    store.append("k2", say("one", "two"), expected=0, title="2 events", name="house")
    with sqlite3.connect(tmp_path / "chats.db") as connection:
        connection.execute(f"UPDATE conversations SET {OF_ANOTHER_TYPE[what]} WHERE id = 'k1'")
    connection.close()
    assert {one.conversation for one in store.list_conversations()} == {"k1", "k2"}
    assert _find(store, "house") == ("k2", "house")
    assert store.append("k2", say("three"), expected=2) == 3
    assert store.stats().conversations == (1 if "erasure" in what else 2)
    damages = list(store.verify())
    found = what != "a title that is no UTF-8"
    assert [(damage.conversation, damage.location, damage.is_repairable) for damage in damages] == (
        [("k1", "conversation", True)] if found else []
    )
    _check_repaired(store, name="k1" if what == "a name of bytes" else "garden")


def test_missing_row_is_restored_from_events(url: str, two: Store) -> None:
    tamper(url, "DELETE FROM conversations WHERE id = 'k1'")
    assert ("k1", "events") in [
        (damage.conversation, damage.location) for damage in two.verify() if damage.is_repairable
    ]
    _check_repaired(two, name="k1")


FALSE_KEYS = {"another": "'false'", "of bytes": "x'00ff'", "none": "''"}


@pytest.mark.parametrize("key", FALSE_KEYS)
@pytest.mark.parametrize("before", ["as it was", "with a row made again beside it"])
def test_row_under_false_key_is_restored_to_its_events(
    tmp_path: Path, opened: OpenStore, key: str, before: str
) -> None:
    store = opened(f"sqlite:///{tmp_path / 'chats.db'}")
    store.append("k1", say("one", "two", "three"), expected=0, title="3 events", name="garden")
    store.append("k2", say("one"), expected=0, title="1 events", name="house")
    with sqlite3.connect(tmp_path / "chats.db") as connection:
        connection.execute(f"UPDATE conversations SET id = {FALSE_KEYS[key]} WHERE id = 'k1'")
        if before != "as it was":
            connection.execute(
                "INSERT INTO conversations (id, name, version, head, title, created, updated)"
                " SELECT 'k1', 'k1', version, head, title, created, updated FROM conversations WHERE name = 'garden'"
            )
    connection.close()
    assert "k1" in {damage.conversation for damage in store.verify() if damage.is_repairable}
    _check_repaired(store, name="garden")
    assert {one.conversation for one in store.list_conversations()} == {"k1", "k2"}


def test_conversation_under_false_key_keeps_its_name_only(url: str, two: Store) -> None:
    tamper(url, "UPDATE conversations SET id = 'false' WHERE id = 'k1'")
    assert [damage.description for damage in two.verify() if damage.conversation == "k1" and damage.is_repairable] == [
        "belong to no conversation",
        "has 'false' for its key",
    ]
    _check_repaired(two, name="garden")
    assert {one.conversation for one in two.list_conversations()} == {"k1", "k2"}


DAMAGED = {
    "its last event is gone": "DELETE FROM events WHERE conversation = 'k1' AND seq = 3",
    "all events are gone": "DELETE FROM events WHERE conversation = 'k1'",
    "an event was changed": "UPDATE events SET body = '{}' WHERE conversation = 'k1' AND seq = 2",
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_loss_not_recorded_in_events_is_not_repaired(url: str, two: Store, damage: str) -> None:
    tamper(url, DAMAGED[damage])
    before = list(two.verify())
    with pytest.raises(StoreCorruptedError, match="cannot be repaired"):
        two.rebuild_list_row("k1", _title)
    assert list(two.verify()) == before != []


def test_reassigned_name_stays_with_new_conversation(url: str, two: Store) -> None:
    tamper(url, "UPDATE conversations SET erased = '2020-01-01T00:00:00Z' WHERE id = 'k1'")
    two.append("k3", say("one"), expected=0, title="1 events", name="garden")
    _check_repaired(two, name="k1")
    assert _find(two, "garden") == ("k3", "garden")


def test_erased_conversation_is_not_repaired(url: str, two: Store) -> None:
    two.erase_conversation("k1", at=LATER)
    with pytest.raises(StoreCorruptedError):
        two.rebuild_list_row("k1", _title)
    assert [one.conversation for one in two.list_conversations() if one.erased_at is None] == ["k2"]


def test_append_after_false_head_is_refused(url: str, two: Store) -> None:
    tamper(url, "UPDATE conversations SET head = 'sha256:0' WHERE id = 'k1'")
    with pytest.raises(StoreCorruptedError, match="last event") as caught:
        two.append("k1", say("four"), expected=3)
    assert "engine.repair()" in caught.value.hint
