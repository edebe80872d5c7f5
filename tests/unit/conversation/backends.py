"""Backends for tests: a ticking clock, a store that fails on request, and chats that share both."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.shared_prefixes import SharedPrefixRegistry
from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.values import replace
from lamella.errors import StoreUnavailableError
from lamella.ports import Checkpoint, ConversationListItem, Result, Store, StoreProblem, StoreStats
from lamella.stores.memory import InMemoryStore
from lamella.wiring import open_backend


class Ticking:
    """A clock that is one second later each time."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class Failing:
    """A store that takes nothing while ``down``, and counts what it took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.shared_table = store.shared_table
        self.down = False
        self.appended: list[EventBatch] = []

    def append(
        self,
        conversation_key: str,
        batch: EventBatch,
        *,
        expected: int,
        title: str | None = None,
        name: str | None = None,
    ) -> int:
        self._check()
        version = self._store.append(conversation_key, batch, expected=expected, title=title, name=name)
        self.appended.append(batch)
        return version

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        self._check()
        return self._store.load(conversation_key, after=after)

    def save_checkpoint(
        self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
    ) -> bool:
        self._check()
        return self._store.save_checkpoint(conversation_key, checkpoint, replaced_versions=replaced_versions)

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        self._check()
        return self._store.read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        self._check()
        return self._store.read_contents(conversation_key, hashes)

    def list_conversations(self) -> Sequence[ConversationListItem]:
        self._check()
        return self._store.list_conversations()

    def find_conversation(self, name: str) -> ConversationListItem | None:
        self._check()
        return self._store.find_conversation(name)

    def erase_conversation(self, conversation_key: str, *, at: str) -> None:
        self._check()
        self._store.erase_conversation(conversation_key, at=at)

    def erase_contents(self, conversation_key: str, hashes: Sequence[str], batch: EventBatch, *, expected: int) -> int:
        self._check()
        return self._store.erase_contents(conversation_key, hashes, batch, expected=expected)

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        self._check()
        return self._store.verify(conversation_key)

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        self._check()
        return self._store.verify_erased(conversation_key)

    def rebuild_list_row(self, conversation_key: str, get_title: Callable[[Sequence[EventRecord]], str]) -> None:
        self._check()
        self._store.rebuild_list_row(conversation_key, get_title)

    def stats(self) -> StoreStats:
        self._check()
        return self._store.stats()

    def close(self) -> None:
        self._store.close()

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailableError("The disk is full.", hint="Make room and try again.")


def make_backend(store: Store, *, vault: Path | None = None, ledger: bool = True) -> Backend:
    """A desk over a store, as the wiring makes it, but that keys are names: tests look into stores by them."""
    return replace(
        open_backend("memory:", vault=vault, keep_ledger=ledger),
        store=store,
        shared_prefixes=SharedPrefixRegistry(store.shared_table),
        clock=Ticking(),
        make_key=str,
    )


def make_chat(store: Store | None = None, **settings: object) -> Conversation:
    """A chat over a store; one opened on the same store sees the same conversation."""
    return Conversation.open(make_backend(InMemoryStore() if store is None else store), "chat", settings)
