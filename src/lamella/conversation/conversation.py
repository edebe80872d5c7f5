"""A conversation: the class of the Python API, on which the CLI, the server and the runners work too.

``Conversation`` asks, answers, sends, compacts and goes back. Every change is written to its log before it takes
effect. The log is in a store, where an acknowledged change is durable, or in memory.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from threading import RLock
from types import MappingProxyType
from typing import Self, TypeVar, Unpack

from lamella.attach import Attachment, Tool, ToolResult
from lamella.conversation.backend import Backend
from lamella.conversation.cache_ledger import UsageTracker, log_auxiliary_call
from lamella.conversation.checkpoints import EMPTY_BRANCH_CHECKPOINT, BranchCheckpoint
from lamella.conversation.commands import (
    ALL_NAMES,
    NO_PENDING_COMMANDS,
    CommandResolver,
    PendingCommands,
    build_command_batch,
    build_pending_commands,
    changes_nothing,
    list_content_hashes,
    merge_commands,
    merge_pending_into_request,
)
from lamella.conversation.compaction import CompactionProposal, CompactionRange, TurnFitter
from lamella.conversation.expired_cache import (
    CacheExpiry,
    KeepAlivePlan,
    ProfileMismatch,
    estimate_expired_cache,
    measure_cache_misses,
    plan_keep_alive,
    profile_mismatches,
)
from lamella.conversation.import_export import QuestionReply, build_turn_events
from lamella.conversation.library import LibraryItem, list_library, list_working_set
from lamella.conversation.log import (
    BranchMessages,
    CompactionMarker,
    ConversationLog,
    TurnWriter,
    empty_reply_id,
    encode_checkpoint,
    erased_artifact_ids,
    get_inherited_overrides,
    get_last_sent_turn,
    get_question_id,
    get_title,
    last_model,
    last_runner,
    list_compactions_and_undos,
    list_records_up_to_message,
    load_branch_messages,
    message_not_found_error,
    resolve_message_alias,
)
from lamella.conversation.memory import (
    MemoryLoadTiming,
    OneLineSummary,
    build_one_line_summary,
    clean_title,
    one_line_summary_request,
    title_request,
)
from lamella.conversation.note_index import Citation, list_citation_hashes, read_citations
from lamella.conversation.past_turns import BranchHistory
from lamella.conversation.prompt_builder import PromptBuilder
from lamella.conversation.provider_pool import ProviderPool, keep_alive
from lamella.conversation.reasons import PromptExplanation, find_misses_about
from lamella.conversation.recall import (
    BranchSearch,
    make_compact_tool,
    make_recall_tool,
    max_answer_chars,
)
from lamella.conversation.rules import get_rule, list_rules, validate_rule
from lamella.conversation.runner_context import (
    Runner,
    RunnerContext,
    RunRequest,
    get_runner,
    start_run,
    with_recall_tool_offer,
)
from lamella.conversation.runs import PositionedEvent, StreamPosition, replay_turn_events
from lamella.conversation.sent_turns import list_last_requests, load_sent_turns
from lamella.conversation.settings import SettingsOverrides
from lamella.conversation.stage_tools import apply_stage_block, make_stage_tools
from lamella.conversation.stages import (
    SHIPPED_WORKFLOWS,
    build_progress,
    list_branch_stages_and_messages,
    make_figure,
    make_table,
    render_stage_part,
    to_stored_fields,
    to_stored_references,
    with_branch_stages,
    with_current_stage,
)
from lamella.conversation.summaries import SummaryFetcher
from lamella.conversation.threads import synchronized
from lamella.conversation.tool_executor import DEFAULT_CALL_TIMEOUT, LocalToolset, ToolFunction
from lamella.conversation.transcript import (
    load_export_script,
    load_script,
    replay_conversation_script,
    script_to_transcript,
)
from lamella.conversation.turn import (
    CONTINUE_REQUEST,
    BuiltTurn,
    ModelAnswer,
    TurnRequest,
    list_all_system_parts,
    no_model_error,
    request_from_turn,
)
from lamella.conversation.turn_reader import LabeledText, check_no_secrets
from lamella.conversation.turn_runner import DEFAULT_ANSWER_TOKENS, EventName, SendContext, TurnEvent, TurnLimits
from lamella.conversation.validation import (
    GivenLimits,
    check_answer_tokens,
    check_exchanges,
    check_fields,
    check_items,
    check_text,
    check_time,
    merge_limits,
    normalize_system_parts,
)
from lamella.core.artifacts.model import Artifact, ImageData, ToolDefinition, UnresolvedAttachment
from lamella.core.compaction.summaries import SummaryRequest, SummaryResult
from lamella.core.ledger.entry import CacheMiss
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
    PendingCommandsEvent,
)
from lamella.core.log.events.codec import (
    build_auxiliary_call_batch,
    build_event_batch,
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
from lamella.core.log.events.message import NO_OVERRIDES, QuestionEvent, TurnOverrides
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import (
    HistoryChangeReason,
    TurnSettings,
)
from lamella.core.log.turn_records import TurnRecord, branch_message_ids
from lamella.core.messages import ModelReply, ModelRequest, ToolCall, ToolOutput
from lamella.core.prompt.envelope import Envelope, make_envelope, make_request
from lamella.core.prompt.prefix_change import detect_prefix_change
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.search.index import Passage, list_passages
from lamella.core.search.recall import RECALL_TOKENS, RecallHit
from lamella.core.values import replace
from lamella.core.workflow.document import (
    WorkflowDocument,
    build_document,
    render_document,
    with_sections_of,
)
from lamella.core.workflow.session import (
    WorkflowSession,
    add_references_event,
    approve_stage_event,
    build_session,
    exhibit_event,
    remove_event,
    request_changes_event,
    rewind_event,
    start_workflow_event,
    submit_stage_event,
    undo_event,
    write_fields_event,
)
from lamella.errors import ArtifactError, ConflictError, InvalidOperationError, WorkflowError
from lamella.ports import Rule, Summarizer, WorkflowProgress

# The answer length of a keep-alive request: its answer is not used.
_MIN_ANSWER_TOKENS = 1
# The system prompt parts that a runner defines; they are removed when another runner answers.
_RUNNER_SYSTEM_PARTS = ("guidelines", "project")
NO_RUNNERS: Mapping[str, Runner] = MappingProxyType({})
EMPTY_RUNNER_CONTEXT = RunnerContext()
_Built = TypeVar("_Built")


@synchronized(
    # These change nothing in memory, or they only start something that takes the lock itself.
    except_for=(
        "branches",
        "check_summarizer",
        "compaction_markers",
        "get_turn",
        "keep_alive",
        "ledger",
        "list_builtin_tools",
        "messages",
        "model_for",
        "offered_tools",
        "replay",
        "replay_answer",
        "resume",
        "send",
        "sent_turns",
        "siblings",
        "sources",
        "transcript",
        "turns",
    ),
    properties=("current_state", "memory", "pending_commands", "pending_tool_calls", "workflow", "workflow_session"),
)
class Conversation:
    """A conversation. ``ask`` returns the request to send to a model, ``reply`` records its answer; ``send`` does both.

    ``Conversation(...)`` is in memory: it is lost with the object, has no clock, and sends nothing itself. An engine
    opens conversations of a store, where acknowledged changes are durable and opening one again continues it.

    Settings such as ``layout``, ``window`` or ``carry_forward`` are passed by name; see docs/reference/settings.md.
    Without ``keep_ledger`` Lamella predicts no cache use and no cost: a turn has its messages, token counts and the
    cause of a prefix change.

    A ``summarizer`` is called when the oldest turns must be summarised. Without one, compaction uses its other steps.
    A conversation in memory never calls a model by itself, so ``same`` and ``off`` both mean no summarizer.
    """

    def __init__(
        self,
        *,
        system: str | Mapping[str, str] | None = None,
        conversation_key: str = "chat",
        vault: str | PathLike[str] | None = None,
        keep_ledger: bool = True,
        summarizer: Summarizer | str | None = None,
        **settings: object,
    ) -> None:
        # The only import against the direction of the packages: this constructor is the entry point of Python programs,
        # and wiring chooses the adapters (docs/decisions/conversation-constructor.md). Other code passes a backend.
        from lamella.wiring.stores import open_in_memory_backend

        backend = open_in_memory_backend(
            settings, system=system, vault=vault, keep_ledger=keep_ledger, summarizer=summarizer
        )
        self._open(backend, check_text(conversation_key, "conversation", may_be_empty=False), {})

    @classmethod
    def open(
        cls,
        backend: Backend,
        conversation_key: str,
        settings: Mapping[str, object] | None = None,
        *,
        pool: ProviderPool | None = None,
        runners: Mapping[str, Runner] = NO_RUNNERS,
        runner_context: RunnerContext = EMPTY_RUNNER_CONTEXT,
    ) -> Self:
        """Open a conversation of a store by name or key, or start one with that name.

        Opening reads the log once. The prompt is rebuilt with the first turn. Settings given by name are written with
        the next event, so that they apply wherever the conversation is continued. Without ``pool`` nothing can be sent.
        """
        conversation = cls.__new__(cls)
        conversation._open(
            backend, conversation_key, settings or {}, pool=pool, runners=runners, runner_context=runner_context
        )
        return conversation

    def _open(
        self,
        backend: Backend,
        conversation_key: str,
        settings: Mapping[str, object],
        *,
        pool: ProviderPool | None = None,
        runners: Mapping[str, Runner] = NO_RUNNERS,
        runner_context: RunnerContext = EMPTY_RUNNER_CONTEXT,
    ) -> None:
        # Held by every public method that is not listed above the class. Worker threads use a conversation too, and
        # one may still be writing when the task that waited for it was cancelled.
        self.lock = RLock()
        self._backend = backend
        self._conversation_log = ConversationLog(backend, conversation_key)
        self._overrides = SettingsOverrides(backend.resolve_settings, settings)
        # None until the next use, while the prompt of the active branch is not known.
        self._builder: PromptBuilder | None = None
        self._branch_search = BranchSearch()
        # The pending commands and their merged request; commands are compared by identity.
        self._merged_commands: tuple[Sequence[PendingCommandsEvent], TurnRequest] | None = None
        self._memory_timing = (
            None
            if backend.render_memory is None
            else MemoryLoadTiming(backend.render_memory, opens_per_question=backend.opens_per_question)
        )
        self._pool = pool
        self._runners = runners
        self._runner_context = runner_context
        self._is_sending = False
        # Whether a keep-alive task runs for this conversation; one is enough.
        self.is_kept_alive = False
        # Functions are kept beyond their turn, because the model may call them as long as it knows their definitions.
        self._toolset: LocalToolset | None = None
        self._rebuild_from_log()

    @property
    def id(self) -> str:
        """Return the key of the conversation, which is unique and never reused."""
        return self._log.conversation

    @property
    def name(self) -> str:
        """Return the name of the conversation in this store."""
        return self._conversation_log.name

    @property
    def title(self) -> str:
        """Return the title of the conversation."""
        return get_title(self._log)

    @property
    def has_given_title(self) -> bool:
        """Return whether the conversation was given a title; otherwise its first question serves as one."""
        return bool(self._log.title)

    @property
    def head(self) -> str:
        """Return the id of the last message of the active branch."""
        return self._log.head

    @property
    def version(self) -> int:
        """Return the number of events."""
        return self._log.version

    # Ask and answer.

    def ask(
        self,
        text: str | TurnRequest,
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: Sequence[Tool | ToolFunction] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
        at: datetime | None = None,
    ) -> BuiltTurn:
        """Build, check and write the next turn; if that fails, an error is raised and nothing has changed.

        A ``ConflictError`` means that another process wrote first: call ``reload`` and ask again.

        - ``text`` is the question. It may also be a whole turn request, instead of all other arguments but ``at``.
        - ``results`` are tool results that already exist; they are sent as text.
        - ``tools`` are what the model may call from now on. None keeps the earlier tools.
        - ``verbatim`` sends braces in ``text`` as they are. Otherwise they are template names.
        """
        turn_request = (
            text
            if isinstance(text, TurnRequest)
            else self._build_turn_request(
                text,
                attach=attach,
                results=results,
                tools=None if tools is None else self._add_tools(tools).definitions,
                system=system,
                model=model,
                drop=drop,
                detach=detach,
                pin=pin,
                unpin=unpin,
                fold=fold,
                verbatim=verbatim,
            )
        )
        self._token_counts.discard_uncommitted()
        builder = self._next_prompt_builder()
        turn = builder.ask(
            self._with_pending_and_overrides(turn_request), at=check_time(at), rewritten=self._log.history_rewrite
        )
        self._builder, self._overrides.unsaved = builder, {}
        self._refresh_memory(is_due=False)
        return turn

    def preview(
        self,
        text: str | TurnRequest = "",
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: Sequence[Tool | ToolFunction] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
        at: datetime | None = None,
    ) -> BuiltTurn:
        """Return what ``send`` would send, with tokens, cache and cost; nothing changes.

        ``ask`` returns the same, but never adds the recall tool: whoever sends the turn would have to run its calls.
        No summary model is called, so a turn that needs a summary may differ.
        """
        turn_request = (
            text
            if isinstance(text, TurnRequest)
            else self._build_turn_request(
                text,
                attach=attach,
                results=results,
                tools=None if tools is None else build_toolset(tools).definitions,
                system=system,
                model=model,
                drop=drop,
                detach=detach,
                pin=pin,
                unpin=unpin,
                fold=fold,
                verbatim=verbatim,
            )
        )
        return self._next_prompt_builder().preview(
            self._with_pending_and_overrides(self._with_recall_offer(turn_request)),
            at=check_time(at),
            rewritten=self._log.history_rewrite,
        )

    def _with_recall_offer(self, turn_request: TurnRequest) -> TurnRequest:
        """Return the turn request with the recall tool if ``send`` would offer it to the model of this turn."""
        model = None if self._pool is None else self._find_model(turn_request)
        if model is None or not self._runner_context.supports_tools(model):
            return turn_request
        return with_recall_tool_offer(self.recall_tool, turn_request, toolset=self._toolset)

    def _build_turn_request(
        self,
        text: str,
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: tuple[ToolDefinition, ...] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
    ) -> TurnRequest:
        """Check the arguments of a Python program and return them as a turn request."""
        given = {"drop": drop, "detach": detach, "pin": pin, "unpin": unpin}
        named = {
            what: tuple([check_text(name, what) for name in check_items(names, what, str)])
            for what, names in given.items()
            if names != ()
        }
        return TurnRequest(
            text=check_text(text, "text"),
            attach=_build_attachments(attach),
            results=tuple(
                [_build_checked(one, one.to_artifact) for one in check_items(results, "results", ToolResult)]
            ),
            system={} if system is None else normalize_system_parts(system),
            tools=tools,
            model=None if model is None else self._trust_model(model),
            drop=named.get("drop", ()),
            detach=named.get("detach", ()),
            pin=named.get("pin", ()),
            unpin=named.get("unpin", ()),
            fold=bool(fold),
            is_verbatim=bool(verbatim),
        )

    def _trust_model(self, model: str) -> str:
        """Return the name of a model that the program gave; such a name is trusted."""
        name = check_text(model, "model", may_be_empty=False)
        if self._pool is not None:
            self._pool.trust_model(name)
        return name

    def _add_tools(
        self, tools: Sequence[Tool | ToolFunction] | None, *, call_timeout: float = DEFAULT_CALL_TIMEOUT
    ) -> LocalToolset:
        """Add tools to the conversation and return all of them; a newer tool replaces one with the same name."""
        self._toolset = build_toolset(() if tools is None else tools, call_timeout=call_timeout, earlier=self._toolset)
        return self._toolset

    def reply(self, answer: object, *, at: datetime | None = None) -> ModelReply:
        """Record the model's answer to the last turn: a string, a ``ModelReply``, or the response object of an SDK.

        A ``ModelAnswer`` also says how the call went, and may name the question that it answers. If the conversation
        continued meanwhile, the answer is stored on its own branch and ``ReplyOnOtherBranchError`` is raised.

        From an SDK object, Lamella takes the text, the tool calls and the usage; the usage goes into the ledger. An
        answer with tool calls leaves the turn open until ``submit_tool_outputs`` is called.
        """
        given: str | ModelAnswer
        if isinstance(answer, ModelReply):
            given = ModelAnswer(reply=answer)
        elif isinstance(answer, ModelAnswer):
            given = answer
        else:
            given = check_text(answer, "answer") if isinstance(answer, str) else self.parse_response(answer)
        before = len(self._log.nodes)
        question = given.question_id if isinstance(given, ModelAnswer) else None
        # This object asked another question before the answer came.
        left = question is not None and question != self._log.head
        builder = (
            self._build_prompt_builder_for_branch(self._log.branch_records(question))
            if left
            else self._prompt_builder()
        )
        reply = builder.reply(given, at=check_time(at))
        if len(self._log.nodes) == before and not reply.calls:
            # The same answer exists already: rebuild, because its branch may have compactions after it.
            self._builder = None
        return reply

    def parse_response(self, response: object) -> ModelAnswer:
        """Parse the response object of a provider's SDK into an answer."""
        return self._prompt_builder().parse_response(response)

    @property
    def pending_tool_calls(self) -> Sequence[ToolCall]:
        """Return the tool calls of the last answer that wait for their results."""
        return self._prompt_builder().pending_tool_calls

    def record_early_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> None:
        """Record the outputs of tools that have finished while other calls of the same reply still run."""
        self._prompt_builder().record_early_outputs(outputs, at=at)

    def submit_tool_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> BuiltTurn:
        """Submit one result for each tool call of the last answer; return the same turn, ready to be sent."""
        given = check_items(outputs, "outputs", ToolOutput)
        for output in given:
            check_text(output.call, "call")
            check_text(output.output, "output")
        # The id of a result from another conversation is not valid here.
        return self._prompt_builder().submit_tool_outputs(
            [replace(output, id=None) for output in given], at=check_time(at)
        )

    def prepare_pending_turn(self) -> BuiltTurn | None:
        """Return the turn that waits for its answer, compacted if it no longer fits; None if there is none.

        ``resume`` continues it.
        """
        return self._prompt_builder().prepare_pending_turn(at=self._backend.default_change_time())

    def reopen_pending_turn(self, *, model: str | None = None) -> BuiltTurn | None:
        """Return the pending turn to send, or None; if the model changes, the question is asked again.

        After an answer that was cut off, the model is asked to continue it.
        """
        turn = self.prepare_pending_turn()
        if turn is None:
            records = self._log.branch_records()
            cut = bool(records) and records[-1].cut_reason is not None
            return self.ask(TurnRequest(text=CONTINUE_REQUEST, model=model)) if cut else None
        model_before = turn.envelope.model
        return (
            turn
            if (model or model_before or self._resolved_settings.model) == model_before
            else self.regenerate(model=model)
        )

    def add_retrieved_to_pending_turn(self, retrieved: TurnRequest, *, at: datetime | None = None) -> BuiltTurn:
        """Return the pending question with what was found for it: results, attachments, citations and warnings.

        It replaces the question that was written before the search.
        """
        records = self._log.branch_records()
        if not records or records[-1].reply is not None or records[-1].open_rounds:
            raise InvalidOperationError("No question waits to be sent.", hint="Ask something first.")
        self._token_counts.discard_uncommitted()
        node = records[-1].message
        contents = self._conversation_log.read_contents(branch_content_hashes([TurnRecord(message=node, reply=None)]))
        waiting = read_question_turn(node, contents, defaults=self._resolved_settings.turn_settings)
        system = {} if waiting.system is None else list_all_system_parts(waiting.system)
        turn_request = request_from_turn(waiting, text=None, model=None, system=system)
        turn_request = replace(
            turn_request,
            attach=(*turn_request.attach, *retrieved.attach),
            results=(*turn_request.results, *retrieved.results),
            citations=retrieved.citations,
            warnings=tuple(dict.fromkeys((*waiting.warnings, *retrieved.warnings))),
        )
        builder = self._build_prompt_builder_after(node.parent)
        turn = builder.ask(turn_request, at=at, rewritten=waiting.history_rewrite)
        self._builder = builder
        return turn

    def model_for(self, turn_request: TurnRequest) -> str:
        """Return the model for a turn: the one it names, otherwise the current one.

        Raises ``InvalidOperationError`` if no model is set.
        """
        model = self._find_model(turn_request)
        if model is None:
            raise no_model_error()
        return model

    def _find_model(self, turn_request: TurnRequest) -> str | None:
        named = turn_request.model or self._changed_model() or self._next_overrides().model
        current = last_model(self._log.branch_records()) if self._builder is None else self._builder.model
        return named or current or self._resolved_settings.model

    # Send.

    def send(
        self,
        text: str | BuiltTurn,
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: Sequence[Tool | ToolFunction] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
        runner: str | None = None,
        max_tokens: int | None = None,
        **limits: Unpack[GivenLimits],
    ) -> AsyncGenerator[TurnEvent, None]:
        """Ask the model and record its answer; yields events, whose ``text`` is the next part of the answer.

        Closing the iterator stops the model and keeps the text so far.

        - ``text`` is the question, or a turn returned by ``edit``, ``regenerate`` or ``submit_tool_outputs``.
        - ``tools`` are tools that the model may call. Functions are run here, each call within ``seconds``. The
          conversation remembers them for later turns.
        - ``max_tokens`` is the maximum length of the answer; the default is 1,024, or the default of the model. If you
          pass a value and the window has less space left, the request is rejected and not sent.
        - ``limits`` are ``steps`` (tool rounds), ``seconds`` (per call), ``turn_seconds``, ``turn_tokens`` and
          ``max_cost`` in dollars. After one is reached, no more tools are called.
        """
        named = self._resolve_runner(runner)
        bounds = merge_limits(self.limits, limits)
        equipped = tools is not None or self._toolset is not None
        toolbox = self._add_tools(tools, call_timeout=bounds.call_seconds) if equipped else None
        if isinstance(text, BuiltTurn):
            return self._run_one_turn_at_a_time(self._resume_turn(text, toolbox, max_tokens=max_tokens, limits=bounds))
        turn_request = self._build_turn_request(
            text,
            attach=attach,
            results=results,
            tools=self._choose_tool_definitions(tools, toolbox, runner=named),
            system=system,
            model=model,
            drop=drop,
            detach=detach,
            pin=pin,
            unpin=unpin,
            fold=fold,
            verbatim=verbatim,
        )
        send_context = self._send_context(self.model_for(turn_request), max_tokens)
        run_request = self._build_run_request(
            send_context,
            toolbox,
            bounds,
            turn_request=turn_request if runner is None else replace(turn_request, runner=runner),
        )
        return self._run_one_turn_at_a_time(start_run(run_request, default=named))

    def resume(
        self,
        *,
        tools: Sequence[Tool | ToolFunction] | None = None,
        max_tokens: int | None = None,
        **limits: Unpack[GivenLimits],
    ) -> AsyncGenerator[TurnEvent, None]:
        """Continue a turn that was left open: run the calls that wait for results, then send it.

        If the last answer was cut off, the model is asked to continue it, in a turn of its own.
        The runner of the original question continues. Earlier usage counts against the limits, except the time.
        """
        bounds = merge_limits(self.limits, limits)
        toolbox = self._add_tools(tools, call_timeout=bounds.call_seconds)
        return self._run_one_turn_at_a_time(self._resume_turn(None, toolbox, max_tokens=max_tokens, limits=bounds))

    async def keep_alive(self, *, once: bool = False) -> int:
        """Keep the provider's cache alive as settings say, or ``once`` if that is due now; return how often."""
        return await keep_alive(
            self, lambda one: self._provider_pool().send_context_for(one, max_answer_tokens=1), once=once
        )

    def _resolve_runner(self, runner: str | None) -> str:
        """Return the runner to use; raises an error if there is no such runner."""
        named = self.default_runner if runner is None else runner
        if named not in self._runners:
            get_runner(named, self._runners)
        return named

    def _choose_tool_definitions(
        self, tools: Sequence[Tool | ToolFunction] | None, toolbox: LocalToolset | None, *, runner: str
    ) -> tuple[ToolDefinition, ...] | None:
        """Return the tool definitions for the request, or None to keep those of the last turn.

        After another runner answered, all tools that were ever given are offered again.
        """
        if toolbox is None or (tools is None and self.last_runner in (None, runner)):
            return None
        return toolbox.all_definitions if tools is None else toolbox.definitions

    def list_builtin_tools(self) -> Sequence[Tool]:
        """Return the built-in tools of the engine for this conversation."""
        return self._runner_context.make_tools(self)

    def offered_tools(self, turn: BuiltTurn) -> Sequence[Tool]:
        """Return the tools that a turn offers to the model; the caller has to run their calls."""
        definitions = turn.envelope.prompt.tools
        return [
            Tool(name=one.name, description=one.description, parameters=json.loads(one.parameters))
            for one in definitions
        ]

    def replay_answer(self, message: str, after_position: StreamPosition | None = None) -> Sequence[PositionedEvent]:
        """Return the recorded answer to a question as events, or the part after a position."""
        record = self.get_turn(message)
        contents = load_branch_messages(self._backend.store, self.id, [record]).contents
        return replay_turn_events(record, contents, after_position=after_position)

    async def _resume_turn(
        self, turn: BuiltTurn | None, toolbox: LocalToolset | None, *, max_tokens: int | None, limits: TurnLimits
    ) -> AsyncGenerator[TurnEvent, None]:
        """Send a waiting turn, by default the one that waits in the log, with its open calls.

        After an answer that was cut off, this is a new turn that continues it.
        """
        before = self.head
        waiting, calls = await self._provider_pool().workers.run(
            lambda: (turn or self.reopen_pending_turn(), self.pending_tool_calls)
        )
        if waiting is None or waiting.envelope.message_id != self.head:
            raise InvalidOperationError(
                "No unanswered question.", hint="Ask a question, or regenerate the last answer."
            )
        send_context = self._send_context(waiting.envelope.model, max_tokens)
        run_request = self._build_run_request(send_context, toolbox, limits, turn=waiting, calls=tuple(calls))
        if turn is None and self.head != before:
            yield TurnEvent(kind=EventName.ENVELOPE, turn=waiting)
        events = start_run(run_request, default=self.default_runner)
        async with aclosing(events):
            async for event in events:
                yield event

    def _build_run_request(
        self,
        send_context: SendContext,
        toolbox: LocalToolset | None,
        limits: TurnLimits,
        *,
        turn_request: TurnRequest | None = None,
        turn: BuiltTurn | None = None,
        calls: tuple[ToolCall, ...] = (),
    ) -> RunRequest:
        return RunRequest(
            conversation=self,
            send_context=send_context,
            turn_request=turn_request,
            turn=turn,
            pending_calls=calls,
            toolset=toolbox,
            limits=limits,
            runner_context=self._runner_context,
            runners=self._runners,
        )

    def _send_context(self, model: str | None, max_tokens: int | None) -> SendContext:
        if model is None:
            raise no_model_error()
        window = self.window
        pool = self._provider_pool()
        length = check_answer_tokens(
            max_tokens, window=window, default=pool.default_answer_tokens.get(model, DEFAULT_ANSWER_TOKENS)
        )
        return pool.send_context_for(model, max_answer_tokens=length, window=None if max_tokens is None else window)

    def _provider_pool(self) -> ProviderPool:
        if self._pool is None:
            raise InvalidOperationError(
                "Nothing is sent from here.", hint="Open the conversation with lamella.open(…)."
            )
        return self._pool

    async def _run_one_turn_at_a_time(self, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
        """Yield events and allow only one turn at a time: an answer belongs to the question asked last."""
        self._raise_if_turn_is_running()
        self._is_sending = True
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._is_sending = False

    def _raise_if_turn_is_running(self) -> None:
        if self._is_sending:
            raise InvalidOperationError(
                "A turn is being sent.", hint="Wait for its answer, or close its iterator to stop it."
            )

    # Branches.

    def turns(self, head: str | None = None) -> Sequence[TurnRecord]:
        """Return the turn records of a branch, by default of the active one."""
        if head is not None and not (isinstance(head, str) and head in self._log.nodes):
            raise message_not_found_error(self._log, str(head), conversation_name=self.name)
        return self._log.branch_records(head)

    def branches(self) -> Sequence[str]:
        """Return every branch by its last message; editing, regenerating, deleting and forking lose none."""
        return self._log.list_branch_heads()

    def resolve_message(self, message: str) -> str:
        """Return the id of a message of the active branch that is named as in ``turn:3`` or ``reply:3``.

        Any other name is returned unchanged.
        """
        return resolve_message_alias(self._log, check_text(message, "message"))

    def has_message(self, message: str) -> bool:
        """Return whether any branch of the conversation has this message."""
        return check_text(message, "message") in self._log.nodes

    def edit(
        self,
        message: str,
        text: str | None,
        *,
        attach: Sequence[Attachment] = (),
        model: str | None = None,
        at: datetime | None = None,
    ) -> BuiltTurn:
        """Replace a question by another text, with the same attachments, and return the turn to send.

        ``text`` None asks the same text again. ``attach`` adds attachments. The old branch stays.
        """
        added = _build_attachments(attach)
        message = self.resolve_message(message)
        text = None if text is None else check_text(text, "text")
        model = None if model is None else self._trust_model(model)
        node = self._log.find_question(message)
        if node is None:
            raise message_not_found_error(self._log, message, conversation_name=self.name)
        self._token_counts.discard_uncommitted()
        contents = self._conversation_log.read_contents(branch_content_hashes([TurnRecord(message=node, reply=None)]))
        original = read_question_turn(node, contents, defaults=self._resolved_settings.turn_settings)
        builder = self._build_prompt_builder_after(node.parent, edited_message_id=message)
        system = {
            **({} if original.system is None else list_all_system_parts(original.system)),
            **self._overrides.changed_system_parts(self._next_overrides()),
            **render_stage_part(self._log, node.parent),
        }
        model = model or self._changed_model() or original.model or self._model_for_new_branch(builder)
        turn_request = request_from_turn(original, text=text, model=model, system=system)
        if added:
            turn_request = replace(turn_request, attach=(*turn_request.attach, *added))
        turn = builder.ask(turn_request, at=check_time(at), rewritten=HistoryChangeReason.HISTORY_EDITED)
        self._builder, self._overrides.unsaved = builder, {}
        return turn

    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> BuiltTurn:
        """Open a question again, by default the last one; the next reply becomes a second branch.

        ``model`` answers it this time and from then on; the default is the model that was set since, else the same one.
        Unfinished tool rounds are discarded. If the model differs, or if the instructions, temperature or effort were
        set since, the question is asked again as an edit.
        """
        named = None if message is None else check_text(message, "message")
        model = None if model is None else self._trust_model(model)
        at = check_time(at)
        question = get_question_id(
            self._log, self.resolve_message(named or self._log.head), conversation_name=self.name
        )
        if question != self._log.head or self._prompt_builder().has_tool_rounds:
            self._append_branch_switch(SwitchEvent(head=question), at)
        builder = self._prompt_builder()
        if not builder.is_awaiting_reply or builder.last_prompt is None:
            raise message_not_found_error(self._log, question, conversation_name=self.name)
        model = model or self._changed_model() or self._model_for_new_branch(builder)
        if model not in (None, builder.model) or self._overrides.system_or_sampling_changed(
            self._next_overrides(), builder.last_prompt
        ):
            return self.edit(question, None, model=model, at=at)
        rewritten = self._log.history_rewrite
        before = self._last_sent_prompt() if rewritten or self._log.undone_since_last_question else builder.last_prompt
        turn = builder.prepare_pending_turn(at=at or self._backend.default_change_time())
        assert turn is not None, "it waits, as was just seen"
        # The request is compared with what was really sent last, which may be on another branch.
        if turn.prefix_change.prefix_change.cause is not PrefixChangeCause.RENDERER_CHANGED:
            movement = detect_prefix_change(before, replace(turn.envelope.prompt, history_rewrite=rewritten))
            turn.turn_ledger.entry = replace(
                turn.ledger, prefix=replace(turn.prefix_change, prefix_change=movement, triggered=True)
            )
        return turn

    def delete(self, message: str, *, at: datetime | None = None) -> None:
        """Continue without a message on a new branch; a question is removed together with its answer."""
        message = self.resolve_message(message)
        if message not in branch_message_ids(self._log.branch_records()):
            raise message_not_found_error(self._log, message, conversation_name=self.name)
        self._append_and_reset(
            build_event_batch(DeleteEvent(target=message), timestamp=self._format_time(check_time(at)))
        )

    def fork(self, message: str, *, at: datetime | None = None) -> None:
        """Continue from an earlier message on a new branch."""
        self._switch_branch(ForkEvent(head=self.resolve_message(message)), check_time(at))

    def switch(self, head: str, *, at: datetime | None = None) -> None:
        """Make another branch active, by its last message."""
        self._switch_branch(SwitchEvent(head=self.resolve_message(head)), check_time(at))

    def rename(self, title: str, *, at: datetime | None = None) -> None:
        """Give the conversation a title."""
        check_text(title, "title")
        self._append_and_reset(
            build_event_batch(RenameEvent(title=title), timestamp=self._format_time(check_time(at))), title=title
        )

    def reload(self) -> None:
        """Read what other processes wrote; after a conflict, call this and repeat the change."""
        self._conversation_log.reload()
        self._rebuild_from_log()

    def add_turns(self, turns: Sequence[QuestionReply], *, at: datetime | None = None) -> None:
        """Append questions with their answers from elsewhere; nothing is sent or read.

        Settings that were changed since the last question apply to the next question that is asked. In an empty
        conversation they apply to the first of the added questions.
        """
        exchanges = check_exchanges(turns)
        at = check_time(at)
        if not exchanges:
            return
        is_first_turn = not self._log.head
        added, head = build_turn_events(
            self._log,
            exchanges,
            settings=self._resolved_settings,
            first=self._with_overrides(TurnRequest(text="")) if is_first_turn else None,
            at=self._format_time(at),
        )
        self._append_and_reset(merge_batches(added, *self._build_events_for_unused_settings(head, at)))
        if is_first_turn:
            self._overrides.unsaved = {}

    def messages(self, head: str | None = None, *, first: int = 1, last: int | None = None) -> BranchMessages:
        """Return the messages of a branch with tool results, sources and compactions, by default the active one.

        ``first`` and ``last`` are numbers of turns; all turns between them are returned.
        """
        records = self._backend.store.load(self.id)
        return load_branch_messages(
            self._backend.store,
            self.id,
            self.turns(head)[first - 1 : last],
            markers=list_compactions_and_undos(self.id, records),
        )

    def siblings(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return, for each message that has alternatives, all of them, itself included, oldest first.

        Editing a question and answering it again make alternatives. Each comes with the last message of its newest
        branch, to which ``switch`` leads.
        """
        return self._log.siblings()

    def get_turn(self, message: str) -> TurnRecord:
        """Return the turn of a question, with its answer if any branch has one.

        The active branch is searched first, then the others from the one that ended last.
        """
        named = check_text(message, "message")
        heads = (self.head, *reversed(self.branches())) if self.head else ()
        found = next((record for head in heads for record in self.turns(head) if record.message.id == named), None)
        return self.turns(named)[-1] if found is None else found

    def sources(self, message: str | None = None) -> Sequence[Citation]:
        """Return the sources cited in a reply, by default in the last one; ``[^1]`` is the first.

        ``message`` is the id of the reply or of its question, on any branch.
        """
        records = self.turns(None if message is None else check_text(message, "message"))[-1:]
        hashes = [name for one in records for name in list_citation_hashes(one)]
        contents = self._backend.store.read_contents(self.id, hashes) if hashes else {}
        return tuple(source for one in records for source in read_citations(one, contents))

    def _switch_branch(self, event: ForkEvent | SwitchEvent, at: datetime | None) -> None:
        if event.head not in self._log.nodes:
            raise message_not_found_error(self._log, event.head, conversation_name=self.name)
        # Switching to the current message changes nothing; above all, it must not discard pending tool calls.
        if event.head != self._log.head:
            self._append_branch_switch(event, at)

    def _append_branch_switch(self, event: ForkEvent | SwitchEvent, at: datetime | None) -> None:
        """Write a branch change, and the changed system prompt parts again, since each branch has its own overrides."""
        changed = self._overrides.system_parts_to_keep(self._log.overrides)
        self._append_and_reset(build_event_batch(event, timestamp=self._format_time(at)))
        waiting = self._build_system_change_events(changed, at)
        if waiting:
            self._append(merge_batches(*waiting))

    def _stop_turn(self, expected_reply_id: str, *, at: datetime | None) -> None:
        """End the pending turn if ``expected_reply_id`` is the id that its empty reply has."""
        if self._log.head and expected_reply_id == empty_reply_id(self._log, self._log.head):
            self._prompt_builder().stop_pending_turn(at=at)
            # The empty reply may exist already, with compactions after it. The prompt builder has to be rebuilt.
            self._builder = None

    # Compactions.

    def plan(
        self,
        to: float | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        summaries: bool = True,
        at: datetime | None = None,
    ) -> CompactionProposal:
        """Plan a compaction down to a share of the token limit; nothing changes yet.

        With ``since``, only the turn of that message and later turns are compacted, and every byte before them stays.
        With ``until``, only turns up to that message are compacted. Messages are named by id, or as ``turn:3`` and
        ``reply:3``. Without ``summaries`` no summary model is called. A waiting turn is treated as stopped.
        """
        names = [None if one is None else check_text(one, "message", may_be_empty=False) for one in (since, until)]
        return self._next_prompt_builder().plan(CompactionRange(*names), to=to, summaries=summaries, at=check_time(at))

    def commit(self, planned: CompactionProposal, *, at: datetime | None = None) -> CompactionReceipt:
        """Carry out a planned compaction; removed text can be recalled, and the compaction can be undone.

        A waiting turn is ended, and a turn being sent raises an error.
        """
        self._raise_if_turn_is_running()
        at = check_time(at)
        if (
            isinstance(planned, CompactionProposal)
            and planned.receipt is not None
            and planned.receipt.parent != self._log.head
        ):
            self._stop_turn(planned.receipt.parent, at=at)
        receipt = self._prompt_builder().commit(planned, at=at)
        self._refresh_memory(is_due=True)
        return receipt

    def compact(
        self,
        to: float | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        at: datetime | None = None,
    ) -> CompactionReceipt | None:
        """Plan and commit a compaction in one call; returns None if it would not save anything."""
        planned = self.plan(to, since=since, until=until)
        return None if planned.receipt is None else self.commit(planned, at=at)

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> CompactionReceipt:
        """Undo a compaction, by default the last, and all later ones; the next turn is built without them.

        A waiting turn is ended, and a turn being sent raises an error.
        """
        self._raise_if_turn_is_running()
        at = check_time(at)
        voided = self._next_prompt_builder().compactions_to_undo(receipt)
        self._stop_turn(empty_reply_id(self._log, self._log.head), at=at)
        # Keep the prompt builder, so that the next turn rebuilds nothing. It is unset during the append, because a
        # checkpoint written there must not contain the compacted state.
        builder, self._builder = self._prompt_builder(), None
        self._append(build_event_batch(UndoEvent(receipt=voided[0].id), timestamp=self._format_time(at)))
        builder.rebuild_without_compactions(voided)
        self._builder = builder
        if self._log.undo_changes_next_prefix():
            builder.mark_compaction_undone()
        return voided[0]

    def receipts(self) -> Sequence[CompactionReceipt]:
        """Return the active compactions of the active branch, oldest first."""
        committed = self._log.active_compactions(self._log.branch_records())
        return read_receipts(committed.events, self._conversation_log.read_contents(placeholder_text_hashes(committed)))

    def shrink_pending_turn(self, *, at: datetime | None = None) -> BuiltTurn | None:
        """Compact the pending turn and write that; None if nothing can be removed."""
        return self._prompt_builder().shrink_pending_turn(at=at)

    def compact_to_target(self, *, at: datetime | None = None) -> CompactionReceipt | None:
        """Compact down to the target, also while tool calls are pending; None if nothing is gained."""
        receipt = self._prompt_builder().compact_to_target(at=at)
        if receipt is not None:
            self._refresh_memory(is_due=True)
        return receipt

    def compaction_markers(self) -> Sequence[CompactionMarker]:
        """Return every compaction and every undo, each with the message after which it happened."""
        return list_compactions_and_undos(self.id, self._backend.store.load(self.id))

    @property
    def compact_tool(self) -> Tool:
        """Return ``compact`` as a tool for the model, to free space for its next step; pass it in ``tools``."""
        return make_compact_tool(self.compact_to_target)

    # Recall: originals that are not in the prompt in full, and why something is in it or not.

    def recall(self, query: str, limit: int | None = None, *, max_tokens: int = RECALL_TOKENS) -> Sequence[RecallHit]:
        """Search messages, attachments and tool results that are not in the prompt in full; best hits first.

        The hits fill ``max_tokens`` tokens: ``text`` of a hit is the whole text or its best sentences, ``before`` and
        ``after`` are the messages next to it. ``passage.text`` is always the whole original. If nothing fits the query,
        there are no hits. Erased text is never found.
        """
        return self._prompt_builder().recall(
            check_text(query, "query"),
            limit=limit,
            max_tokens=max_tokens,
            history=self._load_history() if self._has_new_erasure() else None,
        )

    @property
    def recall_tool(self) -> Tool:
        """Return ``recall`` as a tool for the model; pass it in ``tools``."""
        return make_recall_tool(self.recall, max_chars=lambda: max_answer_chars(self.current_state[1].tool_output))

    def why(self, name: str) -> PromptExplanation:
        """Explain why an artifact or message is in the next prompt or not, and how to include it."""
        explanation = self._prompt_builder().why(
            check_text(name, "name", may_be_empty=False),
            erased=erased_artifact_ids(self._log.branch_records()),
            message_names=self._log.nodes,
        )
        misses = find_misses_about(explanation.id, self._log.branch_records(), self.ledger(), self.cache_misses())
        return replace(explanation, cache_misses=tuple(misses))

    def all_passages(self) -> Sequence[Passage]:
        """Return every message and attachment of the active branch in full, whether or not it is in the prompt."""
        records = self._log.branch_records()
        turns = read_turns(
            records,
            self._conversation_log.read_contents(branch_content_hashes(records)),
            defaults=self._resolved_settings.turn_settings,
        )
        return list_passages(turns, branch_message_ids(records))

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
            records,
            self._conversation_log.read_contents(branch_content_hashes(records)),
            defaults=self._resolved_settings.turn_settings,
        )
        return BranchHistory(turns, path=branch_message_ids(records), find_time=self._message_time)

    def _message_time(self, message: str) -> str | None:
        node = self._log.nodes.get(message)
        return None if node is None else node.at or None

    # Commands between two questions; each is written when it is given.

    def attach(self, *attachments: Attachment, question: str = "", at: datetime | None = None) -> PendingCommands:
        """Read attachments now and add them to the next turn; return the pending commands.

        If a folder or tag is too large, the notes that match ``question`` are attached; without one, those that match
        the last question.
        """
        turn_request = self._build_turn_request(question, attach=attachments)
        return self.queue_command(turn_request, at=at)

    def detach(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Remove artifacts from the working set, or from the pending attachments; without names, all of them."""
        turn_request = TurnRequest(text="", detach=_check_names(names, "detach") if names else (ALL_NAMES,))
        return self.queue_command(turn_request, at=at)

    def drop(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Remove artifacts from the prompt from the next turn on; attaching one again before then cancels that."""
        return self.queue_command(TurnRequest(text="", drop=_check_names(names, "drop")), at=at)

    def pin(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Keep artifacts or messages in full from the next turn on."""
        return self.queue_command(TurnRequest(text="", pin=_check_names(names, "pin")), at=at)

    def unpin(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Allow pinned artifacts or messages to be shortened again from the next turn on."""
        return self.queue_command(TurnRequest(text="", unpin=_check_names(names, "unpin")), at=at)

    def refresh(self, *names: str, question: str = "", at: datetime | None = None) -> PendingCommands:
        """Read attachments again, all of them without names; changes are sent with the next turn.

        An attachment that cannot be read stays as it is, and the result has a warning. For a folder or tag that was
        too large, the notes are selected again.
        """
        named = _check_names(names, "refresh") if names else (ALL_NAMES,)
        turn_request = TurnRequest(text=check_text(question, "question"), refresh=named)
        return self.queue_command(turn_request, at=at)

    def queue_command(self, turn_request: TurnRequest, *, at: datetime | None = None) -> PendingCommands:
        """Attach, detach, drop, pin, unpin or refresh with the next question; return all pending commands.

        A ``ConflictError`` means that another process wrote first. Nothing has changed then: call ``reload`` and try
        again.
        """
        self._token_counts.discard_uncommitted()
        resolver = CommandResolver(
            self._adapters,
            self._resolved_settings.prompt_settings,
            self._prompt_builder().current_state,
            pending=self._pending_request,
        )
        later, cancelled, messages = resolver.resolve(turn_request)
        if cancelled or not changes_nothing(later):
            self._append(build_command_batch(later, cancelled, at=self._format_time(check_time(at))))
        return self._count_pending_commands(messages)

    @property
    def pending_commands(self) -> PendingCommands:
        """Return the commands that take effect with the next turn."""
        return self._count_pending_commands(self._pending_request.warnings)

    @property
    def working_set(self) -> Sequence[str]:
        """Return the ids of artifacts whose current text the model can read in the next turn.

        Attachments of the next turn are not included.
        """
        return tuple(artifact.id for artifact in list_working_set(*self.current_state))

    def library(self, *, at: datetime | None = None) -> Sequence[LibraryItem]:
        """List all attachments with their form in the next request and the tokens that detaching would save."""
        moment = check_time(at)
        leaving = {*self._pending_request.detach, *self._pending_request.drop}
        return list_library(
            lambda asked: self.preview(asked, at=moment), self._prompt_builder().current_state, dropped_names=leaving
        )

    def _count_pending_commands(self, warnings: Sequence[str]) -> PendingCommands:
        return build_pending_commands(
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
            self._merged_commands = (
                events,
                merge_commands(events, self._conversation_log.read_contents(list_content_hashes(events))),
            )
        return self._merged_commands[1]

    def _with_pending_commands_and_memory(self, turn_request: TurnRequest) -> TurnRequest:
        """Return the request with pending commands, the current workflow stage, and the memory if it is due.

        If another runner answers, the system prompt parts and tools of the previous runner are removed.
        """
        if self._log.pending_commands:
            turn_request = merge_pending_into_request(
                self._pending_request, turn_request, self._prompt_builder().current_state[0]
            )
        if self._log.stage_entries:
            turn_request = with_current_stage(turn_request, self._log, self._prompt_builder().current_state[0])
        if self._memory_timing is not None:
            turn_request = self._memory_timing.with_current_memory(
                turn_request, self._prompt_builder().current_state[0], self._resolved_settings.prompt_settings
            )
        if self.last_runner in (None, turn_request.runner or self.default_runner):
            return turn_request
        usual = self._resolved_settings.load_system_parts(("system",))
        parts = {name: usual.get(name, "") for name in _RUNNER_SYSTEM_PARTS}
        return replace(
            turn_request,
            system={**parts, **turn_request.system},
            tools=() if turn_request.tools is None else turn_request.tools,
        )

    def changes_prefix_anyway(self, turn_request: TurnRequest, *, at: datetime | None = None) -> bool:
        """Return whether this request changes the cached prefix anyway, so that its tools may change with it.

        No file is fetched for this: attachments are taken from the cache.
        """
        read = tuple(
            replace(one, read_again=False) if isinstance(one, UnresolvedAttachment) else one
            for one in turn_request.attach
        )
        ahead = self.preview(replace(turn_request, attach=read), at=at)
        return self._prompt_builder().usage_tracker.changes_prefix_anyway(ahead.envelope.prompt)

    def check_no_secrets(self, texts: Sequence[LabeledText], *, model: str) -> None:
        """Raise ``SecretError`` if these texts contain a secret for a remote model and the settings refuse that."""
        check_no_secrets(
            texts,
            model=model,
            scanner=self._adapters.secret_scanner,
            policy=self._resolved_settings.prompt_settings.secrets,
        )

    # User rules; each change is written as a command.

    def rules(self) -> Sequence[Rule]:
        """Return the user rules and the candidates found in messages, each with its source, newest last."""
        questions = (
            (at, one.message.id, one.message.text) for at, one in enumerate(self._log.branch_records(), start=1)
        )
        state, turn_settings = self._prompt_builder().current_state
        words = self._resolved_settings.prompt_settings.compaction_config_for(turn_settings).words
        return list_rules(questions, state.rules, self._pending_request, words=words)

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Add a user rule from the next turn on; it stays in every prompt, also after compaction.

        The text of a candidate makes that candidate a rule.
        """
        rules, line = self.rules(), validate_rule(check_text(text, "text"))
        if all(one.text != line or one.origin == "found" for one in rules):
            self.queue_command(TurnRequest(text="", rules=(line,)), at=at)
        return get_rule(line, self.rules())

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Remove a user rule from the next turn on, by its id, its number in ``rules()`` or its text.

        A candidate is dismissed: it is no longer listed, and does not stay longer than the rest of its message.
        """
        rule = get_rule(check_text(name, "name", may_be_empty=False), self.rules())
        self.queue_command(TurnRequest(text="", removed_rules=(rule.text,)), at=at)
        return rule

    # Workflow stages, on the branch where they happened. Each action returns the progress after it.

    @property
    def workflow(self) -> WorkflowProgress | None:
        """Return the workflow progress, or None if no workflow was started."""
        events, path = list_branch_stages_and_messages(self._log)
        session = build_session(events)
        return None if session is None else build_progress(session, path)

    @property
    def workflow_session(self) -> WorkflowSession | None:
        """Return the workflow session, or None if no workflow was started."""
        return build_session(list_branch_stages_and_messages(self._log)[0])

    def start_workflow(self, name: str, *, language: str | None = None, at: datetime | None = None) -> WorkflowProgress:
        """Start a workflow: ``paper``, ``rfc``, one of your own by name, or a workflow file by its path.

        ``language`` is a code such as ``id``. By default it is the language of the workflow file.
        """
        self._raise_if_turn_is_running()
        wanted = None if language is None else check_text(language, "language", may_be_empty=False)
        workflow = self._adapters.get_workflow(check_text(name, "name", may_be_empty=False), language=wanted)
        return self._apply_stage_event(
            lambda last: start_workflow_event(self.workflow_session, workflow, after_message=last), at
        )

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress:
        """Write fields of the current stage; a value of None removes the field."""
        self._raise_if_turn_is_running()
        given = to_stored_fields(fields)
        return self._apply_stage_event(
            lambda last: write_fields_event(self._get_workflow_session(), given, after_message=last), at
        )

    def add_references(self, references: Sequence[object], *, at: datetime | None = None) -> WorkflowProgress:
        """Add references: CSL-JSON items, mappings with usual names such as ``authors`` and ``year``, or typed lines.

        A source that is there already, by its DOI, its URL or its title and year, keeps its key.
        """
        self._raise_if_turn_is_running()
        given = to_stored_references(references)
        return self._apply_stage_event(
            lambda last: add_references_event(self._get_workflow_session(), given, after_message=last)[0], at
        )

    def add_table(
        self,
        key: str,
        caption: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        at: datetime | None = None,
    ) -> WorkflowProgress:
        """Add a table, or replace the one with this key; the text refers to it with ``@tbl:key``."""
        self._raise_if_turn_is_running()
        exhibit = make_table(key, caption, columns, rows)
        return self._apply_stage_event(
            lambda last: exhibit_event(self._get_workflow_session(), exhibit, after_message=last), at
        )

    def add_figure(self, key: str, caption: str, image: bytes, *, at: datetime | None = None) -> WorkflowProgress:
        """Add a figure (PNG or JPEG), or replace the one with this key; the text refers to it with ``@fig:key``."""
        self._raise_if_turn_is_running()
        exhibit, contents = make_figure(key, caption, image)
        return self._apply_stage_event(
            lambda last: exhibit_event(self._get_workflow_session(), exhibit, after_message=last), at, contents=contents
        )

    def remove_from_work(self, key: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Remove a reference, a figure or a table by its key."""
        self._raise_if_turn_is_running()
        name = check_text(key, "key", may_be_empty=False)
        return self._apply_stage_event(
            lambda last: remove_event(self._get_workflow_session(), name, after_message=last), at
        )

    def undo_stage_write(self, *, at: datetime | None = None) -> WorkflowProgress:
        """Undo what was written last in the current stage, by a model or by a person."""
        self._raise_if_turn_is_running()
        return self._apply_stage_event(lambda last: undo_event(self._get_workflow_session(), after_message=last), at)

    def request_stage_changes(self, note: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Send the submitted stage back; the model reads in ``note`` what is to change."""
        self._raise_if_turn_is_running()
        text = check_text(note, "note", may_be_empty=False)
        return self._apply_stage_event(
            lambda last: request_changes_event(self._get_workflow_session(), text, after_message=last), at
        )

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress:
        """Submit the current stage for approval; raises an error that names missing required fields."""
        self._raise_if_turn_is_running()
        return self._apply_stage_event(
            lambda last: submit_stage_event(self._get_workflow_session(), after_message=last), at
        )

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress:
        """Approve the submitted stage; ``decision`` goes into the digest, cut to 200 characters.

        Without one, the proposed decision is approved, or else the recorded data.
        """
        self._raise_if_turn_is_running()
        text = check_text(decision, "decision")
        return self._apply_stage_event(
            lambda last: approve_stage_event(self._get_workflow_session(), decision=text, after_message=last), at
        )

    def rewind_to_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Go back to an earlier stage; later stages must be done again, and their data is kept."""
        self._raise_if_turn_is_running()
        name = check_text(stage, "stage")
        return self._apply_stage_event(
            lambda last: rewind_event(self._get_workflow_session(), name, after_message=last), at
        )

    @property
    def stage_tools(self) -> Sequence[Tool]:
        """Return the tools with which a model works on the current stage; pass them in ``tools``.

        They write fields, references and tables, propose the decision and submit the stage. Only a person approves it.
        """
        session = self.workflow_session
        return () if session is None else make_stage_tools(session, self._apply_model_write)

    def apply_stage_answer(self, answer: str) -> str:
        """Write what the ``stage`` block at the end of an answer says, as a model without tools gives it.

        Returns what was written, or what is wrong with the block; an empty string if there is no block.
        """
        session = self.workflow_session
        return "" if session is None else apply_stage_block(answer, session, self._apply_model_write)

    def _apply_model_write(self, build_event: Callable[[WorkflowSession, str], StageEvent]) -> WorkflowSession:
        """Write the event of a model, also while its turn is running, and return the session after it."""
        with self.lock:
            _, path = list_branch_stages_and_messages(self._log)
            event = build_event(self._get_workflow_session(), path[-1] if path else "")
            self._append(build_event_batch(event, timestamp=self._format_time(None)))
            return self._get_workflow_session()

    def document(self, title: str = "") -> WorkflowDocument:
        """Return the document of the approved stages, its figures, tables and references, and what it lacks."""
        session = self._get_workflow_session()
        session = session._replace(workflow=self._with_current_sections(session.workflow))
        document = build_document(session, title=check_text(title, "title"))
        hashes = [one.image for one in document.exhibits if one.image]
        return replace(document, images=self._conversation_log.read_contents(hashes)) if hashes else document

    def _with_current_sections(self, workflow: WorkflowSpec) -> WorkflowSpec:
        """Return a workflow that came with Lamella before there were sections with those of today."""
        if workflow.name not in SHIPPED_WORKFLOWS or self._adapters.load_workflow is None:
            return workflow
        try:
            return with_sections_of(workflow, self._adapters.load_workflow(workflow.name, workflow.language))
        except WorkflowError:
            # The user has a workflow of this name that is broken, or not there in this language.
            return workflow

    def export_approved_stages(self, title: str = "") -> str:
        """Return the work as Markdown: every approved stage, and a bibliography that lists each source once."""
        return render_document(self.document(title))

    def _get_workflow_session(self) -> WorkflowSession:
        session = self.workflow_session
        if session is None:
            raise WorkflowError(
                "This conversation has no workflow.", hint=lambda hints: f"Begin one: {hints.start_workflow_hint()}."
            )
        return session

    def _apply_stage_event(
        self,
        build_event: Callable[[str], StageEvent],
        at: datetime | None,
        *,
        contents: Mapping[str, bytes] | None = None,
    ) -> WorkflowProgress:
        """Write the event that ``build_event`` returns for the last message of the branch.

        A waiting turn is ended first, so that a stage ends where a turn ends. The event is built twice: the first time,
        without a last message, only to raise before anything changes; the second time after the waiting turn was ended,
        because that adds a message.
        """
        at = check_time(at)
        build_event("")
        self._stop_turn(empty_reply_id(self._log, self._log.head), at=at)
        _, path = list_branch_stages_and_messages(self._log)
        event = build_event(path[-1] if path else "")
        self._append_and_reset(build_event_batch(event, timestamp=self._format_time(at), contents=contents))
        progress = self.workflow
        assert progress is not None, "a workflow with an event was started"
        return progress

    # Settings and user memory.

    @property
    def settings(self) -> Mapping[str, object]:
        """Return the conversation's own settings by name, whether already stored or not."""
        return self._overrides.to_dict(self._log)

    def set(self, **settings: object) -> None:
        """Change settings of the conversation from the next turn on; if one of them is rejected, none is set."""
        for name in ("model", "summarizer"):
            model = settings.get(name)
            if self._pool is not None and isinstance(model, str):
                self._pool.trust_model(check_text(model, name, may_be_empty=False))
        self._resolved_settings = self._overrides.set(settings, self._log)
        self._builder = None

    def save_settings(self, *, at: datetime | None = None) -> None:
        """Store changed settings now instead of with the next event; this also creates a new conversation."""
        at = check_time(at)
        self._append(
            merge_batches(
                build_event_batch(SettingsEvent(values={}), timestamp=self._format_time(at)),
                *self._build_system_change_events(self._overrides.system_parts_to_keep(self._log.overrides), at),
            )
        )

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

    @property
    def max_keep_alives(self) -> int:
        """The maximum number of keep-alive requests while the user is idle, from the settings."""
        return self._resolved_settings.max_keep_alives

    def _build_system_change_events(self, changed: Mapping[str, str], at: datetime | None) -> list[EventBatch]:
        """Return the event that stores changed system prompt parts for the next question, unless it is stored."""
        overrides = self._with_changed_system_parts(changed)
        if overrides == self._log.overrides:
            return []
        event = ForkEvent(head=self._log.head, overrides=overrides)
        return [build_event_batch(event, timestamp=self._format_time(at))]

    def _with_changed_system_parts(self, changed: Mapping[str, str]) -> TurnOverrides:
        """Return the overrides in the log with changed system prompt parts."""
        return (
            self._overrides.with_changed_system_parts(
                self._log.overrides,
                changed,
                self._prompt_builder().current_state[0].system,
                is_first_turn=not self._log.head,
            )
            if changed
            else self._log.overrides
        )

    def _build_events_for_unused_settings(self, head: str, at: datetime | None) -> list[EventBatch]:
        """Return events that store again, after added turns up to ``head``, what applies to the next question.

        The first turn of a conversation uses the model and the system prompt, so they are not stored again after it.
        """
        model = self._changed_model()
        overrides = self._with_changed_system_parts(self._overrides.system_parts_to_keep(self._log.overrides))
        if not self._log.head:
            model, overrides = None, replace(overrides, system=None, model=None, changed_parts=())
        events = (
            *(() if model is None else (SettingsEvent(values={"model": model}),)),
            *(() if overrides == NO_OVERRIDES else (ForkEvent(head=head, overrides=overrides),)),
        )
        return [build_event_batch(event, timestamp=self._format_time(at)) for event in events]

    def _next_overrides(self) -> TurnOverrides:
        """Return the overrides in the log that apply to the next question."""
        return get_inherited_overrides(self._log) if self._is_last_question_abandoned else self._log.overrides

    def _with_pending_and_overrides(self, turn_request: TurnRequest) -> TurnRequest:
        """Return the request with pending commands, and with overrides that no turn of the branch contains."""
        return self._with_overrides(self._with_pending_commands_and_memory(turn_request))

    def _with_overrides(self, turn_request: TurnRequest) -> TurnRequest:
        overrides = self._next_overrides()
        if self._overrides.unsaved or not self._log.head or overrides is not NO_OVERRIDES:
            turn_request = self._overrides.apply_overrides(turn_request, overrides, is_first_turn=not self._log.head)
        model = (
            turn_request.model
            or self._changed_model()
            or overrides.model
            or self._model_for_new_branch(self._prompt_builder())
        )
        return turn_request if model == turn_request.model else replace(turn_request, model=model)

    def _changed_model(self) -> str | None:
        """Return the model of the settings if it was changed since the last turn, otherwise None."""
        return (
            self._resolved_settings.model if self._log.is_model_chosen or "model" in self._overrides.unsaved else None
        )

    def _model_for_new_branch(self, builder: PromptBuilder) -> str | None:
        """Return the model of the settings if the branch has none yet, otherwise None."""
        return self._resolved_settings.model if builder.model is None else None

    @property
    def memory(self) -> str:
        """Return the user memory as it is in the prompt of this conversation."""
        return self._prompt_builder().current_state[0].system.memory

    def refresh_memory_next_turn(self) -> str | None:
        """Load the user memory again with the next turn.

        Returns the first change in the prompt, or None if nothing changes. Raises ``InvalidOperationError`` if the
        conversation has no memory.
        """
        if self._memory_timing is None:
            raise InvalidOperationError(
                "This conversation takes up no memory.", hint="Set memory to on, and open it again."
            )
        change = self._memory_timing.find_first_change(
            self._prompt_builder().current_state[0], self._resolved_settings.prompt_settings
        )
        self._memory_timing.is_due = True
        return change

    def _refresh_memory(self, *, is_due: bool) -> None:
        if self._memory_timing is not None:
            self._memory_timing.is_due = is_due

    def summarize_in_one_line(self) -> str:
        """Summarise the conversation in one line.

        The summary model is called now, which may take a while. In a thread with a running event loop no model is
        called.
        """
        return self.summarize_in_one_line_with_author().text

    def suggest_title(self) -> str:
        """Return a title that the summary model writes now; the current title if there is no model, or no good answer.

        In a thread with a running event loop no model is called. ``rename`` gives the conversation the title.
        """
        state = self._prompt_builder().current_state[0]
        exchanges = state.history.turns
        if not exchanges:
            raise InvalidOperationError("Nothing was said yet.", hint="Ask something first.")
        asked = title_request(exchanges, tokenizer=self._resolved_settings.prompt_settings.tokenizer)
        written = self._summarize(asked, state)
        return (clean_title(written.text) if written is not None and not written.failure else "") or self.title

    def find_image(self, name: str, *, turn: int | None = None) -> ImageData | None:
        """Return a picture that waits for the next turn, or that a turn was sent with, by its id."""
        images = (
            [image for artifact in self.pending_commands.attach for image in artifact.images]
            if turn is None
            else [
                image
                for sent in (self.sent_turns(turn, turn) if turn <= len(self.turns()) else ())
                for message in sent.messages
                for image in message.images
            ]
        )
        return next((one for one in images if one.hash.rpartition(":")[2] == name.rpartition(":")[2]), None)

    def summarize_in_one_line_with_author(self) -> OneLineSummary:
        """Return the summary of ``summarize_in_one_line`` with its author, and why a model's text was not used."""
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

    # Model calls, costs and keep-alives.

    def ledger(self) -> Sequence[Sequence[ModelCall]]:
        """Return the model calls of each turn of the active branch, including those of abandoned answers."""
        return read_branch_model_calls(
            self._log.branch_records(), tuple(self._log.nodes.values()), self._log.auxiliary_calls
        )

    def cache_misses(self) -> Sequence[CacheMiss | None]:
        """Return what the cache misses of each turn of the active branch cost; None for a turn without one."""
        get_pricing = self._prompt_builder().usage_tracker.get_pricing
        return measure_cache_misses(self._log.branch_records(), self.ledger(), get_pricing)

    def profile_mismatches(self) -> Sequence[ProfileMismatch]:
        """Return where reported cache usage contradicts the profile of a model, and values that would fit."""
        pricing = self._prompt_builder().usage_tracker.get_pricing
        return profile_mismatches(self._log.branch_records(), self.ledger(), lambda model: pricing(model).profile)

    @property
    def usage_tracker(self) -> UsageTracker:
        """The usage tracker with the cache ledger."""
        return self._prompt_builder().usage_tracker

    def estimate_cache_expiry(self, *, at: datetime | None = None) -> CacheExpiry | None:
        """Estimate the cost of the next message, as it is and folded, if the cache has expired or soon will.

        Returns None before that, or if the time of the last request or the cache lifetime is unknown. In a store,
        ``at`` defaults to now; a conversation in memory has no clock.
        """
        moment = check_time(at) or self._backend.default_change_time()
        return estimate_expired_cache(self, at=moment, keep_alive_plan=self.plan_keep_alive(at=moment))

    def plan_keep_alive(self, *, at: datetime | None = None) -> KeepAlivePlan | None:
        """Return when the last request should be sent again to keep its cache entry, and the cost; None if never."""
        builder = self._prompt_builder()
        return plan_keep_alive(
            builder.usage_tracker,
            builder.current_state[0],
            at=at or self._backend.default_change_time(),
            awaits_tool_outputs=bool(builder.pending_tool_calls),
        )

    def build_keep_alive_request(self) -> ModelRequest | None:
        """Return the last request again with a minimal answer length.

        Returns None if there was no request, or if a model is answering it.
        """
        builder = self._prompt_builder()
        last, is_answering = builder.last_prompt, builder.is_awaiting_reply and not builder.pending_tool_calls
        if last is None or last.model is None or is_answering:
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
        call = self._prompt_builder().usage_tracker.build_auxiliary_call_record(request, answer, purpose=purpose, at=at)
        batch = build_auxiliary_call_batch(call, parent=parent, timestamp=self._format_time(at))
        try:
            self._append(batch)
        except ConflictError:
            self._conversation_log.append_without_conflict_check(batch)
        log_auxiliary_call(self.id, call)

    def check_summarizer_is_trusted(self) -> None:
        """Raise if the summary model is named only by an untrusted source; runs before anything is sent."""
        fetcher = self._get_summary_fetcher()
        if fetcher is not None:
            fetcher.check_model_is_trusted()

    def _get_summary_fetcher(self) -> SummaryFetcher | None:
        """Return the summary fetcher of the settings; None if the adapters have their own summarizer."""
        find = None if self._backend.adapters.summarizer is not None else self._backend.make_summary_fetcher
        return None if find is None else find(self, self._resolved_settings.summarizer)

    # Transcripts.

    def sent_turns(self, first: int = 1, last: int | None = None, *, head: str | None = None) -> Iterator[BuiltTurn]:
        """Yield some turns of a branch as they were sent, by their numbers, by default of the active branch.

        Unlike ``replay``, a late turn costs about as much as an early one. Its predicted cache use and its cost assume
        a cache that knows the few requests before ``first``.
        """
        return load_sent_turns(self._backend, self.id, head, first=first, last=last).turns

    def replay(
        self, *, layout: str | None = None, window: int | None = None, model: str | None = None, head: str | None = None
    ) -> Iterator[BuiltTurn]:
        """Yield each turn of a branch as it was sent, by default of the active branch.

        ``check`` of a turn says whether its request has the hash that was stored when it was sent, or why it cannot be
        derived. With a layout, window or model, the turns are asked again under these settings instead, and
        compactions are planned again. Nothing is sent, read from files or written.
        """
        given = {
            name: value
            for name, value in {"layout": layout, "window": window, "model": model}.items()
            if value is not None
        }
        if given:
            return replay_conversation_script(self._backend, load_script(self._backend, self.id, head), given)
        return load_sent_turns(self._backend, self.id, head).turns

    def transcript(self, head: str | None = None) -> dict[str, object]:
        """Return a branch as a transcript, by default the active one; as JSON it is input of ``lamella replay``.

        ``differing_turns`` lists the turns whose requests a transcript cannot reproduce, for example those that were
        sent after a compaction.
        """
        return script_to_transcript(load_export_script(self._backend, self.id, head))

    # The log and the prompt builder of the active branch.

    @property
    def current_state(self) -> tuple[PromptState, TurnSettings]:
        """Return the prompt state of the active branch, and the turn settings that the next turn uses."""
        return self._prompt_builder().current_state

    def _rebuild_from_log(self) -> None:
        """Reset everything that is derived from the log."""
        self._log, self._token_counts = self._conversation_log.log, self._conversation_log.token_counts
        self._adapters = replace(self._backend.adapters, counter=self._token_counts)
        self._resolved_settings = self._overrides.resolve(self._log)
        self._builder = None

    def _append_and_reset(self, batch: EventBatch, *, title: str | None = None) -> None:
        self._append(batch, title=title)
        self._builder = None

    def _append(self, batch: EventBatch, *, title: str | None = None) -> None:
        if self._overrides.unsaved:
            batch = self._overrides.with_settings_event(batch)
        self._conversation_log.append(batch, title=title, encode_checkpoint=self._encode_checkpoint)
        if self._overrides.unsaved:
            self._overrides.mark_written()

    def _encode_checkpoint(self) -> BranchCheckpoint:
        """Encode the state of the active branch for the next checkpoint, if it is known."""
        if self._builder is None:
            return EMPTY_BRANCH_CHECKPOINT
        state, tokenizer = self._builder.state_before_pending
        return encode_checkpoint(self._log, state, defaults=self._resolved_settings.turn_settings, tokenizer=tokenizer)

    def _format_time(self, at: datetime | None) -> str:
        """Return the time of an event as it is stored, by default now; without a clock an unknown time is empty."""
        moment = at or self._backend.default_change_time()
        return "" if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

    def _prompt_builder(self) -> PromptBuilder:
        """Return the prompt builder of the active branch, rebuilt from the log if it is not known."""
        if self._builder is None:
            self._builder = self._build_prompt_builder_for_branch(self._log.branch_records())
        return self._builder

    def _next_prompt_builder(self) -> PromptBuilder:
        """Return the prompt builder for the next question.

        If the open question had an empty reply before, it is abandoned with that reply: compactions may follow it.
        """
        return (
            self._build_prompt_builder_after(self._log.head)
            if self._is_last_question_abandoned
            else self._prompt_builder()
        )

    @property
    def _is_last_question_abandoned(self) -> bool:
        """Whether the last message is an open question that was abandoned with an empty reply before."""
        nodes, head = self._log.nodes, self._log.head
        return (
            head in nodes and isinstance(nodes[head].event, QuestionEvent) and empty_reply_id(self._log, head) in nodes
        )

    def _build_prompt_builder_after(self, message_id: str, *, edited_message_id: str | None = None) -> PromptBuilder:
        """Return the prompt builder for a question after ``message_id``.

        If that message is a question with an empty reply, the reply and its tool rounds stay.
        """
        leaves = message_id if empty_reply_id(self._log, message_id) in self._log.nodes else None
        return self._build_prompt_builder_for_branch(
            list_records_up_to_message(self._log, message_id),
            edited_message_id=edited_message_id,
            abandoned_message_id=leaves,
        )

    def _build_prompt_builder_for_branch(
        self,
        records: Sequence[TurnRecord],
        *,
        edited_message_id: str | None = None,
        abandoned_message_id: str | None = None,
    ) -> PromptBuilder:
        begin = partial(TurnWriter, self._log, append=self._append, reload=self.reload, format_time=self._format_time)
        writer = begin(name=self.name, edited_message_id=edited_message_id, abandoned_message_id=abandoned_message_id)
        builder = self._build_from_log(records, self._log.active_compactions(records), writer=writer)
        before = (
            self._last_sent_prompt()
            if edited_message_id or self._log.history_rewrite or self._log.undone_since_last_question
            else None
        )
        builder.restore_last_request(
            before,
            sent=get_last_sent_turn(records, self._log),
            find_uncompacted=self._last_prompt_uncompacted,
            list_sent=self._list_sent_requests,
        )
        return builder

    def _last_sent_prompt(self) -> Prompt | None:
        """Return the request that was sent last, on any branch."""
        records = self._log.records_at_last_request()
        return self._build_from_log(
            records, self._log.active_compactions(records, as_of_event=self._log.last_sent[1])
        ).last_prompt

    def _list_sent_requests(self) -> Sequence[tuple[Envelope, datetime | None]]:
        """Return the last requests that were sent, on any branch, with their times."""
        return list_last_requests(self._backend, self.id, events=self._log.version)

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
        writer: TurnWriter | None = None,
    ) -> PromptBuilder:
        """Return the prompt builder of a branch, rebuilt from the log and its contents."""
        start = None if records else self._resolved_settings.model
        defaults, tokenizer = (
            self._resolved_settings.turn_settings,
            self._token_counts.get_tokenizer(last_model(records) or start),
        )
        history = self._conversation_log.load_history(
            records, compactions, defaults=defaults, tokenizer=tokenizer, find_time=self._message_time
        )
        pending = records[-1] if records and records[-1].pending_round is not None else None
        builder = PromptBuilder(
            replace(
                self._adapters,
                summary_fetcher=self._get_summary_fetcher(),
                recall_hints=self._resolved_settings.recall_hints,
            ),
            replace(
                with_branch_stages(self._resolved_settings.prompt_settings, self._log, records), tokenizer=tokenizer
            ),
            PromptState(conversation=self.id, model=start),
            turn_settings=defaults,
            history=history,
            pending=None
            if pending is None
            else read_pending_reply(pending, self._conversation_log.read_contents(branch_content_hashes([pending]))),
            ledger=self._backend.keeps_ledger,
            writer=writer,
            search=self._branch_search,
            learns_retention=self._resolved_settings.learns_retention,
            shared_prefixes=self._backend.shared_prefixes,
            get_kept_tools=lambda: frozenset() if self._toolset is None else self._toolset.kept_names,
        )
        undone = self._log.undo_changes_next_prefix()
        if builder.is_awaiting_reply and (undone or self._log.undo_changed_prefix(records[-1].message.id)):
            builder.mark_pending_compaction_undone()
        if undone:
            builder.mark_compaction_undone()
        return builder


def _check_names(names: Sequence[str], action: str) -> tuple[str, ...]:
    """Return the names of a command; at least one is required, and a blank name is an error, not "all"."""
    if not names:
        raise InvalidOperationError(f"There is no name of what to {action}.", hint="Name an artifact by its id.")
    return tuple([check_text(name, action, may_be_empty=False) for name in check_items(names, action, str)])


def build_toolset(
    tools: Sequence[Tool | ToolFunction],
    *,
    call_timeout: float = DEFAULT_CALL_TIMEOUT,
    earlier: LocalToolset | None = None,
) -> LocalToolset:
    """Check the tools of a turn and return them as a toolset."""
    given = check_items(tools, "tools", object)
    for one in given:
        if isinstance(one, Tool):
            check_fields(one)
    return _build_or_reject_deep_nesting(given, lambda: LocalToolset(given, call_timeout=call_timeout, earlier=earlier))


def _build_attachments(attach: Sequence[Attachment]) -> tuple[Artifact | UnresolvedAttachment, ...]:
    """Check the given attachments and return them as artifacts, or as attachments to read."""
    return tuple([_build_checked(one, one.to_artifact) for one in check_items(attach, "attach", Attachment)])


def _build_checked(value: Attachment | ToolResult, build: Callable[[], _Built]) -> _Built:
    """Check the fields of a value and return what ``build`` builds from it."""
    check_fields(value)
    return _build_or_reject_deep_nesting(value, build)


def _build_or_reject_deep_nesting(value: object, build: Callable[[], _Built]) -> _Built:
    try:
        return build()
    except RecursionError as error:
        raise ArtifactError(f"A {type(value).__name__} is nested too deep.", hint="Flatten what it holds.") from error
