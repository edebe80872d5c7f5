"""The conversation behind the API when it is in a store: every change is written before it takes effect.

``LoggedConversation`` is one conversation in a store. It is put together from the parts in this module: auxiliary
calls and keep-alives, compaction plans, the pending question, user rules, commands between two questions, recall, and
workflow stages. ``build_command_batch`` and ``build_turn_events`` build the events that they write.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import RLock

from lamella.conversation.adapters import Adapters
from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.cache_ledger import UsageTracker, log_auxiliary_call
from lamella.conversation.checkpoints import EMPTY_BRANCH_CHECKPOINT, BranchCheckpoint
from lamella.conversation.commands import (
    NO_PENDING_COMMANDS,
    CommandResolver,
    PendingCommands,
    describe_pending,
    is_empty_command,
    merge_pending,
    merge_requests,
)
from lamella.conversation.compaction import WHOLE_CONVERSATION, CompactionProposal, CompactionRange, TurnFitter
from lamella.conversation.expired_cache import (
    ExpiredCache,
    KeepAlivePlan,
    ProfileMismatch,
    estimate_expired_cache,
    plan_keep_alive,
    profile_mismatches,
)
from lamella.conversation.library import LibraryItem, list_library
from lamella.conversation.log import (
    BranchReader,
    ConversationJournal,
    StoredEventLog,
    empty_reply_id,
    encode_checkpoint,
    erased_artifact_ids,
    get_question_id,
    get_title,
    inherited_overrides,
    last_model,
    last_runner,
    last_sent_turn,
    message_not_found_error,
    records_before,
)
from lamella.conversation.memory import (
    MemoryRefresher,
    OneLineSummary,
    build_one_line_summary,
    one_line_summary_request,
)
from lamella.conversation.past_turns import BranchHistory
from lamella.conversation.prompt_builder import PromptBuilder
from lamella.conversation.reasons import PromptExplanation
from lamella.conversation.recall import DEFAULT_HITS, BranchSearch
from lamella.conversation.rules import get_rule, list_rules, validate_rule
from lamella.conversation.settings import SYSTEM_PART_SETTINGS, SettingsOverrides
from lamella.conversation.stages import WorkflowSteps, with_workflow_part
from lamella.conversation.summaries import SummaryFetcher
from lamella.conversation.threads import synchronized
from lamella.conversation.token_counts import TokenCountCache
from lamella.conversation.turn import (
    BuiltTurn,
    ModelAnswer,
    TurnRequest,
    no_model_error,
    repeat_turn,
    system_as_request,
)
from lamella.conversation.turn_reader import LabeledText, check_no_secrets
from lamella.conversation.turn_runner import TurnLimits
from lamella.core.artifacts.model import UnresolvedAttachment
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.compaction.summaries import SummaryRequest, SummaryResult
from lamella.core.log.branch import (
    branch_content_hashes,
    parse_message_time,
    placeholder_text_hashes,
    read_branch_model_calls,
    read_pending_reply,
    read_question_turn,
    read_receipts,
    read_turns,
)
from lamella.core.log.call import KEEP_ALIVE_PURPOSE, ModelCall, PrefixChangeCause
from lamella.core.log.compactions import NO_COMPACTIONS, ActiveCompactions
from lamella.core.log.events.artifact import (
    AttachmentEvent,
    ContentsByHash,
    contents_of_artifacts,
    read_artifacts,
    to_stored_artifact,
)
from lamella.core.log.events.codec import (
    build_auxiliary_call_batch,
    build_event_batch,
    build_question_batch,
    build_reply_batch,
    merge_batches,
)
from lamella.core.log.events.compaction import StageEvent, UndoEvent, WorkflowSpec
from lamella.core.log.events.kinds import (
    DeleteEvent,
    EventBatch,
    EventKind,
    ForkEvent,
    RenameEvent,
    SettingsEvent,
    SwitchEvent,
)
from lamella.core.log.events.message import NO_OVERRIDES, MessageEvent
from lamella.core.log.log import EventLog
from lamella.core.log.receipts import CompactionReceipt, is_stage_data_id
from lamella.core.log.turn import (
    HistoryRewrite,
    MessageAuthor,
    SystemParts,
    Turn,
    TurnSettings,
    message_id,
    question_id,
)
from lamella.core.log.turn_records import TurnRecord, message_ids
from lamella.core.messages import ModelReply, ModelRequest, ToolCall, ToolOutput
from lamella.core.prompt.envelope import make_envelope, make_request
from lamella.core.prompt.prefix_change import detect_prefix_change
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.search.index import Passage, list_passages
from lamella.core.search.search import RecallHit
from lamella.core.text.content import normalise
from lamella.core.values import replace
from lamella.core.workflow.export import render_workflow_part
from lamella.core.workflow.session import build_session, with_completed_stages
from lamella.errors import ConflictError, InvalidOperationError
from lamella.ports import Rule

# The answer length of a keep-alive request: its answer is not used.
_MIN_ANSWER_TOKENS = 1


@synchronized(except_for=("ledger", "check_summarizer"))
class AuxiliaryCallsMixin(ABC):
    """The part of a stored conversation that records and lists every model call made for it."""

    lock: RLock
    _log: EventLog
    _stored_log: StoredEventLog
    _backend: Backend
    _resolved_settings: ConversationSettings
    # Whether a keep-alive task runs for this conversation; one is enough.
    is_kept_alive: bool = False

    @property
    @abstractmethod
    def id(self) -> str: ...

    @abstractmethod
    def _prompt_builder(self) -> PromptBuilder: ...

    @abstractmethod
    def preview(self, turn_request: TurnRequest, *, at: datetime | None = None) -> BuiltTurn: ...

    @abstractmethod
    def _format_time(self, at: datetime | None) -> str: ...

    @abstractmethod
    def _append(self, batch: EventBatch, *, title: str | None = None) -> None: ...

    def record_auxiliary_call(
        self,
        request: ModelRequest,
        answer: ModelAnswer,
        *,
        purpose: str,
        after_message_id: str | None = None,
        at: datetime | None = None,
    ) -> None:
        """Write an auxiliary model call that was made after the message ``after_message_id``, by default the last one.

        It is written even if another process continued the conversation meanwhile, because it was paid for. The next
        write of this object still detects that conflict.
        """
        parent = (
            after_message_id
            if after_message_id is not None and (not after_message_id or after_message_id in self._log.nodes)
            else self._log.head
        )
        call = self._prompt_builder().usage_tracker.build_auxiliary_call(request, answer, purpose=purpose, at=at)
        batch = build_auxiliary_call_batch(call, parent=parent, timestamp=self._format_time(at))
        try:
            self._append(batch)
        except ConflictError:
            self._stored_log.append_unconditionally(batch)
        log_auxiliary_call(self.id, call)

    def check_summarizer(self) -> None:
        """Raise if the summary model is named only by an untrusted source; runs before anything is sent."""
        fetcher = self._get_summary_fetcher()
        if fetcher is not None:
            fetcher.check_model()

    def _get_summary_fetcher(self) -> SummaryFetcher | None:
        """Return the summary fetcher of the settings; None if the adapters have their own summarizer."""
        find = None if self._backend.adapters.summarizer is not None else self._backend.make_summary_fetcher
        return None if find is None else find(self, self._resolved_settings.summarizer)

    def ledger(self) -> Sequence[Sequence[ModelCall]]:
        """Return the model calls for each turn of the active branch, including those of abandoned answers."""
        return read_branch_model_calls(
            self._log.branch_records(), tuple(self._log.nodes.values()), self._log.auxiliary_calls
        )

    def profile_mismatches(self) -> Sequence[ProfileMismatch]:
        """Return where the reported usage on the active branch contradicts the cache profiles of its models."""
        tariff = self._prompt_builder().usage_tracker.get_pricing
        return profile_mismatches(self._log.branch_records(), self.ledger(), lambda model: tariff(model).profile)

    @property
    def usage_tracker(self) -> UsageTracker:
        """The usage tracker with the cache ledger."""
        return self._prompt_builder().usage_tracker

    def expired_cache(self, *, at: datetime | None = None) -> ExpiredCache | None:
        """Return what the next message costs if the cache has expired or will soon; None while it is warm."""
        moment = at or self._backend.clock.now()
        return estimate_expired_cache(self, at=moment, keep_alive_plan=self.plan_keep_alive(at=moment))

    @property
    def max_keep_alives(self) -> int:
        """The maximum number of keep-alive requests while the user is idle, from the settings."""
        return self._resolved_settings.max_keep_alives

    def plan_keep_alive(self, *, at: datetime | None = None) -> KeepAlivePlan | None:
        """Return when the last request should be sent again to keep its cache entry, and the cost; None if never."""
        dialogue = self._prompt_builder()
        return plan_keep_alive(dialogue.usage_tracker, dialogue.current_state[0], at=at or self._backend.clock.now())

    def build_keep_alive_request(self) -> ModelRequest | None:
        """Return the last request again with a minimal answer length.

        Returns None if there was no request, or if a turn awaits its reply.
        """
        last = self._prompt_builder().last_prompt
        if last is None or last.model is None or self._prompt_builder().is_awaiting_reply:
            return None
        return make_request(
            make_envelope(last, self._resolved_settings.prompt_settings.budget),
            model=last.model,
            max_output_tokens=_MIN_ANSWER_TOKENS,
        )

    def record_keep_alive(
        self, request: ModelRequest, answer: ModelAnswer, *, after_message_id: str, at: datetime
    ) -> None:
        """Write that the last request was sent again at this time, and restart the lifetime of its cache entry."""
        self.record_auxiliary_call(
            request, answer, purpose=KEEP_ALIVE_PURPOSE, after_message_id=after_message_id, at=at
        )
        if after_message_id == self._log.head:
            self._prompt_builder().usage_tracker.record_keep_alive(at)

    def summarize_in_one_line(self) -> OneLineSummary:
        """Return what the conversation was about on one line, written by the summary model if there is one."""
        state, records, settings = (
            self._prompt_builder().current_state[0],
            self._log.branch_records(),
            self._resolved_settings.prompt_settings,
        )
        exchanges = state.history.turns
        given = (
            self._summarize(one_line_summary_request(exchanges, tokenizer=settings.tokenizer), state)
            if exchanges
            else None
        )
        day = parse_message_time(records[-1].message) if records else None
        return build_one_line_summary(
            get_title(self._log), exchanges, day=day, tokenizer=settings.tokenizer, model_summary=given
        )

    def _summarize(self, request: SummaryRequest, state: PromptState) -> SummaryResult | None:
        """Return a summary from the same summary model as for compactions; None if there is none."""
        adapters = replace(self._backend.adapters, summary_fetcher=self._get_summary_fetcher())
        return TurnFitter(adapters.get_summary_fetcher(), secrets=adapters.secret_scanner).summarize(
            request, state=state, settings=self._resolved_settings.prompt_settings
        )


# Commands as events.


def build_command_batch(later: TurnRequest, cancelled: Iterable[str], *, at: str) -> EventBatch:
    """Build the event of a resolved command; the texts that it attaches are stored with it."""
    event = AttachmentEvent(
        attached=tuple(map(to_stored_artifact, later.pending_attachments)),
        detach=later.detach,
        drop=later.drop,
        pin=later.pin,
        unpin=later.unpin,
        cancelled=tuple(cancelled),
        rules=later.rules,
        ended=later.removed_rules,
        warnings=later.warnings,
    )
    return build_event_batch(event, timestamp=at, contents=contents_of_artifacts(later.pending_attachments))


def list_command_hashes(events: Iterable[AttachmentEvent]) -> Sequence[str]:
    """Return the content hashes that commands refer to."""
    return tuple(dict.fromkeys(name for event in events for name in event.hashes()))


def merge_commands(events: Iterable[AttachmentEvent], contents: ContentsByHash) -> TurnRequest:
    """Merge commands into one turn request; erased attachments are left out with a warning."""
    pending = NO_PENDING_COMMANDS
    for event in events:
        attached, gone = read_artifacts(event.attached, contents)
        later = TurnRequest(
            text="",
            pending_attachments=attached,
            detach=event.detach,
            drop=event.drop,
            pin=event.pin,
            unpin=event.unpin,
            rules=event.rules,
            removed_rules=event.ended,
            warnings=(*event.warnings, *(f"{name} was erased and is left out." for name in gone)),
        )
        pending = merge_requests(pending, later, cancelled=event.cancelled)
    return pending


# Compaction plans.


@synchronized(except_for=())
class CompactionPlanMixin(ABC):
    """The part of a stored conversation that plans compactions."""

    lock: RLock

    @abstractmethod
    def _next_prompt_builder(self) -> PromptBuilder: ...

    def plan(
        self,
        range_: CompactionRange = WHOLE_CONVERSATION,
        *,
        to: float | None = None,
        summaries: bool = True,
        at: datetime | None = None,
    ) -> CompactionProposal:
        """Return what compacting now would remove and save; a pending turn is treated as stopped."""
        return self._next_prompt_builder().plan(range_, to=to, summaries=summaries, at=at)


# The pending question: resume it, or complete it with search results.


@synchronized(except_for=())
class PendingTurnMixin(ABC):
    """The part of a stored conversation that handles a question between writing and sending it."""

    lock: RLock
    _log: EventLog
    _token_counts: TokenCountCache
    _resolved_settings: ConversationSettings
    _builder: PromptBuilder | None

    @abstractmethod
    def _read_contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]: ...

    @abstractmethod
    def _resume_after(self, message_id: str, *, edited_message_id: str | None = None) -> PromptBuilder: ...

    @abstractmethod
    def pending_turn(self) -> BuiltTurn | None: ...

    @abstractmethod
    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> BuiltTurn: ...

    def resume_pending_turn(self, *, model: str | None = None) -> BuiltTurn | None:
        """Return the pending turn to send, or None; if the model changes, the question is asked again."""
        turn = self.pending_turn()
        if turn is None:
            return None
        held = turn.envelope.model
        return turn if (model or held or self._resolved_settings.model) == held else self.regenerate(model=model)

    def complete_pending_turn(self, retrieved: TurnRequest, *, at: datetime | None = None) -> BuiltTurn:
        """Return the pending question with what was found for it: results, attachments, citations and warnings.

        It replaces the question that was written before the search.
        """
        records = self._log.branch_records()
        if not records or records[-1].reply is not None or records[-1].open_rounds:
            raise InvalidOperationError("No question waits to be sent.", hint="Ask something first.")
        self._token_counts.discard_uncommitted()
        node = records[-1].message
        contents = self._read_contents(branch_content_hashes([TurnRecord(message=node, reply=None)]))
        waits = read_question_turn(node, contents, defaults=self._resolved_settings.turn_settings)
        system = {} if waits.system is None else system_as_request(waits.system)
        turn_request = repeat_turn(waits, text=None, model=None, system=system)
        turn_request = replace(
            turn_request,
            attach=(*turn_request.attach, *retrieved.attach),
            results=(*turn_request.results, *retrieved.results),
            citations=retrieved.citations,
            warnings=tuple(dict.fromkeys((*waits.warnings, *retrieved.warnings))),
        )
        dialogue = self._resume_after(node.parent)
        turn = dialogue.ask(turn_request, at=at, rewritten=waits.history_rewrite)
        self._builder = dialogue
        return turn


# User rules.


@synchronized(except_for=())
class RulesMixin(ABC):
    """The part of a stored conversation that manages user rules; each change is written as a command."""

    lock: RLock
    _log: EventLog
    _resolved_settings: ConversationSettings

    @property
    @abstractmethod
    def _pending_request(self) -> TurnRequest: ...

    @abstractmethod
    def _prompt_builder(self) -> PromptBuilder: ...

    @abstractmethod
    def queue_command(self, turn_request: TurnRequest, *, at: datetime | None = None) -> PendingCommands: ...

    def rules(self) -> Sequence[Rule]:
        """Return the active rules of the active branch, newest last."""
        told = ((at, one.message.id, one.message.text) for at, one in enumerate(self._log.branch_records(), start=1))
        state, turn_settings = self._prompt_builder().current_state
        cues = self._resolved_settings.prompt_settings.compaction_config_for(turn_settings).rule_cues
        return list_rules(told, state.rules, self._pending_request, cues=cues)

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Add a rule that is in every prompt from the next question on, through all compactions."""
        rules, configured = self.rules(), self._resolved_settings.prompt_settings
        line = validate_rule(text, rules, token_limit=configured.budget.limit, count=configured.tokenizer.count)
        if all(one.text != line or one.origin == "found" for one in rules):
            self.queue_command(TurnRequest(text="", rules=(line,)), at=at)
        return get_rule(line, self.rules())

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Remove a rule from the next question on, by its id, its number or its text."""
        gone = get_rule(name, self.rules())
        self.queue_command(TurnRequest(text="", removed_rules=(gone.text,)), at=at)
        return gone


# Turns from elsewhere as events. Nothing is sent, read or expanded for them.

# A question and its answer.
QuestionReply = tuple[str, str]


def build_turn_events(
    log: EventLog, exchanges: Sequence[QuestionReply], *, settings: ConversationSettings, at: str
) -> EventBatch:
    """Build the events of questions and answers after the last message.

    The first turn of a conversation gets the model and system prompt of the settings. Raises ``InvalidOperationError``
    while a question awaits its answer.
    """
    head = log.head
    if head and log.nodes[head].role is MessageAuthor.USER:
        raise InvalidOperationError(
            "A question waits for its answer.", hint="Have it answered first, or go back to an answer."
        )
    parts: list[EventBatch] = []
    for asked, answered in exchanges:
        text = normalise(asked)
        turn = Turn(text=text, typed=text, turn_settings=settings.turn_settings)
        turn = turn if head else replace(turn, model=settings.model, system=_system_parts(settings))
        question = question_id(log.conversation, head, turn)
        reply = normalise(answered)
        parts.append(build_question_batch(turn, message_id=question, parent=head, timestamp=at))
        head = message_id(log.conversation, parent=question, role=MessageAuthor.REPLY, text=reply)
        parts.append(build_reply_batch(reply, message_id=head, parent=question, timestamp=at))
    return merge_batches(*parts)


def _system_parts(settings: ConversationSettings) -> SystemParts | None:
    given = {name: normalise(text) for name, text in settings.load_system_parts(SYSTEM_PART_SETTINGS).items()}
    # Templates in the instructions are expanded when the prompt is sent.
    return SystemParts(**given, inlined=(), typed_instructions=given.get("instructions", "")) if given else None


# Commands between two questions; each is written when it is given.

# The system prompt parts that a runner defines; they are removed when another runner answers.
RUNNER_SYSTEM_PARTS = ("guidelines", "project")


@synchronized(except_for=(), properties=("pending_commands", "memory"))
class AttachmentCommandsMixin(ABC):
    """The part of a stored conversation that handles commands between two questions.

    Each command is written when it is given.
    """

    lock: RLock
    _log: EventLog
    _token_counts: TokenCountCache
    _adapters: Adapters
    _resolved_settings: ConversationSettings
    _memory_refresher: MemoryRefresher | None
    _overrides: SettingsOverrides
    _merged_commands: tuple[Sequence[AttachmentEvent], TurnRequest] | None = None

    @property
    def default_runner(self) -> str:
        """The default runner from the settings."""
        return self._resolved_settings.turn_settings.runner

    @property
    def last_runner(self) -> str | None:
        """The runner of the last question; None if nothing was asked yet."""
        return last_runner(self._log)

    @property
    def limits(self) -> TurnLimits:
        """The limits of a turn, from the settings."""
        return self._resolved_settings.limits

    @property
    def window(self) -> int:
        """The context window in tokens, from the settings."""
        return self._resolved_settings.prompt_settings.budget.window

    @abstractmethod
    def preview(self, turn_request: TurnRequest, *, at: datetime | None = None) -> BuiltTurn: ...

    @abstractmethod
    def _prompt_builder(self) -> PromptBuilder: ...

    @abstractmethod
    def _read_contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]: ...

    @abstractmethod
    def _format_time(self, at: datetime | None) -> str: ...

    @abstractmethod
    def _append_and_reset(self, batch: EventBatch, *, title: str | None = None) -> None: ...

    @abstractmethod
    def _append(self, batch: EventBatch, *, title: str | None = None) -> None: ...

    @abstractmethod
    def _with_stage(self, turn_request: TurnRequest, state: PromptState) -> TurnRequest: ...

    def save_settings(self, *, at: datetime | None = None) -> None:
        """Write changed settings; this also creates the conversation if it has no events yet."""
        self._append(
            merge_batches(
                build_event_batch(SettingsEvent(values={}), timestamp=self._format_time(at)),
                *self._list_pending_system(at),
            )
        )

    def _save_pending_system(self, at: datetime | None) -> None:
        """Write pending system prompt parts after a branch change, since each branch has its own overrides."""
        waiting = self._list_pending_system(at)
        if waiting:
            self._append(merge_batches(*waiting))

    def _list_pending_system(self, at: datetime | None) -> list[EventBatch]:
        if not self._overrides.has_pending_system:
            return []
        head = self._log.head
        overrides = self._overrides.with_pending_system_parts(
            self._log.overrides, self._prompt_builder().current_state[0].system, is_first_turn=not head
        )
        return [build_event_batch(ForkEvent(head=head, overrides=overrides), timestamp=self._format_time(at))]

    def _default_model(self, builder: PromptBuilder) -> str | None:
        """Return the model of the settings if the branch has none yet, otherwise None."""
        return self._resolved_settings.model if builder.model is None else None

    def has_message(self, message: str) -> bool:
        """Return whether a message is in the conversation, on any branch."""
        return message in self._log.nodes

    def queue_command(self, turn_request: TurnRequest, *, at: datetime | None = None) -> PendingCommands:
        """Attach, detach, drop, pin, unpin or refresh with the next question; return all pending commands.

        A ``ConflictError`` means that another process wrote first. Nothing has changed then: call ``reload`` and try
        again.
        """
        self._token_counts.discard_uncommitted()
        reader = CommandResolver(
            self._adapters,
            self._resolved_settings.prompt_settings,
            self._prompt_builder().current_state,
            pending=self._pending_request,
        )
        later, back, said = reader.resolve(turn_request)
        if back or not is_empty_command(later):
            self._append(build_command_batch(later, back, at=self._format_time(at)))
        return self._describe_commands(said)

    @property
    def pending_commands(self) -> PendingCommands:
        """The commands that are pending for the next question."""
        return self._describe_commands(self._pending_request.warnings)

    def add_turns(self, exchanges: Sequence[QuestionReply], *, at: datetime | None = None) -> None:
        """Add questions with their answers from elsewhere after the last answer; nothing is sent."""
        if exchanges:
            self._append_and_reset(
                build_turn_events(self._log, exchanges, settings=self._resolved_settings, at=self._format_time(at))
            )

    def library(self, *, at: datetime | None = None) -> Sequence[LibraryItem]:
        """Return everything attached so far, as it will be in the next request of the active branch."""
        leaving = {*self._pending_request.detach, *self._pending_request.drop}
        return list_library(
            lambda asked: self.preview(asked, at=at), self._prompt_builder().current_state, dropped_names=leaving
        )

    def all_passages(self) -> Sequence[Passage]:
        """Return every message and attachment of the active branch in full, whether or not it is in the prompt."""
        records = self._log.branch_records()
        turns = read_turns(
            records, self._read_contents(branch_content_hashes(records)), defaults=self._resolved_settings.turn_settings
        )
        return list_passages(turns, message_ids(records))

    def check_no_secrets(self, texts: Sequence[LabeledText], *, model: str) -> None:
        """Raise ``SecretError`` if these texts contain a secret for a remote model and the settings refuse that."""
        check_no_secrets(
            texts,
            model=model,
            scanner=self._adapters.secret_scanner,
            policy=self._resolved_settings.prompt_settings.secrets,
        )

    def _describe_commands(self, warnings: Sequence[str]) -> PendingCommands:
        return describe_pending(
            self._pending_request, self._resolved_settings.prompt_settings.tokenizer.count, warnings=warnings
        )

    @property
    def _pending_request(self) -> TurnRequest:
        """The pending commands as a turn request.

        They are cached, because a terminal asks for them with every key press.
        """
        events = self._log.pending_commands
        if not events:
            return NO_PENDING_COMMANDS
        # By identity: the log replaces the tuple of events with every command.
        if self._merged_commands is None or self._merged_commands[0] is not events:
            self._merged_commands = (events, merge_commands(events, self._read_contents(list_command_hashes(events))))
        return self._merged_commands[1]

    def _merge_pending(self, turn_request: TurnRequest) -> TurnRequest:
        """Return the request with pending commands, the current workflow stage, and the memory if it is due.

        If another runner answers, the system prompt parts and tools of the previous runner are removed.
        """
        if self._log.pending_commands:
            turn_request = merge_pending(self._pending_request, turn_request, self._prompt_builder().current_state[0])
        if self._log.stage_entries:
            turn_request = self._with_stage(turn_request, self._prompt_builder().current_state[0])
        if self._memory_refresher is not None:
            turn_request = self._memory_refresher.with_current_memory(
                turn_request, self._prompt_builder().current_state[0], self._resolved_settings.prompt_settings
            )
        if self.last_runner in (None, turn_request.runner or self.default_runner):
            return turn_request
        usual = self._resolved_settings.load_system_parts(("system",))
        parts = {name: usual.get(name, "") for name in RUNNER_SYSTEM_PARTS}
        return replace(
            turn_request,
            system={**parts, **turn_request.system},
            tools=() if turn_request.tools is None else turn_request.tools,
        )

    def allows_system_change(self, turn_request: TurnRequest, *, at: datetime | None = None) -> bool:
        """Return whether this request changes the cached prefix anyway, so that its tools may change with it.

        Nothing is fetched for this: attachments are taken from the cache.
        """
        read = tuple(
            replace(one, read_again=False) if isinstance(one, UnresolvedAttachment) else one
            for one in turn_request.attach
        )
        ahead = self.preview(replace(turn_request, attach=read), at=at)
        return self._prompt_builder().usage_tracker.allows_system_change(ahead.envelope.prompt)

    def _refresh_memory(self, *, is_due: bool) -> None:
        if self._memory_refresher is not None:
            self._memory_refresher.is_due = is_due

    @property
    def memory(self) -> str:
        """The memory part of the current system prompt."""
        return self._prompt_builder().current_state[0].system.memory

    def refresh_memory(self) -> str | None:
        """Refresh the memory part with the next question.

        Returns the first line that changes, or None if nothing does. Raises ``InvalidOperationError`` if the
        conversation has no memory.
        """
        if self._memory_refresher is None:
            raise InvalidOperationError(
                "This conversation takes up no memory.", hint="Set memory to on, and open it again."
            )
        change = self._memory_refresher.find_first_change(
            self._prompt_builder().current_state[0], self._resolved_settings.prompt_settings
        )
        self._memory_refresher.is_due = True
        return change


# Recall: search for originals that are not in the prompt and were not erased.


@synchronized(except_for=())
class RecallMixin(ABC):
    """The part of a stored conversation that searches what left its prompt."""

    lock: RLock
    _log: EventLog
    _backend: Backend
    _resolved_settings: ConversationSettings

    @abstractmethod
    def _prompt_builder(self) -> PromptBuilder: ...

    @abstractmethod
    def _read_contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]: ...

    def recall(self, query: str, *, limit: int = DEFAULT_HITS) -> Sequence[RecallHit]:
        """Return originals of the active branch that are no longer in the prompt; erased ones are never found."""
        return self._prompt_builder().recall(
            query, limit=limit, history=self._load_history() if self._has_new_erasure() else None
        )

    def _has_new_erasure(self) -> bool:
        """Return whether another process erased something since the log was read.

        The history in memory may still contain the erased text then.
        """
        since = self._backend.store.load(self._log.conversation, after=self._log.version)
        return any(record.kind is EventKind.ERASURE for record in since)

    def _load_history(self) -> BranchHistory:
        """Read the history of the active branch with the contents that still exist."""
        records = self._log.branch_records()
        turns = read_turns(
            records, self._read_contents(branch_content_hashes(records)), defaults=self._resolved_settings.turn_settings
        )
        return BranchHistory(turns, path=message_ids(records), find_time=self._message_time)

    def _message_time(self, message: str) -> str | None:
        node = self._log.nodes.get(message)
        return None if node is None else node.at or None


# Workflow stages, on the branch where they happened.


class WorkflowLogMixin(WorkflowSteps):
    """A stored conversation that can run a workflow; without one it costs a single check of the log."""

    _log: EventLog
    _adapters: Adapters

    @abstractmethod
    def _stop_turn(self, expected_reply_id: str, *, at: datetime | None) -> None: ...

    @abstractmethod
    def _format_time(self, at: datetime | None) -> str: ...

    @abstractmethod
    def _append_and_reset(self, batch: EventBatch, *, title: str | None = None) -> None: ...

    def _get_workflow(self, name: str) -> WorkflowSpec:
        return self._adapters.get_workflow(name)

    def _list_stage_events(self) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
        # The next question follows the empty answer that closes an open question, so that answer is part of the path.
        records = records_before(self._log, self._log.head)
        return self._log.stage_events(records), message_ids(records)

    def _stop_pending_turn(self, at: datetime | None) -> None:
        self._stop_turn(empty_reply_id(self._log, self._log.head), at=at)

    def _record_stage_event(self, event: StageEvent, at: datetime | None) -> None:
        self._append_and_reset(build_event_batch(event, timestamp=self._format_time(at)))

    def _with_stage(self, turn_request: TurnRequest, state: PromptState) -> TurnRequest:
        """Return the turn request with the current workflow part of the system prompt."""
        records = records_before(self._log, self._log.head)
        session = build_session(self._log.stage_events(records))
        if session is None:
            return turn_request
        shortened = self._list_shortened_stages(records)
        return with_workflow_part(
            turn_request, session, state.system.with_brief_stages(shortened), shortened_stages=shortened
        )

    def _render_stage(self, message: str) -> Mapping[str, str]:
        """Return the workflow part of the system prompt after a message; empty if there are no stages."""
        records = records_before(self._log, message) if self._log.stage_entries else ()
        session = build_session(self._log.stage_events(records))
        return (
            {}
            if session is None
            else render_workflow_part(session, shortened_stages=self._list_shortened_stages(records))
        )

    def _list_shortened_stages(self, records: Sequence[TurnRecord]) -> frozenset[str]:
        """Return the stages whose data was shortened by an active compaction of the branch."""
        events = self._log.active_compactions(records).events
        return frozenset(
            name for event in events for step in event.steps for name in step.removed if is_stage_data_id(name)
        )

    def _with_stages(self, settings: PromptSettings, records: Sequence[TurnRecord]) -> PromptSettings:
        """Return the prompt settings with the stages of a branch, if it has any."""
        session = build_session(self._log.stage_events(records)) if self._log.stage_entries else None
        return settings if session is None else with_completed_stages(settings, session, message_ids(records))


# The whole conversation.


@synchronized(except_for=("turns", "branches", "model_for"), properties=("pending_tool_calls", "current_state"))
class LoggedConversation(
    WorkflowLogMixin,
    AttachmentCommandsMixin,
    RulesMixin,
    CompactionPlanMixin,
    AuxiliaryCallsMixin,
    PendingTurnMixin,
    RecallMixin,
):
    """One conversation in a store.

    Opening it reads the log once. The prompt is rebuilt with the first turn. Settings given by name are written with
    the next event, so that they apply wherever the conversation is continued.
    """

    def __init__(self, backend: Backend, conversation_key: str, settings: Mapping[str, object] | None = None) -> None:
        self.lock = RLock()
        self._backend = backend
        self._stored_log = StoredEventLog(backend, conversation_key)
        self._overrides = SettingsOverrides(backend.resolve_settings, settings or {})
        self._builder: PromptBuilder | None = None
        self._branch_search = BranchSearch()
        self._memory_refresher = (
            None
            if backend.render_memory is None
            else MemoryRefresher(backend.render_memory, opens_per_question=backend.opens_per_question)
        )
        self._rebuild_from_log()

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of this conversation by name, including those not written yet."""
        return self._overrides.to_dict(self._log)

    def set(self, settings: Mapping[str, object]) -> None:
        """Set settings by name, effective at once; if one of them is rejected, none is set."""
        self._resolved_settings = self._overrides.set(settings, self._log)
        self._builder = None

    @property
    def id(self) -> str:
        """The key, which no other conversation ever has."""
        return self._log.conversation

    @property
    def name(self) -> str:
        """The name of the conversation in this store."""
        return self._stored_log.name

    @property
    def title(self) -> str:
        return get_title(self._log)

    @property
    def head(self) -> str:
        """The id of the active branch's last message."""
        return self._log.head

    @property
    def version(self) -> int:
        return self._log.version

    def turns(self, head: str | None = None) -> Sequence[TurnRecord]:
        """Return the turn records of a branch, by default of the active one."""
        if head is not None and not (isinstance(head, str) and head in self._log.nodes):
            raise message_not_found_error(self._log, str(head), name=self.name)
        return self._log.branch_records(head)

    def branches(self) -> Sequence[str]:
        """Return every branch by the id of its last message."""
        return self._log.branch_heads()

    def ask(self, turn_request: TurnRequest, *, at: datetime | None = None) -> BuiltTurn:
        """Build and write the next turn.

        A ``ConflictError`` means that another process wrote first. Nothing has changed then: call ``reload`` and ask
        again.
        """
        self._token_counts.discard_uncommitted()
        dialogue = self._next_prompt_builder()
        turn = dialogue.ask(self._with_pending_and_overrides(turn_request), at=at, rewritten=self._log.history_rewrite)
        self._builder, self._overrides.unsaved = dialogue, {}
        self._refresh_memory(is_due=False)
        return turn

    def _next_prompt_builder(self) -> PromptBuilder:
        """Return the prompt builder for the next question.

        If the open question had an empty reply before, it is abandoned with that reply: compactions may follow it.
        """
        return self._resume_after(self._log.head) if self._is_abandoned else self._prompt_builder()

    @property
    def _is_abandoned(self) -> bool:
        """Whether the last message is an open question that was abandoned with an empty reply before."""
        nodes, head = self._log.nodes, self._log.head
        return (
            head in nodes and isinstance(nodes[head].event, MessageEvent) and empty_reply_id(self._log, head) in nodes
        )

    def _resume_after(self, message_id: str, *, edited_message_id: str | None = None) -> PromptBuilder:
        """Return the prompt builder for a question after ``message_id``.

        If that message is a question with an empty reply, the reply and its tool rounds stay.
        """
        leaves = message_id if empty_reply_id(self._log, message_id) in self._log.nodes else None
        return self._resume(
            records_before(self._log, message_id), edited_message_id=edited_message_id, abandoned_message_id=leaves
        )

    def _stop_turn(self, expected_reply_id: str, *, at: datetime | None) -> None:
        """End the pending turn if ``expected_reply_id`` is the id that its empty reply has."""
        if self._log.head and expected_reply_id == empty_reply_id(self._log, self._log.head):
            self._prompt_builder().stop_pending_turn(at=at)
            # The empty reply may exist already, with compactions after it. The prompt builder has to be rebuilt.
            self._builder = None

    def _with_pending_and_overrides(self, turn_request: TurnRequest) -> TurnRequest:
        """Return the request with pending commands, and with overrides that no turn of the branch contains."""
        turn_request = self._merge_pending(turn_request)
        overrides = inherited_overrides(self._log) if self._is_abandoned else self._log.overrides
        if self._overrides.unsaved or not self._log.head or overrides is not NO_OVERRIDES:
            turn_request = self._overrides.apply_overrides(turn_request, overrides, is_first_turn=not self._log.head)
        model = (
            turn_request.model
            or self._changed_model()
            or overrides.model
            or self._default_model(self._prompt_builder())
        )
        return turn_request if model == turn_request.model else replace(turn_request, model=model)

    def _changed_model(self) -> str | None:
        """Return the model of the settings if it was changed since the last turn, otherwise None."""
        return (
            self._resolved_settings.model if self._log.is_model_chosen or "model" in self._overrides.unsaved else None
        )

    def reply(self, answer: str | ModelAnswer, *, at: datetime | None = None) -> ModelReply:
        """Write what the model answered to the last turn, or to the question that the answer names.

        If the conversation continued meanwhile, the answer is stored on its own branch and ``ReplyOnOtherBranchError``
        is raised.
        """
        before = len(self._log.nodes)
        question = answer.question_id if isinstance(answer, ModelAnswer) else None
        # This object asked another question before the answer came.
        left = question is not None and question != self._log.head
        asked = self._resume(self._log.branch_records(question)) if left else self._prompt_builder()
        reply = asked.reply(answer, at=at)
        if len(self._log.nodes) == before and not reply.calls:
            # The same answer exists already: rebuild, because its branch may have compactions after it.
            self._builder = None
        return reply

    @property
    def pending_tool_calls(self) -> Sequence[ToolCall]:
        """The tool calls of the last reply that await their outputs."""
        return self._prompt_builder().pending_tool_calls

    def submit_tool_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> BuiltTurn:
        """Write the outputs of the pending tool calls, and return the same turn to send on."""
        return self._prompt_builder().submit_tool_outputs(outputs, at=at)

    def parse_response(self, response: object) -> ModelAnswer:
        """Parse the response object of a provider's SDK into an answer."""
        return self._prompt_builder().parse_response(response)

    def pending_turn(self) -> BuiltTurn | None:
        """Return the turn that awaits its answer, compacted if it no longer fits; None if there is none."""
        return self._prompt_builder().pending_turn(at=self._backend.clock.now())

    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> BuiltTurn:
        """Open a question again, by default the last one; the next reply starts its own branch.

        Unfinished tool rounds are discarded. If the model differs, or if the instructions, temperature or effort were
        set since, the question is asked again as an edit.
        """
        question = get_question_id(self._log, message or self._log.head, name=self.name)
        if question != self._log.head or self._prompt_builder().has_tool_rounds:
            self._append_and_reset(build_event_batch(SwitchEvent(head=question), timestamp=self._format_time(at)))
        dialogue = self._prompt_builder()
        if not dialogue.is_awaiting_reply or dialogue.last_prompt is None:
            raise message_not_found_error(self._log, question, name=self.name)
        model = model or self._default_model(dialogue)
        if model not in (None, dialogue.model) or self._overrides.system_changed(dialogue.last_prompt):
            return self.edit(question, None, model=model, at=at)
        rewritten = self._log.history_rewrite
        before = self._last_sent_prompt() if rewritten or self._log.undone_since_last_question else dialogue.last_prompt
        turn = dialogue.pending_turn(at=at or self._backend.clock.now())
        assert turn is not None, "it waits, as was just seen"
        # The request is compared with what was really sent last, which may be on another branch.
        if turn.prefix_change.prefix_change.cause is not PrefixChangeCause.RENDERER_CHANGED:
            movement = detect_prefix_change(before, replace(turn.envelope.prompt, history_rewrite=rewritten))
            turn.turn_ledger.entry = replace(
                turn.ledger, prefix=replace(turn.prefix_change, prefix_change=movement, triggered=True)
            )
        return turn

    def edit(
        self, message: str, text: str | None, *, model: str | None = None, at: datetime | None = None
    ) -> BuiltTurn:
        """Ask another text in place of a message, or the same again, with its attachments; the old branch stays."""
        node = self._log.find_question(message)
        if node is None:
            raise message_not_found_error(self._log, message, name=self.name)
        self._token_counts.discard_uncommitted()
        contents = self._read_contents(branch_content_hashes([TurnRecord(message=node, reply=None)]))
        original = read_question_turn(node, contents, defaults=self._resolved_settings.turn_settings)
        dialogue = self._resume_after(node.parent, edited_message_id=message)
        system = {**self._overrides.system_as_request(original.system), **self._render_stage(node.parent)}
        model = model or self._changed_model() or original.model or self._default_model(dialogue)
        turn_request = repeat_turn(original, text=text, model=model, system=system)
        turn = dialogue.ask(turn_request, at=at, rewritten=HistoryRewrite.HISTORY_EDITED)
        self._builder, self._overrides.unsaved = dialogue, {}
        return turn

    def delete(self, message: str, *, at: datetime | None = None) -> None:
        """Continue without a message on a new branch; a question is removed with its answer."""
        if message not in message_ids(self._log.branch_records()):
            raise message_not_found_error(self._log, message, name=self.name)
        self._append_and_reset(build_event_batch(DeleteEvent(target=message), timestamp=self._format_time(at)))

    def fork(self, message: str, *, at: datetime | None = None) -> None:
        """Continue from an earlier message on a new branch."""
        self._switch_branch(ForkEvent(head=message), at)

    def switch(self, head: str, *, at: datetime | None = None) -> None:
        """Make another branch active, by its last message."""
        self._switch_branch(SwitchEvent(head=head), at)

    def rename(self, title: str, *, at: datetime | None = None) -> None:
        """Set the title of the conversation."""
        self._append_and_reset(
            build_event_batch(RenameEvent(title=title), timestamp=self._format_time(at)), title=title
        )

    def model_for(self, turn_request: TurnRequest) -> str:
        """Return the model for a turn: the one it names, otherwise the current one.

        Raises ``InvalidOperationError`` if no model is set.
        """
        overrides = inherited_overrides(self._log) if self._is_abandoned else self._log.overrides
        named = turn_request.model or self._changed_model() or overrides.model
        held = last_model(self._log.branch_records()) if self._builder is None else self._builder.model
        model = named or held or self._resolved_settings.model
        if model is None:
            raise no_model_error()
        return model

    def preview(self, turn_request: TurnRequest, *, at: datetime | None = None) -> BuiltTurn:
        """Return the turn that ``ask`` would build without fetching summaries. Nothing is written."""
        return self._next_prompt_builder().preview(
            self._with_pending_and_overrides(turn_request), at=at, rewritten=self._log.history_rewrite
        )

    def shrink_pending_turn(self, *, at: datetime | None = None) -> BuiltTurn | None:
        """Compact the pending turn and write that; None if nothing can be removed."""
        return self._prompt_builder().shrink_pending_turn(at=at)

    def compact_to_target(self, *, at: datetime | None = None) -> CompactionReceipt | None:
        """Compact down to the target, also while tool calls are pending; None if nothing is gained."""
        receipt = self._prompt_builder().compact_to_target(at=at)
        if receipt is not None:
            self._refresh_memory(is_due=True)
        return receipt

    def commit(self, planned: CompactionProposal, *, at: datetime | None = None) -> CompactionReceipt:
        """Carry out a planned compaction and write its receipt."""
        if (
            isinstance(planned, CompactionProposal)
            and planned.receipt is not None
            and planned.receipt.parent != self._log.head
        ):
            self._stop_turn(planned.receipt.parent, at=at)
        receipt = self._prompt_builder().commit(planned, at=at)
        self._refresh_memory(is_due=True)
        return receipt

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> CompactionReceipt:
        """Undo a compaction, by default the last one, and all compactions after it on this branch."""
        voided = self._next_prompt_builder().compactions_to_undo(receipt)
        self._stop_turn(empty_reply_id(self._log, self._log.head), at=at)
        # Keep the prompt builder, so that the next turn rebuilds nothing. It is unset during the append, because a
        # checkpoint written there must not contain the compacted state.
        dialogue, self._builder = self._prompt_builder(), None
        self._append(build_event_batch(UndoEvent(receipt=voided[0].id), timestamp=self._format_time(at)))
        dialogue.undo_compactions(voided)
        self._builder = dialogue
        if self._log.undo_changes_next_prefix():
            dialogue.mark_undone()
        return voided[0]

    def receipts(self) -> Sequence[CompactionReceipt]:
        """Return the active compaction receipts of the active branch, oldest first."""
        committed = self._log.active_compactions(self._log.branch_records())
        return read_receipts(committed.events, self._read_contents(placeholder_text_hashes(committed)))

    def why(self, name: str) -> PromptExplanation:
        """Explain why an artifact or message of the active branch is in the next request, or why it is not."""
        return self._prompt_builder().why(
            name, erased=erased_artifact_ids(self._log.branch_records()), message_names=self._log.nodes
        )

    @property
    def current_state(self) -> tuple[PromptState, TurnSettings]:
        """The current prompt state of the active branch, and the turn settings that the next turn uses."""
        return self._prompt_builder().current_state

    def reload(self) -> None:
        """Load what other processes wrote since."""
        self._stored_log.reload()
        self._rebuild_from_log()

    def _rebuild_from_log(self) -> None:
        """Reset everything that is derived from the log."""
        self._log, self._token_counts = self._stored_log.log, self._stored_log.token_counts
        self._adapters = replace(self._backend.adapters, counter=self._token_counts)
        self._resolved_settings = self._overrides.resolve(self._log)
        self._builder = None

    def _switch_branch(self, event: ForkEvent | SwitchEvent, at: datetime | None) -> None:
        if event.head not in self._log.nodes:
            raise message_not_found_error(self._log, event.head, name=self.name)
        # Switching to the current message changes nothing; above all, it must not discard pending tool calls.
        if event.head != self._log.head:
            self._append_and_reset(build_event_batch(event, timestamp=self._format_time(at)))
            self._save_pending_system(at)

    def _append_and_reset(self, batch: EventBatch, *, title: str | None = None) -> None:
        self._append(batch, title=title)
        self._builder = None

    def _append(self, batch: EventBatch, *, title: str | None = None) -> None:
        if self._overrides.unsaved:
            batch = self._overrides.with_settings_event(batch)
        self._stored_log.append(batch, title=title, encode_checkpoint=self._encode_checkpoint)
        if self._overrides.unsaved:
            self._overrides.mark_written()

    def _encode_checkpoint(self) -> BranchCheckpoint:
        """Encode the state of the active branch for the next checkpoint, if it is known."""
        if self._builder is None:
            return EMPTY_BRANCH_CHECKPOINT
        state, tokenizer = self._builder.state_before_pending
        return encode_checkpoint(self._log, state, defaults=self._resolved_settings.turn_settings, tokenizer=tokenizer)

    def _prompt_builder(self) -> PromptBuilder:
        if self._builder is None:
            self._builder = self._resume(self._log.branch_records())
        return self._builder

    def _resume(
        self,
        records: Sequence[TurnRecord],
        *,
        edited_message_id: str | None = None,
        abandoned_message_id: str | None = None,
    ) -> PromptBuilder:
        begin = partial(
            ConversationJournal, self._log, append=self._append, reload=self.reload, format_time=self._format_time
        )
        journal = begin(name=self.name, edited_message_id=edited_message_id, abandoned_message_id=abandoned_message_id)
        dialogue = self._build_from_log(records, self._log.active_compactions(records), journal=journal)
        before = (
            self._last_sent_prompt()
            if edited_message_id or self._log.history_rewrite or self._log.undone_since_last_question
            else None
        )
        dialogue.resume_after_request(
            before, sent=last_sent_turn(records, self._log), find_uncompacted=self._last_prompt_uncompacted
        )
        return dialogue

    def _last_sent_prompt(self) -> Prompt | None:
        """Return the request that was sent last, on any branch."""
        records = self._log.records_at_last_request()
        return self._build_from_log(
            records, self._log.active_compactions(records, as_of_event=self._log.last_sent[1])
        ).last_prompt

    def _last_prompt_uncompacted(self) -> Prompt | None:
        """Return the last request as if nothing had ever been compacted; None if nothing was."""
        return (
            self._build_from_log(self._log.records_at_last_request(), NO_COMPACTIONS).last_prompt
            if self._log.compactions
            else None
        )

    def _build_from_log(
        self,
        records: Sequence[TurnRecord],
        compactions: ActiveCompactions,
        *,
        journal: ConversationJournal | None = None,
    ) -> PromptBuilder:
        """Return the prompt builder of a branch, rebuilt from the log and its contents."""
        start = None if records else self._resolved_settings.model
        defaults, tokenizer = (
            self._resolved_settings.turn_settings,
            self._token_counts.get_tokenizer(last_model(records) or start),
        )
        reader = BranchReader(self._stored_log, compactions, defaults=defaults, tokenizer=tokenizer)
        past = reader.read(records, checkpoint=self._stored_log.checkpoint_state, find_time=self._message_time)
        waits = records[-1] if records and records[-1].pending_round is not None else None
        dialogue = PromptBuilder(
            replace(
                self._adapters,
                summary_fetcher=self._get_summary_fetcher(),
                recall_hints=self._resolved_settings.recall_hints,
            ),
            replace(self._with_stages(self._resolved_settings.prompt_settings, records), tokenizer=tokenizer),
            PromptState(conversation=self.id, model=start),
            turn_settings=defaults,
            history=past,
            pending=None
            if waits is None
            else read_pending_reply(waits, self._read_contents(branch_content_hashes([waits]))),
            ledger=self._backend.keeps_ledger,
            journal=journal,
            search=self._branch_search,
        )
        undone = self._log.undo_changes_next_prefix()
        if dialogue.is_awaiting_reply and (undone or self._log.undo_changed_prefix(records[-1].message.id)):
            dialogue.mark_pending_undone()
        if undone:
            dialogue.mark_undone()
        return dialogue

    def _read_contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]:
        return self._stored_log.read_contents(hashes)

    def _format_time(self, at: datetime | None) -> str:
        return (at or self._backend.clock.now()).astimezone(UTC).isoformat().replace("+00:00", "Z")
