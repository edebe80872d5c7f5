"""Earlier checkpoints: text that opening does not need is in separate columns, and loaded on request."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.checkpoints import list_checkpoints
from tests.unit.conversation.backends import Ticking, make_backend
from tests.unit.conversation.checkpoints.test_checkpoints import Altered, damages, open_chat, snapshots
from tests.waiting import HANG_SECONDS

from lamella import Note, ToolResult
from lamella.conversation.checkpoints import EMPTY_BRANCH_CHECKPOINT, OldCheckpoints
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.log import ConversationLog
from lamella.core.log.events.codec import build_reply_batch
from lamella.core.log.events.kinds import EventRecord
from lamella.core.log.log import FoldedLog
from lamella.core.log.tree import pack_messages
from lamella.core.log.turn import MessageAuthor, compute_message_id
from lamella.core.values import replace
from lamella.errors import StoreCorruptedError, StoreUnavailableError
from lamella.ports import Checkpoint, Result, Store
from lamella.stores.memory import InMemoryStore

# Long enough that an outline is worth it, each with a word of its own.
REPLIES = [f"Reply {number}. " + f"This goes on about pear{number} for a while. " * 12 for number in range(10)]


def talk(store: Store, *, begin: int = 0, end: int = 10) -> Conversation:
    conversation = open_chat(store)
    for number in range(begin, end):
        conversation.ask(f"Question {number}?")
        conversation.reply(REPLIES[number])
    return conversation


def shrink(store: Store) -> Conversation:
    """A conversation of which a compaction leaves outlines, and turns after it, so that checkpoints know of it."""
    conversation = talk(store, end=8)
    conversation.commit(conversation.plan(to=0.001))
    continue_conversation(conversation)
    return conversation


def continue_conversation(chat: Conversation, turns: int = 4) -> None:
    for number in range(turns):
        chat.ask(f"And {number}?")
        chat.reply("So it is.")


class Watched(Altered):
    """A store that counts how often somebody asked for what is apart from checkpoints."""

    def __init__(self, store: Store, alter: Callable[[Checkpoint], Checkpoint | None] = lambda one: one) -> None:
        super().__init__(store, alter)
        self.asked = 0

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        self.asked += with_separate_data
        return super().read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)


def at_hand(store: Store) -> set[str]:
    """The texts that opening reads."""
    texts = [text for snapshot in snapshots(store) for text in pack_messages(snapshot.nodes).columns.texts]
    return {text for text in texts if text is not None}


def message_texts_of(chat: Conversation) -> list[tuple[str, str]]:
    return [(record.message.text, record.reply.text) for record in chat.turns() if record.reply is not None]


def test_replaced_text_is_in_separate_column_and_sent_text_is_not() -> None:
    store = InMemoryStore()
    shrink(store)
    there = at_hand(store)
    assert there.isdisjoint(REPLIES[:4])
    assert {"And 0?", "So it is."} <= there
    assert damages(store) == []


def test_missing_checkpoints_shrink_to_nothing() -> None:
    assert OldCheckpoints(InMemoryStore(), "chat").build_shrunk_checkpoints(EMPTY_BRANCH_CHECKPOINT) == ()


def test_every_text_is_loaded_before_first_compaction() -> None:
    store = InMemoryStore()
    talk(store)
    assert set(REPLIES) <= at_hand(store)


def test_asking_reads_no_separate_columns_and_listing_reads_them_once() -> None:
    store = InMemoryStore()
    live = shrink(store)
    watched = Watched(store)
    conversation = open_chat(watched)
    # More of them than are looked for one by one among kept counts.
    continue_conversation(conversation, 40)
    assert watched.asked == 0
    said = message_texts_of(conversation)
    assert watched.asked == 1
    live.reload()
    assert said == message_texts_of(live)
    assert [text for _, text in said[:8]] == REPLIES[:8]


def test_undo_restores_separate_columns() -> None:
    store = InMemoryStore()
    shrink(store)
    conversation = open_chat(store)
    conversation.undo()
    messages = conversation.ask("All of it?").messages
    assert [text for text in REPLIES[:8] if any(text in message.text for message in messages)] == REPLIES[:8]
    conversation.reply("Yes.")
    continue_conversation(conversation, 8)
    # What stands again is at hand once earlier ones are written again, and found where it is until then.
    again = open_chat(store).ask("And again?").messages
    assert [text for text in REPLIES[:8] if any(text in message.text for message in again)] == REPLIES[:8]
    assert damages(store) == []


def test_recall_finds_text_in_separate_columns() -> None:
    store = InMemoryStore()
    shrink(store)
    hits = open_chat(store).recall("pear2")
    assert any("pear2" in hit.excerpt for hit in hits)


@pytest.mark.parametrize("damage", [b"", b"nothing that was written"])
def test_unreadable_separate_columns_are_rebuilt_from_events(damage: bytes) -> None:
    store = InMemoryStore()
    live = shrink(store)
    lost = Watched(store, lambda one: replace(one, separate_data=damage))
    assert message_texts_of(open_chat(lost)) == message_texts_of(live)
    unread = [one for one in list_checkpoints(store, "chat") if one.separate_data]
    assert unread
    assert [place for place, _ in damages(lost)] == [f"checkpoint {one.version}" for one in unread]


def test_separate_columns_of_other_checkpoint_are_not_used() -> None:
    store = InMemoryStore()
    live = shrink(store)
    apart = {one.version: one.separate_data for one in list_checkpoints(store, "chat") if one.separate_data}
    first, second = list(apart)[:2]
    swapped = {first: apart[second], second: apart[first]}
    mixed = Watched(store, lambda one: replace(one, separate_data=swapped.get(one.version, one.separate_data)))
    assert message_texts_of(open_chat(mixed)) == message_texts_of(live)


def test_removed_checkpoints_are_rebuilt_from_events() -> None:
    store = InMemoryStore()
    live = shrink(store)
    conversation = open_chat(store)
    conversation.ask("Where were we?")
    store._stored["chat"].checkpoints.clear()
    live.reload()
    assert message_texts_of(conversation) == message_texts_of(live)


def test_changed_events_are_reported() -> None:
    store = InMemoryStore()
    shrink(store)
    conversation = open_chat(store)
    conversation.ask("Where were we?")
    store._stored["chat"].checkpoints.clear()
    other = InMemoryStore()
    continue_conversation(open_chat(other), 20)
    store._stored["chat"].records[:] = other._stored["chat"].records[: len(store._stored["chat"].records)]
    with pytest.raises(StoreCorruptedError, match="its events say something else"):
        message_texts_of(conversation)


def test_separate_columns_of_other_conversation_are_not_used() -> None:
    store, other = InMemoryStore(), InMemoryStore()
    live = shrink(store)
    conversation = open_chat(other, name="other")
    for number in range(8):
        conversation.ask(f"Question {number}?")
        conversation.reply(f"Secret {number}. " * 40)
    conversation.commit(conversation.plan(to=0.001))
    continue_conversation(conversation)
    foreign = {one.version: one.separate_data for one in list_checkpoints(other, "other")}
    mixed = Watched(store, lambda one: replace(one, separate_data=foreign.get(one.version, b"")))
    assert any(foreign.values())
    assert message_texts_of(open_chat(mixed)) == message_texts_of(live)


def test_separate_columns_of_other_process_are_found() -> None:
    store = InMemoryStore()
    live = talk(store, end=8)
    late = open_chat(store)
    late.ask("Where were we?")
    late.reply("Here.")
    live.reload()
    # The texts that this chat has at hand go apart, and what was apart is there with more.
    live.commit(live.plan(to=0.001))
    continue_conversation(live)
    assert [text for _, text in message_texts_of(late)[:8]] == REPLIES[:8]


def test_incomplete_separate_columns_are_rebuilt_from_events() -> None:
    store = InMemoryStore()
    talk(store, end=8)
    before = {one.version: one.separate_data for one in list_checkpoints(store, "chat")}
    conversation = open_chat(store)
    conversation.commit(conversation.plan(to=0.001))
    continue_conversation(conversation)
    older = Watched(store, lambda one: replace(one, separate_data=before.get(one.version) or one.separate_data))
    assert any(before.values())
    assert message_texts_of(open_chat(older)) == message_texts_of(conversation)


def test_restored_text_after_undo_needs_no_separate_column() -> None:
    store = InMemoryStore()
    shrink(store)
    conversation = open_chat(store)
    conversation.undo()
    continue_conversation(conversation, 12)
    assert set(REPLIES[:8]) <= at_hand(store)
    watched = Watched(store)
    open_chat(watched).ask("And now?")
    assert watched.asked == 0


def test_opening_shortened_tool_turn_reads_no_separate_columns() -> None:
    store = InMemoryStore()
    conversation = open_chat(store)
    for number in range(8):
        conversation.ask(f"Question {number}?", results=[ToolResult(name="look", output=f"Found {number}. " * 30)])
        conversation.reply(REPLIES[number])
    conversation.commit(conversation.plan(to=0.001))
    continue_conversation(conversation)
    watched = Watched(store)
    again = open_chat(watched)
    assert again.ask("And now?").messages
    assert watched.asked == 0


def test_events_are_folded_once_for_all_missing_text() -> None:
    store = InMemoryStore()
    live = shrink(store)

    class Counted(Watched):
        loads = 0

        def load(self, conversation: str, *, after: int = 0) -> Sequence[EventRecord]:
            self.loads += not after
            return super().load(conversation, after=after)

    counted = Counted(store, lambda one: replace(one, separate_data=b""))
    assert message_texts_of(open_chat(counted)) == message_texts_of(live)
    assert counted.loads == 1


class Away(Watched):
    """A store of which what is apart cannot be read while it is ``away``."""

    away = False

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        if self.away and with_separate_data:
            raise StoreUnavailableError("The server is away.", hint="Try again.")
        return super().read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)


def test_unfolded_event_is_folded_once() -> None:
    store = InMemoryStore()
    first = shrink(store).turns()[0].message.id
    away = Away(store)
    kept = ConversationLog(make_backend(away), "chat")
    answer = compute_message_id("chat", parent=first, role=MessageAuthor.REPLY, text="Another.")
    away.away = True
    with pytest.raises(StoreUnavailableError):
        kept.append(build_reply_batch("Another.", message_id=answer, parent=first, timestamp="2026-03-01T12:00:00Z"))
    away.away = False
    kept.reload()
    folded = FoldedLog("chat")
    folded.extend(store.load("chat"))
    assert answer in kept.log.nodes
    assert kept.log == folded


def test_conversations_wait_only_for_their_own_store() -> None:
    """Each looks at what is apart in a thread of its own, while the other waits for its store in the middle of that."""
    stores = [InMemoryStore(), InMemoryStore()]
    lives = [shrink(store) for store in stores]
    both = Barrier(2)

    class Meeting(Watched):
        def read_checkpoints(
            self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
        ) -> Sequence[Result]:
            if with_separate_data:
                both.wait(timeout=HANG_SECONDS)
            return super().read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)

    chats = [open_chat(Meeting(store)) for store in stores]
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(message_texts_of, chats)) == [message_texts_of(live) for live in lives]


def test_damaged_separate_columns_are_repaired_by_next_save() -> None:
    store = InMemoryStore()
    shrink(store)
    kept = store._stored["chat"].checkpoints
    damaged = [one.version for one in kept.values() if one.separate_data]
    kept |= {version: replace(kept[version], separate_data=b"x") for version in damaged}
    assert [what for _, what in damages(store)] == [
        "has separate data that cannot be read; the events have it too"
    ] * len(damaged)
    conversation = open_chat(store)
    conversation.undo()
    continue_conversation(conversation, 12)
    assert damages(store) == []


def test_unchanged_checkpoints_are_not_rewritten() -> None:
    store = InMemoryStore()
    chat = shrink(store)
    written: list[list[int]] = []

    class Writing(Watched):
        def save_checkpoint(
            self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
        ) -> bool:
            written.append([one.version for one in checkpoint.earlier])
            return super().save_checkpoint(conversation_key, checkpoint, replaced_versions=replaced_versions)

    del chat
    continue_conversation(open_chat(Writing(store)), 12)
    assert max(map(len, written)) <= 1


def test_blocks_are_returned_once_and_cleared_by_erasure() -> None:
    store = InMemoryStore()
    conversation = open_chat(store)
    conversation.ask("What is in it?", attach=[Note(path="a.md", text="A long note. " * 40)])
    conversation.reply("A note.")
    continue_conversation(conversation, 6)
    kept = ConversationLog(make_backend(store), "chat")
    assert kept.release_checkpoint_blocks()
    assert kept.release_checkpoint_blocks() == {}
    again = ConversationLog(make_backend(store), "chat")
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    again.reload()
    assert again.release_checkpoint_blocks() == {}


def test_damaged_separate_columns_do_not_prevent_new_checkpoint() -> None:
    store = InMemoryStore()
    shrink(store)
    damaged = Altered(store, lambda one: replace(one, separate_data=b"x" if one.separate_data else b""))
    conversation = open_chat(damaged)
    for number in range(4):
        conversation.ask(f"More {number}?")
        conversation.reply(REPLIES[number] * 4)
    last = list_checkpoints(store, "chat")[-1].version
    conversation.commit(conversation.plan(to=0.001))
    continue_conversation(conversation)
    assert list_checkpoints(store, "chat")[-1].version > last
