"""Compacted chats that are closed and reopened continue like those that were never closed."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.compacting import EAGER, ScriptedTurn, TightLasting, tight_stored_conversations
from tests.invariants.moves import Kept
from tests.invariants.reopened_prompts import NAME
from tests.invariants.test_reopened_conversations import check_same, check_same_ledger

from lamella import Turn
from lamella.clocks import SystemClock
from lamella.conversation.import_export import ConversationRepository
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor, compute_message_id
from lamella.ports import Store, Summarizer
from lamella.stores.memory import InMemoryStore
from lamella.stores.open_store import open_sqlite

TRIED = settings.get_profile("invariants")


def check_parity(
    kept: Kept, folder: Path, open_second: Callable[[], Store], *, summarizer: Summarizer | None = None
) -> None:
    """Play the moves twice, never stopping and stopping often: nothing may tell the two apart."""
    memory = InMemoryStore()
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    never = TightLasting(kept, folder / "one", lambda: memory, summarizer=summarizer)
    never.walk([False] * len(kept.moves))
    often = TightLasting(kept, folder / "two", open_second, summarizer=summarizer)
    often.walk(kept.reopened)
    for one, other in zip(never.came_of, often.came_of, strict=True):
        if isinstance(one, Turn) and isinstance(other, Turn):
            assert one.compaction == other.compaction
            check_same(one, other)
            check_same_ledger(one, other)
        else:
            assert one == other
    second = open_second()
    assert list(second.load(NAME)) == list(memory.load(NAME))
    assert list(ConversationRepository(second, SystemClock()).verify()) == []
    second.close()


@TRIED
@given(tight_stored_conversations())
def test_compacted_chat_continues_the_same_after_reopen(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        check_parity(kept, Path(folder), lambda: store)


@TRIED
@given(tight_stored_conversations(layout="in_place"))
def test_compacted_chat_in_file_continues_the_same(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        check_parity(kept, Path(folder), lambda: open_sqlite(str(Path(folder) / "chats.db")))


@TRIED
@given(tight_stored_conversations())
def test_summarized_chat_continues_the_same_after_reopen(kept: Kept) -> None:
    kept = replace(kept, settings=(*kept.settings, ("compaction", EAGER)))
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        check_parity(kept, Path(folder), lambda: store, summarizer=ScriptedTurn())


class Memory:
    """Remembers everything that was ever said, and checks after each move that the log still says it."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store
        self._said: dict[str, str] = {}

    def look(self) -> None:
        log = FoldedLog(NAME)
        log.extend(self._store.load(NAME))
        now = {name: node.text for name, node in log.nodes.items()}
        assert {name: now[name] for name in self._said} == self._said
        for event in log.active_compactions(log.branch_records()).events:
            messages = [name for step in event.steps if step.name in MESSAGES for name in step.removed]
            assert set(messages) <= {*now, *unsaid(now)}
        self._said = now


def unsaid(names: Iterable[str]) -> set[str]:
    """The ids that empty replies would have: a question whose answer was deleted stands with one."""
    return {compute_message_id(NAME, parent=name, role=MessageAuthor.REPLY, text="") for name in names}


MESSAGES = ("chitchat", "oldest_stages", "summary", "recent_stages", "expendable")


@TRIED
@given(tight_stored_conversations())
def test_removed_messages_are_in_log_word_for_word(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        TightLasting(kept, Path(folder), lambda: store).walk([False] * len(kept.moves), after=Memory(store).look)
