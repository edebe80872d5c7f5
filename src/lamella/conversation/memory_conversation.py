"""Prompt builders without a store: nothing is written, and pending commands are kept in memory.

``InMemoryPromptBuilder`` is one conversation, and ``WorkflowPromptBuilder`` one that can run a workflow.
"""

from collections.abc import Sequence
from datetime import datetime
from threading import RLock

from lamella.conversation.adapters import Adapters
from lamella.conversation.commands import (
    NO_PENDING_COMMANDS,
    CommandResolver,
    PendingCommands,
    describe_pending,
    merge_pending,
    merge_requests,
)
from lamella.conversation.expired_cache import ExpiredCache, estimate_expired_cache
from lamella.conversation.prompt_builder import PromptBuilder
from lamella.conversation.rules import get_rule, list_rules, validate_rule
from lamella.conversation.stages import WorkflowSteps, with_workflow_part
from lamella.conversation.turn import BuiltTurn, TurnRequest
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.events.compaction import StageEvent, WorkflowSpec
from lamella.core.log.receipts import is_stage_data_id
from lamella.core.log.turn import HistoryRewrite, Turn, TurnSettings
from lamella.core.prompt.state import PromptState
from lamella.core.workflow.session import with_completed_stages
from lamella.ports import Rule


class InMemoryPromptBuilder(PromptBuilder):
    """One conversation in memory; pending commands go with the next question that can be built."""

    _pending_request: TurnRequest = NO_PENDING_COMMANDS

    def ask(
        self, turn_request: TurnRequest | Turn, *, at: datetime | None = None, rewritten: HistoryRewrite | None = None
    ) -> BuiltTurn:
        """Build the next turn with the pending commands. If it cannot be built, nothing changes."""
        full = self._pop_pending_commands(turn_request) if isinstance(turn_request, TurnRequest) else turn_request
        turn = super().ask(full, at=at, rewritten=rewritten)
        # Cleared only after the turn was built, so that a failed turn does not lose the commands.
        self._pending_request = NO_PENDING_COMMANDS
        return turn

    def preview(
        self, turn_request: TurnRequest, *, at: datetime | None = None, rewritten: HistoryRewrite | None = None
    ) -> BuiltTurn:
        """Return the turn that ``ask`` would build with the pending commands. Nothing changes."""
        return super().preview(self._pop_pending_commands(turn_request), at=at, rewritten=rewritten)

    def queue_command(self, turn_request: TurnRequest, *, at: datetime | None = None) -> PendingCommands:
        """Attach, detach, drop, pin, unpin or refresh with the next question; return all pending commands."""
        del at
        reader = CommandResolver(
            self._adapters, self._prompt_settings, self.current_state, pending=self._pending_request
        )
        later, back, said = reader.resolve(turn_request)
        self._pending_request = merge_requests(self._pending_request, later, cancelled=back)
        return describe_pending(self._pending_request, self._prompt_settings.tokenizer.count, warnings=said)

    @property
    def pending_commands(self) -> PendingCommands:
        """The commands that are pending for the next question."""
        return describe_pending(
            self._pending_request, self._prompt_settings.tokenizer.count, warnings=self._pending_request.warnings
        )

    def expired_cache(self, *, at: datetime | None = None) -> ExpiredCache | None:
        """Return what the next message costs if the cache has expired or will soon; None while it is warm."""
        return estimate_expired_cache(self, at=at)

    def rules(self) -> Sequence[Rule]:
        """Return the active user rules, newest last."""
        texts = [turn.text for turn in self._history.list_turns()]
        # The path alternates questions and replies, so every second id is a question.
        told = zip(range(1, len(texts) + 1), self._history.message_ids[::2], texts, strict=True)
        cues = self._prompt_settings.compaction_config_for(self._turn_settings).rule_cues
        return list_rules(told, self._state.rules, self._pending_request, cues=cues)

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Add a user rule that is in every prompt from the next question on, through all compactions."""
        rules = self.rules()
        line = validate_rule(
            text, rules, token_limit=self._prompt_settings.budget.limit, count=self._prompt_settings.tokenizer.count
        )
        if all(one.text != line or one.origin == "found" for one in rules):
            self.queue_command(TurnRequest(text="", rules=(line,)), at=at)
        return get_rule(line, self.rules())

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Remove a rule from the next question on, by its id, its number or its text."""
        gone = get_rule(name, self.rules())
        self.queue_command(TurnRequest(text="", removed_rules=(gone.text,)), at=at)
        return gone

    def _pop_pending_commands(self, turn_request: TurnRequest) -> TurnRequest:
        return (
            turn_request
            if self._pending_request is NO_PENDING_COMMANDS
            else merge_pending(self._pending_request, turn_request, self.current_state[0])
        )


# Workflow stages: each event with the number of messages before it.


class WorkflowPromptBuilder(InMemoryPromptBuilder, WorkflowSteps):
    """An in-memory conversation that can run a workflow."""

    def __init__(
        self,
        adapters: Adapters,
        settings: PromptSettings,
        start: PromptState,
        *,
        turn_settings: TurnSettings,
        ledger: bool = True,
    ) -> None:
        self.lock = RLock()
        self._stage_events: tuple[tuple[int, StageEvent], ...] = ()
        super().__init__(adapters, settings, start, turn_settings=turn_settings, ledger=ledger)

    def ask(
        self, turn_request: TurnRequest | Turn, *, at: datetime | None = None, rewritten: HistoryRewrite | None = None
    ) -> BuiltTurn:
        """Build the next turn with the instructions of the current stage."""
        held = self._with_stage(turn_request) if isinstance(turn_request, TurnRequest) else turn_request
        return super().ask(held, at=at, rewritten=rewritten)

    def preview(
        self, turn_request: TurnRequest, *, at: datetime | None = None, rewritten: HistoryRewrite | None = None
    ) -> BuiltTurn:
        """Build the turn for this request with the current stage, without changing the conversation."""
        return super().preview(self._with_stage(turn_request), at=at, rewritten=rewritten)

    def replay_stage_event(self, event: StageEvent) -> None:
        """Apply a recorded stage event again."""
        self._record_stage_event(event, None)

    def _get_workflow(self, name: str) -> WorkflowSpec:
        return self._adapters.get_workflow(name)

    def _list_stage_events(self) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
        return self._stage_events, self._history.message_ids

    def _stop_pending_turn(self, at: datetime | None) -> None:
        self.stop_pending_turn(at=at)

    def _record_stage_event(self, event: StageEvent, at: datetime | None) -> None:
        del at
        self._stage_events = (*self._stage_events, (len(self._history.message_ids), event))
        session = self.session
        if session is not None:
            self._prompt_settings = with_completed_stages(self._prompt_settings, session, self._history.message_ids)

    def _with_stage(self, turn_request: TurnRequest) -> TurnRequest:
        session = self.session if self._stage_events else None
        if session is None:
            return turn_request
        receipts = self._history.list_receipts()
        shortened = {name for one in receipts for step in one.steps for name in step.removed if is_stage_data_id(name)}
        system = self.current_state[0].system.with_brief_stages(shortened)
        return with_workflow_part(turn_request, session, system, shortened_stages=shortened)
