"""The parts that all runners use: run requests, the runners by name, and auxiliary calls.

A runner turns a ``RunRequest`` into events and records the answer. ``start_run`` starts the runner that a question
names, and every runner ends in ``execute_run``. ``record_question`` records a question before retrieval for it starts,
so that an interrupted run can be resumed. ``run_auxiliary_call`` calls the model on the way to an answer, for example
for a plan; such calls are not messages of the conversation, but the ledger records each with its cost.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from inspect import getdoc
from typing import TYPE_CHECKING

from msgspec import Struct

from lamella.attach import Tool
from lamella.conversation.compaction import run_restarting_for_summaries
from lamella.conversation.note_index import NoteIndex
from lamella.conversation.tool_executor import LocalToolset, Toolset, ToolSource
from lamella.conversation.turn import BuiltTurn, ModelAnswer, RecallOffer, TurnRequest
from lamella.conversation.turn_runner import (
    PartialAnswer,
    SendContext,
    TurnEvent,
    TurnLimits,
    TurnRunner,
    TurnUsage,
    elapsed_seconds,
    get_cut_reason,
    stream_with_retries,
)
from lamella.core.log.call import ANSWER_PURPOSE, CallTiming
from lamella.core.messages import Message, ModelReply, ModelRequest, StopDelta, StopReason, ToolCall, reply_from_deltas
from lamella.core.values import replace
from lamella.errors import InvalidReplyError, NotAvailableError
from lamella.ports import ProjectFolder

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation

# The runner that answers if none is chosen.
DEFAULT_RUNNER = "chat"


def _no_tools(_chat: "Conversation | None") -> Sequence[Tool]:
    return ()


class RunnerContext(Struct, frozen=True, kw_only=True):
    """The context of runners: built-in tools, and the notes of the vault if there is one.

    Attributes:
        make_tools: Returns the tools for a conversation; with None, the available tools for listing only.
        note_index: The note index; it is opened with the first search.
        supports_tools: Returns whether a model can call tools.
        read_project: Returns the current content of the project folder.
        can_write_notes: Whether notes may be written at all.
        mcp_servers: MCP servers; they are started when their tools are requested.
        remember_tool: The tool that remembers a fact the user typed.
    """

    make_tools: Callable[["Conversation | None"], Sequence[Tool]] = _no_tools
    note_index: NoteIndex | None = None
    supports_tools: Callable[[str], bool] = bool
    read_project: Callable[[], ProjectFolder] | None = None
    can_write_notes: bool = False
    mcp_servers: ToolSource | None = None
    remember_tool: Tool | None = None


class RunRequest(Struct, frozen=True, kw_only=True):
    """A question in its conversation, with its send context, the caller's tools and the runner context.

    Attributes:
        turn_request: What the user asks; None continues the waiting ``turn``.
        turn: The recorded turn that waits for an answer.
        pending_calls: The open calls that the waiting turn starts with.
        started_at: When the turn was recorded, if this run recorded it; then both ``turn_request`` and ``turn`` are
            set.
        runners: All runners, for a runner that delegates to another one.
    """

    conversation: "Conversation"
    send_context: SendContext
    turn_request: TurnRequest | None = None
    turn: BuiltTurn | None = None
    pending_calls: tuple[ToolCall, ...] = ()
    started_at: datetime | None = None
    toolset: LocalToolset | None = None
    limits: TurnLimits = TurnLimits()
    runner_context: RunnerContext = RunnerContext()
    runners: Mapping[str, "Runner"] = {}


# Running.
Runner = Callable[[RunRequest], AsyncGenerator[TurnEvent, None]]


def execute_run(run_request: RunRequest, *, tools: Toolset | None = None) -> AsyncGenerator[TurnEvent, None]:
    """Ask or continue the waiting turn, send it and record the answer; every runner ends here.

    ``tools`` run the calls; by default the caller's tools and recall do.
    """
    if tools is None:
        run_request = with_recall_offer(run_request)
    runner = TurnRunner(
        run_request.conversation,
        run_request.send_context,
        toolset=tools or run_request.toolset,
        limits=run_request.limits,
    )
    if run_request.turn is None:
        assert run_request.turn_request is not None, "a run asks something, or continues a turn"
        return runner.ask(run_request.turn_request)
    return runner.resume(run_request.turn, pending_calls=run_request.pending_calls, started_at=run_request.started_at)


def with_recall_offer(run_request: RunRequest) -> RunRequest:
    """Return the run request with the recall tool, which is offered if something was left out of the request.

    It is not offered to a model without tools, nor if the request withdraws all tools.
    """
    turn_request, recall, given = run_request.turn_request, run_request.conversation.recall_tool, run_request.toolset
    is_possible = run_request.runner_context.supports_tools(run_request.send_context.model)
    if not is_possible or _has_tool(given, recall.name):
        return run_request
    if turn_request is not None:
        turn_request = with_recall_tool_offer(recall, turn_request, toolset=given)
    toolset = LocalToolset([recall], call_timeout=run_request.limits.call_seconds, earlier=given)
    return replace(run_request, turn_request=turn_request, toolset=toolset)


def _has_tool(toolset: LocalToolset | None, name: str) -> bool:
    return toolset is not None and any(one.name == name for one in toolset.all_definitions)


def with_recall_tool_offer(recall: Tool, turn_request: TurnRequest, *, toolset: LocalToolset | None) -> TurnRequest:
    """Return the turn request with the recall tool, which is offered if something is left out.

    ``toolset`` has the tools that can be run. A request that withdraws all tools, or has this one, stays as it is.
    """
    if turn_request.tools == () or _has_tool(toolset, recall.name):
        return turn_request
    runnable = frozenset() if toolset is None else toolset.runnable_names
    offer = RecallOffer(definition=recall.to_definition(), runnable=runnable)
    return replace(turn_request, recall_offer=offer)


def start_run(run_request: RunRequest, *, default: str) -> AsyncGenerator[TurnEvent, None]:
    """Return the events of a run, from the runner that the question names or from the default runner.

    A waiting turn is continued by the runner that it was asked with.
    """
    if run_request.turn_request is not None:
        name = run_request.turn_request.runner or default
    else:
        assert run_request.turn is not None, "a run asks something, or continues a turn"
        name = run_request.turn.envelope.prompt.turn_settings.runner
    run = run_request.runners.get(name) or get_runner(name, run_request.runners)
    return run(run_request)


def list_runners(runners: Mapping[str, Runner]) -> dict[str, str]:
    """Return the runners by name, each with the first line of its docstring as description."""
    return {name: (getdoc(run) or "").partition("\n")[0] for name, run in runners.items()}


def get_runner(name: str, runners: Mapping[str, Runner]) -> Runner:
    """Return a runner by name; raises an error that lists the known runners."""
    if name not in runners:
        known = ", ".join(runners) or "none"
        raise NotAvailableError(f"There is no runner {name!r} here.", hint=f"Choose one of: {known}.")
    return runners[name]


# Retrieval: record the question first, then add what was found.


async def record_question(run_request: RunRequest) -> RunRequest:
    """Record the question before anything is retrieved for it, so that an interrupted run can be resumed."""
    if run_request.turn_request is None or run_request.turn is not None:
        return run_request
    began = run_request.send_context.clock.now()
    turn = await run_restarting_for_summaries(
        partial(run_request.conversation.ask, run_request.turn_request, at=began),
        run_request.send_context.workers.run_uncancellable,
    )
    return replace(run_request, turn=turn, started_at=began)


async def record_retrieved(run_request: RunRequest, retrieved: TurnRequest) -> RunRequest:
    """Return the run request with the retrieved material added to its question, or unchanged if there is none."""
    if not (retrieved.attach or retrieved.results or retrieved.citations or retrieved.warnings):
        return run_request
    at, before = run_request.send_context.clock.now(), run_request.turn
    turn = await run_restarting_for_summaries(
        partial(run_request.conversation.add_retrieved_to_pending_turn, retrieved, at=at),
        run_request.send_context.workers.run_uncancellable,
    )
    if turn.compaction is None and before is not None:
        # A compaction that was made for the question still belongs to its turn.
        turn = replace(turn, compaction=before.compaction)
    return replace(run_request, turn=turn)


async def was_retrieval_done(run_request: RunRequest) -> bool:
    """Return whether retrieval for the question was already done: it has results, or it was answered before."""
    if run_request.turn is None:
        return False
    record, made = await run_request.send_context.workers.run(
        lambda: (run_request.conversation.turns()[-1], run_request.conversation.ledger()[-1])
    )
    asked = record.message.question_event
    found = asked is not None and (asked.results or asked.sources)
    return bool(found or record.open_rounds) or any(call.purpose == ANSWER_PURPOSE for call in made)


async def limit_reached_message(run_request: RunRequest) -> str:
    """Return a text naming the limit that a turn has reached before its first answer, or ""."""
    usage = TurnUsage(
        run_request.limits,
        clock=run_request.send_context.clock,
        started=run_request.started_at or run_request.send_context.clock.now(),
    )
    if usage.has_usage_limits:
        usage.recompute_usage_from_calls(
            (await run_request.send_context.workers.run(run_request.conversation.ledger))[-1], answer_count=0
        )
    return usage.limit_reached_message(0)


def get_typed_text(run_request: RunRequest) -> str:
    """Return the typed text of the turn request, or of the turn that waits for its answer."""
    return (
        run_request.conversation.turns()[-1].message.typed
        if run_request.turn_request is None
        else run_request.turn_request.text
    )


# Auxiliary calls.

# Called when a model has answered an auxiliary call, completely or in part.
RecordAnswer = Callable[[ModelAnswer], Awaitable[None]]


async def run_auxiliary_call(
    run_request: RunRequest, messages: Sequence[Message], *, max_answer_tokens: int, purpose: str
) -> ModelReply:
    """Send messages outside the conversation to the model of a run and return its reply.

    The call is recorded in the ledger of the current turn under ``purpose``. It is retried like a normal answer. If
    the settings block secrets, text that looks like a secret is not sent here either.
    """
    send_context, chat, after = run_request.send_context, run_request.conversation, run_request.conversation.head
    chat.check_no_secrets(
        [(f"what is asked for a {purpose}", message.text) for message in messages], model=send_context.model
    )
    # A user who wants reproducible answers needs reproducible auxiliary calls as well.
    temperature = chat.current_state[1].temperature
    request = ModelRequest(
        model=send_context.model, messages=tuple(messages), max_output_tokens=max_answer_tokens, temperature=temperature
    )

    async def note(given: ModelAnswer) -> None:
        at = send_context.clock.now()

        def write() -> None:
            if send_context.on_answer is not None:
                send_context.on_answer()
            chat.record_auxiliary_call(request, given, purpose=purpose, after_message_id=after, at=at)

        await send_context.workers.run_uncancellable(write)

    return await send_auxiliary_call(request, send_context, record_answer=note)


async def send_auxiliary_call(
    request: ModelRequest, send_context: SendContext, *, record_answer: RecordAnswer
) -> ModelReply:
    """Send a request, with retries, and return the reply; ``record_answer`` gets the answer, also a partial one."""
    attempt = PartialAnswer(started=send_context.clock.now())

    async def make() -> ModelRequest:
        return request

    try:
        async with aclosing(stream_with_retries(attempt, make, send_context)) as coming:
            async for one in coming:
                attempt.deltas += () if isinstance(one, tuple) else (one,)
        reply = reply_from_deltas(attempt.deltas)
        if reply is None:
            raise InvalidReplyError(
                f"{request.model} ended without an end to what it said.", hint="Ask again, or ask another model."
            )
    except BaseException as error:
        await _record_interrupted_call(attempt, send_context, ended=get_cut_reason(error), record_answer=record_answer)
        raise
    await record_answer(_build_answer(reply, attempt, send_context))
    return reply


async def _record_interrupted_call(
    attempt: PartialAnswer, send_context: SendContext, *, ended: str, record_answer: RecordAnswer
) -> None:
    """Record a call that was cut off; a call without any output is not recorded.

    It is unknown whether such a call reached the provider at all.
    """
    reply = reply_from_deltas([*attempt.deltas, StopDelta(reason=StopReason.OTHER)])
    if attempt.deltas and reply is not None:
        await record_answer(replace(_build_answer(reply, attempt, send_context), end_reason=ended))


def _build_answer(reply: ModelReply, attempt: PartialAnswer, send_context: SendContext) -> ModelAnswer:
    timing = CallTiming(
        first=attempt.first_token_seconds, total=elapsed_seconds(attempt.started, send_context.clock.now())
    )
    return ModelAnswer(
        reply=reply, timing=timing, retries=attempt.retries, predicted_cache_usage=attempt.predicted_cache_usage
    )
