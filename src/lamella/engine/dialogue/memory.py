"""A dialogue that nothing keeps: what is attached between two turns waits in memory."""

from collections.abc import Sequence
from datetime import datetime

from lamella.core.log.terms import Rewrite
from lamella.core.log.turn import Turn
from lamella.engine.cold import ColdCache, find_cold
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.reading.commands import CommandReader
from lamella.engine.dialogue.reading.rules import check_rule, find_rule, list_rules
from lamella.engine.dialogue.reading.waiting import (
    NOTHING_WAITS,
    Commands,
    describe_waiting,
    join_asks,
    take_along,
)
from lamella.engine.dialogue.turn import TurnView
from lamella.holdings import Rule


class MemoryDialogue(Dialogue):
    """One conversation in memory. What waits for the next question goes with it, once that could be asked."""

    _waits: Ask = NOTHING_WAITS

    def ask(self, asked: Ask | Turn, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """The next turn, with what waits for it. If it cannot be built nothing has changed."""
        full = self._take_commands(asked) if isinstance(asked, Ask) else asked
        turn = super().ask(full, at=at, rewritten=rewritten)
        self._waits = NOTHING_WAITS
        return turn

    def preview(self, asked: Ask, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """The turn that asking this would give, with what waits for it. Nothing changes."""
        return super().preview(self._take_commands(asked), at=at, rewritten=rewritten)

    def command(self, asked: Ask, *, at: datetime | None = None) -> Commands:
        """Attach, detach, drop, pin, unpin or read anew, from the next question on; what waits for that after it."""
        del at
        reader = CommandReader(self._world, self._rules, self.standing, waits=self._waits)
        later, back, said = reader.read(asked)
        self._waits = join_asks(self._waits, later, back=back)
        return describe_waiting(self._waits, self._rules.measure.count, said=said)

    @property
    def commands(self) -> Commands:
        """What waits for the next question."""
        return describe_waiting(self._waits, self._rules.measure.count, said=self._waits.warnings)

    def cold(self, *, at: datetime | None = None) -> ColdCache | None:
        """What the next message costs where the cache is about to lapse or has; none while it is warm."""
        return find_cold(self, at=at)

    def rules(self) -> Sequence[Rule]:
        """The rules that hold, the newest last."""
        texts = [turn.text for turn in self._past.list_turns()]
        told = zip(range(1, len(texts) + 1), self._past.path[::2], texts, strict=True)
        cues = self._rules.chain_for(self._terms).cues
        return list_rules(told, self._state.rules, self._waits, cues=cues)

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Have something done from the next question on, in every prompt, whatever is compacted."""
        rules = self.rules()
        line = check_rule(text, rules, limit=self._rules.budget.limit, count=self._rules.measure.count)
        if all(one.text != line or one.by == "found" for one in rules):
            self.command(Ask(text="", rules=(line,)), at=at)
        return find_rule(line, self.rules())

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Have a rule hold no more from the next question on, by its id, its number or its words."""
        gone = find_rule(name, self.rules())
        self.command(Ask(text="", ended=(gone.text,)), at=at)
        return gone

    def _take_commands(self, asked: Ask) -> Ask:
        return asked if self._waits is NOTHING_WAITS else take_along(self._waits, asked, self.standing[0])
