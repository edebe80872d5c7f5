"""A question in a store that waits while something is looked up for it, and is asked on with what was found."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import RLock

from lamella.core.log.branch import path_hashes, read_message
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask, ask_again, repeat_system
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.backend import ChatRules
from lamella.engine.keeping.counting import CountingBook
from lamella.engine.locking import one_at_a_time
from lamella.errors import CallError


@one_at_a_time(except_for=())
class PreparedChat(ABC):
    """What becomes of a question between the moment that it is written down and the one that it is sent."""

    lock: RLock
    _log: Log
    _book: CountingBook
    _configured: ChatRules
    _dialogue: Dialogue | None

    @abstractmethod
    def _contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]: ...

    @abstractmethod
    def _go_on_after(self, message: str, *, edits: str | None = None) -> Dialogue: ...

    @abstractmethod
    def waiting(self) -> TurnView | None: ...

    @abstractmethod
    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> TurnView: ...

    def take_up(self, *, model: str | None = None) -> TurnView | None:
        """The turn that waits, if one does, to be sent; for another model, and for the first, it is asked anew."""
        turn = self.waiting()
        if turn is None:
            return None
        held = turn.envelope.model
        return turn if (model or held or self._configured.model) == held else self.regenerate(model=model)

    def complete(self, found: Ask, *, at: datetime | None = None) -> TurnView:
        """The question that waits, with what was found for it: results, passages, their sources, what is told of them.

        It takes the place of the one that was written down before anything was looked up.
        """
        told = self._log.path()
        if not told or told[-1].reply is not None or told[-1].open:
            raise CallError("No question waits to be sent.", hint="Ask something first.")
        self._book.begin()
        node = told[-1].message
        contents = self._contents(path_hashes([Told(message=node, reply=None)]))
        waits = read_message(node, contents, usual=self._configured.terms)
        system = {} if waits.system is None else repeat_system(waits.system)
        asked = ask_again(waits, text=None, model=None, system=system)
        asked = replace(
            asked,
            attach=(*asked.attach, *found.attach),
            results=(*asked.results, *found.results),
            sources=found.sources,
            warnings=tuple(dict.fromkeys((*waits.warnings, *found.warnings))),
        )
        dialogue = self._go_on_after(node.parent)
        turn = dialogue.ask(asked, at=at, rewritten=waits.rewritten)
        self._dialogue = dialogue
        return turn
