"""Desks for tests: a clock that ticks, a store that fails when it is told to, and chats that share both."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.records import Record, Written
from lamella.core.values import replace
from lamella.engine.chat import Chat
from lamella.engine.keeping.backend import Backend
from lamella.errors import StoreUnavailableError
from lamella.holdings import ChatListing, Checkpoint, Damage, StoreStats
from lamella.ports import Result, Store
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
        self.shelf = store.shelf
        self.down = False
        self.appended: list[Written] = []

    def append(
        self, conversation: str, written: Written, *, expected: int, title: str | None = None, name: str | None = None
    ) -> int:
        self._check()
        version = self._store.append(conversation, written, expected=expected, title=title, name=name)
        self.appended.append(written)
        return version

    def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
        self._check()
        return self._store.load(conversation, after=after)

    def keep_checkpoint(self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()) -> bool:
        self._check()
        return self._store.keep_checkpoint(conversation, checkpoint, instead_of=instead_of)

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        self._check()
        return self._store.read_checkpoints(conversation, read, apart=apart)

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        self._check()
        return self._store.read_contents(conversation, hashes)

    def list_conversations(self) -> Sequence[ChatListing]:
        self._check()
        return self._store.list_conversations()

    def find_conversation(self, name: str) -> ChatListing | None:
        self._check()
        return self._store.find_conversation(name)

    def erase_conversation(self, conversation: str, *, at: str) -> None:
        self._check()
        self._store.erase_conversation(conversation, at=at)

    def erase_contents(self, conversation: str, hashes: Sequence[str], written: Written, *, expected: int) -> int:
        self._check()
        return self._store.erase_contents(conversation, hashes, written, expected=expected)

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        self._check()
        return self._store.verify(conversation)

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        self._check()
        return self._store.verify_erased(conversation)

    def repair(self, conversation: str, tell_title: Callable[[Sequence[Record]], str]) -> None:
        self._check()
        self._store.repair(conversation, tell_title)

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
    return replace(open_backend("memory:", vault=vault, ledger=ledger), store=store, clock=Ticking(), make_key=str)


def make_chat(store: Store | None = None, **settings: object) -> Chat:
    """A chat over a store; one opened on the same store sees the same conversation."""
    return Chat(make_backend(MemoryStore() if store is None else store), "chat", settings)
