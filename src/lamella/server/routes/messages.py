"""Routes for messages: ask, follow, stop, resume, edit, regenerate, and submit tool results."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated

from fastapi import Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella import ToolOutput
from lamella.attach import Tool
from lamella.conversation.conversation import Conversation
from lamella.conversation.runs import Run, StreamPosition, parse_event_id, with_start_event
from lamella.conversation.turn_runner import TurnEvent
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.schemas.answers import FinishedTurnJson, PermissionAnswerJson, done_event_to_json, event_to_json
from lamella.schemas.conversations import StoppedConversationJson, SwitchedConversationJson
from lamella.schemas.ledger import KeepAliveResultJson, expired_cache_to_json_or_none
from lamella.server.openapi import EVENT_STREAM_DOCS, ResponseDocs, describe_response, make_router
from lamella.server.routes.conversations import resolve_message_id
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.server.turns import (
    AttachedList,
    SendTurn,
    ServerTurn,
    SseResponse,
    StreamedBody,
    build_response,
    follow_run,
    parse_attachments,
    resolve_links,
    stream_events,
    with_notice_events,
)

router = make_router(prefix="/v1/conversations/{conversation}", tag="messages")
MessageId = Annotated[str, Path(min_length=1, max_length=100)]
_NameList = Annotated[list[str], Field(max_length=500)]
_MaxTokens = Annotated[int | None, Field(ge=1, le=10_000_000)]
# The interval, in seconds, at which to check whether another process has answered.
_POLL_SECONDS = 0.3
_ANSWER_DOCS = describe_response(
    FinishedTurnJson, other_content=EVENT_STREAM_DOCS, description="Events, or the whole answer."
)
_EVENT_DOCS: ResponseDocs = {200: {"content": EVENT_STREAM_DOCS, "description": "Events."}}


class _AnswerBody(BaseModel):
    """Options of an answer: a stream or one body, and whether to wait for a turn that is running."""

    model_config = ConfigDict(extra="forbid")

    stream: bool = True
    queue: Annotated[bool, Field(description="Wait for the turn that is under way, in place of 409.")] = False
    permissions: Annotated[
        bool,
        Field(
            description="Ask before a model writes a note or a fact, with the event `permission`, and wait for "
            "`POST …/permissions/{id}`. Without it, what needs a yes is not written."
        ),
    ] = False
    max_tokens: _MaxTokens = None


class ToolBody(BaseModel):
    """A tool that the client runs; its calls come back in the event `done`."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: str = ""
    parameters: dict[str, JsonValue] = {}


class TurnRequestBody(_AnswerBody):
    """A question, its attachments and its options."""

    text: Annotated[str, Field(examples=["Summarize this"])]
    attach: AttachedList = []
    detach: _NameList = []
    drop: _NameList = []
    pin: _NameList = []
    unpin: _NameList = []
    fold: bool = False
    memory: Annotated[bool, Field(description="Take up what changed in the memory.")] = False
    system: str | dict[str, str] | None = None
    model: Annotated[str | None, Field(max_length=300)] = None
    runner: Annotated[str | None, Field(max_length=100)] = None
    tools: Annotated[list[ToolBody] | None, Field(max_length=200)] = None


class EditBody(_AnswerBody):
    """A new text for a question."""

    text: str


class RegenerateBody(_AnswerBody):
    """Options for regenerating the answer to a question."""

    model: Annotated[str | None, Field(max_length=300)] = None


class ResumeBody(_AnswerBody):
    """Options for resuming an unfinished turn."""


class PermissionAnswerBody(BaseModel):
    """The user's answer to a model that wants to write."""

    model_config = ConfigDict(extra="forbid")

    allowed: bool


class ToolOutputBody(BaseModel):
    """The result of a tool call."""

    model_config = ConfigDict(extra="forbid")

    call: Annotated[str, Field(min_length=1, max_length=500)]
    output: str
    failed: bool = False


class ResultsBody(_AnswerBody):
    """The results of the last answer's tool calls, one for each."""

    outputs: Annotated[list[ToolOutputBody], Field(min_length=1, max_length=500)]


async def _start_and_respond(
    request: Request, state: ServerState, caller: Caller, *, conversation: str, body: _AnswerBody, send: SendTurn
) -> Response:
    """Start a turn, and respond with a stream or one body, as the request says."""
    asking = ServerTurn(state, caller)
    run = await asking.start(conversation, send, queue=body.queue, asks_user=body.permissions)
    return await build_response(asking, run, request, stream=body.stream)


@router.post("/messages", summary="Ask", response_class=Response, responses=_ANSWER_DOCS)
async def ask(
    *, request: Request, conversation: str, body: TurnRequestBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Ask a question. The event `envelope` says that the question is stored, `done` that its answer is."""

    async def send(chat: Conversation) -> AsyncGenerator[TurnEvent, None]:
        # Files are read in a worker thread, not on the event loop. Most questions name none, and need no worker.
        workers = state.engine_pool.pool.workers
        attach = await workers.run(lambda: parse_attachments(body.attach, state)) if body.attach else []
        linked, notes = await workers.run(lambda: resolve_links(body.text, state)) if "[[" in body.text else ([], [])
        if body.memory:
            await workers.run(chat.refresh_memory_next_turn)
        events = chat.send(
            body.text,
            attach=[*attach, *linked],
            tools=None
            if body.tools is None
            else [Tool(name=one.name, description=one.description, parameters=one.parameters) for one in body.tools],
            system=body.system,
            model=body.model,
            drop=body.drop,
            detach=body.detach,
            pin=body.pin,
            unpin=body.unpin,
            fold=body.fold,
            runner=body.runner,
            max_tokens=body.max_tokens,
        )
        return with_notice_events(notes, events) if notes else events

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.put("/messages/{message}", summary="Edit a question", response_class=Response, responses=_ANSWER_DOCS)
async def edit(
    *, request: Request, conversation: str, message: MessageId, body: EditBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Ask another text in place of a question; the old branch stays.

    The attachments of the question and the notes that the new text links are attached.
    """

    async def send(chat: Conversation) -> AsyncGenerator[TurnEvent, None]:
        question, workers = resolve_message_id(chat, message), state.engine_pool.pool.workers
        linked, notes = await workers.run(lambda: resolve_links(body.text, state)) if "[[" in body.text else ([], [])
        turn = await workers.run_uncancellable(lambda: chat.edit(question, body.text, attach=linked))
        events = with_start_event(turn, chat.send(turn, max_tokens=body.max_tokens))
        return with_notice_events(notes, events) if notes else events

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/messages/{message}/regenerate", summary="Answer again", response_class=Response, responses=_ANSWER_DOCS)
async def regenerate(
    *,
    request: Request,
    conversation: str,
    message: MessageId,
    body: RegenerateBody,
    state: StateDep,
    caller: ChatCaller,
) -> Response:
    """Answer a question again; the earlier answer stays on its branch."""

    async def send(chat: Conversation) -> AsyncGenerator[TurnEvent, None]:
        question = resolve_message_id(chat, message)
        turn = await state.engine_pool.pool.workers.run_uncancellable(
            lambda: chat.regenerate(question, model=body.model)
        )
        return with_start_event(turn, chat.send(turn, max_tokens=body.max_tokens))

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/messages/{message}/results", summary="Results of tools", response_class=Response, responses=_ANSWER_DOCS)
async def submit_tool_results(
    *, request: Request, conversation: str, message: MessageId, body: ResultsBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Submit the results of the last answer's tool calls; the turn continues with them."""

    async def send(chat: Conversation) -> AsyncGenerator[TurnEvent, None]:
        if chat.head != resolve_message_id(chat, message):
            raise InvalidOperationError(
                f"The question {message} waits for no results.", hint="Hand back what the last one asked."
            )
        given = [ToolOutput(call=one.call, output=one.output, failed=one.failed) for one in body.outputs]
        turn = await state.engine_pool.pool.workers.run_uncancellable(lambda: chat.submit_tool_outputs(given))
        return with_start_event(turn, chat.send(turn, tools=chat.offered_tools(turn), max_tokens=body.max_tokens))

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/resume", summary="Go on with an open turn", response_class=Response, responses=_ANSWER_DOCS)
async def resume(
    *, request: Request, conversation: str, body: ResumeBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Resume a turn that was left open, for example by a server that was killed."""

    async def send(chat: Conversation) -> AsyncGenerator[TurnEvent, None]:
        pending_turn = await state.engine_pool.pool.workers.run(chat.prepare_pending_turn)
        events = chat.resume(max_tokens=body.max_tokens)
        return events if pending_turn is None else with_start_event(pending_turn, events)

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/stop", summary="Stop the turn that is under way")
async def stop(*, conversation: str, state: StateDep, caller: ChatCaller) -> StoppedConversationJson:
    """Stop the model; text that arrived until then is kept. Without a running turn, nothing happens."""
    key = await state.engine_pool.pool.workers.run(lambda: state.get_conversation_key(caller, conversation))
    stopped = await state.runs.stop(key)
    chat = await state.get_engine(caller).conversation(key)
    return StoppedConversationJson(conversation=chat.id, name=chat.name, stopped=stopped, head=chat.head)


@router.post("/permissions/{permission}", summary="Let a model write, or not")
async def answer_permission(
    *,
    conversation: str,
    permission: Annotated[str, Path(min_length=1, max_length=100)],
    body: PermissionAnswerBody,
    state: StateDep,
    caller: ChatCaller,
) -> PermissionAnswerJson:
    """Answer the event `permission` of the turn that is under way, with yes or no. The model then continues."""
    key = await state.engine_pool.pool.workers.run(lambda: state.get_conversation_key(caller, conversation))
    await state.runs.answer_permission(key, permission, allowed=body.allowed)
    return PermissionAnswerJson(conversation=key, permission=permission, allowed=body.allowed)


@router.post("/keep-alive", summary="Keep the provider's cache")
async def keep_alive(*, conversation: str, state: StateDep, caller: ChatCaller) -> KeepAliveResultJson:
    """Send the last request again if that is due and pays, so that the cache keeps it; otherwise nothing is sent."""
    key = await state.engine_pool.pool.workers.run(lambda: state.get_conversation_key(caller, conversation))
    async with state.runs.exclusive(key):
        chat = await state.get_engine(caller).conversation(key)
        sent = bool(await chat.keep_alive(once=True))
        expired = await state.engine_pool.pool.workers.run(chat.estimate_cache_expiry)
    return KeepAliveResultJson(conversation=key, sent=sent, cold=expired_cache_to_json_or_none(expired))


@router.delete("/messages/{message}", summary="Go on without a message")
async def delete(
    *, conversation: str, message: MessageId, state: StateDep, caller: ChatCaller
) -> SwitchedConversationJson:
    """Continue without a message, on a branch of its own; a question is deleted with its answer."""

    def do(chat: Conversation) -> SwitchedConversationJson:
        chat.delete(resolve_message_id(chat, message))
        return SwitchedConversationJson(conversation=chat.id, name=chat.name, head=chat.head)

    return await state.change_conversation(caller, conversation, do)


@router.get("/messages/{message}/events", summary="Follow an answer", response_class=Response, responses=_EVENT_DOCS)
async def follow(
    *,
    conversation: str,
    message: MessageId,
    state: StateDep,
    caller: ReadCaller,
    last_event_id: Annotated[str | None, Header(max_length=300)] = None,
    after: Annotated[str | None, Query(max_length=300, description="As the header, for who cannot set one.")] = None,
) -> Response:
    """Stream the events of an answer, all or those after `Last-Event-ID`: live, or from the log once it has ended."""
    key = await state.engine_pool.pool.workers.run(lambda: state.get_conversation_key(caller, conversation))
    given = last_event_id or after
    position = None if not given else parse_event_id(given)
    chat = await state.get_engine(caller).conversation(key)
    message = resolve_message_id(chat, message)
    if position is not None and position.message_id != message:
        raise InvalidOperationError(
            "This id is of another question.", hint="Follow the question that the id begins with."
        )
    run = _get_run(state, key, message=message, after_position=position)
    if run is not None:
        known = position if position is not None and position.run == run.name else None
        return SseResponse(stream_events(follow_run(run, known)))
    return SseResponse(
        stream_events(_replay_or_follow_answer(state, caller, key, message=message, after_position=position))
    )


def _get_run(state: ServerState, key: str, *, message: str, after_position: StreamPosition | None) -> Run | None:
    """Return the run of an answer: the running one, or the one of the stream position while it is remembered."""
    under = state.runs.find_run(key)
    known = None if after_position is None else state.runs.find_run_by_name(after_position.run)
    return next(
        (run for run in (under, known) if run and (run.conversation_key, run.message_id) == (key, message)), None
    )


async def _replay_or_follow_answer(
    state: ServerState, caller: Caller, key: str, *, message: str, after_position: StreamPosition | None
) -> AsyncGenerator[StreamedBody, None]:
    """Yield the events of an answer from the log, after waiting for one that another process is giving."""
    events = await _load_answer_events(state, caller, key, message=message, after_position=after_position)
    is_running = True
    while is_running and not _has_end_event(events):
        # The order matters: check the reservation first, then read the log. Everything that the other process wrote
        # before it released the conversation is then in the log.
        is_running = await state.runs.is_answered_elsewhere(key)
        if is_running:
            await asyncio.sleep(_POLL_SECONDS)
        events = await _load_answer_events(state, caller, key, message=message, after_position=after_position)
    for one in events:
        yield one
    if not _has_end_event(events):
        raise InvalidReplyError(
            f"The answer to {message} was cut off before it was written down.",
            hint="POST …/resume has the question answered.",
        )


async def _load_answer_events(
    state: ServerState, caller: Caller, key: str, *, message: str, after_position: StreamPosition | None
) -> Sequence[StreamedBody]:
    chat = await state.get_engine(caller).conversation(key)
    workers = state.engine_pool.pool.workers
    events = await workers.run(lambda: chat.replay_answer(message, after_position))
    turn = await workers.run(lambda: chat.get_turn(message))
    reply = None if turn.reply is None else turn.reply.id
    return [
        (
            position,
            event.kind,
            done_event_to_json(event, conversation_key=key, message_id=message, reply_id=reply, cut=turn.cut_reason)
            if event.kind == "done"
            else event_to_json(event),
        )
        for position, event in events
    ]


def _has_end_event(events: Sequence[StreamedBody]) -> bool:
    return bool(events) and events[-1][1] == "done"
