"""Checkpoints in every store: saved for existing events only, loaded unchanged, removed by any erasure."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from tests.checkpoints import list_checkpoints
from tests.conformance.conftest import OpenStore, make_url
from tests.conformance.stores.golden.dumps import golden_file, restore
from tests.conformance.stores.material import LATER, attach, erasure, say, tamper

import lamella
from lamella import Note
from lamella.clocks import SystemClock
from lamella.conversation.checkpoints import EVENTS_PER_CHECKPOINT
from lamella.conversation.import_export import ConversationRepository
from lamella.core.log.snapshots import decode_snapshot
from lamella.core.text.content import hash_bytes
from lamella.errors import InvalidOperationError
from lamella.ports import Checkpoint, Store
from lamella.stores.sql_schema import load_migrations
from lamella.wiring import copy_conversations

ODD = b"\0\xff what they come to " * 3_000
SECRET = b"a page to erase"


def fill(store: Store, name: str = "c", *, versions: int = 3) -> None:
    """So many events, each with its checkpoint."""
    for version in range(1, versions + 1):
        store.append(name, attach(SECRET, text=f"{version}"), expected=version - 1)
        assert store.save_checkpoint(name, Checkpoint(version=version, data=b"%d " % version + ODD))


def versions(store: Store, name: str = "c") -> list[int]:
    return [checkpoint.version for checkpoint in list_checkpoints(store, name)]


def rows(url: str) -> object:
    return tamper(url, "SELECT count(*) FROM checkpoints")[0][0]


def test_checkpoints_load_unchanged_oldest_first(store: Store) -> None:
    fill(store, versions=12)
    assert list_checkpoints(store, "c") == [
        Checkpoint(version=version, data=b"%d " % version + ODD) for version in range(1, 13)
    ]


def test_missing_conversation_stores_no_checkpoint(store: Store) -> None:
    assert list_checkpoints(store, "nobody") == []
    assert not store.save_checkpoint("nobody", Checkpoint(version=0, data=b"x"))
    assert not store.save_checkpoint("nobody", Checkpoint(version=1, data=b"x"))
    assert list_checkpoints(store, "nobody") == []


@pytest.mark.parametrize("version", [0, 1, 3])
def test_checkpoint_of_unknown_event_is_not_saved(store: Store, version: int) -> None:
    store.append("c", say("one", "two"), expected=0)
    assert not store.save_checkpoint("c", Checkpoint(version=version, data=b"x"))
    assert versions(store) == []


def test_checkpoint_saved_twice_keeps_last_version(store: Store) -> None:
    store.append("c", say("one"), expected=0)
    for data in (b"first", b"second"):
        assert store.save_checkpoint("c", Checkpoint(version=1, data=data))
    assert list_checkpoints(store, "c") == [Checkpoint(version=1, data=b"second")]


def test_saving_checkpoint_replaces_given_ones_or_none(store: Store) -> None:
    fill(store)
    assert not store.save_checkpoint("c", Checkpoint(version=2, data=b"late"), replaced_versions=[1, 3])
    assert versions(store) == [1, 2, 3]
    store.append("c", say("four"), expected=3)
    assert store.save_checkpoint("c", Checkpoint(version=4, data=b"x"), replaced_versions=[1, 3, 9])
    assert versions(store) == [2, 4]


def test_earlier_checkpoint_is_trimmed_when_next_is_saved(store: Store) -> None:
    fill(store)
    less = Checkpoint(version=2, data=b"less")
    assert not store.save_checkpoint("c", Checkpoint(version=2, data=b"late", earlier=(less,)))
    assert list_checkpoints(store, "c")[1].data == b"2 " + ODD
    store.append("c", say("four"), expected=3)
    for before in (less, Checkpoint(version=9, data=b"never kept")):
        assert store.save_checkpoint("c", Checkpoint(version=4, data=b"x", earlier=(before,)), replaced_versions=[3])
    now = [Checkpoint(version=1, data=b"1 " + ODD), less, Checkpoint(version=4, data=b"x")]
    assert list_checkpoints(store, "c") == now


def test_separate_columns_are_read_on_request_only(store: Store) -> None:
    store.append("c", say("one"), expected=0)
    kept = Checkpoint(version=1, data=b"at hand", separate_data=b"apart " + ODD)
    assert store.save_checkpoint("c", kept)
    assert list(store.read_checkpoints("c", lambda one: one)) == [Checkpoint(version=1, data=b"at hand")]
    assert list_checkpoints(store, "c") == [kept]
    assert store.save_checkpoint("c", Checkpoint(version=1, data=b"all of it"))
    assert list_checkpoints(store, "c") == [Checkpoint(version=1, data=b"all of it")]


def test_separate_columns_of_earlier_checkpoint_are_saved_with_next(store: Store) -> None:
    fill(store, versions=1)
    store.append("c", say("two"), expected=1)
    less = Checkpoint(version=1, data=b"less", separate_data=ODD)
    assert store.save_checkpoint("c", Checkpoint(version=2, data=b"x", earlier=(less,)))
    assert list_checkpoints(store, "c") == [less, Checkpoint(version=2, data=b"x")]


def test_error_of_checkpoint_reader_is_raised_and_store_continues(store: Store) -> None:
    fill(store)
    assert list(store.read_checkpoints("c", lambda one: one.version)) == [1, 2, 3]

    def read(checkpoint: Checkpoint) -> int:
        raise ValueError(f"no use for {checkpoint.version}")

    for _ in range(20):
        with pytest.raises(ValueError, match="no use for 1"):
            store.read_checkpoints("c", read)
    # More often than there are connections: each was given back.
    assert versions(store) == [1, 2, 3]
    assert store.append("c", say("four"), expected=3) == 4


def test_checkpoints_do_not_change_conversation(store: Store) -> None:
    store.append("c", say("one"), expected=0)
    before = (store.list_conversations(), list(store.load("c")), store.stats())
    assert store.save_checkpoint("c", Checkpoint(version=1, data=b"x"))
    assert (store.list_conversations(), list(store.load("c")), store.stats()) == before
    assert list(store.verify()) == []


def test_each_conversation_has_own_checkpoints(store: Store) -> None:
    fill(store, "a")
    fill(store, "b", versions=1)
    store.erase_conversation("a", at=LATER)
    assert (versions(store, "a"), versions(store, "b")) == ([], [1])


def test_impossible_conversation_name_is_refused(store: Store) -> None:
    with pytest.raises(InvalidOperationError):
        store.save_checkpoint("", Checkpoint(version=0, data=b"x"))
    with pytest.raises(InvalidOperationError):
        list_checkpoints(store, "")


def test_erasing_content_removes_checkpoints_of_conversation(store: Store) -> None:
    fill(store)
    fill(store, "other")
    store.erase_contents("c", [hash_bytes(SECRET)], erasure(hash_bytes(SECRET)), expected=3)
    assert (versions(store), versions(store, "other")) == ([], [1, 2, 3])
    assert not store.save_checkpoint("c", Checkpoint(version=3, data=b"made before the erasure"))
    assert store.save_checkpoint("c", Checkpoint(version=4, data=b"made after it"))


def test_erasing_conversation_removes_checkpoints_and_refuses_new_ones(store: Store) -> None:
    fill(store)
    store.erase_conversation("c", at=LATER)
    for version in (0, 3):
        assert not store.save_checkpoint("c", Checkpoint(version=version, data=b"late"))
    assert versions(store) == []
    assert list(store.verify_erased("c")) == []


def test_erased_conversation_with_checkpoint_fails_verification(url: str, opened: OpenStore) -> None:
    store = opened(url)
    fill(store)
    store.erase_conversation("c", at=LATER)
    tamper(url, "INSERT INTO checkpoints (conversation, version, head, data) VALUES ('c', 7, '', ?)", b"left")
    left = [(damage.location, damage.description) for damage in store.verify_erased("c")]
    assert left == [("checkpoint 7", "left after erasure")]


def test_checkpoint_without_conversation_is_reported(url: str, opened: OpenStore) -> None:
    store = opened(url)
    fill(store)
    tamper(url, "INSERT INTO checkpoints (conversation, version, head, data) VALUES ('nobody', 1, '', ?)", b"stray")
    found = [(damage.conversation, damage.description) for damage in store.verify() if damage.location == "checkpoints"]
    assert found == [("nobody", "belong to no conversation")]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET hash = 'sha256:0' WHERE seq = 2",
        "UPDATE checkpoints SET head = 'sha256:0' WHERE version = 2",
        "UPDATE checkpoints SET version = 9 WHERE version = 2",
        "DELETE FROM events WHERE seq = 2",
    ],
)
def test_checkpoint_with_changed_event_is_not_loaded(url: str, opened: OpenStore, statement: str) -> None:
    store = opened(url)
    fill(store)
    tamper(url, statement)
    assert versions(store) == [1, 3]


def test_checkpoint_beyond_last_event_is_not_loaded(url: str, opened: OpenStore) -> None:
    store = opened(url)
    fill(store)
    tamper(url, "UPDATE conversations SET version = 2")
    assert versions(store) == [1, 2]


def test_conversation_opens_after_checkpoints_are_lost(url: str, opened: OpenStore) -> None:
    key = talk(url)
    with lamella.open(url) as engine:
        tamper(url, "DROP TABLE checkpoints")
        assert [record.message.text for record in engine.chat("garden").turns()] == ["What grows here?", "And now?"]
    found = list(ConversationRepository(opened(url), SystemClock()).verify(key))
    assert [(damage.conversation, damage.location) for damage in found] == [(key, "checkpoints")]


def test_checkpoint_that_is_not_bytes_loads_as_none(tmp_path: Path, opened: OpenStore) -> None:
    url = make_url("sqlite", tmp_path)
    store = opened(url)
    fill(store, versions=1)
    for value in ("text", 7, 1.5):
        tamper(url, "UPDATE checkpoints SET data = ?, apart = ?", value, value)
        (checkpoint,) = list_checkpoints(store, "c")
        assert decode_snapshot(checkpoint.data) is None
        assert checkpoint.separate_data == b""


def test_concurrent_writers_save_no_incomplete_checkpoint(url: str, opened: OpenStore) -> None:
    stores = [opened(url) for _ in range(3)]

    def write(store: Store) -> None:
        for _ in range(20):
            version = len(store.load("c"))
            try:
                version = store.append("c", say("more"), expected=version)
            except lamella.LamellaError:
                continue
            store.save_checkpoint("c", Checkpoint(version=version, data=b"%d" % version))

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, stores))
    kept = list_checkpoints(stores[0], "c")
    assert kept
    assert [int(checkpoint.data) for checkpoint in kept] == [checkpoint.version for checkpoint in kept]
    assert list(stores[0].verify()) == []


@pytest.mark.parametrize(("dialect", "version"), list(product(("sqlite", "postgresql"), (1, 2))))
def test_migrated_old_store_saves_checkpoints(dialect: str, version: int, tmp_path: Path, opened: OpenStore) -> None:
    url = make_url(dialect, tmp_path)
    restore(url, golden_file(dialect, version).read_text(encoding="utf-8"))
    store = opened(url)
    assert store.stats().schema == len(load_migrations(dialect))
    assert versions(store, "boat") == []
    assert store.save_checkpoint("boat", Checkpoint(version=1, data=ODD))
    assert list_checkpoints(store, "boat") == [Checkpoint(version=1, data=ODD)]


def talk(url: str) -> str:
    """A conversation that has a checkpoint; gives its key."""
    with lamella.open(url) as engine:
        conversation = engine.chat("garden")
        conversation.ask("What grows here?", attach=[Note(path="note.md", text=SECRET.decode())])
        conversation.reply("Look into the note.")
        for number in range(EVENTS_PER_CHECKPOINT):
            conversation.rename(f"Garden {number}")
        conversation.ask("And now?")
        conversation.reply("The same.")
        return conversation.id


def test_saved_checkpoints_pass_verification(url: str, opened: OpenStore) -> None:
    key = talk(url)
    store = opened(url)
    assert versions(store, key) == [EVENTS_PER_CHECKPOINT]
    assert list(ConversationRepository(store, SystemClock()).verify()) == []
    with lamella.open(url) as engine:
        assert [record.message.text for record in engine.chat("garden").turns()] == ["What grows here?", "And now?"]


def test_damaged_checkpoint_is_reported_by_verify_and_chat_opens(url: str, opened: OpenStore) -> None:
    key = talk(url)
    store = opened(url)
    (checkpoint,) = list_checkpoints(store, key)
    tamper(url, "UPDATE checkpoints SET data = ?", checkpoint.data[:-1])
    found = [(damage.location, damage.description) for damage in ConversationRepository(store, SystemClock()).verify()]
    assert found == [
        (f"checkpoint {EVENTS_PER_CHECKPOINT}", "cannot be read and is not used; the next one replaces it")
    ]
    with lamella.open(url) as engine:
        engine.chat("garden").rename("Garden, mended")
    assert versions(store, key) == [EVENTS_PER_CHECKPOINT + 5]
    assert list(ConversationRepository(store, SystemClock()).verify()) == []


def test_copy_omits_checkpoints(url: str, tmp_path: Path, opened: OpenStore) -> None:
    key = talk(url)
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    assert dict(copy_conversations(url, target)) == {"garden": "new"}
    assert (rows(url), rows(target)) == (1, 0)
    assert list(opened(target).load(key)) == list(opened(url).load(key))
