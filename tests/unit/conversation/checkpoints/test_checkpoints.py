"""Checkpoints: saved when due, used if complete, and never required."""

from collections.abc import Callable, Collection, Sequence

import pytest
from msgspec import Raw, msgpack
from tests.checkpoints import list_checkpoints
from tests.unit.conversation.backends import Failing, Ticking, make_backend, make_chat
from tests.unit.conversation.test_token_counts import Tallying

from lamella import Note, ToolResult
from lamella.conversation.checkpoints import (
    EMPTY_BRANCH_CHECKPOINT,
    EVENTS_PER_CHECKPOINT,
    EVENTS_PER_UPDATE,
    Checkpoints,
    decode_checkpoint,
)
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.token_counts import build_count_entries, decode_count_entries
from lamella.core.artifacts.model import ArtifactId, ArtifactKind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.log.log import SNAPSHOT_FORMAT, FoldedLog
from lamella.core.log.snapshots import Snapshot, decode_snapshot, encode_snapshot, make_snapshot, restore_log
from lamella.core.log.tree import PackedMessages, pack_columns
from lamella.core.log.turn_records import MessageNode
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import ConflictError, StoreCorruptedError, StoreUnavailableError
from lamella.ports import Checkpoint, Result, Store
from lamella.stores.memory import InMemoryStore

FORTY = 10**40
NEVER = 10**9
AT = "2026-03-01T12:00:00Z"


def open_chat(
    store: Store, *, every: int = 4, counter: Tallying | None = None, name: str = "chat", **settings: object
) -> Conversation:
    backend = make_backend(store)
    adapters = replace(backend.adapters, counter=counter or Tallying())
    return Conversation.open(replace(backend, adapters=adapters, checkpoint_every=every), name, settings)


def converse(chat: Conversation, turns: int = 4, *, begin: int = 0) -> None:
    """So many turns of two events each."""
    for number in range(begin, begin + turns):
        chat.ask(f"Question {number}?")
        chat.reply(f"Answer {number}.")


def versions(store: Store) -> list[int]:
    return [checkpoint.version for checkpoint in list_checkpoints(store, "chat")]


def snapshots(store: Store) -> list[Snapshot]:
    found = [decode_checkpoint(checkpoint) for checkpoint in list_checkpoints(store, "chat")]
    return [snapshot for snapshot in found if snapshot is not None]


def restored(store: Store) -> int:
    """How many events an opening does not fold."""
    return Checkpoints(store, "chat").restore().log.version


def damages(store: Store) -> list[tuple[str, str]]:
    return [(damage.location, damage.description) for damage in ConversationRepository(store, Ticking()).verify()]


def leftovers(store: Store) -> list[tuple[str, str]]:
    return [
        (damage.location, damage.description)
        for damage in ConversationRepository(store, Ticking()).verify_erased("chat")
    ]


class Altered(Failing):
    """A store that gives checkpoints as ``alter`` makes them, and refuses to keep any while ``full``."""

    def __init__(self, store: Store, alter: Callable[[Checkpoint], Checkpoint | None] = lambda one: one) -> None:
        super().__init__(store)
        self.alter = alter
        self.full = False
        self.before_keeping: Callable[[], object] = lambda: None

    def save_checkpoint(
        self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
    ) -> bool:
        if self.full:
            raise StoreUnavailableError("The disk is full.", hint="Make room and try again.")
        self.before_keeping()
        return super().save_checkpoint(conversation_key, checkpoint, replaced_versions=replaced_versions)

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        kept = super().read_checkpoints(conversation_key, lambda one: one, with_separate_data=with_separate_data)
        altered = (self.alter(checkpoint) for checkpoint in kept)
        return [decode(checkpoint) for checkpoint in altered if checkpoint is not None]


def log_of(snapshot: Snapshot) -> FoldedLog:
    """The log that a snapshot holds, which can be read."""
    assert snapshot.log is not None
    return snapshot.log


def rewrite(change: Callable[[Snapshot], Snapshot], *, version: int) -> Callable[[Checkpoint], Checkpoint]:
    """Makes the checkpoint of a version say something else, under a digest that is right."""

    def alter(checkpoint: Checkpoint) -> Checkpoint:
        if checkpoint.version != version:
            return checkpoint
        snapshot = decode_snapshot(checkpoint.data)
        assert snapshot is not None
        data = encode_snapshot(change(snapshot))
        assert data is not None
        return replace(checkpoint, data=data)

    return alter


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def test_checkpoint_is_saved_every_n_events(store: InMemoryStore) -> None:
    converse(open_chat(store), 7)
    assert versions(store) == [4, 8, 12]
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 4, 8]
    assert damages(store) == []


def test_default_checkpoint_grows_every_32_to_128_events(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    for _ in range(EVENTS_PER_CHECKPOINT * 2 + 1):
        conversation.rename("A name")
    assert versions(store) == [128, 256]
    for _ in range(EVENTS_PER_UPDATE * 2):
        conversation.rename("A name")
    assert versions(store) == [128, 256, 320]
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 128, 256]


def test_partial_checkpoint_grows_in_next_session(store: InMemoryStore) -> None:
    for sitting in range(40):
        conversation = make_chat(store)
        for turn in range(4):
            conversation.ask(f"{sitting} {turn}", attach=[Note(path="a.md", text=f"A {sitting}")] if not turn else [])
            conversation.reply(f"So {sitting} {turn}")
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 128, 256]
    assert versions(store)[:2] == [128, 256]
    assert damages(store) == []
    folded = FoldedLog("chat")
    folded.extend(store.load("chat"))
    log, _ = restore_log(snapshots(store), FoldedLog("chat"))
    log.extend(store.load("chat", after=log.version))
    assert log == folded
    # Nothing that was counted in an earlier sitting is counted again for having been written again.
    assert all(-1 not in tokens for snapshot in snapshots(store) for tokens in snapshot.message_token_counts.values())


def test_session_of_one_event_saves_checkpoints(store: InMemoryStore) -> None:
    for _ in range(9):
        open_chat(store).rename("A name")
    assert versions(store) == [4, 8]
    assert restored(store) == 8


def test_opening_folds_only_the_events_since_the_last(store: InMemoryStore) -> None:
    converse(open_chat(store), 5)
    loaded: list[int] = []

    class Watched(Failing):
        def load(self, conversation: str, *, after: int = 0) -> Sequence[EventRecord]:
            loaded.append(after)
            return super().load(conversation, after=after)

    chat = open_chat(Watched(store))
    assert loaded == [8]
    assert [record.message.text for record in chat.turns()] == [f"Question {number}?" for number in range(5)]


def test_checkpoint_missed_by_kill_is_saved_next_time(store: InMemoryStore) -> None:
    converse(open_chat(store, every=NEVER))
    assert versions(store) == []
    open_chat(store).rename("A name")
    assert versions(store) == [9]
    assert damages(store) == []


@pytest.mark.parametrize(
    "alter",
    [
        lambda data: data[:-1],
        lambda data: data[:20],
        lambda data: b"",
        lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    ],
)
def test_damaged_checkpoint_is_ignored_and_reported(store: InMemoryStore, alter: Callable[[bytes], bytes]) -> None:
    converse(open_chat(store), 6)
    damaged = Altered(store, lambda one: replace(one, data=alter(one.data)) if one.version == 8 else one)
    assert restored(damaged) == 4
    assert damages(damaged) == [("checkpoint 8", "cannot be read and is not used; the next one replaces it")]
    assert open_chat(damaged).ask("And?").messages == open_chat(store, every=NEVER).regenerate().messages


def test_unreadable_checkpoint_is_replaced_by_next(store: InMemoryStore) -> None:
    converse(open_chat(store), 6)
    damaged = Altered(store, lambda one: replace(one, data=b"") if one.version == 8 else one)
    damaged.full = True
    open_chat(damaged).rename("A name")
    assert versions(store) == [4, 8, 12]
    damaged.full = False
    conversation = open_chat(damaged)
    conversation.rename("Another name")
    assert versions(store) == [4, 14], "12 goes on from the one that cannot be read"
    converse(conversation)
    assert versions(store) == [4, 14, 18, 22]
    assert damages(damaged) == []


def test_checkpoint_of_other_format_is_ignored_and_not_damage(store: InMemoryStore) -> None:
    converse(open_chat(store))
    old = Altered(store, lambda one: replace(one, data=one.data.replace(b"log %d" % SNAPSHOT_FORMAT, b"log 0", 1)))
    assert restored(old) == 0
    assert damages(old) == []
    old.alter = lambda one: replace(one, data=b"lamella log 0\n") if one.version < 9 else one
    open_chat(old).rename("A name")
    assert versions(store) == [9]
    assert restored(old) == 9


def test_newer_checkpoint_after_gap_is_replaced(store: InMemoryStore) -> None:
    converse(open_chat(store), 6)
    holed = Altered(store, lambda one: None if one.version == 8 else one)
    assert restored(holed) == 4
    open_chat(holed).rename("A name")
    assert versions(holed) == [4, 13], "12 goes on from the one that is not there"
    assert restored(holed) == 13
    assert damages(holed) == []


def test_checkpoint_with_wrong_version_is_not_used(store: InMemoryStore) -> None:
    converse(open_chat(store, every=8))
    moved = Altered(store, lambda one: replace(one, version=4))
    assert (versions(moved), restored(moved)) == ([4], 0)
    assert damages(moved) == [("checkpoint 4", "cannot be read and is not used; the next one replaces it")]


def retell(node: MessageNode) -> MessageNode:
    return replace(node, event=replace(node.event, text="Another question?"))


def lade_runs(nodes: Sequence[MessageNode]) -> Sequence[MessageNode]:
    """The same messages, said to have brought something along."""
    columns = pack_columns(nodes)
    note = StoredArtifact(
        id=ArtifactId("n"), kind=ArtifactKind.NOTE, title="n", hash="sha256:n", source=StoredSource(path="n")
    )
    brought: dict[int, tuple[StoredArtifact, ...]] = {0: (note,)}
    runs, apart, packed = msgpack.decode(columns.rest)
    laden = [(*run[:4], brought, run[5]) for run in runs]
    return PackedMessages(columns._replace(rest=Raw(msgpack.encode((laden, apart, packed)))))


@pytest.mark.layout("library")
def test_false_checkpoint_is_found_by_verify(store: InMemoryStore) -> None:
    converse(open_chat(store), 4)
    lies: list[Callable[[Snapshot], Snapshot]] = [
        lambda one: replace(one, nodes=(retell(one.nodes[0]), *one.nodes[1:])),
        lambda one: replace(one, raw_log=replace(log_of(one), title="Another title")),
        lambda one: replace(one, conversation="other", raw_log=replace(log_of(one), conversation="other")),
        lambda one: replace(one, after=1),
    ]
    for lie in lies:
        lying = Altered(store, rewrite(lie, version=8))
        assert damages(lying) == [
            ("checkpoint 8", "is not what its events come to; a copy of the store leaves it behind")
        ]
    unrun = Altered(store, rewrite(lambda one: replace(one, nodes=lade_runs(one.nodes)), version=8))
    assert [place for place, _ in damages(unrun)] == ["checkpoint 8"]
    order = Altered(store, rewrite(lambda one: replace(one, nodes=one.nodes[::-1]), version=8))
    assert [place for place, _ in damages(order)] == ["checkpoint 8"]


def test_branches_in_another_order_are_found_by_verify(store: InMemoryStore) -> None:
    conversation = open_chat(store, every=8)
    converse(conversation, 2)
    for record in conversation.turns():
        conversation.fork(record.message.id)
        conversation.reply("Another answer.")
    (snapshot,) = snapshots(store)
    ended = list(log_of(snapshot)._leaves)
    assert len(ended) > 1
    turned = replace(log_of(snapshot), _leaves=dict.fromkeys(reversed(ended)))
    assert damages(store) == []
    lying = Altered(store, rewrite(lambda one: replace(one, raw_log=turned), version=8))
    assert [place for place, _ in damages(lying)] == ["checkpoint 8"]


def test_false_token_counts_are_found_by_verify(store: InMemoryStore) -> None:
    converse(open_chat(store))
    told = ("checkpoint 8", "has counts that no event has; a copy of the store leaves it behind")
    (who,) = snapshots(store)[1].message_token_counts
    for lie in (
        lambda one: replace(one, message_token_counts={who: [5, 5, 5, 5]}),
        lambda one: replace(one, message_token_counts={who + 1: one.message_token_counts[who]}),
        lambda one: replace(one, text_token_counts=hash_text("x").encode()[:32] + bytes(8) + b"\xff" * 4),
    ):
        assert damages(Altered(store, rewrite(lie, version=8))) == [told]


def test_damaged_events_are_not_blamed_on_checkpoints(store: InMemoryStore) -> None:
    converse(open_chat(store))

    class Tampered(Failing):
        def load(self, conversation: str, *, after: int = 0) -> Sequence[EventRecord]:
            return [replace(record, counts=bytes(44)) for record in super().load(conversation, after=after)]

    assert {place.split()[0] for place, _ in damages(Tampered(store))} == {"event"}
    store._stored["chat"].records[0] = replace(store.load("chat")[0], at="2020-01-01T00:00:00Z")
    assert {place.split()[0] for place, _ in damages(store)} == {"event"}


def test_events_appended_during_verify_are_not_damage(store: InMemoryStore) -> None:
    converse(open_chat(store))

    class Older(Failing):
        def load(self, conversation: str, *, after: int = 0) -> Sequence[EventRecord]:
            return super().load(conversation, after=after)[:6]

    assert damages(Older(store)) == []


def test_conversation_with_unfoldable_event_is_reported_once(store: InMemoryStore) -> None:
    converse(open_chat(store))
    store.append(
        "chat", EventBatch(records=(EventRecord(kind=EventKind.SWITCH, at="x", body='{"head":"no"}'),)), expected=8
    )
    assert [place for place, _ in damages(store)] == ["log"]
    with pytest.raises(StoreCorruptedError):
        open_chat(store)


def test_failing_checkpoint_save_does_not_fail_turn(store: InMemoryStore) -> None:
    failing = Altered(store)
    failing.full = True
    conversation = open_chat(failing)
    converse(conversation, 3)
    assert (len(store.load("chat")), versions(store)) == (6, [])


def test_failed_save_leaves_no_gap(store: InMemoryStore) -> None:
    failing = Altered(store)
    conversation = open_chat(failing)
    converse(conversation, 2)
    failing.full = True
    converse(conversation, 3, begin=2)
    failing.full = False
    converse(conversation, 3, begin=5)
    assert versions(store) == [4, 12, 16]
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 4, 12]
    assert restored(store) == 16
    assert damages(store) == []


def test_token_counts_of_failed_save_are_saved_next(store: InMemoryStore) -> None:
    failing = Altered(store)
    failing.full = True
    conversation = open_chat(failing)
    converse(conversation, 2)
    failing.full = False
    converse(conversation, 2, begin=2)
    (snapshot,) = snapshots(store)
    assert [-1 in tokens for tokens in snapshot.message_token_counts.values()] == [False]


def test_failing_save_is_not_retried_at_every_event(store: InMemoryStore) -> None:
    tries: list[int] = []
    failing = Altered(store)
    conversation = open_chat(failing)

    def fail() -> None:
        tries.append(len(store.load("chat")))
        raise StoreUnavailableError("The disk is full.", hint="Make room and try again.")

    failing.before_keeping = fail
    converse(conversation, 6)
    assert tries == [4, 8, 12]


def test_checkpoint_is_not_saved_after_concurrent_append(store: InMemoryStore) -> None:
    busy = Altered(store)
    conversation = open_chat(busy)
    others = open_chat(store, every=NEVER)

    def append() -> None:
        others.reload()
        others.rename("Faster")

    busy.before_keeping = append
    converse(conversation, 2)
    assert versions(store) == []
    busy.before_keeping = lambda: None
    with pytest.raises(ConflictError):
        conversation.ask("Slower")
    conversation.reload()
    converse(conversation, 2, begin=2)
    assert versions(store) == [8]
    assert restored(store) == 8
    assert damages(store) == []


def test_two_writers_of_checkpoints_agree_on_log(store: InMemoryStore) -> None:
    ours, theirs = open_chat(store), open_chat(store, every=5)
    for number in range(12):
        conversation = theirs if number % 3 else ours
        conversation.reload()
        converse(conversation, 1, begin=number)
    assert len(versions(store)) > len({snapshot.after for snapshot in snapshots(store)})
    kept = Checkpoints(store, "chat").restore().log
    kept.extend(store.load("chat", after=kept.version))
    folded = FoldedLog("chat")
    folded.extend(store.load("chat"))
    assert kept == folded
    assert restored(store) > 16
    assert damages(store) == []


def test_huge_number_prevents_checkpoint_only(store: InMemoryStore) -> None:
    conversation = open_chat(store)
    converse(conversation, 2)
    selected = f'{{"id":"s","kind":"selected_text","title":"s","hash":"none","source":{{"lines":[1,{FORTY}]}}}}'
    body = f'{{"id":"m","parent":"{conversation.head}","text":"q","attached":[{selected}]}}'
    store.append("chat", EventBatch(records=(EventRecord(kind=EventKind.MESSAGE, at=AT, body=body),)), expected=4)
    conversation.reload()
    converse(conversation, 4, begin=2)
    assert versions(store) == [4]
    assert [record.message.text for record in open_chat(store).turns()][2:] == [
        "q",
        *(f"Question {n}?" for n in range(2, 6)),
    ]
    assert [place for place, _ in damages(store)] == ["message m"]


def test_huge_numbers_in_tool_arguments_are_stored(store: InMemoryStore) -> None:
    conversation = open_chat(store, every=2)
    turn = conversation.ask("Add.", results=[ToolResult(name="add", arguments={"a": FORTY, "b": -FORTY}, output="0")])
    conversation.reply("Done.")
    assert restored(store) == 2
    assert open_chat(store).regenerate().envelope == turn.envelope
    assert str(FORTY) in turn.messages[-1].text


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_counted_texts_are_not_counted_again(store: InMemoryStore, layout: str) -> None:
    conversation = open_chat(store, layout=layout)
    conversation.ask("Read.", attach=[Note(path="a.md", text="Apples.\n")])
    conversation.reply("Read.")
    converse(conversation, 4)
    assert restored(store) == 8
    counter = Tallying()
    open_chat(store, counter=counter).ask("And plums?")
    assert set(counter.asked) == {"And plums?"}


def test_other_tokenizer_family_counts_again(store: InMemoryStore) -> None:
    converse(open_chat(store))
    counter = Tallying()
    open_chat(store, counter=counter).ask("And?", model="google:gemini-3")
    assert "Question 0?" in counter.asked
    counter.asked.clear()
    open_chat(store, counter=counter).ask("And now?", model="google:gemini-3")
    assert set(counter.asked) - {""} == {"And now?"}


def test_changed_tokenizer_factor_counts_again(store: InMemoryStore) -> None:
    converse(open_chat(store))
    counter = Tallying(factor=1.5)
    open_chat(store, counter=counter).ask("And?")
    assert "Question 0?" in counter.asked


def converse_with_note(chat: Conversation) -> None:
    chat.ask("What grows here?", attach=[Note(path="a.md", text="Apples.\n")])
    chat.reply("Apples grow here.")
    converse(chat, 2)


def test_erasure_removes_checkpoints_and_verify_confirms(store: InMemoryStore) -> None:
    converse_with_note(open_chat(store))
    conversations = ConversationRepository(store, Ticking())
    assert versions(store) == [4]
    conversations.erase_artifact("chat", "a.md")
    assert versions(store) == []
    converse(open_chat(store), 1, begin=2)
    assert versions(store) == [8]
    assert leftovers(store) == []
    assert damages(store) == []


def test_open_chat_drops_counts_after_erasure(store: InMemoryStore) -> None:
    conversation = open_chat(store)
    converse_with_note(conversation)
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    conversation.reload()
    converse(conversation, 4, begin=2)
    kept = snapshots(store)
    assert [snapshot.after for snapshot in kept] == [0, 8]
    counted = {
        digest.hex()
        for snapshot in kept
        for digest, _, _ in decode_count_entries([snapshot.text_token_counts])
        | build_count_entries(snapshot.message_token_counts, [node.text for node in snapshot.nodes])
    }
    assert hash_text("Apples.\n").removeprefix("sha256:") not in counted
    assert hash_text("Apples grow here.").removeprefix("sha256:") not in counted
    assert hash_text("Question 3?").removeprefix("sha256:") in counted
    assert leftovers(store) == []
    assert restored(store) == 12


def test_checkpoints_left_after_erasure_are_found(store: InMemoryStore) -> None:
    converse_with_note(open_chat(store))
    left = list_checkpoints(store, "chat")
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    store._stored["chat"].checkpoints = {checkpoint.version: checkpoint for checkpoint in left}
    assert leftovers(store) == [("checkpoint 4", "left after erasure; erasing it again removes it")]
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    assert leftovers(store) == []


def test_erasure_is_verified_despite_damaged_log_or_checkpoints(store: InMemoryStore) -> None:
    converse_with_note(open_chat(store))
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    odd = EventBatch(records=(EventRecord(kind=EventKind.SWITCH, at=AT, body='{"head":"no"}'),))
    store.append("chat", odd, expected=7)
    assert store.save_checkpoint("chat", Checkpoint(version=8, data=b""))
    assert [place for place, _ in leftovers(store)] == ["checkpoints"]

    class Unreadable(Failing):
        def read_checkpoints(
            self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
        ) -> Sequence[Result]:
            raise StoreCorruptedError("The table is damaged.", hint="Restore it.")

    assert leftovers(Unreadable(store)) == [("checkpoints", "The table is damaged.")]


def test_old_counts_in_later_checkpoint_are_found(store: InMemoryStore) -> None:
    converse_with_note(open_chat(store))
    counts = store.load("chat")[0].counts
    ConversationRepository(store, Ticking()).erase_artifact("chat", "a.md")
    converse(open_chat(store), 1, begin=2)
    careless = Altered(store, rewrite(lambda one: replace(one, text_token_counts=counts), version=8))
    assert leftovers(careless) == [
        ("checkpoint 8", "has counts that no event has; a copy of the store leaves it behind")
    ]


def test_erasing_conversation_removes_checkpoints(store: InMemoryStore) -> None:
    converse(open_chat(store))
    ConversationRepository(store, Ticking()).erase("chat")
    assert versions(store) == []
    assert not store.save_checkpoint("chat", Checkpoint(version=0, data=b"late"))
    assert leftovers(store) == []


def test_copy_omits_checkpoints_and_makes_its_own(store: InMemoryStore) -> None:
    converse(open_chat(store))
    other = InMemoryStore()
    ConversationRepository(other, Ticking()).import_conversation(
        ConversationRepository(store, Ticking()).export_conversation("chat")
    )
    assert versions(other) == []
    assert open_chat(other).ask("And?").messages == open_chat(store).ask("And?").messages
    assert versions(other) == [9]


def test_snapshot_beyond_written_events_is_not_saved(store: InMemoryStore) -> None:
    checkpoints = Checkpoints(store, "chat", events_per_checkpoint=1)
    log = FoldedLog("chat", version=3)
    checkpoints.save_if_due(log, lambda: EMPTY_BRANCH_CHECKPOINT)
    assert versions(store) == []
    assert make_snapshot(log, after=0).version == 3


def test_checkpoint_after_undo_has_nothing_compacted(store: InMemoryStore) -> None:
    def talk(kept: Store, *, every: int) -> tuple[Conversation, int]:
        conversation = open_chat(kept, every=every, window=20_000, reserve=0, layout="in_place")
        converse(conversation)
        assert conversation.compact(to=0.001) is not None
        converse(conversation, 1, begin=4)
        conversation.undo()
        undone_at = len(kept.load("chat"))
        converse(conversation, 1, begin=5)
        return conversation, undone_at

    through, undone_at = talk(InMemoryStore(), every=NEVER)
    talk(store, every=undone_at)
    assert versions(store) == [undone_at]
    assert open_chat(store).ask("And now?").messages == through.ask("And now?").messages
