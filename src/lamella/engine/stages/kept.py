"""Stages of a conversation in a store: events of its log, on the branch that they were done on."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime

from lamella.core.compaction.fitting import Rules
from lamella.core.log.events.codec import write_event
from lamella.core.log.events.stage import StageEvent, WorkflowSpec
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told, name_messages
from lamella.core.log.receipt import is_stage
from lamella.core.log.records import Written
from lamella.core.prompt.state import State
from lamella.core.workflow.ranges import with_stages
from lamella.core.workflow.rendering import render_part
from lamella.core.workflow.session import fold_session
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.world import World
from lamella.engine.keeping.last_turn import left_path, name_empty
from lamella.engine.stages.work import StagedWork, hold_part


class StagedChat(StagedWork):
    """A conversation in a store whose work may go by stages. Without any it costs one look at its log."""

    _log: Log
    _world: World

    @abstractmethod
    def _stop(self, empty: str, *, at: datetime | None) -> None: ...

    @abstractmethod
    def _moment(self, at: datetime | None) -> str: ...

    @abstractmethod
    def _write(self, written: Written, *, title: str | None = None) -> None: ...

    def _find_workflow(self, name: str) -> WorkflowSpec:
        return self._world.find_workflow(name)

    def _list_staged(self) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
        # What is asked next follows the empty answer that an open question had before.
        told = left_path(self._log, self._log.head)
        return self._log.staged(told), name_messages(told)

    def _stop_for_stage(self, at: datetime | None) -> None:
        self._stop(name_empty(self._log, self._log.head), at=at)

    def _keep_stage(self, event: StageEvent, at: datetime | None) -> None:
        self._write(write_event(event, at=self._moment(at)))

    def _hold_stage(self, asked: Ask, state: State) -> Ask:
        """What is asked, with what the system prompt says of the work by now."""
        told = left_path(self._log, self._log.head)
        session = fold_session(self._log.staged(told))
        if session is None:
            return asked
        shortened = self._list_shortened(told)
        return hold_part(asked, session, state.system.shorten(shortened), shortened=shortened)

    def _render_stage(self, message: str) -> Mapping[str, str]:
        """The part of the system prompt for what is asked after a message; nothing where there are no stages."""
        told = left_path(self._log, message) if self._log.stages else ()
        session = fold_session(self._log.staged(told))
        return {} if session is None else render_part(session, shortened=self._list_shortened(told))

    def _list_shortened(self, told: Sequence[Told]) -> frozenset[str]:
        """The stages whose data a compaction in force on a branch made short."""
        events = self._log.committed(told).events
        return frozenset(name for event in events for step in event.steps for name in step.removed if is_stage(name))

    def _with_stages(self, rules: Rules, told: Sequence[Told]) -> Rules:
        """The rules with the stages of a branch, if it has some."""
        session = fold_session(self._log.staged(told)) if self._log.stages else None
        return rules if session is None else with_stages(rules, session, name_messages(told))
