"""The conversation classes of the Python API.

``BaseConversation`` has the methods that all conversations share: ask for a request, record the reply, submit tool
results, and run a workflow (``WorkflowMethods``). It works on any ``ConversationPort``, in memory or in a store.
``StoredConversation`` adds what needs a store; an acknowledged change is durable, and opening the conversation again
continues it.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from types import MappingProxyType
from typing import Protocol, TypeVar, Unpack

from lamella.attach import Attachment, Tool, ToolResult
from lamella.conversation.backend import Backend
from lamella.conversation.commands import ALL_NAMES, PendingCommands
from lamella.conversation.compaction import WHOLE_CONVERSATION, CompactionProposal, CompactionRange
from lamella.conversation.expired_cache import ExpiredCache, ProfileMismatch
from lamella.conversation.library import LibraryItem, list_library, list_working_set
from lamella.conversation.log import BranchMessages, CompactionMarker, list_compaction_markers, load_branch_messages
from lamella.conversation.note_index import Citation, list_citation_hashes, read_citations
from lamella.conversation.provider_pool import ProviderPool, keep_alive
from lamella.conversation.reasons import PromptExplanation
from lamella.conversation.recall import DEFAULT_HITS, make_compact_tool, make_recall_tool, max_answer_chars
from lamella.conversation.runner_context import Runner, RunnerContext, RunRequest, get_runner, start_run
from lamella.conversation.runs import PositionedEvent, StreamPosition, replay_turn_events
from lamella.conversation.stored import LoggedConversation
from lamella.conversation.tool_executor import DEFAULT_CALL_TIMEOUT, LocalToolset, ToolFunction
from lamella.conversation.transcript import load_script, replay_conversation_script, script_to_transcript
from lamella.conversation.turn import BuiltTurn, ModelAnswer, TurnRequest, no_model_error
from lamella.conversation.turn_runner import DEFAULT_ANSWER_TOKENS, Event, SendContext, TurnLimits
from lamella.conversation.validation import (
    GivenLimits,
    check_answer_tokens,
    check_exchanges,
    check_fields,
    check_items,
    check_system_parts,
    check_text,
    check_time,
    merge_limits,
)
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.call import ModelCall
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import TurnSettings
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import ModelReply, ToolCall, ToolOutput
from lamella.core.prompt.state import PromptState
from lamella.core.search.search import RecallHit
from lamella.core.values import replace
from lamella.errors import ArtifactError, InvalidOperationError
from lamella.ports import Rule, WorkflowProgress


class WorkflowPort(Protocol):
    """Anything that runs a workflow, in memory or in a store."""

    @property
    def progress(self) -> WorkflowProgress | None: ...

    def start_workflow(self, name: str, *, at: datetime | None = None) -> WorkflowProgress: ...

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress: ...

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress: ...

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress: ...

    def rewind_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress: ...

    def export_work(self, title: str = "") -> str: ...


class WorkflowMethods:
    """The workflow methods of a conversation; each action returns the progress after it."""

    _workflow_port: WorkflowPort

    def _check_idle(self) -> None:
        """Raise an error if a turn is being sent; a conversation in memory sends nothing, so nothing is checked."""

    @property
    def workflow(self) -> WorkflowProgress | None:
        """Return the workflow progress, or None if no workflow was started."""
        return self._workflow_port.progress

    def start_workflow(self, name: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Start a workflow: ``paper``, ``rfc``, one of your own by name, or a workflow file by its path."""
        self._check_idle()
        return self._workflow_port.start_workflow(check_text(name, "name", may_be_empty=False), at=check_time(at))

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress:
        """Write fields of the current stage; a value of None removes the field."""
        self._check_idle()
        return self._workflow_port.write_stage(fields, at=check_time(at))

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress:
        """Submit the current stage for approval; raises an error that names missing required fields."""
        self._check_idle()
        return self._workflow_port.submit_stage(at=check_time(at))

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress:
        """Approve the submitted stage; ``decision`` goes into the digest, cut to 200 characters."""
        self._check_idle()
        return self._workflow_port.approve_stage(check_text(decision, "decision"), at=check_time(at))

    def rewind_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Go back to an earlier stage; later stages must be done again, and their data is kept."""
        self._check_idle()
        return self._workflow_port.rewind_stage(check_text(stage, "stage"), at=check_time(at))

    def export_work(self, title: str = "") -> str:
        """Return the work as Markdown: every approved stage, and a bibliography that lists each source once."""
        return self._workflow_port.export_work(check_text(title, "title"))


# Methods of all conversations, wherever they are stored.

_Built = TypeVar("_Built")


class ConversationPort(WorkflowPort, Protocol):
    """The object behind a conversation: a prompt builder in memory, or the log of a store."""

    @property
    def pending_tool_calls(self) -> Sequence[ToolCall]: ...

    def ask(self, turn_request: TurnRequest, *, at: datetime | None = None) -> BuiltTurn: ...

    def preview(self, turn_request: TurnRequest, *, at: datetime | None = None) -> BuiltTurn: ...

    def reply(self, answer: str | ModelAnswer, *, at: datetime | None = None) -> ModelReply: ...

    def submit_tool_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> BuiltTurn: ...

    def parse_response(self, response: object) -> ModelAnswer: ...

    def plan(
        self, range_: CompactionRange = WHOLE_CONVERSATION, *, to: float | None = None, at: datetime | None = None
    ) -> CompactionProposal: ...

    def commit(self, planned: CompactionProposal, *, at: datetime | None = None) -> CompactionReceipt: ...

    def compact_to_target(self, *, at: datetime | None = None) -> CompactionReceipt | None: ...

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> CompactionReceipt: ...

    def receipts(self) -> Sequence[CompactionReceipt]: ...

    def recall(self, query: str, *, limit: int = DEFAULT_HITS) -> Sequence[RecallHit]: ...

    def why(self, name: str) -> PromptExplanation: ...

    def rules(self) -> Sequence[Rule]: ...

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule: ...

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule: ...

    @property
    def current_state(self) -> tuple[PromptState, TurnSettings]: ...

    def expired_cache(self, *, at: datetime | None = None) -> ExpiredCache | None: ...

    def queue_command(self, turn_request: TurnRequest, *, at: datetime | None = None) -> PendingCommands: ...

    @property
    def pending_commands(self) -> PendingCommands: ...


class BaseConversation(WorkflowMethods):
    """The shared API of conversations: ask for a request, record the reply, submit tool results."""

    def __init__(self, port: ConversationPort, *, system: str | Mapping[str, str] | None) -> None:
        self._port = self._workflow_port = port
        self._system = {} if system is None else check_system_parts(system)
        # Functions are kept beyond their turn, because the model may call them as long as it knows their definitions.
        self._toolset: LocalToolset | None = None

    def ask(
        self,
        text: str,
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
        """Build and check the next turn; if that fails, an error is raised and nothing has changed.

        - ``results`` are tool results that already exist; they are sent as text.
        - ``tools`` are what the model may call from now on. None keeps the earlier tools.
        - ``verbatim`` sends braces in ``text`` as they are. Otherwise they are template names.
        """
        turn_request = self._build_turn_request(
            text,
            attach=attach,
            results=results,
            tools=None if tools is None else self._merge_tools(tools).definitions,
            system=system,
            model=model,
            drop=drop,
            detach=detach,
            pin=pin,
            unpin=unpin,
            fold=fold,
            verbatim=verbatim,
        )
        turn = self._port.ask(turn_request, at=check_time(at))
        # From now on the conversation has its system prompt, and each branch its own, so it is not passed again.
        self._system = {}
        return turn

    def preview(
        self,
        text: str = "",
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
        """Return what ``ask`` would return, with tokens, cache and cost; nothing changes.

        No summary model is called, so a turn that needs a summary may differ.
        """
        turn_request = self._build_turn_request(
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
        return self._port.preview(turn_request, at=check_time(at))

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
            attach=tuple([_build_checked(one, one.to_artifact) for one in check_items(attach, "attach", Attachment)]),
            results=tuple(
                [_build_checked(one, one.to_artifact) for one in check_items(results, "results", ToolResult)]
            ),
            system={**self._system, **(check_system_parts(system) if system is not None else {})},
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
        """Return the name of a model that the program gave."""
        return check_text(model, "model", may_be_empty=False)

    def _merge_tools(
        self, tools: Sequence[Tool | ToolFunction] | None, *, seconds: float = DEFAULT_CALL_TIMEOUT
    ) -> LocalToolset:
        """Return these tools together with all earlier ones; a newer tool replaces one with the same name."""
        self._toolset = build_toolset(() if tools is None else tools, seconds=seconds, earlier=self._toolset)
        return self._toolset

    def reply(self, answer: object, *, at: datetime | None = None) -> ModelReply:
        """Record the model's answer to the last turn: a string, a ``ModelReply``, or the response object of an SDK.

        From an SDK object, Lamella takes the text, the tool calls and the usage; the usage goes into the ledger. An
        answer with tool calls leaves the turn open until ``submit_tool_outputs`` is called.
        """
        if isinstance(answer, ModelReply):
            return self._port.reply(ModelAnswer(reply=answer), at=check_time(at))
        given = check_text(answer, "answer") if isinstance(answer, str) else self._port.parse_response(answer)
        return self._port.reply(given, at=check_time(at))

    @property
    def pending_tool_calls(self) -> Sequence[ToolCall]:
        """Return the tool calls of the last answer that wait for their results."""
        return self._port.pending_tool_calls

    def submit_tool_outputs(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> BuiltTurn:
        """Submit one result for each tool call of the last answer; return the same turn, ready to be sent."""
        given = check_items(outputs, "outputs", ToolOutput)
        for output in given:
            check_text(output.call, "call")
            check_text(output.output, "output")
        # The id of a result from another conversation is not valid here.
        return self._port.submit_tool_outputs([replace(output, id=None) for output in given], at=check_time(at))

    def plan(
        self, to: float | None = None, *, since: str | None = None, until: str | None = None
    ) -> CompactionProposal:
        """Plan a compaction down to a share of the token limit; nothing changes yet.

        With ``since``, only the turn of that message and later turns are compacted, and every byte before them stays.
        With ``until``, only turns up to that message are compacted. Messages are named by id, or as ``turn:3`` and
        ``reply:3``.
        """
        names = [None if one is None else check_text(one, "message", may_be_empty=False) for one in (since, until)]
        return self._port.plan(CompactionRange(*names), to=to)

    def commit(self, planned: CompactionProposal, *, at: datetime | None = None) -> CompactionReceipt:
        """Carry out a planned compaction; removed text can be recalled, and the compaction can be undone."""
        return self._port.commit(planned, at=check_time(at))

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
        """Undo a compaction, by default the last, and all later ones; the next turn is built without them."""
        return self._port.undo(receipt, at=check_time(at))

    def receipts(self) -> Sequence[CompactionReceipt]:
        """Return the active compactions, oldest first."""
        return self._port.receipts()

    def recall(self, query: str, limit: int = DEFAULT_HITS) -> Sequence[RecallHit]:
        """Search messages, attachments and tool results that are not in the prompt in full; best hits first.

        Each hit has the original text.
        """
        return self._port.recall(check_text(query, "query"), limit=limit)

    def why(self, name: str) -> PromptExplanation:
        """Explain why an artifact or message is in the next prompt or not, and how to include it."""
        return self._port.why(check_text(name, "name", may_be_empty=False))

    def rules(self) -> Sequence[Rule]:
        """Return the active user rules, detected in messages or added by hand, newest last."""
        return self._port.rules()

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Add a user rule from the next turn on; it stays in every prompt, also after compaction."""
        return self._port.add_rule(check_text(text, "text"), at=check_time(at))

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Remove a user rule from the next turn on, by its id, its number in ``rules()`` or its text."""
        return self._port.remove_rule(check_text(name, "name", may_be_empty=False), at=check_time(at))

    @property
    def working_set(self) -> Sequence[str]:
        """Return the ids of artifacts whose current text the model can read in the next turn.

        Attachments of the next turn are not included.
        """
        return tuple(artifact.id for artifact in list_working_set(*self._port.current_state))

    def attach(self, *attachments: Attachment, question: str = "", at: datetime | None = None) -> PendingCommands:
        """Read attachments now and add them to the next turn; return the pending commands.

        If a folder or tag is too large, the notes that match ``question`` are attached; without one, those that match
        the last question.
        """
        turn_request = self._build_turn_request(question, attach=attachments)
        return self._port.queue_command(replace(turn_request, system={}), at=check_time(at))

    def detach(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Remove artifacts from the working set, or from the pending attachments; without names, all of them."""
        turn_request = TurnRequest(text="", detach=_check_names(names, "detach") if names else (ALL_NAMES,))
        return self._port.queue_command(turn_request, at=check_time(at))

    def drop(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Remove artifacts from the prompt from the next turn on; attaching one again before then cancels that."""
        return self._port.queue_command(TurnRequest(text="", drop=_check_names(names, "drop")), at=check_time(at))

    def pin(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Keep artifacts or messages in full from the next turn on."""
        return self._port.queue_command(TurnRequest(text="", pin=_check_names(names, "pin")), at=check_time(at))

    def unpin(self, *names: str, at: datetime | None = None) -> PendingCommands:
        """Allow pinned artifacts or messages to be shortened again from the next turn on."""
        return self._port.queue_command(TurnRequest(text="", unpin=_check_names(names, "unpin")), at=check_time(at))

    def refresh(self, *names: str, question: str = "", at: datetime | None = None) -> PendingCommands:
        """Read attachments again, all of them without names; changes are sent with the next turn.

        An attachment that cannot be read stays as it is, and the result has a warning. For a folder or tag that was
        too large, the notes are selected again.
        """
        named = _check_names(names, "refresh") if names else (ALL_NAMES,)
        turn_request = TurnRequest(text=check_text(question, "question"), refresh=named)
        return self._port.queue_command(turn_request, at=check_time(at))

    @property
    def pending_commands(self) -> PendingCommands:
        """Return the commands that take effect with the next turn."""
        return self._port.pending_commands

    def library(self, *, at: datetime | None = None) -> Sequence[LibraryItem]:
        """List all attachments with their form in the next request and the tokens that detaching would save."""
        waits, moment = self.pending_commands, check_time(at)
        leaving = {*waits.detach, *waits.drop}
        return list_library(
            lambda asked: self._port.preview(asked, at=moment), self._port.current_state, dropped_names=leaving
        )

    def expired_cache(self, *, at: datetime | None = None) -> ExpiredCache | None:
        """Estimate the cost of the next message, as it is and folded, if the cache has expired or soon will.

        Returns None before that, or if the time of the last request or the cache lifetime is unknown. In a store,
        ``at`` defaults to now; a conversation in memory has no clock.
        """
        return self._port.expired_cache(at=check_time(at))

    @property
    def recall_tool(self) -> Tool:
        """Return ``recall`` as a tool for the model; pass it in ``tools``."""
        return make_recall_tool(
            self.recall, max_chars=lambda: max_answer_chars(self._port.current_state[1].tool_output)
        )

    @property
    def compact_tool(self) -> Tool:
        """Return ``compact`` as a tool for the model, to free space for its next step; pass it in ``tools``."""
        return make_compact_tool(self._port.compact_to_target)


def _check_names(names: Sequence[str], action: str) -> tuple[str, ...]:
    """Return the names of a command; at least one is required, and a blank name is an error, not "all"."""
    if not names:
        raise InvalidOperationError(f"There is no name of what to {action}.", hint="Name an artifact by its id.")
    return tuple([check_text(name, action, may_be_empty=False) for name in check_items(names, action, str)])


def build_toolset(
    tools: Sequence[Tool | ToolFunction], *, seconds: float = DEFAULT_CALL_TIMEOUT, earlier: LocalToolset | None = None
) -> LocalToolset:
    """Check the tools of a turn and return them as a toolset."""
    given = check_items(tools, "tools", object)
    for one in given:
        if isinstance(one, Tool):
            check_fields(one)
    return _build_or_reject_depth(given, lambda: LocalToolset(given, call_timeout=seconds, earlier=earlier))


def _build_checked(value: Attachment | ToolResult, build: Callable[[], _Built]) -> _Built:
    """Check the fields of a value and return what ``build`` builds from it."""
    check_fields(value)
    return _build_or_reject_depth(value, build)


def _build_or_reject_depth(value: object, build: Callable[[], _Built]) -> _Built:
    try:
        return build()
    except RecursionError as error:
        raise ArtifactError(f"A {type(value).__name__} is nested too deep.", hint="Flatten what it holds.") from error


# Conversations in a store.

NO_RUNNERS: Mapping[str, Runner] = MappingProxyType({})
EMPTY_RUNNER_CONTEXT = RunnerContext()


class StoredConversation(BaseConversation):
    """A conversation in a store; acknowledged changes are durable, and opening it again continues it."""

    def __init__(
        self,
        backend: Backend,
        conversation_key: str,
        settings: dict[str, object],
        *,
        pool: ProviderPool | None = None,
        runners: Mapping[str, Runner] = NO_RUNNERS,
        runner_context: RunnerContext = EMPTY_RUNNER_CONTEXT,
    ) -> None:
        self._backend = backend
        self._logged = LoggedConversation(backend, conversation_key, settings)
        self._pool = pool
        self._runners = runners
        self._runner_context = runner_context
        self._is_sending = False
        super().__init__(self._logged, system=None)

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
    ) -> AsyncGenerator[Event, None]:
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
        bounds = merge_limits(self._logged.limits, limits)
        equipped = tools is not None or self._toolset is not None
        toolbox = self._merge_tools(tools, seconds=bounds.call_seconds) if equipped else None
        if isinstance(text, BuiltTurn):
            return self._exclusive_events(self._resume(text, toolbox, max_tokens=max_tokens, limits=bounds))
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
        send_context = self._send_context(self._logged.model_for(turn_request), max_tokens)
        run_request = self._build_run_request(
            send_context,
            toolbox,
            bounds,
            turn_request=turn_request if runner is None else replace(turn_request, runner=runner),
        )
        return self._exclusive_events(start_run(run_request, default=named))

    def resume(
        self,
        *,
        tools: Sequence[Tool | ToolFunction] | None = None,
        max_tokens: int | None = None,
        **limits: Unpack[GivenLimits],
    ) -> AsyncGenerator[Event, None]:
        """Continue a turn that was left open: run the calls that wait for results, then send it.

        The runner of the original question continues. Earlier usage counts against the limits, except the time.
        """
        bounds = merge_limits(self._logged.limits, limits)
        toolbox = self._merge_tools(tools, seconds=bounds.call_seconds)
        return self._exclusive_events(self._resume(None, toolbox, max_tokens=max_tokens, limits=bounds))

    async def keep_alive(self, *, once: bool = False) -> int:
        """Keep the provider's cache alive as settings say, or ``once`` if that is due now; return how often."""
        return await keep_alive(
            self._logged, lambda one: self._provider_pool().send_context_for(one, max_answer_tokens=1), once=once
        )

    def _resolve_runner(self, runner: str | None) -> str:
        """Return the runner to use; raises an error if there is no such runner."""
        named = self._logged.default_runner if runner is None else runner
        if named not in self._runners:
            get_runner(named, self._runners)
        return named

    def _choose_tool_definitions(
        self, tools: Sequence[Tool | ToolFunction] | None, toolbox: LocalToolset | None, *, runner: str
    ) -> tuple[ToolDefinition, ...] | None:
        """Return the tool definitions for the request, or None to keep those of the last turn.

        After another runner answered, all tools that were ever given are offered again.
        """
        if toolbox is None or (tools is None and self._logged.last_runner in (None, runner)):
            return None
        return toolbox.all_definitions if tools is None else toolbox.definitions

    def list_builtin_tools(self) -> Sequence[Tool]:
        """Return the built-in tools of the engine for this conversation."""
        return self._runner_context.make_tools(self._logged)

    def _trust_model(self, model: str) -> str:
        """Return the model name and mark it as trusted, since the program named it."""
        named = super()._trust_model(model)
        if self._pool is not None:
            self._pool.trust_model(named)
        return named

    async def _resume(
        self, turn: BuiltTurn | None, toolbox: LocalToolset | None, *, max_tokens: int | None, limits: TurnLimits
    ) -> AsyncGenerator[Event, None]:
        """Send a waiting turn, by default the one that waits in the log, with its open calls."""
        waits, calls = await self._provider_pool().workers.run(
            lambda: (turn or self._logged.resume_pending_turn(), self._logged.pending_tool_calls)
        )
        if waits is None or waits.envelope.message_id != self._logged.head:
            raise InvalidOperationError(
                "This turn waits for no answer.", hint="Ask something, or regenerate the last answer."
            )
        send_context = self._send_context(waits.envelope.model, max_tokens)
        run_request = self._build_run_request(send_context, toolbox, limits, turn=waits, calls=tuple(calls))
        events = start_run(run_request, default=self._logged.default_runner)
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
            conversation=self._logged,
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
        window = self._logged.window
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

    async def _exclusive_events(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """Yield events and allow only one turn at a time: an answer belongs to the question asked last."""
        self._check_idle()
        self._is_sending = True
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._is_sending = False

    def _check_idle(self) -> None:
        if self._is_sending:
            raise InvalidOperationError(
                "A turn is being sent.", hint="Wait for its answer, or close its iterator to stop it."
            )

    def commit(self, planned: CompactionProposal, *, at: datetime | None = None) -> CompactionReceipt:
        """Carry out a planned compaction; a waiting turn is ended, and a turn being sent raises an error."""
        self._check_idle()
        return super().commit(planned, at=at)

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> CompactionReceipt:
        """Undo a compaction, by default the last, and all later ones; a waiting turn is ended."""
        self._check_idle()
        return super().undo(receipt, at=at)

    def set(self, **settings: object) -> None:
        """Change settings of the conversation from the next turn on, as with ``engine.chat()``."""
        for name in ("model", "summarizer"):
            model = settings.get(name)
            if self._pool is not None and isinstance(model, str):
                self._pool.trust_model(check_text(model, name, may_be_empty=False))
        self._logged.set(settings)

    @property
    def memory(self) -> str:
        """Return the user memory as it is in the prompt of this conversation."""
        return self._logged.memory

    def refresh_memory(self) -> str | None:
        """Load the user memory again with the next turn; return the first change in the prompt, or None."""
        return self._logged.refresh_memory()

    def summarize_in_one_line(self) -> str:
        """Summarise the conversation in one line.

        The summary model is called now, which may take a while. In a thread with a running event loop no model is
        called.
        """
        return self._logged.summarize_in_one_line().text

    def ledger(self) -> Sequence[Sequence[ModelCall]]:
        """Return the model calls of each turn of the active branch."""
        return self._logged.ledger()

    def profile_mismatches(self) -> Sequence[ProfileMismatch]:
        """Return where reported cache usage contradicts the profile of a model, and values that would fit."""
        return self._logged.profile_mismatches()

    def compaction_markers(self) -> Sequence[CompactionMarker]:
        """Return every compaction and every undo, each with the message after which it happened."""
        return list_compaction_markers(self.id, self._backend.store.load(self.id))

    def replay(
        self, *, layout: str | None = None, window: int | None = None, model: str | None = None, head: str | None = None
    ) -> Iterator[BuiltTurn]:
        """Yield each turn of a branch as it would be sent, optionally under other settings.

        The default branch is the active one. Manual compactions are planned again as settings say. Nothing is sent,
        read from files or written.
        """
        given = {"layout": layout, "window": window, "model": model}
        script = load_script(self._backend, self.id, head)
        return replay_conversation_script(
            self._backend, script, {name: value for name, value in given.items() if value is not None}
        )

    def transcript(self, head: str | None = None) -> dict[str, object]:
        """Return a branch as a transcript, by default the active one; as JSON it is input of ``lamella replay``."""
        return script_to_transcript(load_script(self._backend, self.id, head))

    @property
    def id(self) -> str:
        """Return the key of the conversation, which is unique and never reused."""
        return self._logged.id

    @property
    def name(self) -> str:
        """Return the name of the conversation in this store."""
        return self._logged.name

    @property
    def title(self) -> str:
        """Return the title of the conversation."""
        return self._logged.title

    @property
    def head(self) -> str:
        """Return the id of the last message of the active branch."""
        return self._logged.head

    def turns(self, head: str | None = None) -> Sequence[TurnRecord]:
        """Return the turn records of a branch, by default of the active one."""
        return self._logged.turns(head)

    def sources(self, message: str | None = None) -> Sequence[Citation]:
        """Return the sources cited in a reply, by default in the last one; ``[^1]`` is the first.

        ``message`` is the id of the reply or of its question, on any branch.
        """
        records = self._logged.turns(None if message is None else check_text(message, "message"))[-1:]
        hashes = [name for one in records for name in list_citation_hashes(one)]
        contents = self._backend.store.read_contents(self.id, hashes) if hashes else {}
        return tuple(source for one in records for source in read_citations(one, contents))

    def add_turns(self, turns: Sequence[tuple[str, str]], *, at: datetime | None = None) -> None:
        """Append questions with their answers from elsewhere; nothing is sent or read."""
        self._logged.add_turns(check_exchanges(turns), at=check_time(at))

    def messages(self, head: str | None = None) -> BranchMessages:
        """Return the messages of a branch with tool results, sources and compactions, by default the active one."""
        records = self._backend.store.load(self.id)
        return load_branch_messages(
            self._backend.store, self.id, self.turns(head), markers=list_compaction_markers(self.id, records)
        )

    def get_turn(self, message: str) -> TurnRecord:
        """Return the turn of a question, with its answer if any branch has one.

        The active branch is searched first, then the others from the one that ended last.
        """
        named = check_text(message, "message")
        heads = (self.head, *reversed(self.branches())) if self.head else ()
        found = next((record for head in heads for record in self.turns(head) if record.message.id == named), None)
        return self.turns(named)[-1] if found is None else found

    def replay_answer(self, message: str, after_position: StreamPosition | None = None) -> Sequence[PositionedEvent]:
        """Return the recorded answer to a question as events, or the part after a position."""
        record = self.get_turn(message)
        contents = load_branch_messages(self._backend.store, self.id, [record]).contents
        return replay_turn_events(record, contents, after_position=after_position)

    def offered_tools(self, turn: BuiltTurn) -> Sequence[Tool]:
        """Return the tools that a turn offers to the model; the caller has to run their calls."""
        told = turn.envelope.prompt.tools
        return [Tool(name=one.name, description=one.description, parameters=json.loads(one.parameters)) for one in told]

    def pending_turn(self) -> BuiltTurn | None:
        """Return the turn that waits for its answer, or None; ``resume`` continues it."""
        return self._logged.pending_turn()

    def has_message(self, message: str) -> bool:
        """Return whether any branch of the conversation has this message."""
        return self._logged.has_message(check_text(message, "message"))

    @property
    def settings(self) -> Mapping[str, object]:
        """Return the conversation's own settings by name, whether already stored or not."""
        return self._logged.settings

    def save_settings(self, *, at: datetime | None = None) -> None:
        """Store changed settings now instead of with the next event; this also creates a new conversation."""
        self._logged.save_settings(at=check_time(at))

    def branches(self) -> Sequence[str]:
        """Return every branch by its last message; editing, regenerating, deleting and forking lose none."""
        return self._logged.branches()

    def edit(self, message: str, text: str, *, at: datetime | None = None) -> BuiltTurn:
        """Replace a question by another text, with the same attachments, and return the turn to send."""
        return self._logged.edit(check_text(message, "message"), check_text(text, "text"), at=check_time(at))

    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> BuiltTurn:
        """Open a question again, by default the last one; the next reply becomes a second branch.

        ``model`` answers it this time and from then on; by default the model does not change.
        """
        named = None if message is None else check_text(message, "message")
        other = None if model is None else self._trust_model(model)
        return self._logged.regenerate(named, model=other, at=check_time(at))

    def delete(self, message: str, *, at: datetime | None = None) -> None:
        """Continue without a message; a question is removed together with its answer."""
        self._logged.delete(check_text(message, "message"), at=check_time(at))

    def fork(self, message: str, *, at: datetime | None = None) -> None:
        """Continue from an earlier message."""
        self._logged.fork(check_text(message, "message"), at=check_time(at))

    def switch(self, head: str, *, at: datetime | None = None) -> None:
        """Make another branch the active one."""
        self._logged.switch(check_text(head, "head"), at=check_time(at))

    def rename(self, title: str, *, at: datetime | None = None) -> None:
        """Give the conversation a title."""
        self._logged.rename(check_text(title, "title"), at=check_time(at))

    def reload(self) -> None:
        """Read what other processes wrote; after a conflict, call this and repeat the change."""
        self._logged.reload()
