"""The history of a branch: replayed from a checkpoint if it is valid, otherwise from the events."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from tests.checkpoints import list_checkpoints
from tests.unit.conversation.backends import Ticking, make_backend
from tests.unit.conversation.checkpoints.test_checkpoints import (
    Altered,
    damages,
    open_chat,
    restored,
    rewrite,
    snapshots,
)
from tests.unit.core.compaction.stories import QUARTERS

from lamella import Note
from lamella.conversation.checkpoints import EMPTY_BRANCH_CHECKPOINT
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.log import encode_checkpoint
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import decode_snapshot, encode_snapshot
from lamella.core.log.turn import TurnSettings
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import ConflictError, StoreCorruptedError
from lamella.ports import Checkpoint, Result, Store
from lamella.stores.memory import InMemoryStore

OLD = "Text 0.\n" * 9


class Noting(Altered):
    """A store that notes which contents were asked for."""

    def __init__(self, store: Store, alter: Callable[[Checkpoint], Checkpoint | None] = lambda one: one) -> None:
        super().__init__(store, alter)
        self.asked: set[str] = set()
        self.lost = False

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        self.asked.update(hashes)
        return {} if self.lost else super().read_contents(conversation_key, hashes)


def fill(store: Store, turns: int = 6) -> Conversation:
    """A conversation in which the same note comes with every turn, changed."""
    conversation = open_chat(store)
    for number in range(turns):
        conversation.ask(f"Question {number}?", attach=[Note(path="a.md", text=f"Text {number}.\n" * 9)])
        conversation.reply(f"Answer {number}.")
    return conversation


def without_contents(checkpoint: Checkpoint) -> Checkpoint:
    snapshot = decode_snapshot(checkpoint.data)
    assert snapshot is not None
    return replace(checkpoint, data=encode_snapshot(replace(snapshot, blocks={})) or b"")


def replays_everything(store: Store, alter: Callable[[Checkpoint], Checkpoint] = without_contents) -> bool:
    """Whether the first turn is told when the next is asked: nobody else asks for what it brought."""
    noting = Noting(store, alter)
    turn = open_chat(noting).ask("And now?")
    assert [message.to_dict() for message in turn.messages]
    return hash_text(OLD) in noting.asked


def without_state(checkpoint: Checkpoint) -> Checkpoint:
    snapshot = decode_snapshot(checkpoint.data)
    assert snapshot is not None
    return replace(checkpoint, data=encode_snapshot(replace(snapshot, encoded_state=b"", blocks={})) or b"")


def test_checkpointed_state_is_not_replayed() -> None:
    store, same = InMemoryStore(), InMemoryStore()
    fill(store)
    fill(same)
    assert not replays_everything(store)
    assert replays_everything(same, without_state)
    ones, others = (
        open_chat(store).turns()[-1].message.question_event,
        open_chat(same).turns()[-1].message.question_event,
    )
    assert ones is not None
    assert others is not None
    assert ones.imprint == others.imprint
    assert damages(store) == []


def test_only_the_newest_checkpoint_has_a_state() -> None:
    store = InMemoryStore()
    fill(store)
    assert [bool(snapshot.encoded_state) for snapshot in snapshots(store)] == [False, False, True]


def test_previous_newest_checkpoint_loses_its_state() -> None:
    store = InMemoryStore()
    fill(store)
    fill(store, 2)
    assert [bool(snapshot.encoded_state) for snapshot in snapshots(store)] == [False, False, False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda chat: chat.fork(chat.turns()[1].reply.id),
        lambda chat: chat.edit(chat.turns()[1].message.id, "Otherwise?"),
        lambda chat: chat.delete(chat.turns()[1].message.id),
    ],
    ids=["fork", "edit", "delete"],
)
def test_other_branch_is_replayed_completely(change: Callable[[Conversation], object]) -> None:
    store = InMemoryStore()
    change(fill(store))
    assert replays_everything(store)


def test_earlier_turn_is_read_only_on_request() -> None:
    store = InMemoryStore()
    fill(store)
    noting = Noting(store)
    conversation = open_chat(noting)
    conversation.ask("And now?")
    assert hash_text(OLD) not in noting.asked
    conversation.recall("Text 0")
    assert hash_text(OLD) in noting.asked


def test_state_of_other_branch_is_not_saved() -> None:
    elsewhere = PromptState(conversation="chat", head="elsewhere", turn_count=1, tokenizer_name=QUARTERS.name)
    assert (
        encode_checkpoint(FoldedLog("chat"), elsewhere, defaults=TurnSettings(), tokenizer=QUARTERS)
        == EMPTY_BRANCH_CHECKPOINT
    )


def test_contents_of_state_are_stored_once_with_snapshots() -> None:
    store = InMemoryStore()
    fill(store)
    kept = [name for snapshot in snapshots(store) for name in snapshot.blocks]
    assert kept
    assert len(kept) == len(set(kept))


def test_content_erased_meanwhile_is_not_used() -> None:
    store = InMemoryStore()
    fill(store)
    conversation = open_chat(store)
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    conversation.reload()
    turn = conversation.ask("And now?")
    assert "Text" not in "".join(message.text for message in turn.messages)
    assert turn.messages == open_chat(store).regenerate().messages


def test_block_with_wrong_key_is_found_by_verify() -> None:
    store = InMemoryStore()
    fill(store)
    last = snapshots(store)[-1].version
    assert snapshots(store)[-1].blocks
    lying = Altered(store, rewrite(lambda one: replace(one, blocks=dict.fromkeys(one.blocks, "x")), version=last))
    assert [place for place, _ in damages(lying)] == [f"checkpoint {last}"]


def test_long_blocks_are_rewritten() -> None:
    store = InMemoryStore()
    conversation = open_chat(store)
    for number in range(4):
        conversation.ask(
            f"Question {number}?", attach=[Note(path=f"{number}.md", text=f"{number}" * 10 ** (number + 2))]
        )
        conversation.reply("Read.")
    sizes = {len(data) for snapshot in snapshots(store) for data in snapshot.blocks.values()}
    assert sizes
    assert 10**4 < max(sizes) < 10**5
    assert open_chat(store).ask("And now?").messages


def test_only_newest_snapshot_has_full_log() -> None:
    store = InMemoryStore()
    conversation = open_chat(store)
    conversation.rename("A title. " * 999)
    fill(store)
    assert [snapshot.log is None for snapshot in snapshots(store)] == [True, True, False]
    assert restored(store) == 12
    assert damages(store) == []


NOTES = {f"{number}.md": f"Note {number}. " * 50 for number in range(6)}


def attach_notes(store: Store) -> Conversation:
    """A conversation with a note for each turn."""
    conversation = open_chat(store, layout="in_place")
    for path, text in NOTES.items():
        conversation.ask(f"What is in {path}?", attach=[Note(path=path, text=text)])
        conversation.reply("A note.")
    return conversation


def continue_conversation(chat: Conversation) -> None:
    for number in range(5):
        chat.ask(f"And {number}?")
        chat.reply("That, too.")


def test_texts_of_stored_blocks_are_not_read() -> None:
    store = InMemoryStore()
    continue_conversation(attach_notes(store))
    blocks = [block for snapshot in snapshots(store) for block in snapshot.blocks.values()]
    assert all(any(text in block for block in blocks) for text in NOTES.values())
    noting = Noting(store)
    conversation = open_chat(noting)
    turn = conversation.ask("And now?")
    assert all(any(text in message.text for message in turn.messages) for text in NOTES.values())
    conversation.reply("Nothing.")
    # Often enough that the next checkpoints are kept.
    continue_conversation(conversation)
    assert noting.asked == set()


def shrink(store: Store) -> Conversation:
    """A conversation with notes of which a compaction leaves their names, and turns after it."""
    conversation = attach_notes(store)
    conversation.commit(conversation.plan(to=0.001))
    continue_conversation(conversation)
    return conversation


def test_unsent_texts_are_not_stored_or_read_until_needed() -> None:
    store = InMemoryStore()
    shrink(store)
    # The last turns are left as they are.
    texts = list(NOTES.values())[:4]
    hashes = {hash_text(text) for text in texts}
    blocks = [block for snapshot in snapshots(store) for block in snapshot.blocks.values()]
    assert blocks
    assert [text for text in texts if any(text in block for block in blocks)] == []
    assert damages(store) == []
    noting = Noting(store)
    conversation = open_chat(noting)
    for number in range(4):
        # Often enough that the next checkpoints are kept.
        conversation.ask(f"And then {number}?")
        conversation.reply("That as well.")
    assert hashes.isdisjoint(noting.asked)
    turn = conversation.ask("And the first once more?", attach=[Note(path="0.md", text=NOTES["0.md"])])
    assert NOTES["0.md"] in turn.messages[-1].text


def test_conversation_continues_from_unread_texts() -> None:
    store, same = InMemoryStore(), InMemoryStore()
    shrink(store)
    shrink(same)
    one, other = open_chat(store), open_chat(Altered(same, without_state))
    changed = Note(path="0.md", text=NOTES["0.md"].replace("0", "zero"))
    for attach in ([], [changed], [Note(path="1.md", text=NOTES["1.md"])], []):
        turns = [conversation.ask("And?", attach=attach) for conversation in (one, other)]
        assert turns[0].messages == turns[1].messages
        for conversation in (one, other):
            conversation.reply("Yes.")
    one.undo()
    other.undo()
    assert one.ask("All of it?").messages == other.ask("All of it?").messages


def read_all(chat: Conversation) -> list[str]:
    state, _ = chat.current_state
    return [entry.artifact.text for entry in state.library.values()]


def test_unread_text_that_somebody_else_erased_is_a_conflict() -> None:
    store = InMemoryStore()
    shrink(store)
    chat = Conversation.open(make_backend(store), "chat")
    assert chat.current_state
    ConversationRepository(store, Ticking()).erase_artifact("chat", "0.md")
    with pytest.raises(ConflictError):
        read_all(chat)
    chat.reload()
    assert NOTES["0.md"] not in read_all(chat)


def test_lost_unread_text_is_reported() -> None:
    store = InMemoryStore()
    shrink(store)
    noting = Noting(store)
    chat = Conversation.open(make_backend(noting), "chat")
    assert chat.current_state
    noting.lost = True
    with pytest.raises(StoreCorruptedError, match="content sha256:"):
        read_all(chat)


def test_mostly_used_checkpoints_are_not_rewritten() -> None:
    store = InMemoryStore()
    conversation = open_chat(store, layout="in_place")
    for number in range(8):
        notes = [Note(path="a.md", text="Short.\n" * 20)] if not number else []
        conversation.ask("Long. " * 500, attach=notes, detach=["a.md"] if number == 4 else [])
        conversation.reply("Longer. " * 500)
    conversation.commit(conversation.plan(to=0.1))
    before = list_checkpoints(store, "chat")[0]
    for number in range(3):
        conversation.ask(f"And {number}?")
        conversation.reply("That, too.")
    assert list_checkpoints(store, "chat")[0] == before


class Unreadable(Altered):
    """A store whose checkpoints cannot be read while it is so."""

    unreadable = False

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        if self.unreadable:
            raise StoreCorruptedError("No page is whole.", hint="Look at them.")
        return super().read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)


def test_unreadable_earlier_checkpoints_do_not_prevent_new_one() -> None:
    store = InMemoryStore()
    damaged = Unreadable(store)
    conversation = attach_notes(damaged)
    damaged.unreadable = True
    conversation.commit(conversation.plan(to=0.001))
    last = list_checkpoints(store, "chat")[-1].version
    continue_conversation(conversation)
    assert list_checkpoints(store, "chat")[-1].version > last + 4
