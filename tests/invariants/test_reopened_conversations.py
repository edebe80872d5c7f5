"""Parity: a conversation that was closed and opened again sends what it would have sent without stopping."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.moves import Deed, Kept, Move, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME, Lasting
from tests.invariants.strategies import Attach, Plan, Step, Thing
from tests.invariants.texts import Words

from lamella import Envelope, Turn
from lamella.core.prompt.layers.history import HistoryMessage, SharedSequence
from lamella.core.values import replace
from lamella.ports import Store
from lamella.stores.memory import InMemoryStore
from lamella.stores.open_store import open_sqlite

TRIED = settings.get_profile("invariants")


def check_same(one: Turn, other: Turn) -> None:
    """Byte-identical messages, equal envelopes with all layers, hashes and counts, and the same cause."""
    assert [message.to_dict() for message in one.messages] == [message.to_dict() for message in other.messages]
    assert with_loaded_texts(one.envelope) == with_loaded_texts(other.envelope)
    assert one.prefix_change == other.prefix_change
    assert one.number == other.number


def check_same_ledger(one: Turn, other: Turn) -> None:
    """Check equal compactions, tokens, epochs, predictions and costs."""
    assert one.compaction == other.compaction
    assert one.tokens == other.tokens
    assert one.envelope.epoch == other.envelope.epoch
    assert one.cache == other.cache
    assert (one.cost and (one.cost.amount, one.cost.naive)) == (other.cost and (other.cost.amount, other.cost.naive))
    # A question that was asked before in the same words, and left the request since, is known only to one of them.
    if one.prefix_change.cause != "none" or one.envelope.prompt.attached:
        assert (one.cost and one.cost.limit) == (other.cost and other.cost.limit)


def with_loaded_texts(envelope: Envelope) -> Envelope:
    """The envelope with the full texts of shortened replies as plain mappings: lazy ones equal only themselves."""
    history = envelope.prompt.history
    turns = [
        replace(
            turn, reply=_with_loaded_text(turn.reply), joined_replies=tuple(map(_with_loaded_text, turn.joined_replies))
        )
        for turn in history.turns
    ]
    return replace(envelope, prompt=replace(envelope.prompt, history=replace(history, turns=SharedSequence(turns))))


def _with_loaded_text(message: HistoryMessage) -> HistoryMessage:
    return message if message.full_texts is None else replace(message, full_texts={message.id: message.original})


def check_parity(kept: Kept, folder: Path, open_second: Callable[[], Store]) -> None:
    """Play the moves twice, never stopping and stopping often: nothing may tell the two apart."""
    memory = InMemoryStore()
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    never = Lasting(kept, folder / "one", lambda: memory)
    never.walk([False] * len(kept.moves))
    often = Lasting(kept, folder / "two", open_second)
    often.walk(kept.reopened)
    for one, other in zip(never.turns, often.turns, strict=True):
        check_same(one, other)
        check_same_ledger(one, other)
    second = open_second()
    assert list(second.load(NAME)) == list(memory.load(NAME))
    second.close()
    assert often.opening_reads == 0
    assert often.reads == never.reads


@TRIED
@given(stored_conversation_plans())
def test_reopened_chat_continues_like_one_never_closed(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        check_parity(kept, Path(folder), lambda: store)


@TRIED
@given(stored_conversation_plans(layout="in_place", turns=4))
def test_reopened_chat_in_file_continues_like_one_never_closed(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        check_parity(kept, Path(folder), lambda: open_sqlite(str(Path(folder) / "chats.db")))


@TRIED
@given(stored_conversation_plans(tree=False, auto=False))
def test_stored_chat_sends_like_conversation_in_memory(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        stored = Lasting(kept, Path(one), lambda: store)
        stored.walk([True] * len(kept.moves))
        alone = Lasting(kept, Path(two), InMemoryStore)
        turns: list[Turn] = []
        for move in kept.moves:
            if move.step is not None:
                turns.append(alone.ask(move.step, alone.items(move.step), alone.dropped(move.step)))
                waiting = True
            elif move.deed is Deed.REPLY and waiting:
                alone.chat.reply(move.text)
                waiting = False
    for here, there in zip(stored.turns, turns, strict=True):
        check_same(here, there)


def test_unchanged_sources_are_read_on_ask_not_on_open() -> None:
    note = Thing(key=0, kind="note", name="Alpha.md", words=Words(length=3), in_vault=True)
    steps = (
        Step(typed=("{[[Alpha]]}",), system=(("instructions", "Use {[[Alpha]]}."),)),
        Step(attach=(Attach(thing=0),)),
        Step(),
    )
    plan = Plan(things=(note,), steps=steps, layout="in_place", vault=True)
    moves = tuple(Move(step=step) for step in steps)
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        lasting = Lasting(Kept(plan=plan, moves=moves, reopened=(True,) * 3), Path(folder), lambda: store)
        lasting.walk((True,) * 3)
        lasting.reopen()
        before = lasting.reads
        lasting.stored.regenerate()
        lasting.close()
    assert lasting.opening_reads == 0
    assert before > 0
    assert lasting.reads == before
