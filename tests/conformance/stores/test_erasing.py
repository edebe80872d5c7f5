"""Erasing: what is erased is gone from the tables and from the files; what others share stays theirs."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import (
    AT,
    LATER,
    attach,
    counted,
    erasure,
    message,
    say,
    tamper,
)

from lamella.core.log.events.kinds import EventBatch
from lamella.core.text.content import hash_bytes
from lamella.errors import ConflictError, ConversationErasedError, InvalidOperationError, StoreUnavailableError
from lamella.ports import Store
from lamella.stores.open_store import open_sqlite

SHARED, OWN = b"shared by two", b"held by one"


@pytest.fixture
def two(store: Store) -> Store:
    """Two conversations that share one content."""
    store.append("a", attach(SHARED, OWN, text="mine"), expected=0, title="Mine")
    store.append("b", attach(SHARED, text="theirs"), expected=0, title="Theirs")
    return store


def test_erased_conversation_leaves_only_tombstone(two: Store) -> None:
    two.erase_conversation("a", at=LATER)
    with pytest.raises(ConversationErasedError, match=LATER):
        two.load("a")
    assert two.read_contents("a", [hash_bytes(SHARED), hash_bytes(OWN)]) == {}
    tombstone = next(one for one in two.list_conversations() if one.conversation == "a")
    assert (tombstone.title, tombstone.event_count, tombstone.erased_at) == ("", 0, LATER)
    assert (tombstone.created, tombstone.updated) == (AT, LATER)
    assert list(two.verify_erased("a")) == []


def test_shared_content_remains_for_other_conversations(two: Store) -> None:
    two.erase_conversation("a", at=LATER)
    assert two.read_contents("b", [hash_bytes(SHARED)]) == {hash_bytes(SHARED): SHARED}
    assert two.stats().content_bytes == len(SHARED)
    two.erase_conversation("b", at=LATER)
    assert two.stats().contents == 0
    assert list(two.verify()) == []


def test_erasing_twice_keeps_the_time_of_the_first(two: Store) -> None:
    two.erase_conversation("a", at=LATER)
    two.erase_conversation("a", at="2027-01-01T00:00:00Z")
    assert {one.erased_at for one in two.list_conversations()} == {None, LATER}


def test_unknown_conversation_can_be_erased_in_advance(store: Store) -> None:
    store.erase_conversation("c", at=LATER)
    with pytest.raises(ConversationErasedError):
        store.append("c", say("one"), expected=0)
    assert [(one.conversation, one.erased_at) for one in store.list_conversations()] == [("c", LATER)]


def test_erasing_content_keeps_event_that_names_it(two: Store) -> None:
    version = two.erase_contents("a", [hash_bytes(OWN)], erasure(hash_bytes(OWN)), expected=1)
    assert version == 2
    assert [record.kind.value for record in two.load("a")] == ["message", "erasure"]
    assert set(two.read_contents("a", [hash_bytes(SHARED), hash_bytes(OWN)])) == {hash_bytes(SHARED)}
    assert list(two.verify()) == []


def test_erasing_shared_content_affects_one_conversation(two: Store) -> None:
    two.erase_contents("a", [hash_bytes(SHARED)], erasure(hash_bytes(SHARED)), expected=1)
    assert two.read_contents("a", [hash_bytes(SHARED)]) == {}
    assert two.read_contents("b", [hash_bytes(SHARED)]) == {hash_bytes(SHARED): SHARED}
    assert list(two.verify()) == []


def test_appended_erasure_event_removes_its_contents(two: Store) -> None:
    two.append("a", erasure(hash_bytes(OWN)), expected=1)
    assert two.read_contents("a", [hash_bytes(OWN)]) == {}
    assert two.stats().content_bytes == len(SHARED)


def test_erased_content_can_be_added_again(two: Store) -> None:
    two.append("a", erasure(hash_bytes(OWN)), expected=1)
    two.append("a", attach(OWN), expected=2)
    assert two.read_contents("a", [hash_bytes(OWN)]) == {hash_bytes(OWN): OWN}
    assert list(two.verify()) == []


def test_events_that_name_erased_content_can_be_copied_with_their_erasure(two: Store) -> None:
    two.append("a", erasure(hash_bytes(OWN)), expected=1)
    records = tuple(two.load("a"))
    copied = EventBatch(records=records, contents={hash_bytes(SHARED): SHARED})
    two.append("copy", copied, expected=0)
    assert tuple(two.load("copy")) == records
    two.append("copy", EventBatch(records=(message("once more", contents=(hash_bytes(OWN),)),)), expected=2)
    assert list(two.verify()) == []


def test_content_is_erased_only_with_event_that_names_it(two: Store) -> None:
    with pytest.raises(InvalidOperationError, match="names the content"):
        two.erase_contents("a", [hash_bytes(OWN)], say("nothing about it"), expected=1)
    assert hash_bytes(OWN) in two.read_contents("a", [hash_bytes(OWN)])


def test_erasure_at_wrong_version_erases_nothing(two: Store) -> None:
    with pytest.raises(ConflictError):
        two.erase_contents("a", [hash_bytes(OWN)], erasure(hash_bytes(OWN)), expected=0)
    assert hash_bytes(OWN) in two.read_contents("a", [hash_bytes(OWN)])


def test_verify_erased_reports_conversation_that_was_not_erased(two: Store) -> None:
    for name in ("a", "nowhere"):
        assert [damage.description for damage in two.verify_erased(name)] == ["was not erased from this store"]


def test_erasing_content_removes_earlier_token_counts(two: Store) -> None:
    two.append("a", counted(say("counted"), b"of both"), expected=1)
    two.append("b", counted(say("counted"), b"of another"), expected=1)
    records = (*say("and gone").records, *erasure(hash_bytes(OWN)).records)
    two.append("a", counted(EventBatch(records=records), b"in the same breath"), expected=2)
    two.append("a", counted(say("goes on"), b"without it"), expected=4)
    assert [record.counts for record in two.load("a")] == [b"", b"", b"", b"", b"without it"]
    assert [record.counts for record in two.load("b")] == [b"", b"of another"]
    assert list(two.verify()) == []


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("INSERT INTO events VALUES ('c', 1, 'message', 'x', '{}', '[]', 'x', NULL)", "event 1"),
        (f"INSERT INTO holdings VALUES ('c', '{hash_bytes(OWN)}')", f"content {hash_bytes(OWN)}"),
        ("UPDATE conversations SET title = 'A secret' WHERE id = 'c'", "title"),
    ],
)
def test_remains_of_erased_conversation_are_found(url: str, opened: OpenStore, statement: str, place: str) -> None:
    store = opened(url)
    store.append("c", attach(OWN), expected=0, title="A secret")
    store.append("d", attach(OWN), expected=0)
    store.erase_conversation("c", at=LATER)
    tamper(url, statement)
    left = [(damage.conversation, damage.location, damage.description) for damage in store.verify_erased("c")]
    assert left == [("c", place, "left after erasure")]
    assert ("c", place, "left after erasure") in [(d.conversation, d.location, d.description) for d in store.verify()]


# With these seeds pages are split so that copies of rows stay in their free space, which deleting does not reach.
@pytest.mark.parametrize("seed", [0, 7])
def test_erased_conversation_leaves_no_byte_in_files(tmp_path: Path, opened: OpenStore, seed: int) -> None:
    store = opened(f"sqlite:///{tmp_path}/chats.db")
    chance = random.Random(seed)
    names = ["spruce", "alder", "rowan", "juniper", "hazel", "yew"]
    versions = dict.fromkeys(names, 0)
    for number in range(300):
        name = chance.choice(names)
        said = f"said in {name} " * chance.choice([1, 4, 15, 36, 65, 110, 200, 600])
        attached = f"attached {number} in {name} ".encode() * chance.choice([1, 20, 300])
        batch = attach(attached, text=said) if chance.random() < 0.5 else say(said)
        versions[name] = store.append(name, batch, expected=versions[name], title=f"titled in {name}")
    for name in names[:3]:
        assert any(f"in {name}".encode() in file.read_bytes() for file in tmp_path.iterdir())
        store.erase_conversation(name, at=LATER)
        assert list(store.verify_erased(name)) == []
        found = [file.name for file in tmp_path.iterdir() if f"in {name}".encode() in file.read_bytes()]
        assert found == []
    assert any(f"in {names[-1]}".encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert list(store.verify()) == []


def test_erased_content_leaves_no_byte_in_files(tmp_path: Path, opened: OpenStore) -> None:
    store = opened(f"sqlite:///{tmp_path}/chats.db")
    secret = b"a secret attachment " * 500
    store.append("c", attach(secret), expected=0)
    store.erase_contents("c", [hash_bytes(secret)], erasure(hash_bytes(secret)), expected=1)
    assert [file.name for file in tmp_path.iterdir() if b"a secret" in file.read_bytes()] == []


def test_interrupted_erasure_is_reported_until_repeated(tmp_path: Path, opened: OpenStore) -> None:
    path = tmp_path / "chats.db"
    store = opened(f"sqlite:///{path}")
    store.append("c", say("secret"), expected=0)
    store.erase_conversation("c", at=LATER)
    with closing(sqlite3.connect(path)) as connection:
        # What the file says between the erasure and the moment when it is written again.
        connection.execute("PRAGMA user_version = 1")
    assert [damage.location for damage in store.verify_erased("c")] == ["file"]
    store.erase_conversation("c", at=LATER)
    assert list(store.verify_erased("c")) == []


def test_log_held_open_by_reader_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = open_sqlite(str(path), timeout=0.2)
    store.append("c", say("secret"), expected=0)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        with pytest.raises(StoreUnavailableError):
            store.erase_conversation("c", at=LATER)
        assert "write-ahead log" in [damage.location for damage in store.verify_erased("c")]
        reader.execute("COMMIT")
    store.erase_conversation("c", at=LATER)
    assert list(store.verify_erased("c")) == []
    store.close()
