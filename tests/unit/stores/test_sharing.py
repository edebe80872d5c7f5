"""An owner's store: no operation reaches conversations of other owners."""

from collections.abc import Callable

import pytest
from tests.checkpoints import list_checkpoints
from tests.conformance.stores.material import say

from lamella.errors import InvalidOperationError
from lamella.ports import Checkpoint
from lamella.stores.memory import InMemoryStore
from lamella.stores.sharing import OwnedStore


@pytest.fixture
def shared() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def ana(shared: InMemoryStore) -> OwnedStore:
    store = OwnedStore(shared, "ana")
    store.append("k1", say("hello"), expected=0, title="Diary", name="diary")
    return store


@pytest.fixture
def ben(ana: OwnedStore, shared: InMemoryStore) -> OwnedStore:
    return OwnedStore(shared, "ben")


def test_owner_finds_own_conversation_by_name_and_key(ana: OwnedStore) -> None:
    for name in ("diary", "k1"):
        found = ana.find_conversation(name)
        assert found is not None
        assert (found.conversation, found.name, found.title) == ("k1", "diary", "Diary")
    assert [one.name for one in ana.list_conversations()] == ["diary"]
    assert len(ana.load("k1")) == 1
    assert ana.stats().conversations == 1
    assert list(ana.verify()) == []


def test_other_owner_finds_nothing(ben: OwnedStore) -> None:
    for name in ("diary", "k1", "~ana/diary", "../ana/diary"):
        assert ben.find_conversation(name) is None
    assert list(ben.list_conversations()) == []
    assert list(ben.load("k1")) == []
    assert list_checkpoints(ben, "k1") == []
    assert ben.read_contents("k1", ["sha256:x"]) == {}
    assert list(ben.verify("k1")) == []
    assert list(ben.verify_erased("k1")) == []
    assert ben.stats().conversations == 0


@pytest.mark.parametrize(
    "do",
    [
        lambda store: store.append("k1", say("mine"), expected=1),
        lambda store: store.erase_conversation("k1", at="2026-11-17T10:00:00Z"),
        lambda store: store.erase_contents("k1", [], say("mine"), expected=1),
        lambda store: store.save_checkpoint("k1", Checkpoint(version=1, data=b"x")),
        lambda store: store.rebuild_list_row("k1", lambda _records: ""),
    ],
)
def test_other_owner_changes_nothing(ana: OwnedStore, ben: OwnedStore, do: Callable[[OwnedStore], object]) -> None:
    before = ana.load("k1")
    with pytest.raises(InvalidOperationError, match="There is no conversation 'k1'"):
        do(ben)
    assert ana.load("k1") == before


def test_names_are_per_owner_and_operator_sees_owner(ana: OwnedStore, ben: OwnedStore, shared: InMemoryStore) -> None:
    ben.append("k2", say("hello"), expected=0, name="diary")
    assert sorted(one.name for one in shared.list_conversations()) == ["~ana/diary", "~ben/diary"]
    found = ben.find_conversation("diary")
    assert found is not None
    assert found.conversation == "k2"


def test_name_equal_to_other_owners_key_finds_nothing(ana: OwnedStore, ben: OwnedStore) -> None:
    ben.append("k2", say("hello"), expected=0, name="k1")
    found = ben.find_conversation("k1")
    assert found is not None
    assert found.conversation == "k2"
    assert list(ben.load("k1")) == []
    assert len(ana.load("k1")) == 1
