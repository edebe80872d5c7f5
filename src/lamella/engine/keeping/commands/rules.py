"""Rules of a conversation in a store: listed with their source, added and removed by hand, each written down."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from threading import RLock

from lamella.core.log.log import Log
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.reading.rules import check_rule, find_rule, list_rules
from lamella.engine.dialogue.reading.waiting import Commands
from lamella.engine.keeping.backend import ChatRules
from lamella.engine.locking import one_at_a_time
from lamella.holdings import Rule


@one_at_a_time(except_for=())
class RuledChat(ABC):
    """What a conversation in a store is to do from now on, as its user said."""

    lock: RLock
    _log: Log
    _configured: ChatRules

    @property
    @abstractmethod
    def _waits(self) -> Ask: ...

    @abstractmethod
    def _running(self) -> Dialogue: ...

    @abstractmethod
    def command(self, asked: Ask, *, at: datetime | None = None) -> Commands: ...

    def rules(self) -> Sequence[Rule]:
        """The rules that hold on the active branch, the newest last."""
        told = ((at, one.message.id, one.message.text) for at, one in enumerate(self._log.path(), start=1))
        state, terms = self._running().standing
        cues = self._configured.rules.chain_for(terms).cues
        return list_rules(told, state.rules, self._waits, cues=cues)

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Have something done from the next question on, in every prompt, whatever is compacted."""
        rules, configured = self.rules(), self._configured.rules
        line = check_rule(text, rules, limit=configured.budget.limit, count=configured.measure.count)
        if all(one.text != line or one.by == "found" for one in rules):
            self.command(Ask(text="", rules=(line,)), at=at)
        return find_rule(line, self.rules())

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Have a rule hold no more from the next question on, by its id, its number or its words."""
        gone = find_rule(name, self.rules())
        self.command(Ask(text="", ended=(gone.text,)), at=at)
        return gone
