"""A conversation in a store, searched: its originals without those that the prompt holds, or that were erased."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from threading import RLock

from lamella.core.log.branch import path_hashes, read_turns
from lamella.core.log.events.kinds import EventKind
from lamella.core.log.log import Log
from lamella.core.log.nodes import name_messages
from lamella.core.search.finding import Found
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.past import Past
from lamella.engine.dialogue.recalling import FOUND_AT_MOST
from lamella.engine.keeping.backend import Backend, ChatRules
from lamella.engine.locking import one_at_a_time


@one_at_a_time(except_for=())
class RecallingChat(ABC):
    """A conversation in a store that finds what left its prompt."""

    lock: RLock
    _log: Log
    _backend: Backend
    _configured: ChatRules

    @abstractmethod
    def _running(self) -> Dialogue: ...

    @abstractmethod
    def _contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]: ...

    def recall(self, query: str, *, limit: int = FOUND_AT_MOST) -> Sequence[Found]:
        """Originals of the active branch that the prompt no longer holds; what was erased is not found."""
        return self._running().recall(query, limit=limit, past=self._read_past() if self._was_erased() else None)

    def _was_erased(self) -> bool:
        """Whether somebody erased something since this was read: what is in memory may hold it still."""
        since = self._backend.store.load(self._log.conversation, after=self._log.version)
        return any(record.kind is EventKind.ERASURE for record in since)

    def _read_past(self) -> Past:
        """The active branch with what is left of its contents."""
        told = self._log.path()
        turns = read_turns(told, self._contents(path_hashes(told)), usual=self._configured.terms)
        return Past(turns, path=name_messages(told), find_time=self._find_time)

    def _find_time(self, message: str) -> str | None:
        node = self._log.nodes.get(message)
        return None if node is None else node.at or None
