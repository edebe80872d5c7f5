"""Plays moves into a store: in a chat that is never closed, or in one that is reopened before some moves."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.invariants.items import Item, attachment_of, result_of
from tests.invariants.moves import Deed, Kept, Move
from tests.invariants.playing import DEFINITIONS, Player, plan_settings
from tests.invariants.strategies import Step

from lamella import Folder, Tag, Turn
from lamella.conversation.backend import Backend
from lamella.conversation.checkpoints import EVENTS_PER_CHECKPOINT
from lamella.conversation.conversation import Conversation
from lamella.conversation.shared_prefixes import SharedPrefixRegistry
from lamella.core.artifacts.model import Artifact, ArtifactKind, UnresolvedAttachment
from lamella.core.log.turn_records import TurnRecord
from lamella.core.values import replace
from lamella.ports import NoteList, OpenSources, SourceCatalog, SourceReader, SourceReaders, Store, Summarizer
from lamella.wiring import open_backend

NAME = "lasting"
# How far a compaction by hand goes: hardly, by half, as far as it can.
_PARTS = (0.9, 0.5, 0.001)
_START = datetime(2026, 3, 1, 12, tzinfo=UTC)
# Minutes between two moves: caches live through some of them, and for an hour at most.
_PAUSES = (1, 2, 1, 7, 1, 1, 90)


class CountingSources:
    """Sources that count how often something is read, listed or found in those behind them."""

    def __init__(self, look: OpenSources) -> None:
        self._look = look
        self.reads = 0

    def __call__(self) -> SourceReaders:
        found = self._look()
        readers = {medium: CountingReader(self, reader) for medium, reader in found.readers.items()}
        catalog = CountingCatalog(self, found.catalog) if found.catalog is not None else None
        return SourceReaders(readers=readers, catalog=catalog)


class CountingReader:
    """One reader of such sources."""

    def __init__(self, counter: CountingSources, reader: SourceReader) -> None:
        self._counter, self._reader = counter, reader

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        self._counter.reads += 1
        return self._reader.read(attachment)


class CountingCatalog:
    """The catalog of such sources."""

    def __init__(self, counter: CountingSources, catalog: SourceCatalog) -> None:
        self._counter, self._catalog = counter, catalog

    def list_notes(self, kind: ArtifactKind, name: str) -> NoteList:
        self._counter.reads += 1
        return self._catalog.list_notes(kind, name)

    def find_notes_named(self, name: str) -> Sequence[str]:
        self._counter.reads += 1
        return self._catalog.find_notes_named(name)

    def resolve_embed_path(self, target: str, *, note_path: str) -> str:
        self._counter.reads += 1
        return self._catalog.resolve_embed_path(target, note_path=note_path)

    def find_identical_files(self, artifact: Artifact) -> Sequence[str]:
        self._counter.reads += 1
        return self._catalog.find_identical_files(artifact)

    def has_folder(self, path: str) -> bool:
        self._counter.reads += 1
        return self._catalog.has_folder(path)

    def has_file(self, path: str) -> bool:
        self._counter.reads += 1
        return self._catalog.has_file(path)


def make_backend(store: Store, vault: Path | None) -> tuple[Backend, CountingSources]:
    """A desk that nothing has been done at yet, with readers and counters of its own; keys are names."""
    fresh = open_backend("memory:", vault=vault)
    counting = CountingSources(fresh.adapters.open_sources)
    adapters = replace(fresh.adapters, open_sources=counting)
    learned = SharedPrefixRegistry(store.shared_table)
    return replace(fresh, store=store, adapters=adapters, make_key=str, shared_prefixes=learned), counting


class Lasting(Player):
    """Plays moves into a store. ``turns`` is what came of them: what was sent, and what moved."""

    checkpoint_every = EVENTS_PER_CHECKPOINT

    def __init__(
        self, kept: Kept, folder: Path, open_store: Callable[[], Store], *, summarizer: Summarizer | None = None
    ) -> None:
        super().__init__(kept.plan, folder, conversation=NAME, ledger=True)
        self._kept = kept
        self._summarizer = summarizer
        self._open_store = open_store
        self.opening_reads = 0
        self.reads = 0
        self.turns: list[Turn] = []
        self._loaded = 0
        self._moved = 0
        self._at = _START
        self.stored = self._open({**plan_settings(kept.plan), **dict(kept.settings)})

    def _open(self, settings: dict[str, object]) -> Conversation:
        backend, counting = make_backend(self._open_store(), self._vault if self._plan.vault else None)
        adapters = replace(backend.adapters, summarizer=self._summarizer)
        backend = replace(backend, adapters=adapters, checkpoint_every=self.checkpoint_every)
        conversation = Conversation.open(backend, NAME, settings)
        self._backend, self._counting = backend, counting
        return conversation

    def reopen(self, settings: dict[str, object] | None = None) -> None:
        """Forget everything but the store, and open the conversation again as it was left."""
        self.close()
        self.stored = self._open(settings or {})
        self.stored.turns()
        self.opening_reads += self._counting.reads

    def close(self) -> None:
        self.reads += self._counting.reads
        self._load_full_texts()
        self._backend.store.close()

    def _load_full_texts(self) -> None:
        """Read what the turns load on first use, because they are compared after their store is closed."""
        for turn in self.turns[self._loaded :]:
            for one in turn.envelope.prompt.history.turns:
                for reply in one.replies:
                    assert isinstance(reply.original, str)
        self._loaded = len(self.turns)

    def walk(self, reopened: Sequence[bool], *, after: Callable[[], None] = lambda: None) -> None:
        """Every move, opening the conversation again before those that say so."""
        for move, anew in zip(self._kept.moves, reopened, strict=True):
            if anew and self.stored.head:
                self.reopen()
            self.move(move)
            after()
        self.close()

    def move(self, move: Move) -> None:
        """One move, at a moment of its own."""
        at = self._at = self._at + timedelta(minutes=_PAUSES[self._moved % len(_PAUSES)])
        self._moved += 1
        if move.step is not None:
            self.turns.append(self.ask_stored(move.step, self.items(move.step), self.dropped(move.step), at))
        elif move.deed is Deed.SETTINGS:
            # Settings are written down with the next event; this one makes them hold.
            self.reopen(dict(move.settings))
            self.stored.rename(move.text, at=at)
        elif move.deed is not None:
            turn = self._do(move.deed, move, at)
            self.turns += [turn] if turn else []

    @property
    def moves(self) -> Sequence[Move]:
        return self._kept.moves

    def items(self, step: Step) -> list[Item]:
        """What a step attaches, after its edits."""
        return self._items(step)

    def dropped(self, step: Step) -> list[str]:
        """The ids a step drops."""
        return self._named(step.drop)

    def ask_stored(self, step: Step, items: Sequence[Item], drop: Sequence[str], at: datetime) -> Turn:
        """The call a program would make of a conversation that lasts."""
        return self.stored.ask(**self.asked(step, items, drop, at))

    def asked(self, step: Step, items: Sequence[Item], drop: Sequence[str], at: datetime) -> dict[str, Any]:
        """What such a call is made with."""
        expand = [Folder(path="docs") if name == "folder" else Tag(tag="#red") for name in step.expand]
        return {
            "text": " ".join(step.typed),
            "attach": [*(attachment_of(item) for item in items if item.kind != "tool"), *expand],
            "results": [result_of(item) for item in items if item.kind == "tool"],
            "tools": None if step.definitions is None else DEFINITIONS[step.definitions],
            "system": dict(step.system) or None,
            "model": step.model,
            "drop": drop,
            "detach": self._named(step.detach),
            "fold": step.fold,
            "at": at,
        }

    def _do(self, deed: Deed, move: Move, at: datetime) -> Turn | None:
        conversation, pick = self.stored, move.pick
        match deed:
            case Deed.REPLY:
                if conversation.turns() and conversation.turns()[-1].reply is None:
                    conversation.reply(move.text, at=at)
            case Deed.EDIT:
                return conversation.edit(_one(questions(conversation), pick), move.text, at=at)
            case Deed.REGENERATE:
                return conversation.regenerate(at=at) if conversation.head else None
            case Deed.REGENERATE_ANY:
                return conversation.regenerate(_one(all_messages(conversation), pick), at=at)
            case _:
                self._change(deed, move, at)
        return None

    def _change(self, deed: Deed, move: Move, at: datetime) -> None:
        """What gives no turn by itself."""
        conversation, pick = self.stored, move.pick
        match deed:
            case Deed.DELETE:
                if conversation.head:
                    conversation.delete(
                        _one([name for record in conversation.turns() for name in names_of(record)], pick), at=at
                    )
            case Deed.FORK:
                conversation.fork(_one(all_messages(conversation), pick), at=at)
            case Deed.SWITCH:
                conversation.switch(_one(conversation.branches(), pick), at=at)
            case Deed.RENAME:
                conversation.rename(move.text, at=at)
            case Deed.COMPACT | Deed.UNDO:
                if conversation.turns() and conversation.turns()[-1].reply is not None:
                    self._compact(deed, pick, at)

    def _compact(self, deed: Deed, pick: int, at: datetime) -> None:
        """A compaction to a part of what was sent last, or one of those in force undone."""
        conversation = self.stored
        if deed is Deed.COMPACT and self.turns:
            tokens = self.turns[-1].tokens
            conversation.compact(to=min(1.0, _PARTS[pick % len(_PARTS)] * tokens.total / tokens.limit), at=at)
        elif deed is Deed.UNDO and conversation.receipts():
            conversation.undo(_one([receipt.id for receipt in conversation.receipts()], pick), at=at)


def _one(names: Sequence[str], pick: int) -> str:
    return names[pick % len(names)]


def names_of(told: TurnRecord) -> list[str]:
    """The ids of one turn's messages."""
    return [told.message.id, *([told.reply.id] if told.reply else [])]


def all_messages(chat: Conversation) -> list[str]:
    """Every message of every branch, once."""
    named = [name for branch in chat.branches() for record in chat.turns(branch) for name in names_of(record)]
    return list(dict.fromkeys(named))


def questions(chat: Conversation) -> list[str]:
    """Every message of every branch that the user wrote, once."""
    return list(dict.fromkeys(record.message.id for branch in chat.branches() for record in chat.turns(branch)))
