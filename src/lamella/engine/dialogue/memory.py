"""A dialogue that nothing keeps: what is attached between two turns waits in memory."""

from datetime import datetime

from lamella.core.log.terms import Rewrite
from lamella.core.log.turn import Turn
from lamella.engine.cold import ColdCache, find_cold
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.reading.commands import CommandReader
from lamella.engine.dialogue.reading.waiting import (
    NOTHING_WAITS,
    Commands,
    describe_waiting,
    join_asks,
    take_along,
)
from lamella.engine.dialogue.turn import TurnView


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

    def _take_commands(self, asked: Ask) -> Ask:
        return asked if self._waits is NOTHING_WAITS else take_along(self._waits, asked, self.standing[0])
