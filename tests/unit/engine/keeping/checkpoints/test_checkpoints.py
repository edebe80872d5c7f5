"""Checkpoints: kept when they are due, used where they are whole, and never in the way of what was asked."""

from collections.abc import Callable, Collection, Sequence

import pytest
from msgspec import Raw, msgpack
from tests.checkpoints import list_checkpoints
from tests.unit.engine.backends import Failing, Ticking, make_backend, make_chat
from tests.unit.engine.keeping.test_counting import Tallying

from lamella import Note, ToolResult
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.artifacts.model import ArtifactId, Kind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.log import FORMAT, Log
from lamella.core.log.nodes import Node
from lamella.core.log.records import EventKind, Record, Written
from lamella.core.log.snapshots.columns import PackedNodes, pack_nodes
from lamella.core.log.snapshots.snapshot import Snapshot, join_snapshots, make_snapshot, read_snapshot, write_snapshot
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.engine.chat import Chat
from lamella.engine.keeping.checkpoints.checkpoints import EVENTS, GROWS_BY, Checkpoints
from lamella.engine.keeping.checkpoints.earlier import NOTHING_KEPT
from lamella.engine.keeping.checkpoints.reading import read_checkpoint
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.counting import list_counts, list_tokens
from lamella.errors import ConflictError, StoreDamagedError, StoreUnavailableError
from lamella.holdings import Checkpoint
from lamella.ports import Result, Store

FORTY = 10**40
NEVER = 10**9
AT = "2026-03-01T12:00:00Z"


def open_chat(
    store: Store, *, every: int = 4, counter: Tallying | None = None, name: str = "chat", **settings: object
) -> Chat:
    backend = make_backend(store)
    world = replace(backend.world, counter=counter or Tallying())
    return Chat(replace(backend, world=world, checkpoint_every=every), name, settings)


def converse(chat: Chat, turns: int = 4, *, begin: int = 0) -> None:
    """So many turns of two events each."""
    for number in range(begin, begin + turns):
        chat.ask(f"Question {number}?")
        chat.reply(f"Answer {number}.")


def versions(store: Store) -> list[int]:
    return [checkpoint.version for checkpoint in list_checkpoints(store, "chat")]


def snapshots(store: Store) -> list[Snapshot]:
    found = [read_checkpoint(checkpoint) for checkpoint in list_checkpoints(store, "chat")]
    return [snapshot for snapshot in found if snapshot is not None]


def restored(store: Store) -> int:
    """How many events an opening does not fold."""
    return Checkpoints(store, "chat").restore().log.version


def damages(store: Store) -> list[tuple[str, str]]:
    return [(damage.place, damage.what) for damage in Conversations(store, Ticking()).verify()]


def leftovers(store: Store) -> list[tuple[str, str]]:
    return [(damage.place, damage.what) for damage in Conversations(store, Ticking()).verify_erased("chat")]


class Altered(Failing):
    """A store that gives checkpoints as ``alter`` makes them, and refuses to keep any while ``full``."""

    def __init__(self, store: Store, alter: Callable[[Checkpoint], Checkpoint | None] = lambda one: one) -> None:
        super().__init__(store)
        self.alter = alter
        self.full = False
        self.before_keeping: Callable[[], object] = lambda: None

    def keep_checkpoint(self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()) -> bool:
        if self.full:
            raise StoreUnavailableError("The disk is full.", hint="Make room and try again.")
        self.before_keeping()
        return super().keep_checkpoint(conversation, checkpoint, instead_of=instead_of)

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        kept = super().read_checkpoints(conversation, lambda one: one, apart=apart)
        altered = (self.alter(checkpoint) for checkpoint in kept)
        return [read(checkpoint) for checkpoint in altered if checkpoint is not None]


def log_of(snapshot: Snapshot) -> Log:
    """The log that a snapshot holds, which can be read."""
    assert snapshot.log is not None
    return snapshot.log


def rewrite(change: Callable[[Snapshot], Snapshot], *, version: int) -> Callable[[Checkpoint], Checkpoint]:
    """Makes the checkpoint of a version say something else, under a digest that is right."""

    def alter(checkpoint: Checkpoint) -> Checkpoint:
        if checkpoint.version != version:
            return checkpoint
        snapshot = read_snapshot(checkpoint.data)
        assert snapshot is not None
        data = write_snapshot(change(snapshot))
        assert data is not None
        return replace(checkpoint, data=data)

    return alter


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_checkpoint_is_kept_whenever_so_many_events_were_written(store: MemoryStore) -> None:
    converse(open_chat(store), 7)
    assert versions(store) == [4, 8, 12]
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 4, 8]
    assert damages(store) == []


def test_by_default_it_grows_every_32_events_to_128_of_them(store: MemoryStore) -> None:
    chat = make_chat(store)
    for _ in range(EVENTS * 2 + 1):
        chat.rename("A name")
    assert versions(store) == [128, 256]
    for _ in range(GROWS_BY * 2):
        chat.rename("A name")
    assert versions(store) == [128, 256, 320]
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 128, 256]


def test_one_that_has_not_grown_up_grows_on_in_the_next_sitting(store: MemoryStore) -> None:
    for sitting in range(40):
        chat = make_chat(store)
        for turn in range(4):
            chat.ask(f"{sitting} {turn}", attach=[Note(path="a.md", text=f"A {sitting}")] if not turn else [])
            chat.reply(f"So {sitting} {turn}")
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 128, 256]
    assert versions(store)[:2] == [128, 256]
    assert damages(store) == []
    folded = Log("chat")
    folded.extend(store.load("chat"))
    log, _ = join_snapshots(snapshots(store), Log("chat"))
    log.extend(store.load("chat", after=log.version))
    assert log == folded
    # Nothing that was counted in an earlier sitting is counted again for having been written anew.
    assert all(-1 not in tokens for snapshot in snapshots(store) for tokens in snapshot.tokens.values())


def test_a_sitting_of_one_event_at_a_time_keeps_checkpoints_too(store: MemoryStore) -> None:
    for _ in range(9):
        open_chat(store).rename("A name")
    assert versions(store) == [4, 8]
    assert restored(store) == 8


def test_opening_folds_only_the_events_since_the_last(store: MemoryStore) -> None:
    converse(open_chat(store), 5)
    loaded: list[int] = []

    class Watched(Failing):
        def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
            loaded.append(after)
            return super().load(conversation, after=after)

    chat = open_chat(Watched(store))
    assert loaded == [8]
    assert [told.message.text for told in chat.turns()] == [f"Question {number}?" for number in range(5)]


def test_one_that_was_killed_before_its_checkpoint_leaves_it_to_the_next(store: MemoryStore) -> None:
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
def test_a_damaged_checkpoint_is_not_used_and_verify_names_it(
    store: MemoryStore, alter: Callable[[bytes], bytes]
) -> None:
    converse(open_chat(store), 6)
    damaged = Altered(store, lambda one: replace(one, data=alter(one.data)) if one.version == 8 else one)
    assert restored(damaged) == 4
    assert damages(damaged) == [("checkpoint 8", "cannot be read and is not used; the next one replaces it")]
    assert open_chat(damaged).ask("And?").messages == open_chat(store, every=NEVER).regenerate().messages


def test_one_that_cannot_be_read_goes_when_the_next_is_kept(store: MemoryStore) -> None:
    converse(open_chat(store), 6)
    damaged = Altered(store, lambda one: replace(one, data=b"") if one.version == 8 else one)
    damaged.full = True
    open_chat(damaged).rename("A name")
    assert versions(store) == [4, 8, 12]
    damaged.full = False
    chat = open_chat(damaged)
    chat.rename("Another name")
    assert versions(store) == [4, 14], "12 goes on from the one that cannot be read"
    converse(chat)
    assert versions(store) == [4, 14, 18, 22]
    assert damages(damaged) == []


def test_one_of_another_format_is_not_used_and_is_no_damage(store: MemoryStore) -> None:
    converse(open_chat(store))
    old = Altered(store, lambda one: replace(one, data=one.data.replace(b"log %d" % FORMAT, b"log 0", 1)))
    assert restored(old) == 0
    assert damages(old) == []
    old.alter = lambda one: replace(one, data=b"lamella log 0\n") if one.version < 9 else one
    open_chat(old).rename("A name")
    assert versions(store) == [9]
    assert restored(old) == 9


def test_after_a_hole_a_newer_one_is_taken_again(store: MemoryStore) -> None:
    converse(open_chat(store), 6)
    holed = Altered(store, lambda one: None if one.version == 8 else one)
    assert restored(holed) == 4
    open_chat(holed).rename("A name")
    assert versions(holed) == [4, 13], "12 goes on from the one that is not there"
    assert restored(holed) == 13
    assert damages(holed) == []


def test_one_filed_under_another_version_is_not_used(store: MemoryStore) -> None:
    converse(open_chat(store, every=8))
    moved = Altered(store, lambda one: replace(one, version=4))
    assert (versions(moved), restored(moved)) == ([4], 0)
    assert damages(moved) == [("checkpoint 4", "cannot be read and is not used; the next one replaces it")]


def retell(node: Node) -> Node:
    return replace(node, event=replace(node.event, text="Another question?"))


def lade_runs(nodes: Sequence[Node]) -> Sequence[Node]:
    """The same messages, said to have brought something along."""
    columns = pack_nodes(nodes)
    note = StoredArtifact(id=ArtifactId("n"), kind=Kind.NOTE, title="n", hash="sha256:n", source=StoredSource(path="n"))
    brought: dict[int, tuple[StoredArtifact, ...]] = {0: (note,)}
    runs, apart, packed = msgpack.decode(columns.rest)
    laden = [(*run[:4], brought, run[5]) for run in runs]
    return PackedNodes(columns._replace(rest=Raw(msgpack.encode((laden, apart, packed)))))


@pytest.mark.layout("library")
def test_one_that_tells_something_else_is_found_by_verify(store: MemoryStore) -> None:
    converse(open_chat(store), 4)
    lies: list[Callable[[Snapshot], Snapshot]] = [
        lambda one: replace(one, nodes=(retell(one.nodes[0]), *one.nodes[1:])),
        lambda one: replace(one, told=replace(log_of(one), title="Another title")),
        lambda one: replace(one, conversation="other", told=replace(log_of(one), conversation="other")),
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


def test_branches_in_another_order_are_found_by_verify(store: MemoryStore) -> None:
    chat = open_chat(store, every=8)
    converse(chat, 2)
    for told in chat.turns():
        chat.fork(told.message.id)
        chat.reply("Another answer.")
    (snapshot,) = snapshots(store)
    ended = list(log_of(snapshot)._leaves)
    assert len(ended) > 1
    turned = replace(log_of(snapshot), _leaves=dict.fromkeys(reversed(ended)))
    assert damages(store) == []
    lying = Altered(store, rewrite(lambda one: replace(one, told=turned), version=8))
    assert [place for place, _ in damages(lying)] == ["checkpoint 8"]


def test_counts_that_no_event_has_are_found_by_verify(store: MemoryStore) -> None:
    converse(open_chat(store))
    told = ("checkpoint 8", "has counts that no event has; a copy of the store leaves it behind")
    (who,) = snapshots(store)[1].tokens
    for lie in (
        lambda one: replace(one, tokens={who: [5, 5, 5, 5]}),
        lambda one: replace(one, tokens={who + 1: one.tokens[who]}),
        lambda one: replace(one, counts=hash_text("x").encode()[:32] + bytes(8) + b"\xff" * 4),
    ):
        assert damages(Altered(store, rewrite(lie, version=8))) == [told]


def test_checkpoints_are_not_accused_of_what_happened_to_their_events(store: MemoryStore) -> None:
    converse(open_chat(store))

    class Tampered(Failing):
        def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
            return [replace(record, counts=bytes(44)) for record in super().load(conversation, after=after)]

    assert {place.split()[0] for place, _ in damages(Tampered(store))} == {"event"}
    store._kept["chat"].records[0] = replace(store.load("chat")[0], at="2020-01-01T00:00:00Z")
    assert {place.split()[0] for place, _ in damages(store)} == {"event"}


def test_what_others_append_while_verifying_is_no_damage(store: MemoryStore) -> None:
    converse(open_chat(store))

    class Older(Failing):
        def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
            return super().load(conversation, after=after)[:6]

    assert damages(Older(store)) == []


def test_a_conversation_with_an_event_that_cannot_be_folded_is_named_once(store: MemoryStore) -> None:
    converse(open_chat(store))
    store.append("chat", Written(records=(Record(kind=EventKind.SWITCH, at="x", body='{"head":"no"}'),)), expected=8)
    assert [place for place, _ in damages(store)] == ["log"]
    with pytest.raises(StoreDamagedError):
        open_chat(store)


def test_a_store_that_fails_to_keep_one_does_not_fail_the_turn(store: MemoryStore) -> None:
    failing = Altered(store)
    failing.full = True
    chat = open_chat(failing)
    converse(chat, 3)
    assert (len(store.load("chat")), versions(store)) == (6, [])


def test_one_that_could_not_be_kept_leaves_no_hole(store: MemoryStore) -> None:
    failing = Altered(store)
    chat = open_chat(failing)
    converse(chat, 2)
    failing.full = True
    converse(chat, 3, begin=2)
    failing.full = False
    converse(chat, 3, begin=5)
    assert versions(store) == [4, 12, 16]
    assert [snapshot.after for snapshot in snapshots(store)] == [0, 4, 12]
    assert restored(store) == 16
    assert damages(store) == []


def test_counts_of_one_that_could_not_be_kept_are_kept_with_the_next(store: MemoryStore) -> None:
    failing = Altered(store)
    failing.full = True
    chat = open_chat(failing)
    converse(chat, 2)
    failing.full = False
    converse(chat, 2, begin=2)
    (snapshot,) = snapshots(store)
    assert [-1 in tokens for tokens in snapshot.tokens.values()] == [False]


def test_one_that_cannot_be_kept_is_not_tried_at_every_event(store: MemoryStore) -> None:
    tries: list[int] = []
    failing = Altered(store)
    chat = open_chat(failing)

    def fail() -> None:
        tries.append(len(store.load("chat")))
        raise StoreUnavailableError("The disk is full.", hint="Make room and try again.")

    failing.before_keeping = fail
    converse(chat, 6)
    assert tries == [4, 8, 12]


def test_nothing_is_kept_if_someone_else_appended_meanwhile(store: MemoryStore) -> None:
    busy = Altered(store)
    chat = open_chat(busy)
    others = open_chat(store, every=NEVER)

    def append() -> None:
        others.reload()
        others.rename("Faster")

    busy.before_keeping = append
    converse(chat, 2)
    assert versions(store) == []
    busy.before_keeping = lambda: None
    with pytest.raises(ConflictError):
        chat.ask("Slower")
    chat.reload()
    converse(chat, 2, begin=2)
    assert versions(store) == [8]
    assert restored(store) == 8
    assert damages(store) == []


def test_two_that_both_keep_checkpoints_lead_to_the_same_log(store: MemoryStore) -> None:
    ours, theirs = open_chat(store), open_chat(store, every=5)
    for number in range(12):
        chat = theirs if number % 3 else ours
        chat.reload()
        converse(chat, 1, begin=number)
    assert len(versions(store)) > len({snapshot.after for snapshot in snapshots(store)})
    kept = Checkpoints(store, "chat").restore().log
    kept.extend(store.load("chat", after=kept.version))
    folded = Log("chat")
    folded.extend(store.load("chat"))
    assert kept == folded
    assert restored(store) > 16
    assert damages(store) == []


def test_a_number_of_forty_digits_keeps_checkpoints_away_and_nothing_else(store: MemoryStore) -> None:
    chat = open_chat(store)
    converse(chat, 2)
    selected = f'{{"id":"s","kind":"selected_text","title":"s","hash":"none","source":{{"lines":[1,{FORTY}]}}}}'
    body = f'{{"id":"m","parent":"{chat.head}","text":"q","attached":[{selected}]}}'
    store.append("chat", Written(records=(Record(kind=EventKind.MESSAGE, at=AT, body=body),)), expected=4)
    chat.reload()
    converse(chat, 4, begin=2)
    assert versions(store) == [4]
    assert [told.message.text for told in open_chat(store).turns()][2:] == [
        "q",
        *(f"Question {n}?" for n in range(2, 6)),
    ]
    assert [place for place, _ in damages(store)] == ["message m"]


def test_numbers_of_forty_digits_in_arguments_of_tools_are_kept(store: MemoryStore) -> None:
    chat = open_chat(store, every=2)
    turn = chat.ask("Add.", results=[ToolResult(name="add", arguments={"a": FORTY, "b": -FORTY}, output="0")])
    chat.reply("Done.")
    assert restored(store) == 2
    assert open_chat(store).regenerate().envelope == turn.envelope
    assert str(FORTY) in turn.messages[-1].text


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_what_was_counted_before_is_not_counted_again(store: MemoryStore, layout: str) -> None:
    chat = open_chat(store, layout=layout)
    chat.ask("Read.", attach=[Note(path="a.md", text="Apples.\n")])
    chat.reply("Read.")
    converse(chat, 4)
    assert restored(store) == 8
    counter = Tallying()
    open_chat(store, counter=counter).ask("And plums?")
    assert set(counter.asked) == {"And plums?"}


def test_a_model_of_another_family_counts_for_itself(store: MemoryStore) -> None:
    converse(open_chat(store))
    counter = Tallying()
    open_chat(store, counter=counter).ask("And?", model="google:gemini-3")
    assert "Question 0?" in counter.asked
    counter.asked.clear()
    open_chat(store, counter=counter).ask("And now?", model="google:gemini-3")
    assert set(counter.asked) - {""} == {"And now?"}


def test_a_family_that_changed_its_factor_counts_again(store: MemoryStore) -> None:
    converse(open_chat(store))
    counter = Tallying(factor=1.5)
    open_chat(store, counter=counter).ask("And?")
    assert "Question 0?" in counter.asked


def converse_with_note(chat: Chat) -> None:
    chat.ask("What grows here?", attach=[Note(path="a.md", text="Apples.\n")])
    chat.reply("Apples grow here.")
    converse(chat, 2)


def test_an_erasure_removes_checkpoints_and_verify_proves_it(store: MemoryStore) -> None:
    converse_with_note(open_chat(store))
    conversations = Conversations(store, Ticking())
    assert versions(store) == [4]
    conversations.erase_artifact("chat", "a.md")
    assert versions(store) == []
    converse(open_chat(store), 1, begin=2)
    assert versions(store) == [8]
    assert leftovers(store) == []
    assert damages(store) == []


def test_a_chat_that_is_open_during_an_erasure_keeps_nothing_counted_before(store: MemoryStore) -> None:
    chat = open_chat(store)
    converse_with_note(chat)
    Conversations(store, Ticking()).erase_artifact("chat", "a.md")
    chat.reload()
    converse(chat, 4, begin=2)
    kept = snapshots(store)
    assert [snapshot.after for snapshot in kept] == [0, 8]
    counted = {
        digest.hex()
        for snapshot in kept
        for digest, _, _ in list_counts([snapshot.counts])
        | list_tokens(snapshot.tokens, [node.text for node in snapshot.nodes])
    }
    assert hash_text("Apples.\n").removeprefix("sha256:") not in counted
    assert hash_text("Apples grow here.").removeprefix("sha256:") not in counted
    assert hash_text("Question 3?").removeprefix("sha256:") in counted
    assert leftovers(store) == []
    assert restored(store) == 12


def test_checkpoints_that_an_erasure_left_behind_are_found(store: MemoryStore) -> None:
    converse_with_note(open_chat(store))
    left = list_checkpoints(store, "chat")
    Conversations(store, Ticking()).erase_artifact("chat", "a.md")
    store._kept["chat"].checkpoints = {checkpoint.version: checkpoint for checkpoint in left}
    assert leftovers(store) == [("checkpoint 4", "left after erasure; erasing it again removes it")]
    Conversations(store, Ticking()).erase_artifact("chat", "a.md")
    assert leftovers(store) == []


def test_an_erasure_is_proven_though_the_log_or_its_checkpoints_are_damaged(store: MemoryStore) -> None:
    converse_with_note(open_chat(store))
    Conversations(store, Ticking()).erase_artifact("chat", "a.md")
    odd = Written(records=(Record(kind=EventKind.SWITCH, at=AT, body='{"head":"no"}'),))
    store.append("chat", odd, expected=7)
    assert store.keep_checkpoint("chat", Checkpoint(version=8, data=b""))
    assert [place for place, _ in leftovers(store)] == ["checkpoints"]

    class Unreadable(Failing):
        def read_checkpoints(
            self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
        ) -> Sequence[Result]:
            raise StoreDamagedError("The table is damaged.", hint="Restore it.")

    assert leftovers(Unreadable(store)) == [("checkpoints", "The table is damaged.")]


def test_counts_from_before_an_erasure_in_a_later_checkpoint_are_found(store: MemoryStore) -> None:
    converse_with_note(open_chat(store))
    counts = store.load("chat")[0].counts
    Conversations(store, Ticking()).erase_artifact("chat", "a.md")
    converse(open_chat(store), 1, begin=2)
    careless = Altered(store, rewrite(lambda one: replace(one, counts=counts), version=8))
    assert leftovers(careless) == [
        ("checkpoint 8", "has counts that no event has; a copy of the store leaves it behind")
    ]


def test_erasing_the_conversation_removes_its_checkpoints(store: MemoryStore) -> None:
    converse(open_chat(store))
    Conversations(store, Ticking()).erase("chat")
    assert versions(store) == []
    assert not store.keep_checkpoint("chat", Checkpoint(version=0, data=b"late"))
    assert leftovers(store) == []


def test_a_copy_leaves_checkpoints_out_and_makes_its_own(store: MemoryStore) -> None:
    converse(open_chat(store))
    other = MemoryStore()
    Conversations(other, Ticking()).take_in(Conversations(store, Ticking()).take_out("chat"))
    assert versions(other) == []
    assert open_chat(other).ask("And?").messages == open_chat(store).ask("And?").messages
    assert versions(other) == [9]


def test_a_snapshot_is_not_kept_of_events_that_are_not_written(store: MemoryStore) -> None:
    checkpoints = Checkpoints(store, "chat", every=1)
    log = Log("chat", version=3)
    checkpoints.keep(log, lambda: NOTHING_KEPT)
    assert versions(store) == []
    assert make_snapshot(log, after=0).version == 3


def test_one_that_is_kept_with_an_undo_has_nothing_of_what_was_compacted(store: MemoryStore) -> None:
    def talk(kept: Store, *, every: int) -> tuple[Chat, int]:
        chat = open_chat(kept, every=every, window=20_000, reserve=0, layout="in_place")
        converse(chat)
        assert chat.compact(to=0.001) is not None
        converse(chat, 1, begin=4)
        chat.undo()
        undone_at = len(kept.load("chat"))
        converse(chat, 1, begin=5)
        return chat, undone_at

    through, undone_at = talk(MemoryStore(), every=NEVER)
    talk(store, every=undone_at)
    assert versions(store) == [undone_at]
    assert open_chat(store).ask("And now?").messages == through.ask("And now?").messages
