"""Previews under any deeds: what is shown ahead is what asking sends, with the same page in the ledger."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.compacting import TightLasting, tight_stored_conversations
from tests.invariants.items import Item
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import Lasting
from tests.invariants.strategies import Step

from lamella import Turn
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")


class Previewing(Lasting):
    """Looks at every turn before asking it. One that something has to go for is sent otherwise, as it says."""

    def ask_stored(self, step: Step, items: Sequence[Item], drop: Sequence[str], at: datetime) -> Turn:
        ahead = self.stored.preview(**self.asked(step, items, drop, at))
        turn = super().ask_stored(step, items, drop, at)
        outlined = turn.envelope.warnings != ahead.envelope.warnings
        assert turn.compaction is not None or outlined or ahead == turn
        return turn


class TightPreviewing(Previewing, TightLasting):
    """The same in a window that is outgrown, between compactions by hand."""


@TRIED
@given(stored_conversation_plans())
def test_preview_matches_ask_on_any_branch(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        Previewing(kept, Path(folder), lambda: store).walk(kept.reopened)


@TRIED
@given(tight_stored_conversations())
def test_preview_matches_ask_after_any_compaction(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        TightPreviewing(kept, Path(folder), lambda: store).walk(kept.reopened)
