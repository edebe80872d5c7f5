"""A conversation written as markdown and read into another store continues like the original."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME, Lasting, make_backend

from lamella import Note, Turn
from lamella.archive.markdown import parse_archive, render_archive
from lamella.clocks import SystemClock
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, ImportOutcome
from lamella.ports import SourceReaders
from lamella.sources.open_sources import make_source_opener
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")


def follow(store: InMemoryStore, vault: Path | None) -> list[Turn]:
    """What is sent next, and after that."""
    conversation = Conversation.open(make_backend(store, vault)[0], NAME, {})
    first = conversation.ask("And now? {[[Alpha]]}", attach=[Note(path="a.md", text="Another text.")])
    conversation.reply("Yes.")
    return [first, conversation.regenerate(), conversation.ask("And then?")]


@TRIED
@given(stored_conversation_plans())
def test_conversation_continues_from_archive_the_same(kept: Kept) -> None:
    here, there = InMemoryStore(), InMemoryStore()
    with TemporaryDirectory() as folder:
        Lasting(kept, Path(folder), lambda: here).walk([False] * len(kept.moves))
        vault = Path(folder) / "vault" if kept.plan.vault else None
        text = render_archive(
            ConversationRepository(here, SystemClock()).export_conversation(NAME),
            sources=make_source_opener(vault)() if vault else SourceReaders(),
        )
        export = parse_archive(text, sources=make_source_opener(vault)() if vault else None)
        assert export.warnings == ()
        assert ConversationRepository(there, SystemClock()).import_conversation(export) is ImportOutcome.NEW
        assert list(there.load(NAME)) == list(here.load(NAME))
        for one, other in zip(follow(here, vault), follow(there, vault), strict=True):
            assert (one.envelope, one.prefix_change) == (other.envelope, other.prefix_change)
