"""Parity through a file: a conversation written as markdown and read into another store goes on as it would have."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.lasting import NAME, Lasting, make_backend
from tests.invariants.moves import Kept, kept_plans

from lamella import Note, Turn
from lamella.adapters.archive.markdown import parse_archive, render_archive
from lamella.adapters.clocks.system import SystemClock
from lamella.adapters.sources.opening import open_sources
from lamella.adapters.stores.memory import MemoryStore
from lamella.engine.chat import Chat
from lamella.engine.keeping.conversations import Conversations, ImportOutcome
from lamella.ports import Sources

TRIED = settings.get_profile("invariants")


def follow(store: MemoryStore, vault: Path | None) -> list[Turn]:
    """What is sent next, and after that."""
    chat = Chat(make_backend(store, vault)[0], NAME, {})
    first = chat.ask("And now? {[[Alpha]]}", attach=[Note(path="a.md", text="Another text.")])
    chat.reply("Yes.")
    return [first, chat.regenerate(), chat.ask("And then?")]


@TRIED
@given(kept_plans())
def test_a_conversation_read_from_its_archive_goes_on_as_it_would_have(kept: Kept) -> None:
    here, there = MemoryStore(), MemoryStore()
    with TemporaryDirectory() as folder:
        Lasting(kept, Path(folder), lambda: here).walk([False] * len(kept.moves))
        vault = Path(folder) / "vault" if kept.plan.vault else None
        text = render_archive(
            Conversations(here, SystemClock()).take_out(NAME), sources=open_sources(vault)() if vault else Sources()
        )
        chronicle = parse_archive(text, sources=open_sources(vault)() if vault else None)
        assert chronicle.warnings == ()
        assert Conversations(there, SystemClock()).take_in(chronicle) is ImportOutcome.NEW
        assert list(there.load(NAME)) == list(here.load(NAME))
        for one, other in zip(follow(here, vault), follow(there, vault), strict=True):
            assert (one.envelope, one.prefix) == (other.envelope, other.prefix)
