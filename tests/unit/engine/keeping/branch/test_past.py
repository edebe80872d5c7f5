"""The past of a branch: told from a state that was kept, where that holds, else from its events."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from tests.unit.core.compaction.talking import QUARTERS
from tests.unit.engine.keeping.test_checkpoints import Altered, damages, open_chat, snapshots

from lamella import Note
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.log import Log
from lamella.core.log.snapshot import read_snapshot, write_snapshot
from lamella.core.log.terms import Terms
from lamella.core.prompt.state import State
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.engine.chat import Chat
from lamella.engine.keeping.branch.past import find_state
from lamella.engine.keeping.checkpoints import NOTHING_KEPT
from lamella.holdings import Checkpoint
from lamella.ports import Store

OLD = "Text 0.\n" * 9


class Noting(Altered):
    """A store that notes which contents were asked for."""

    def __init__(self, store: Store, alter: Callable[[Checkpoint], Checkpoint | None] = lambda one: one) -> None:
        super().__init__(store, alter)
        self.asked: set[str] = set()

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        self.asked.update(hashes)
        return super().read_contents(conversation, hashes)


def fill(store: Store, turns: int = 6) -> Chat:
    """A conversation in which the same note comes with every turn, changed."""
    chat = open_chat(store)
    for number in range(turns):
        chat.ask(f"Question {number}?", attach=[Note(path="a.md", text=f"Text {number}.\n" * 9)])
        chat.reply(f"Answer {number}.")
    return chat


def without_contents(checkpoint: Checkpoint) -> Checkpoint:
    snapshot = read_snapshot(checkpoint.data)
    assert snapshot is not None
    return replace(checkpoint, data=write_snapshot(replace(snapshot, contents={})) or b"")


def tells_all(store: Store, alter: Callable[[Checkpoint], Checkpoint] = without_contents) -> bool:
    """Whether the first turn is told when the next is asked: nobody else asks for what it brought."""
    noting = Noting(store, alter)
    turn = open_chat(noting).ask("And now?")
    assert [message.to_dict() for message in turn.messages]
    return hash_text(OLD) in noting.asked


def without_state(checkpoint: Checkpoint) -> Checkpoint:
    snapshot = read_snapshot(checkpoint.data)
    assert snapshot is not None
    return replace(checkpoint, data=write_snapshot(replace(snapshot, state=b"", contents={})) or b"")


def test_what_a_kept_state_tells_is_not_told_again() -> None:
    store, same = MemoryStore(), MemoryStore()
    fill(store)
    fill(same)
    assert not tells_all(store)
    assert tells_all(same, without_state)
    ones, others = open_chat(store).turns()[-1].message.question, open_chat(same).turns()[-1].message.question
    assert ones is not None
    assert others is not None
    assert ones.imprint == others.imprint
    assert damages(store) == []


def test_only_the_newest_checkpoint_has_a_state() -> None:
    store = MemoryStore()
    fill(store)
    assert [bool(snapshot.state) for snapshot in snapshots(store)] == [False, False, True]


def test_one_that_was_the_newest_when_it_was_read_is_left_without_its_state() -> None:
    store = MemoryStore()
    fill(store)
    fill(store, 2)
    assert [bool(snapshot.state) for snapshot in snapshots(store)] == [False, False, False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda chat: chat.fork(chat.turns()[1].reply.id),
        lambda chat: chat.edit(chat.turns()[1].message.id, "Otherwise?"),
        lambda chat: chat.delete(chat.turns()[1].message.id),
    ],
    ids=["fork", "edit", "delete"],
)
def test_on_another_branch_all_of_it_is_told(change: Callable[[Chat], object]) -> None:
    store = MemoryStore()
    change(fill(store))
    assert tells_all(store)


def test_of_an_earlier_turn_something_is_read_when_somebody_asks_for_it() -> None:
    store = MemoryStore()
    fill(store)
    noting = Noting(store)
    chat = open_chat(noting)
    chat.ask("And now?")
    assert hash_text(OLD) not in noting.asked
    chat.recall("Text 0")
    assert hash_text(OLD) in noting.asked


def test_a_state_that_is_not_of_the_branch_is_not_kept() -> None:
    elsewhere = State(conversation="chat", head="elsewhere", turns=1, measured_by=QUARTERS.name)
    assert find_state(Log("chat"), elsewhere, usual=Terms(), measure=QUARTERS) == NOTHING_KEPT
