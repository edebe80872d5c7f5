"""Compactions through an archive and after an erasure: they are exported, and erased with their sources."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.compacting import EAGER, GOOD, ScriptedTurn, TightLasting, tight_stored_conversations
from tests.invariants.moves import Kept
from tests.invariants.reopened_prompts import NAME, make_backend
from tests.unit.raw_events import parse_body

from lamella import ContextBudgetExceededError, Turn
from lamella.archive.markdown import parse_archive, render_archive
from lamella.clocks import SystemClock
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, ImportOutcome
from lamella.core.log.events.kinds import EventKind
from lamella.core.values import replace
from lamella.ports import SourceReaders, Store
from lamella.sources.open_sources import make_source_opener
from lamella.stores.memory import InMemoryStore
from lamella.stores.open_store import open_sqlite

TRIED = settings.get_profile("invariants")


def follow(store: Store, vault: Path | None) -> list[object]:
    """What is sent next, what compacting then does, and what is sent after that; or why not."""
    backend = make_backend(store, vault)[0]
    conversation = Conversation.open(
        replace(backend, adapters=replace(backend.adapters, summarizer=ScriptedTurn())), NAME, {}
    )
    came: list[object] = []
    for text in ("And now?", "And then?"):
        try:
            came.append(_seen(conversation.ask(text)))
            conversation.reply("Yes.")
            came.append(conversation.compact(0.01))
        except ContextBudgetExceededError as error:
            came.append(error.message)
    return came


def _seen(turn: Turn) -> object:
    return turn.envelope, turn.prefix_change, turn.compaction


def walk(kept: Kept, folder: str, open_store: Callable[[], Store]) -> Path | None:
    """Play a conversation whose talk is summarised as soon as it is too long; its attachments never are."""
    rules = {"summary": {**EAGER["summary"], "item": 1_000_000}}
    summarised = dataclasses.replace(kept, settings=(*kept.settings, ("compaction", rules)))
    TightLasting(summarised, Path(folder), open_store, summarizer=ScriptedTurn()).walk([False] * len(kept.moves))
    return Path(folder) / "vault" if kept.plan.vault else None


@TRIED
@given(tight_stored_conversations())
def test_compacted_chat_continues_from_archive(kept: Kept) -> None:
    here, there = InMemoryStore(), InMemoryStore()
    with TemporaryDirectory() as folder:
        vault = walk(kept, folder, lambda: here)
        if not here.load(NAME):
            return
        text = render_archive(
            ConversationRepository(here, SystemClock()).export_conversation(NAME),
            sources=make_source_opener(vault)() if vault else SourceReaders(),
        )
        export = parse_archive(text, sources=make_source_opener(vault)() if vault else None)
        assert export.warnings == ()
        assert ConversationRepository(there, SystemClock()).import_conversation(export) is ImportOutcome.NEW
        assert list(there.load(NAME)) == list(here.load(NAME))
        assert follow(here, vault) == follow(there, vault)


@TRIED
@given(tight_stored_conversations())
def test_erasing_artifact_erases_summaries_that_may_quote_it(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "chats.db")
        vault = walk(kept, folder, lambda: open_sqlite(path))
        store = open_sqlite(path)
        conversations = ConversationRepository(store, SystemClock())
        for artifact in attached_in(store)[:1]:
            conversations.erase_artifact(NAME, artifact)
            assert list(conversations.verify_erased(NAME)) == []
            assert list(conversations.verify()) == []
            assert GOOD.encode() not in b"\0".join(everything_in(store))
            assert follow(store, vault)
        store.close()


def attached_in(store: Store) -> list[str]:
    """The ids of everything attached, by what the events say."""
    bodies = [parse_body(record) for record in store.load(NAME) if record.kind is not EventKind.ERASURE]
    named = [ref for body in bodies for field in ("attached", "results") for ref in _list(body.get(field))]
    return list(dict.fromkeys(str(ref["id"]) for ref in named))


def _list(value: object) -> list[dict[str, object]]:
    return value if isinstance(value, list) else []


def everything_in(store: Store) -> list[bytes]:
    """Every content that the conversation still holds."""
    hashes = {name for record in store.load(NAME) for name in record.contents}
    return list(store.read_contents(NAME, sorted(hashes)).values())


@TRIED
@given(tight_stored_conversations(turns=3))
def test_erasing_conversation_leaves_no_summary_text(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chats.db"
        walk(kept, folder, lambda: open_sqlite(str(path)))
        store = open_sqlite(str(path))
        if store.load(NAME):
            conversations = ConversationRepository(store, SystemClock())
            conversations.erase(NAME)
            assert list(conversations.verify_erased(NAME)) == []
            assert GOOD.encode() not in path.read_bytes()
        store.close()
