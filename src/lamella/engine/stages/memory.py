"""Stages of a conversation in memory: what was done about them, after how many messages."""

from collections.abc import Sequence
from datetime import datetime
from threading import RLock

from lamella.core.compaction.fitting import Rules
from lamella.core.log.events.stage import StageEvent, WorkflowSpec
from lamella.core.log.receipt import is_stage
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.log.turn import Turn
from lamella.core.prompt.state import State
from lamella.core.workflow.ranges import with_stages
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.memory import MemoryDialogue
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.dialogue.world import World
from lamella.engine.stages.work import StagedWork, hold_part


class StagedDialogue(MemoryDialogue, StagedWork):
    """One conversation in memory whose work may go by stages."""

    def __init__(self, world: World, rules: Rules, start: State, *, terms: Terms, ledger: bool = True) -> None:
        self.lock = RLock()
        self._events: tuple[tuple[int, StageEvent], ...] = ()
        super().__init__(world, rules, start, terms=terms, ledger=ledger)

    def ask(self, asked: Ask | Turn, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """The next turn, under the stage that is worked on."""
        held = self._hold_stage(asked) if isinstance(asked, Ask) else asked
        return super().ask(held, at=at, rewritten=rewritten)

    def preview(self, asked: Ask, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """The turn that asking this would give, under the stage that is worked on. Nothing changes."""
        return super().preview(self._hold_stage(asked), at=at, rewritten=rewritten)

    def repeat_stage(self, event: StageEvent) -> None:
        """Do about the stages what was done before."""
        self._keep_stage(event, None)

    def _find_workflow(self, name: str) -> WorkflowSpec:
        return self._world.find_workflow(name)

    def _list_staged(self) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
        return self._events, self._past.path

    def _stop_for_stage(self, at: datetime | None) -> None:
        self.stop_waiting(at=at)

    def _keep_stage(self, event: StageEvent, at: datetime | None) -> None:
        del at
        self._events = (*self._events, (len(self._past.path), event))
        session = self.session
        if session is not None:
            self._rules = with_stages(self._rules, session, self._past.path)

    def _hold_stage(self, asked: Ask) -> Ask:
        session = self.session if self._events else None
        if session is None:
            return asked
        receipts = self._past.committed()
        shortened = {name for one in receipts for step in one.steps for name in step.removed if is_stage(name)}
        system = self.standing[0].system.shorten(shortened)
        return hold_part(asked, session, system, shortened=shortened)
