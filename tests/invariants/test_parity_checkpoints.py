"""A conversation opened from a checkpoint after any event continues as if all events were folded."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.checkpoints import list_checkpoints
from tests.invariants.compacting import EAGER, ScriptedTurn, TightLasting, tight_stored_conversations
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME
from tests.invariants.test_reopened_conversations import check_same, check_same_ledger

from lamella import Turn
from lamella.clocks import SystemClock
from lamella.conversation.checkpoints import Checkpoints
from lamella.conversation.import_export import ConversationRepository
from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import decode_snapshot, encode_snapshot, make_snapshot, restore_log
from lamella.ports import Store, Summarizer
from lamella.stores.memory import InMemoryStore
from lamella.stores.open_store import open_sqlite

TRIED = settings.get_profile("invariants")


class Eager(TightLasting):
    """Plays moves, and keeps a checkpoint whenever an event was written."""

    checkpoint_every = 1


class Sparing(TightLasting):
    """Plays moves and keeps no checkpoint."""

    checkpoint_every = 10**9


class Rare(TightLasting):
    """Plays moves, and keeps a checkpoint at every third event."""

    checkpoint_every = 3


def fold(store: Store) -> FoldedLog:
    """The log as all events give it."""
    log = FoldedLog(NAME)
    log.extend(store.load(NAME))
    return log


def check_logs(restored: FoldedLog, folded: FoldedLog) -> None:
    """Equal in everything, in the order of messages and branches too."""
    assert restored == folded
    assert list(restored.nodes) == list(folded.nodes)
    assert restored.list_branch_heads() == folded.list_branch_heads()


class Watching:
    """Opens the log from its checkpoints after every move, and compares it with all events folded."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.restored = 0

    def look(self) -> None:
        log = Checkpoints(self._store, NAME).restore().log
        self.restored += log.version
        assert log.version == len(self._store.load(NAME))
        check_logs(log, fold(self._store))


class Erasing:
    """Erases an artifact after every third move, while the conversation is open, and looks for what is left."""

    def __init__(self, store: Store, played: TightLasting) -> None:
        self._store = store
        self._played = played
        self._conversations = ConversationRepository(store, SystemClock())
        self._moves = 0
        self.erased = 0

    def look(self) -> None:
        self._moves += 1
        if self._moves % 3 == 0:
            self._erase()
        restored = Checkpoints(self._store, NAME).restore().log
        restored.extend(self._store.load(NAME, after=restored.version))
        check_logs(restored, fold(self._store))
        if self.erased:
            # What was attached again after its erasure is not erased, and that is all there is to say.
            left = {damage.description for damage in self._conversations.verify_erased(NAME)}
            assert left <= {"everything erased was attached again since"}

    def _erase(self) -> None:
        asked = [event for event in map(decode_event, self._store.load(NAME)) if isinstance(event, QuestionEvent)]
        names = list(dict.fromkeys(ref.id for event in asked for ref in event.attached))
        if names:
            self._conversations.erase_artifact(NAME, names[self._moves % len(names)])
            self._played.stored.reload()
            self.erased += 1


def play(player: type[TightLasting], kept: Kept, folder: Path, open_store: Callable[[], Store]) -> list[Turn | str]:
    """What came of the moves, opening the conversation again before each of them."""
    folder.mkdir()
    played = player(kept, folder, open_store, summarizer=_summarizer(kept))
    played.walk([player is not Sparing] * len(kept.moves))
    return played.came_of


def _summarizer(kept: Kept) -> Summarizer | None:
    return ScriptedTurn() if ("compaction", EAGER) in kept.settings else None


def check_turns(ones: list[Turn | str], others: list[Turn | str]) -> None:
    for one, other in zip(ones, others, strict=True):
        if isinstance(one, Turn) and isinstance(other, Turn):
            check_same(one, other)
            check_same_ledger(one, other)
        else:
            assert one == other


def check_parity(player: type[TightLasting], kept: Kept, folder: Path, open_store: Callable[[], Store]) -> None:
    never = InMemoryStore()
    check_turns(play(Sparing, kept, folder / "one", lambda: never), play(player, kept, folder / "two", open_store))
    store = open_store()
    assert list(store.load(NAME)) == list(never.load(NAME))
    # A conversation of which nearly nothing fits has too few events for one.
    assert list_checkpoints(store, NAME) or len(never.load(NAME)) < player.checkpoint_every
    assert list(ConversationRepository(store, SystemClock()).verify()) == []
    store.close()


@TRIED
@given(stored_conversation_plans())
def test_checkpoints_after_every_event_lead_to_the_log_that_all_events_fold_to(kept: Kept) -> None:
    store = InMemoryStore()
    watching = Watching(store)
    with TemporaryDirectory() as folder:
        Eager(kept, Path(folder), lambda: store).walk(kept.reopened, after=watching.look)
    assert watching.restored


@TRIED
@given(tight_stored_conversations())
def test_checkpoints_of_compacted_chat_match_folded_log(kept: Kept) -> None:
    store = InMemoryStore()
    watching = Watching(store)
    with TemporaryDirectory() as folder:
        Eager(kept, Path(folder), lambda: store).walk(kept.reopened, after=watching.look)
    assert watching.restored


@TRIED
@given(stored_conversation_plans(tree=False))
def test_erasure_while_chat_is_open_leaves_nothing_in_checkpoints(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        played = Rare(kept, Path(folder), lambda: store)
        played.walk(kept.reopened, after=Erasing(store, played).look)
    assert list(ConversationRepository(store, SystemClock()).verify()) == []


@TRIED
@given(stored_conversation_plans())
def test_log_continues_from_snapshot_at_any_event(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        Sparing(kept, Path(folder), lambda: store).walk([False] * len(kept.moves))
    records, folded = store.load(NAME), fold(store)
    for end in range(len(records) + 1):
        log = FoldedLog(NAME)
        log.extend(records[:end])
        data = encode_snapshot(make_snapshot(log, after=0))
        assert data is not None
        snapshot = decode_snapshot(data)
        assert snapshot is not None
        restored, _ = restore_log([snapshot], FoldedLog(NAME))
        restored.extend(records[end:])
        check_logs(restored, folded)


@TRIED
@given(stored_conversation_plans())
def test_chat_opened_from_checkpoints_sends_the_same(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        check_parity(Eager, kept, Path(folder), lambda: store)


@TRIED
@given(tight_stored_conversations(layout="in_place"))
def test_compacted_chat_in_file_with_checkpoints_sends_the_same(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        check_parity(Rare, kept, Path(folder), lambda: open_sqlite(str(Path(folder) / "chats.db")))


@TRIED
@given(tight_stored_conversations())
def test_summarized_chat_with_checkpoints_sends_the_same(kept: Kept) -> None:
    kept = replace(kept, settings=(*kept.settings, ("compaction", EAGER)))
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        check_parity(Rare, kept, Path(folder), lambda: store)
