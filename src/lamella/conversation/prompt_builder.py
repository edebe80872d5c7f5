"""The prompt builder: builds the model requests of one conversation and keeps its cache ledger."""

from collections.abc import Callable, Collection, Sequence
from copy import copy
from datetime import datetime

from lamella.clocks import measure_phase
from lamella.conversation.adapters import AbandonedTurn, Adapters, LastSentTurn
from lamella.conversation.cache_ledger import FindPrompt, ListSentRequests, UsageTracker
from lamella.conversation.compaction import (
    WHOLE_CONVERSATION,
    CompactionProposal,
    CompactionRange,
    TurnFitter,
    build_checked_request,
    propose_compaction,
)
from lamella.conversation.library import repeats_attachments_in_each_turn
from lamella.conversation.log import TurnWriter
from lamella.conversation.past_turns import (
    BranchHistory,
    build_tool_round,
    calls_pending_error,
    check_tool_outputs,
    list_open_calls,
    skipped_call_output,
    with_unique_call_ids,
)
from lamella.conversation.reasons import PromptExplanation, explain_artifact, preview_prompt
from lamella.conversation.recall import BranchSearch, with_recall_hint
from lamella.conversation.shared_prefixes import SharedPrefixRegistry
from lamella.conversation.turn import BuiltTurn, ModelAnswer, RecallOffer, TurnRequest, apply_deferred_system
from lamella.conversation.turn_reader import read_turn
from lamella.conversation.validation import check_time_zone
from lamella.core.budget import Tokenizer, exceeds_share
from lamella.core.compaction.clearing import may_clear_later, plan_clearing
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.ledger.entry import LedgerEntry
from lamella.core.log.call import ModelCall
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import AttachmentMode, HistoryChangeReason, Turn, TurnSettings
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput
from lamella.core.prompt.advance import (
    add_reply_to_waiting_turn,
    advance_by_turn,
    get_pending_prompt,
    replace_tool_rounds_of_waiting_turn,
)
from lamella.core.prompt.envelope import Envelope, is_shortened, make_envelope, make_fingerprint
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import UNDO_CAUSE, apply_receipts
from lamella.core.prompt.signed_reasoning import bind_reasoning_to_request
from lamella.core.prompt.state import PromptState
from lamella.core.search.recall import RECALL_TOKENS, RecallHit
from lamella.core.search.search import SearchHit
from lamella.core.text.content import strip_reasoning
from lamella.core.values import replace
from lamella.core.workflow.session import WorkflowSession, with_completed_stages
from lamella.errors import InvalidOperationError

# The share of a request to keep if the provider rejects it as too long although it fits by Lamella's token count.
_OVERFLOW_TARGET_SHARE = 0.7


class PromptBuilder:
    """Builds the requests of one conversation and records their replies.

    Call ``ask``, then ``reply``. A turn that is followed by another one before its reply gets an empty reply. Every
    change is written before it takes effect, so a failed write leaves the conversation unchanged.
    """

    def __init__(
        self,
        adapters: Adapters,
        settings: PromptSettings,
        start: PromptState,
        *,
        turn_settings: TurnSettings,
        history: BranchHistory | None = None,
        pending: tuple[ModelReply, tuple[ToolOutput, ...]] | None = None,
        ledger: bool = True,
        writer: TurnWriter | None = None,
        search: BranchSearch | None = None,
        learns_retention: bool = False,
        shared_prefixes: SharedPrefixRegistry | None = None,
        get_kept_tools: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._adapters, self._prompt_settings, self._default_turn_settings, self._initial_state = (
            adapters,
            settings,
            turn_settings,
            start,
        )
        self._history, self._writer = history or BranchHistory(), writer
        self._get_kept_tools = get_kept_tools
        self._learns_retention = learns_retention and turn_settings.attachments is AttachmentMode.TURN
        self._settings_without_retention = replace(turn_settings, linger=0)
        self._fitter = TurnFitter(adapters.get_summary_fetcher(), secrets=adapters.secret_scanner)
        self._branch_search = search or BranchSearch()
        self.usage_tracker = UsageTracker(adapters, keeps_ledger=ledger, shared_prefixes=shared_prefixes)
        # The reply whose tool calls await their outputs, and the outputs that are recorded already.
        self._pending_reply: ModelReply | None = None
        self._early_outputs: tuple[ToolOutput, ...] = ()
        if pending is not None:
            self._pending_reply, self._early_outputs = pending
        # The outputs submitted last, with the state they led to, so that the same submission can be repeated.
        self._recorded_outputs: tuple[PromptState, tuple[ToolOutput, ...]] | None = None
        # The request that was sent last.
        self._last_sent_prompt: Prompt | None = None
        self._rebuild_state()

    def _rebuild_state(self) -> None:
        """Rebuild the prompt state from the history: before the turn that awaits its reply, and including it."""
        past, place, tokenizer = self._history, self._prompt_settings.plan_layout, self._prompt_settings.tokenizer
        self._state_before_pending = self._state = past.compute_state(
            self._initial_state, place, tokenizer=tokenizer, skip_last=len(past.pending_turns)
        )
        for turn in past.pending_turns:
            self._state = advance_by_turn(self._state_before_pending, turn, place, tokenizer=tokenizer)

    def restore_last_request(
        self,
        last_prompt: Prompt | None,
        *,
        sent: LastSentTurn,
        find_uncompacted: FindPrompt,
        list_sent: ListSentRequests,
    ) -> None:
        """Continue after the request that was sent last: ``last_prompt``, or the last request of this branch."""
        self.usage_tracker.restore_last_request(
            last_prompt or self._state.last_prompt,
            sent,
            budget=self._prompt_settings.budget,
            find_uncompacted=find_uncompacted,
            list_sent=list_sent,
        )

    def mark_compaction_undone(self) -> None:
        """Record that the next request differs from the last one because a compaction was undone."""
        self._state = replace(self._state, compaction_step=UNDO_CAUSE)

    def mark_pending_compaction_undone(self) -> None:
        """Record the same for the request that awaits its reply, unless it was compacted since."""
        self._state_before_pending = replace(self._state_before_pending, compaction_step=UNDO_CAUSE)
        self._state = advance_by_turn(
            self._state_before_pending,
            self._history.turns[-1],
            self._prompt_settings.plan_layout,
            tokenizer=self._prompt_settings.tokenizer,
        )

    def use_workflow_stages(self, session: WorkflowSession) -> None:
        """Compact from now on by the approved stages of a workflow."""
        self._prompt_settings = with_completed_stages(self._prompt_settings, session, self._history.message_ids)

    @property
    def _turn_settings(self) -> TurnSettings:
        """The turn settings of the next turn, as far as they are known before it is asked."""
        last = self._history.turns[-1] if self._history.turns and self._learns_retention else None
        if last is not None and not last.turn_settings.linger:
            return self._settings_without_retention
        return self._default_turn_settings

    def _with_learned_retention(self, turn: Turn) -> Turn:
        """Return the turn with retention 0 if the turns list everything that they use.

        That is so once two turns in a row list something unchanged that the turn before them listed, too. From then on
        an attachment that is not listed is not in use any more. A value that was set by hand is never changed.
        """
        if not self._learns_retention or not turn.turn_settings.linger:
            return turn
        if not repeats_attachments_in_each_turn(turn, self._history.find_turn_counting_back):
            return turn
        return replace(turn, turn_settings=replace(turn.turn_settings, linger=0))

    @property
    def model(self) -> str | None:
        """The current model, or None if none was named."""
        return self._state.model

    @property
    def pending_tool_calls(self) -> Sequence[ToolCall]:
        """The tool calls of the last reply that await their outputs."""
        return () if self._pending_reply is None else list_open_calls(self._pending_reply.calls, self._early_outputs)

    @property
    def has_tool_rounds(self) -> bool:
        """Whether the turn that awaits its reply has called tools."""
        return self._state.waits_for_reply and bool(self._pending_reply or self._history.turns[-1].rounds)

    def parse_response(self, response: object) -> ModelAnswer:
        """Parse the response object of a provider's SDK into an answer."""
        return self._adapters.parse_response(response)

    @property
    def is_awaiting_reply(self) -> bool:
        """Whether a turn awaits its reply."""
        return self._state.waits_for_reply

    @property
    def state_before_pending(self) -> tuple[PromptState, Tokenizer]:
        """The state before the pending turn, or after the last turn if none is pending, with its tokenizer."""
        return self._state_before_pending, self._prompt_settings.tokenizer

    @property
    def last_prompt(self) -> Prompt | None:
        """The last request of this branch."""
        return self._state.last_prompt

    @property
    def current_state(self) -> tuple[PromptState, TurnSettings]:
        """The current prompt state, and the turn settings that the next turn uses."""
        return self._state, self._turn_settings

    def ask(
        self,
        turn_request: TurnRequest | Turn,
        *,
        at: datetime | None = None,
        rewritten: HistoryChangeReason | None = None,
    ) -> BuiltTurn:
        """Build the next turn. If it cannot be built or recorded, nothing changes.

        A ``Turn`` instead of a turn request is asked again as it was read, under the current turn settings.
        """
        check_time_zone(at)
        unanswered = get_pending_prompt(self._state).question.id if self._state.waits_for_reply else None
        skipped = tuple(skipped_call_output(call) for call in self.pending_tool_calls)
        state = self._state_without_reply()
        settled, turn, settings = self._prepare_state_turn_and_settings(turn_request, state, at=at, rewritten=rewritten)
        turn, opened = self._fitter.fit(settled, turn, settings, message_ids=self._history.message_ids)
        # The cached prefix changes in this turn anyway, so the deferred system prompt parts can change with it at no
        # extra cost. They are not deferred the second time, so this recurses only once.
        if (
            isinstance(turn_request, TurnRequest)
            and turn_request.deferred_system
            and (turn.receipts or self.usage_tracker.changes_prefix_anyway(get_pending_prompt(opened)))
        ):
            return self.ask(apply_deferred_system(turn_request), at=at, rewritten=rewritten)
        if isinstance(turn_request, TurnRequest) and turn_request.recall_offer is not None:
            turn, opened = self._with_recall_tool(turn_request.recall_offer, settled, turn, opened, settings)
        turn, opened = self._clear_unused_results(settled, turn, opened, settings)
        receipt = turn.receipts[-1] if turn.receipts else None
        with measure_phase("render"):
            envelope = build_checked_request(
                opened, settings, previous_prompt=state.last_prompt or self._state_before_pending.last_prompt
            )
            turn = replace(turn, fingerprint=make_fingerprint(envelope))
        with measure_phase("plan"):
            entry, ledger = self.usage_tracker.build_ledger_entry(envelope, at=at)
        # Written first: if that fails, the state in memory is still the one before this turn.
        if self._writer is not None:
            left = AbandonedTurn(id=unanswered, placeholder_outputs=skipped) if unanswered is not None else None
            with measure_phase("store"):
                self._writer.write_turn(
                    turn, message_id=opened.head, parent_id=state.head, abandoned=left, receipt=receipt, at=at
                )
        if unanswered is not None:
            self._history.turns[-1] = self._with_tool_round(skipped)
            self._history.set_reply("", message_id=state.head, at=at)
        self._history.append_turn(
            replace(turn, receipts=(*self._history.receipts, *turn.receipts)), message_id=opened.head, at=at
        )
        self._state_before_pending, self._state, self._prompt_settings = state, opened, settings
        self._pending_reply, self._early_outputs = None, ()
        self._last_sent_prompt = opened.last_prompt
        self.usage_tracker.record_asked_turn(ledger, at=at)
        return self._build_turn(envelope, entry, receipt)

    def _with_recall_tool(
        self, offer: RecallOffer, settled: PromptState, turn: Turn, opened: PromptState, settings: PromptSettings
    ) -> tuple[Turn, PromptState]:
        """Return the turn with the recall tool and the state after it, if something was left out of the request.

        A request whose tool results may be cleared later has it, too: to add it then would change every byte.

        The turn is not fitted again, since that may ask a model for a second summary. A request that is too long with
        the tool does not get it.
        """
        prompt = get_pending_prompt(opened)
        is_rewritten = self.usage_tracker.changes_prefix_anyway(prompt)
        is_useful = is_shortened(prompt) or may_clear_later(prompt, changes_prefix_anyway=is_rewritten)
        if not is_useful or not offer.applies_to(prompt.tools):
            return turn, opened
        equipped = replace(turn, tools=(*prompt.tools, offer.definition))
        result = advance_by_turn(settled, equipped, settings.plan_layout, tokenizer=settings.tokenizer)
        if exceeds_share(get_pending_prompt(result).total, settings.budget.hard, settings.budget):
            return turn, opened
        return equipped, result

    def _clear_unused_results(
        self, state: PromptState, turn: Turn, opened: PromptState, settings: PromptSettings
    ) -> tuple[Turn, PromptState]:
        """Return the turn with tool results cleared that are not worth reading again, and the state after it.

        ``state`` is the state before the turn. A turn that was just compacted stays as it is.
        """
        if turn.receipts:
            return turn, opened
        planned = plan_clearing(
            state,
            turn,
            opened,
            self.usage_tracker.get_pricing(get_pending_prompt(opened).model).profile,
            tokenizer=settings.tokenizer,
            plan_layout=settings.plan_layout,
            kept_ids=self._history.undone_results,
            kept_tools=self._get_kept_tools(),
        )
        return (turn, opened) if planned is None else (replace(turn, receipts=(planned[0],)), planned[1])

    def _prepare_state_turn_and_settings(
        self,
        turn_request: TurnRequest | Turn,
        state: PromptState,
        *,
        at: datetime | None,
        rewritten: HistoryChangeReason | None,
    ) -> tuple[PromptState, Turn, PromptSettings]:
        """Return the state with pending compactions applied, the turn with its layout planned, and its settings."""
        with measure_phase("read"):
            turn = self._with_learned_retention(self._resolve_turn_request(turn_request, state, rewritten))
        settings = replace(
            self._prompt_settings, tokenizer=self._adapters.counter.get_tokenizer(turn.model or state.model)
        )
        committed = self._history.receipts
        settled = (
            apply_receipts(state, committed, turn.turn_settings, tokenizer=settings.tokenizer) if committed else state
        )
        if isinstance(turn_request, Turn) and _all_use_library_layout(turn_request, turn):
            # A plan of this layout does not depend on prices, so a stored turn keeps the plan that it was sent with.
            return settled, replace(turn, layout_plan=turn_request.layout_plan), settings
        with measure_phase("plan"):
            return settled, self.usage_tracker.with_layout_plan(settled, turn, settings, at=at), settings

    def _state_without_reply(self, state: PromptState | None = None) -> PromptState:
        """Return the state if the pending turn is abandoned: its calls are not made and its reply is empty."""
        state = state or self._state
        if self._pending_reply is not None:
            state = replace_tool_rounds_of_waiting_turn(
                state, self._with_tool_round([skipped_call_output(call) for call in self.pending_tool_calls]).rounds
            )
        return add_reply_to_waiting_turn(state, "") if state.waits_for_reply else state

    def _with_tool_round(self, outputs: Sequence[ToolOutput]) -> Turn:
        """Return the pending turn with the outputs of its pending calls, after those that are recorded already."""
        turn, pending = self._history.turns[-1], self._pending_reply
        if pending is None:
            return turn
        whole = build_tool_round(pending, (*self._early_outputs, *outputs))
        return replace(turn, rounds=(*turn.rounds, whole))

    def _resolve_turn_request(
        self, turn_request: TurnRequest | Turn, state: PromptState, rewritten: HistoryChangeReason | None
    ) -> Turn:
        if isinstance(turn_request, Turn):
            return replace(turn_request, turn_settings=self._turn_settings, history_rewrite=rewritten, layout_plan=None)
        if self._adapters.recall_hints:
            turn_request = with_recall_hint(turn_request, self._search_for_question)
        turn_settings = self._prompt_settings.turn_settings_for_runner(self._turn_settings, turn_request.runner)
        turn = read_turn(
            turn_request,
            state,
            self._adapters,
            turn_settings=turn_settings,
            settings=self._prompt_settings,
            receipts=self._history.receipts,
        )
        if rewritten is None:
            return turn
        # Compare without any compaction, so that the result is the same after the compactions are undone.
        if self._history.list_receipts():
            past = self._history.without_compactions(self._history.list_receipts())
            state = self._state_without_reply(
                past.compute_state(
                    self._initial_state, self._prompt_settings.plan_layout, tokenizer=self._prompt_settings.tokenizer
                )
            )
        return self.usage_tracker.mark_history_rewritten(
            turn, rewritten, state=state, plan_layout=self._prompt_settings.plan_layout
        )

    def reply(self, answer: str | ModelAnswer, *, at: datetime | None = None) -> ModelReply:
        """Record what the model answered to the last turn: a text, or the full answer with data about the call.

        An answer that calls tools leaves the turn open. Pass their outputs to ``submit_tool_outputs``.
        """
        if not self._state.waits_for_reply:
            raise InvalidOperationError(
                "There is no open turn to reply to.", hint="Ask first; each turn takes one reply."
            )
        prompt = get_pending_prompt(self._state)
        if isinstance(answer, str):
            reply = ModelReply(text=strip_reasoning(answer), stop=StopReason.END)
            self._record_final_reply(ModelAnswer(reply=reply), None, at=at)
            return reply
        call = self.usage_tracker.build_call_record(
            prompt,
            answer,
            previous_prompt=self._state_before_pending.last_prompt,
            budget=self._prompt_settings.budget,
            at=at,
        )
        if not answer.reply.calls:
            self._record_final_reply(answer, call, at=at)
            return answer.reply
        reply = with_unique_call_ids(
            answer.reply, turn=self._history.turn_count, earlier_rounds=self._history.turns[-1].rounds
        )
        reply = bind_reasoning_to_request(reply, model=prompt.model, tools=prompt.tools, messages=prompt.messages)
        self._record_reply_with_tool_calls(reply, call, at=at)
        return reply

    def _record_reply_with_tool_calls(self, reply: ModelReply, call: ModelCall, *, at: datetime | None) -> None:
        """Record an answer that calls tools; the turn stays open until their outputs are known."""
        self._record_pending_calls_as_skipped(at=at)
        if self._writer is not None:
            self._writer.write_tool_calls(reply, parent_id=self._state.head, at=at, call=call)
        self.usage_tracker.record_call(call)
        self._pending_reply = reply

    def _record_final_reply(self, model_answer: ModelAnswer, call: ModelCall | None, *, at: datetime | None) -> None:
        self._record_pending_calls_as_skipped(at=at)
        parent, text = self._state.head, model_answer.reply.text
        reply_id, rounds_hash = (None, "") if self._writer is None else self._writer.make_reply_id(parent, text)
        state = add_reply_to_waiting_turn(self._state, text, reply_id=reply_id)
        if self._writer is not None:
            # The model calls of earlier tool rounds were written with their rounds.
            self._writer.write_reply(
                model_answer,
                message_id=state.head,
                parent_id=parent,
                at=at,
                calls=[call] if call else [],
                rounds_hash=rounds_hash,
            )
        if call is not None:
            self.usage_tracker.record_call(call)
        self.usage_tracker.record_answered_turn(
            get_pending_prompt(self._state), self._history.turns[-1].fingerprint, model_answer.reply.text
        )
        self._history.set_reply(model_answer.reply.text, message_id=state.head, at=at)
        self._state_before_pending = self._state = state

    def submit_tool_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> BuiltTurn:
        """Record the tool outputs for the calls of the last reply, and return the same turn to send on.

        The outputs are written before the request is built: the tools ran, whether or not the request fits. A repeated
        submission of the same outputs only builds the request again.
        """
        if self._pending_reply is not None:
            check_tool_outputs(self.pending_tool_calls, outputs)
            self.record_tool_outputs(outputs, at=at)
            self._recorded_outputs = (self._state, tuple(outputs))
        elif self._recorded_outputs != (self._state, tuple(outputs)):
            raise InvalidOperationError("No tool was called.", hint="Give results for the calls of the reply before.")
        return self._fit_pending_turn(at=at)

    def _fit_pending_turn(self, *, at: datetime | None) -> BuiltTurn:
        """Return the pending turn as it is sent next, compacted if necessary."""
        turn = self._history.turns[-1]
        before, asked = self._state_with_preceding_receipts(turn.turn_settings), replace(turn, receipts=())
        fitted, opened = self._fitter.fit(
            before, asked, self._prompt_settings, message_ids=self._history.message_ids[:-1]
        )
        fitted, opened = self._clear_unused_results(before, fitted, opened, self._prompt_settings)
        receipt = fitted.receipts[-1] if fitted.receipts else None
        return self._record_pending_turn(
            replace(fitted, receipts=(*turn.receipts, *fitted.receipts)), opened, receipt, at=at
        )

    def _record_pending_turn(
        self, turn: Turn, opened: PromptState, receipt: CompactionReceipt | None, *, at: datetime | None
    ) -> BuiltTurn:
        """Validate, record and return the pending turn with the compaction made for it."""
        with measure_phase("render"):
            envelope = build_checked_request(
                opened,
                self._prompt_settings,
                previous_prompt=self._last_sent_prompt or self._state_before_pending.last_prompt,
            )
        with measure_phase("plan"):
            entry, ledger = self.usage_tracker.build_ledger_entry(envelope, at=at)
        if receipt is not None and self._writer is not None:
            self._writer.write_receipt(receipt, before_message_id=opened.head, at=at)
        self._history.turns[-1], self._state, self._last_sent_prompt = turn, opened, opened.last_prompt
        self.usage_tracker.record_continued_turn(ledger)
        return self._build_turn(envelope, entry, receipt)

    def record_tool_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> None:
        """Record the remaining outputs of the last reply's calls without building a request from them."""
        longer = self._with_tool_round(outputs)
        if self._writer is not None:
            early = {output.call for output in self._early_outputs}
            new = [output for output in longer.rounds[-1].outputs if output.call not in early]
            self._writer.write_results(new, parent_id=self._state.head, at=at)
        self._history.turns[-1] = longer
        self._state, self._pending_reply, self._early_outputs = (
            replace_tool_rounds_of_waiting_turn(self._state, longer.rounds),
            None,
            (),
        )

    def record_early_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> None:
        """Record the outputs of tools that have finished while other calls of the same reply still run."""
        open_calls = {call.id: call for call in self.pending_tool_calls}
        if self._pending_reply is None or len(outputs) >= len(open_calls):
            raise InvalidOperationError("No other call is open.", hint="Submit the outputs of a finished round.")
        check_tool_outputs([open_calls[one.call] for one in outputs if one.call in open_calls], outputs)
        if self._writer is not None:
            self._writer.write_results(outputs, parent_id=self._state.head, at=at)
        self._early_outputs = (*self._early_outputs, *outputs)

    def _record_pending_calls_as_skipped(self, *, at: datetime | None) -> None:
        """Give pending calls a "not made" output, so that the reply is kept and every call has a result."""
        if self._pending_reply is not None:
            self.record_tool_outputs([skipped_call_output(call) for call in self.pending_tool_calls], at=at)

    def _build_turn(self, envelope: Envelope, entry: LedgerEntry, receipt: CompactionReceipt | None) -> BuiltTurn:
        return self.usage_tracker.build_turn(envelope, entry, number=self._history.turn_count, receipt=receipt)

    def preview(
        self, turn_request: TurnRequest, *, at: datetime | None = None, rewritten: HistoryChangeReason | None = None
    ) -> BuiltTurn:
        """Return the turn that ``ask`` would build without fetching summaries. Nothing changes."""
        check_time_zone(at)
        settled, turn, settings = self._prepare_state_turn_and_settings(
            turn_request, self._state_without_reply(), at=at, rewritten=rewritten
        )
        turn, opened = self._fitter.preview_fit(settled, turn, settings, path=self._history.message_ids)
        if turn_request.recall_offer is not None:
            turn, opened = self._with_recall_tool(turn_request.recall_offer, settled, turn, opened, settings)
        turn, opened = self._clear_unused_results(settled, turn, opened, settings)
        receipt = next(reversed(turn.receipts), None)
        envelope = make_envelope(get_pending_prompt(opened), settings.budget)
        if turn_request.deferred_system and (
            receipt is not None or self.usage_tracker.changes_prefix_anyway(envelope.prompt)
        ):
            return self.preview(apply_deferred_system(turn_request), at=at, rewritten=rewritten)
        return self.usage_tracker.preview_turn(envelope, number=self._history.turn_count + 1, receipt=receipt, at=at)

    def prepare_pending_turn(self, *, at: datetime | None = None) -> BuiltTurn | None:
        """Return the turn that awaits its reply, to be sent again, or None.

        If it no longer fits, it is compacted and the compaction is recorded.
        """
        if not self._state.waits_for_reply:
            return None
        if exceeds_share(
            get_pending_prompt(self._state).total, self._prompt_settings.budget.hard, self._prompt_settings.budget
        ):
            return self._fit_pending_turn(at=at)
        envelope = build_checked_request(
            self._state, self._prompt_settings, previous_prompt=self._state_before_pending.last_prompt
        )
        self._last_sent_prompt = envelope.prompt
        entry = self.usage_tracker.build_resend_entry(envelope, at=at)
        return self._build_turn(envelope, entry, next(reversed(self._history.turns[-1].receipts), None))

    def shrink_pending_turn(self, *, at: datetime | None = None) -> BuiltTurn | None:
        """Compact the pending turn because the provider rejected it as too long; None if nothing can be removed."""
        goal = _OVERFLOW_TARGET_SHARE * get_pending_prompt(self._state).total if self._state.waits_for_reply else 0
        if not goal or (turn := self._compact_pending_turn(goal, self._fitter)) is None:
            return None
        opened = advance_by_turn(
            self._state_before_pending,
            turn,
            self._prompt_settings.plan_layout,
            tokenizer=self._prompt_settings.tokenizer,
        )
        return self._record_pending_turn(turn, opened, turn.receipts[-1], at=at)

    def compact_to_target(self, *, at: datetime | None = None) -> CompactionReceipt | None:
        """Compact down to the target without writing summaries, and return the receipt; None if nothing is gained.

        If a turn awaits its reply, its next request is smaller.
        """
        if not self._state.waits_for_reply:
            planned = self.plan(summaries=False, at=at)
            return None if planned.receipt is None else self.commit(planned, at=at)
        goal = self._prompt_settings.budget.target * self._prompt_settings.budget.limit
        if (turn := self._compact_pending_turn(goal, self._fitter.without_summaries())) is None:
            return None
        if self._writer is not None:
            self._writer.write_receipt(turn.receipts[-1], before_message_id=self._state.head, at=at)
        self._history.turns[-1] = turn
        self._state = advance_by_turn(
            self._state_before_pending,
            turn,
            self._prompt_settings.plan_layout,
            tokenizer=self._prompt_settings.tokenizer,
        )
        return turn.receipts[-1]

    def _compact_pending_turn(self, target_tokens: float, fitter: TurnFitter) -> Turn | None:
        """Return the pending turn with one more compaction; None if it needs none or nothing can be removed."""
        turn, path = self._history.turns[-1], self._history.message_ids[:-1]
        before, asked = self._state_with_preceding_receipts(turn.turn_settings), replace(turn, receipts=())
        if get_pending_prompt(self._state).total <= target_tokens:
            return None
        plan, _ = fitter.plan_compaction(
            before, asked, self._prompt_settings, target_tokens=int(target_tokens), message_ids=path, automatic=True
        )
        return replace(turn, receipts=(*turn.receipts, plan.receipt)) if plan.receipt else None

    def _state_with_preceding_receipts(self, turn_settings: TurnSettings) -> PromptState:
        """Return the state before the next or the pending turn, with the receipts that precede it applied."""
        receipts = self._history.turns[-1].receipts if self._state.waits_for_reply else self._history.receipts
        return apply_receipts(
            self._state_before_pending, receipts, turn_settings, tokenizer=self._prompt_settings.tokenizer
        )

    def plan(
        self,
        range_: CompactionRange = WHOLE_CONVERSATION,
        *,
        to: float | None = None,
        summaries: bool = True,
        at: datetime | None = None,
    ) -> CompactionProposal:
        """Return what compacting now would remove, without doing it.

        A pending turn is treated as stopped, with an empty reply.
        """
        if self._state.waits_for_reply:
            return self._copy_with_pending_turn_stopped().plan(range_, to=to, summaries=summaries, at=at)
        proposal = propose_compaction(
            self._state_with_preceding_receipts(self._turn_settings),
            Turn(text="", turn_settings=self._turn_settings),
            self._prompt_settings,
            range_=range_,
            fitter=self._fitter if summaries else self._fitter.without_summaries(),
            target_share=to,
            message_ids=self._history.message_ids,
            sent=self.usage_tracker.last_request,
            pricing=self.usage_tracker.get_pricing(self.model),
            at=at,
        )
        return replace(proposal, active_receipt_ids=tuple(one.id for one in self._history.list_receipts()))

    def commit(self, planned: CompactionProposal, *, at: datetime | None = None) -> CompactionReceipt:
        """Carry out a planned compaction; raises ``InvalidOperationError`` if the conversation changed since."""
        if not isinstance(planned, CompactionProposal):
            raise InvalidOperationError(f"A {type(planned).__name__} is no plan.", hint="Give what planning returned.")
        if (receipt := planned.receipt) is None:
            raise InvalidOperationError(
                "There is nothing to compact.", hint="Plan with a smaller share, for example 0.3."
            )
        if receipt.parent != self._state_without_reply().head or planned.active_receipt_ids != tuple(
            one.id for one in self._history.list_receipts()
        ):
            raise InvalidOperationError(
                "The conversation went on since this was planned.", hint="Plan again, then commit."
            )
        self.stop_pending_turn(at=at)
        if self._writer is not None:
            self._writer.write_receipt(receipt, at=at)
        self._history.add_receipt(receipt)
        return receipt

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> CompactionReceipt:
        """Undo a compaction, by default the last one, and all compactions after it; return the first of them."""
        voided = self.compactions_to_undo(receipt)
        self.stop_pending_turn(at=at)
        # If no request was sent under them, compaction and undo cancel out and the next request is not changed by them.
        moves = self._state.compaction_step == UNDO_CAUSE or any(one not in self._history.receipts for one in voided)
        self.rebuild_without_compactions(voided)
        if moves:
            self.mark_compaction_undone()
        return voided[0]

    def rebuild_without_compactions(self, voided: Sequence[CompactionReceipt]) -> None:
        """Rebuild the state without these compactions; the ledger keeps what was sent under them."""
        self._history = self._history.without_compactions(voided)
        self._rebuild_state()

    def stop_pending_turn(self, *, at: datetime | None = None) -> None:
        """End a pending turn with an empty reply; raises ``InvalidOperationError`` while tool calls are open."""
        if self._pending_reply is not None:
            raise calls_pending_error("Calls of tools wait for what they give.", self.pending_tool_calls)
        if self._state.waits_for_reply:
            self.reply("", at=at)

    def _copy_with_pending_turn_stopped(self) -> "PromptBuilder":
        """Return a copy in which the pending turn is stopped; nothing is written and this object stays as it is."""
        ahead = copy(self)
        ahead._writer, ahead.usage_tracker, ahead._history = (
            None,
            copy(self.usage_tracker),
            self._history.without_compactions(()),
        )
        ahead.stop_pending_turn()
        return ahead

    # Recall and explanations: what the next request does not contain.

    @property
    def _inputs_of_next_request(self) -> tuple[object, ...]:
        """The objects that determine the next request."""
        return self._state, self._history.receipts

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        max_tokens: int = RECALL_TOKENS,
        history: BranchHistory | None = None,
    ) -> Sequence[RecallHit]:
        """Search this branch for originals that are not in the request.

        ``history`` replaces the builder's own history if the caller knows the branch in more detail.
        """
        return self._branch_search.search(
            history or self._history,
            query,
            get_prompt=self._preview_prompt,
            state_key=self._inputs_of_next_request,
            count=self._adapters.counter.get_tokenizer(self._state.model).count,
            limit=limit,
            max_tokens=max_tokens,
        )

    def receipts(self) -> Sequence[CompactionReceipt]:
        """Return the active compaction receipts, oldest first."""
        return self._history.list_receipts()

    def compactions_to_undo(self, receipt: str | None = None) -> Sequence[CompactionReceipt]:
        """Return the compactions that an undo would void."""
        return self._history.compactions_to_undo(receipt)

    def why(self, name: str, *, erased: Collection[str] = (), message_names: Collection[str] = ()) -> PromptExplanation:
        """Explain why an artifact or message is in the pending or next request, or why it is not."""
        return explain_artifact(name, self._history, self._preview_prompt(), erased=erased, message_names=message_names)

    def _preview_prompt(self) -> Prompt:
        """Return the request that awaits its reply, or the next one as far as it is known."""
        return preview_prompt(
            self._state,
            Turn(text="", turn_settings=self._turn_settings, receipts=self._history.receipts),
            self._prompt_settings,
        )

    def _search_for_question(self, question: str) -> Sequence[SearchHit]:
        return self._branch_search.search_for_question(
            self._history, question, get_prompt=self._preview_prompt, state_key=self._inputs_of_next_request
        )


def _all_use_library_layout(*turns: Turn) -> bool:
    return all(turn.turn_settings.layout.moves_attachments_to_system_each_turn for turn in turns)
