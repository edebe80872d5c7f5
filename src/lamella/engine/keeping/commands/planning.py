"""Plans of a conversation in a store: what compacting it, or a part of it, would take out and bring."""

from abc import ABC, abstractmethod
from datetime import datetime
from threading import RLock

from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.proposal import EVERYTHING_SAID, PlanRange, Proposal
from lamella.engine.locking import one_at_a_time


@one_at_a_time(except_for=())
class PlannedChat(ABC):
    """A conversation in a store that says what compacting it would do before it is done."""

    lock: RLock

    @abstractmethod
    def _next_dialogue(self) -> Dialogue: ...

    def plan(
        self,
        within: PlanRange = EVERYTHING_SAID,
        *,
        to: float | None = None,
        summaries: bool = True,
        at: datetime | None = None,
    ) -> Proposal:
        """What compacting now would take out and bring; a turn that waits counts as stopped."""
        return self._next_dialogue().plan(within, to=to, summaries=summaries, at=at)
