"""Undo: the conversation is as if the compaction had not happened, byte for byte."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.compacting import tight_stored_conversations
from tests.invariants.moves import Deed, Kept, Move
from tests.invariants.reopened_prompts import Lasting

from lamella import Turn
from lamella.core.log.receipts import CompactionReceipt
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")
COMPACTING = (Deed.COMPACT, Deed.UNDO)


class Roomy(Lasting):
    """Plays moves in a window that nothing outgrows, and notes for each turn which compactions were in force."""

    def __init__(self, kept: Kept, folder: Path) -> None:
        store = InMemoryStore()
        roomy = tuple((name, value) for name, value in kept.settings if name not in ("window", "reserve"))
        super().__init__(replace(kept, settings=roomy), folder, lambda: store)
        self.in_force: list[list[CompactionReceipt]] = []

    def move(self, move: Move) -> None:
        asked = len(self.turns)
        super().move(move)
        if len(self.turns) > asked:
            self.in_force.append(list(self.stored.receipts()))


def check_same_bytes(one: Turn, other: Turn) -> None:
    assert [message.to_dict() for message in one.messages] == [message.to_dict() for message in other.messages]
    assert one.envelope.layers == other.envelope.layers
    assert one.envelope.hash == other.envelope.hash
    assert one.tokens == other.tokens


@TRIED
@given(tight_stored_conversations(auto=False))
def test_chat_with_all_compactions_undone_sends_like_uncompacted_twin(kept: Kept) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        compacted = Roomy(kept, Path(one))
        compacted.walk(kept.reopened)
        plain = tuple(move for move in kept.moves if move.deed not in COMPACTING)
        twin = Roomy(replace(kept, moves=plain), Path(two))
        twin.walk([False] * len(plain))
    for ours, theirs, receipts in zip(compacted.turns, twin.turns, compacted.in_force, strict=True):
        if not receipts:
            check_same_bytes(ours, theirs)


@TRIED
@given(tight_stored_conversations(tree=False, auto=False))
def test_undoing_first_compaction_restores_every_byte(kept: Kept) -> None:
    compacting = (Deed.COMPACT, Deed.UNDO)
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        compacted = Roomy(replace(kept, moves=tuple(m for m in kept.moves if m.deed is not Deed.UNDO)), Path(one))
        plain = tuple(move for move in kept.moves if move.deed not in compacting)
        twin = Roomy(replace(kept, moves=plain), Path(two))
        for player in (compacted, twin):
            for move in player.moves:
                player.move(move)
            player.stored.reply("Yes.")
        receipts = list(compacted.stored.receipts())
        if receipts:
            assert compacted.stored.undo(receipts[0].id) == receipts[0]
            assert list(compacted.stored.receipts()) == []
        ours, theirs = compacted.stored.ask("And then?"), twin.stored.ask("And then?")
        check_same_bytes(ours, theirs)
        if receipts:
            assert (
                str(ours.prefix_change.prefix_change) in ("compacted(undo)", "none")
                or ours.prefix_change.cause != "compacted"
            )
        compacted.reopen()
        assert compacted.stored.regenerate().messages == theirs.messages


@TRIED
@given(tight_stored_conversations(tree=False))
def test_plan_matches_its_commit(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        player = Roomy(kept, Path(folder))
        for move in player.moves:
            player.move(move)
        player.stored.reply("Yes.")
        tokens = player.turns[-1].tokens
        for part in (0.9, 0.5, 0.001):
            planned = player.stored.plan(to=min(1.0, part * tokens.total / tokens.limit))
            if planned.receipt is None:
                continue
            assert player.stored.commit(planned) == planned.receipt
            assert player.stored.receipts()[-1] == planned.receipt
            asked = player.stored.ask("")
            assert asked.tokens.total == planned.receipt.tokens_after
            assert asked.compaction is None
            player.stored.reply("Yes.")
