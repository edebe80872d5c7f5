"""Earlier checkpoints: what opening does not need is kept apart from them, and found by whoever asks for it."""

from collections.abc import Callable, Sequence

import pytest
from tests.checkpoints import list_checkpoints
from tests.unit.engine.keeping.checkpoints.test_checkpoints import Altered, damages, open_chat, snapshots

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.snapshots.columns import keep_packed
from lamella.core.values import replace
from lamella.engine.chat import Chat
from lamella.engine.keeping.checkpoints.earlier import NOTHING_KEPT, EarlierCheckpoints
from lamella.errors import StoreDamagedError
from lamella.holdings import Checkpoint
from lamella.ports import Result, Store

# Long enough that an outline is worth it, each with a word of its own.
REPLIES = [f"Reply {number}. " + f"This goes on about pear{number} for a while. " * 12 for number in range(10)]


def talk(store: Store, *, begin: int = 0, end: int = 10) -> Chat:
    chat = open_chat(store)
    for number in range(begin, end):
        chat.ask(f"Question {number}?")
        chat.reply(REPLIES[number])
    return chat


def shrink(store: Store) -> Chat:
    """A conversation of which a compaction leaves outlines, and turns after it, so that checkpoints know of it."""
    chat = talk(store, end=8)
    chat.commit(chat.plan(to=0.001))
    talk_on(chat)
    return chat


def talk_on(chat: Chat, turns: int = 4) -> None:
    for number in range(turns):
        chat.ask(f"And {number}?")
        chat.reply("So it is.")


class Watched(Altered):
    """A store that counts how often somebody asked for what is apart from checkpoints."""

    def __init__(self, store: Store, alter: Callable[[Checkpoint], Checkpoint | None] = lambda one: one) -> None:
        super().__init__(store, alter)
        self.asked = 0

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        self.asked += apart
        return super().read_checkpoints(conversation, read, apart=apart)


def at_hand(store: Store) -> set[str]:
    """The texts that opening reads."""
    texts = [text for snapshot in snapshots(store) for text in keep_packed(snapshot.nodes).columns.texts]
    return {text for text in texts if text is not None}


def asked_and_said(chat: Chat) -> list[tuple[str, str]]:
    return [(told.message.text, told.reply.text) for told in chat.turns() if told.reply is not None]


def test_what_does_not_stand_in_its_own_words_is_kept_apart_and_what_does_is_at_hand() -> None:
    store = MemoryStore()
    shrink(store)
    there = at_hand(store)
    assert there.isdisjoint(REPLIES[:4])
    assert {"And 0?", "So it is."} <= there
    assert damages(store) == []


def test_where_there_are_none_nothing_is_lessened() -> None:
    assert EarlierCheckpoints(MemoryStore(), "chat").lessen(NOTHING_KEPT) == ()


def test_before_anything_is_compacted_every_text_is_at_hand() -> None:
    store = MemoryStore()
    talk(store)
    assert set(REPLIES) <= at_hand(store)


def test_asking_on_reads_nothing_that_is_apart_and_looking_back_reads_all_of_it_once() -> None:
    store = MemoryStore()
    live = shrink(store)
    watched = Watched(store)
    chat = open_chat(watched)
    # More of them than are looked for one by one among kept counts.
    talk_on(chat, 40)
    assert watched.asked == 0
    said = asked_and_said(chat)
    assert watched.asked == 1
    live.reload()
    assert said == asked_and_said(live)
    assert [text for _, text in said[:8]] == REPLIES[:8]


def test_an_undo_brings_back_what_was_apart() -> None:
    store = MemoryStore()
    shrink(store)
    chat = open_chat(store)
    chat.undo()
    messages = chat.ask("All of it?").messages
    assert [text for text in REPLIES[:8] if any(text in message.text for message in messages)] == REPLIES[:8]
    chat.reply("Yes.")
    talk_on(chat, 8)
    # What stands again is at hand once earlier ones are written anew, and found where it is until then.
    again = open_chat(store).ask("And again?").messages
    assert [text for text in REPLIES[:8] if any(text in message.text for message in again)] == REPLIES[:8]
    assert damages(store) == []


def test_recall_finds_what_is_apart() -> None:
    store = MemoryStore()
    shrink(store)
    hits = open_chat(store).recall("pear2")
    assert any("pear2" in hit.excerpt for hit in hits)


@pytest.mark.parametrize("damage", [b"", b"nothing that was written"])
def test_where_what_is_apart_cannot_be_read_the_events_tell_it(damage: bytes) -> None:
    store = MemoryStore()
    live = shrink(store)
    lost = Watched(store, lambda one: replace(one, apart=damage))
    assert asked_and_said(open_chat(lost)) == asked_and_said(live)
    unread = [one for one in list_checkpoints(store, "chat") if one.apart]
    assert unread
    assert [place for place, _ in damages(lost)] == [f"checkpoint {one.version}" for one in unread]


def test_what_is_apart_from_another_checkpoint_is_not_taken_for_it() -> None:
    store = MemoryStore()
    live = shrink(store)
    apart = {one.version: one.apart for one in list_checkpoints(store, "chat") if one.apart}
    first, second = list(apart)[:2]
    swapped = {first: apart[second], second: apart[first]}
    mixed = Watched(store, lambda one: replace(one, apart=swapped.get(one.version, one.apart)))
    assert asked_and_said(open_chat(mixed)) == asked_and_said(live)


def test_where_others_removed_the_checkpoints_meanwhile_the_events_tell_it() -> None:
    store = MemoryStore()
    live = shrink(store)
    chat = open_chat(store)
    chat.ask("Where were we?")
    store._kept["chat"].checkpoints.clear()
    live.reload()
    assert asked_and_said(chat) == asked_and_said(live)


def test_where_the_events_say_something_else_by_now_that_is_told() -> None:
    store = MemoryStore()
    shrink(store)
    chat = open_chat(store)
    chat.ask("Where were we?")
    store._kept["chat"].checkpoints.clear()
    store._kept["chat"].records[4:8] = store._kept["chat"].records[:4]
    with pytest.raises(StoreDamagedError):
        asked_and_said(chat)


def test_what_is_apart_and_damaged_keeps_no_new_checkpoint_away() -> None:
    store = MemoryStore()
    shrink(store)
    damaged = Altered(store, lambda one: replace(one, apart=b"x" if one.apart else b""))
    chat = open_chat(damaged)
    for number in range(4):
        chat.ask(f"More {number}?")
        chat.reply(REPLIES[number] * 4)
    last = list_checkpoints(store, "chat")[-1].version
    chat.commit(chat.plan(to=0.001))
    talk_on(chat)
    assert list_checkpoints(store, "chat")[-1].version > last
