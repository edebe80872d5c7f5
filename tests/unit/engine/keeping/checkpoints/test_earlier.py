"""Earlier checkpoints: what opening does not need is kept apart from them, and found by whoever asks for it."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.checkpoints import list_checkpoints
from tests.unit.engine.backends import Ticking, make_backend
from tests.unit.engine.keeping.checkpoints.test_checkpoints import Altered, damages, open_chat, snapshots

from lamella import Note, ToolResult
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.events.codec import write_reply
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.log import Log
from lamella.core.log.records import Record
from lamella.core.log.snapshots.columns import keep_packed
from lamella.core.values import replace
from lamella.engine.chat import Chat
from lamella.engine.keeping.checkpoints.earlier import NOTHING_KEPT, EarlierCheckpoints
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.journal import StoredLog
from lamella.errors import StoreDamagedError, StoreUnavailableError
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
    other = MemoryStore()
    talk_on(open_chat(other), 20)
    store._kept["chat"].records[:] = other._kept["chat"].records[: len(store._kept["chat"].records)]
    with pytest.raises(StoreDamagedError, match="its events say something else"):
        asked_and_said(chat)


def test_of_another_conversation_nothing_is_taken_that_is_apart() -> None:
    store, other = MemoryStore(), MemoryStore()
    live = shrink(store)
    chat = open_chat(other, name="other")
    for number in range(8):
        chat.ask(f"Question {number}?")
        chat.reply(f"Secret {number}. " * 40)
    chat.commit(chat.plan(to=0.001))
    talk_on(chat)
    foreign = {one.version: one.apart for one in list_checkpoints(other, "other")}
    mixed = Watched(store, lambda one: replace(one, apart=foreign.get(one.version, b"")))
    assert any(foreign.values())
    assert asked_and_said(open_chat(mixed)) == asked_and_said(live)


def test_what_another_process_set_apart_since_is_found() -> None:
    store = MemoryStore()
    live = talk(store, end=8)
    late = open_chat(store)
    late.ask("Where were we?")
    late.reply("Here.")
    live.reload()
    # The texts that this chat has at hand go apart, and what was apart is there with more.
    live.commit(live.plan(to=0.001))
    talk_on(live)
    assert [text for _, text in asked_and_said(late)[:8]] == REPLIES[:8]


def test_what_is_apart_and_lacks_something_is_told_by_the_events() -> None:
    store = MemoryStore()
    talk(store, end=8)
    before = {one.version: one.apart for one in list_checkpoints(store, "chat")}
    chat = open_chat(store)
    chat.commit(chat.plan(to=0.001))
    talk_on(chat)
    older = Watched(store, lambda one: replace(one, apart=before.get(one.version) or one.apart))
    assert any(before.values())
    assert asked_and_said(open_chat(older)) == asked_and_said(chat)


def test_after_an_undo_what_stands_again_is_at_hand_again() -> None:
    store = MemoryStore()
    shrink(store)
    chat = open_chat(store)
    chat.undo()
    talk_on(chat, 12)
    assert set(REPLIES[:8]) <= at_hand(store)
    watched = Watched(store)
    open_chat(watched).ask("And now?")
    assert watched.asked == 0


def test_where_a_turn_with_tools_was_shortened_opening_reads_nothing_that_is_apart() -> None:
    store = MemoryStore()
    chat = open_chat(store)
    for number in range(8):
        chat.ask(f"Question {number}?", results=[ToolResult(name="look", output=f"Found {number}. " * 30)])
        chat.reply(REPLIES[number])
    chat.commit(chat.plan(to=0.001))
    talk_on(chat)
    watched = Watched(store)
    again = open_chat(watched)
    assert again.ask("And now?").messages
    assert watched.asked == 0


def test_events_are_folded_once_for_all_that_is_gone() -> None:
    store = MemoryStore()
    live = shrink(store)

    class Counted(Watched):
        loads = 0

        def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
            self.loads += not after
            return super().load(conversation, after=after)

    counted = Counted(store, lambda one: replace(one, apart=b""))
    assert asked_and_said(open_chat(counted)) == asked_and_said(live)
    assert counted.loads == 1


class Away(Watched):
    """A store of which what is apart cannot be read while it is ``away``."""

    away = False

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        if self.away and apart:
            raise StoreUnavailableError("The server is away.", hint="Try again.")
        return super().read_checkpoints(conversation, read, apart=apart)


def test_an_event_that_was_written_and_not_folded_is_folded_once() -> None:
    store = MemoryStore()
    first = shrink(store).turns()[0].message.id
    away = Away(store)
    kept = StoredLog(make_backend(away), "chat")
    answer = message_id("chat", parent=first, role=Voice.REPLY, text="Another.")
    away.away = True
    with pytest.raises(StoreUnavailableError):
        kept.append(write_reply("Another.", message_id=answer, parent=first, at="2026-03-01T12:00:00Z"))
    away.away = False
    kept.reload()
    folded = Log("chat")
    folded.extend(store.load("chat"))
    assert answer in kept.log.nodes
    assert kept.log == folded


def test_conversations_wait_for_their_own_store_only() -> None:
    """Each looks at what is apart in a thread of its own, while the other waits for its store in the middle of that."""
    stores = [MemoryStore(), MemoryStore()]
    lives = [shrink(store) for store in stores]
    both = Barrier(2)

    class Meeting(Watched):
        def read_checkpoints(
            self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
        ) -> Sequence[Result]:
            if apart:
                both.wait(timeout=10)
            return super().read_checkpoints(conversation, read, apart=apart)

    chats = [open_chat(Meeting(store)) for store in stores]
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(asked_and_said, chats)) == [asked_and_said(live) for live in lives]


def test_what_is_apart_and_damaged_is_mended_with_the_next_that_is_written_anew() -> None:
    store = MemoryStore()
    shrink(store)
    kept = store._kept["chat"].checkpoints
    damaged = [one.version for one in kept.values() if one.apart]
    kept |= {version: replace(kept[version], apart=b"x") for version in damaged}
    assert [what for _, what in damages(store)] == [
        "has something apart that cannot be read; its events tell it"
    ] * len(damaged)
    chat = open_chat(store)
    chat.undo()
    talk_on(chat, 12)
    assert damages(store) == []


def test_checkpoints_that_stay_as_they_are_are_not_written_again() -> None:
    store = MemoryStore()
    chat = shrink(store)
    written: list[list[int]] = []

    class Writing(Watched):
        def keep_checkpoint(
            self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()
        ) -> bool:
            written.append([one.version for one in checkpoint.before])
            return super().keep_checkpoint(conversation, checkpoint, instead_of=instead_of)

    del chat
    talk_on(open_chat(Writing(store)), 12)
    assert max(map(len, written)) <= 1


def test_blocks_are_given_once_and_gone_with_an_erasure() -> None:
    store = MemoryStore()
    chat = open_chat(store)
    chat.ask("What is in it?", attach=[Note(path="a.md", text="A long note. " * 40)])
    chat.reply("A note.")
    talk_on(chat, 6)
    kept = StoredLog(make_backend(store), "chat")
    assert kept.take_blocks()
    assert kept.take_blocks() == {}
    again = StoredLog(make_backend(store), "chat")
    Conversations(store, Ticking()).erase_artifact("chat", "a.md")
    again.reload()
    assert again.take_blocks() == {}


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
