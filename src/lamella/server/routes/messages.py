"""Routes for messages: ask, follow, stop, resume, edit, regenerate, and submit tool results."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella import ToolOutput
from lamella.attach import Tool
from lamella.conversation.conversation import StoredConversation
from lamella.conversation.runs import PositionedEvent, Run, StreamPosition, is_stopped, parse_event_id, with_start_event
from lamella.conversation.turn_runner import Event
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.schemas.conversations import outcome_to_json
from lamella.schemas.ledger import expired_cache_to_json
from lamella.server.bodies import (
    AnswerJson,
    KeepAliveResultJson,
    ResponseDocs,
    StoppedConversationJson,
    SwitchedConversationJson,
    response_docs,
)
from lamella.server.routes.conversations import check_message
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.server.turns import (
    EVENT_STREAM_DOCS,
    AttachedList,
    SendTurn,
    ServerTurn,
    SseResponse,
    build_response,
    end_event_body,
    parse_attachments,
    replay_events,
    stream_events,
)

router = APIRouter(prefix="/v1/conversations/{conversation}", tags=["messages"])
MessageId = Annotated[str, Path(min_length=1, max_length=100)]
_NameList = Annotated[list[str], Field(max_length=500)]
_MaxTokens = Annotated[int | None, Field(ge=1, le=10_000_000)]
# The interval, in seconds, at which to check whether another process has answered.
_POLL_SECONDS = 0.3
_ANSWER_DOCS = response_docs(AnswerJson, content=EVENT_STREAM_DOCS, description="Events, or the whole answer.")
_EVENT_DOCS: ResponseDocs = {200: {"content": EVENT_STREAM_DOCS, "description": "Events."}}


class _AnswerBody(BaseModel):
    """Options of an answer: a stream or one body, and whether to wait for a turn that is running."""

    model_config = ConfigDict(extra="forbid")

    stream: bool = True
    queue: Annotated[bool, Field(description="Wait for the turn that is under way, in place of 409.")] = False
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
    run = await asking.start(conversation, send, queue=body.queue)
    return await build_response(asking, run, request, stream=body.stream)


@router.post("/messages", summary="Ask", response_class=Response, responses=_ANSWER_DOCS)
async def ask(
    *, request: Request, conversation: str, body: TurnRequestBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Ask a question. The event `envelope` says that the question is stored, `done` that its answer is."""

    async def send(chat: StoredConversation) -> AsyncGenerator[Event, None]:
        # Files are read in a worker thread, not on the event loop. Most questions name none, and need no worker.
        workers = state.engine_pool.pool.workers
        attach = await workers.run(lambda: parse_attachments(body.attach, state)) if body.attach else []
        if body.memory:
            await workers.run(chat.refresh_memory)
        return chat.send(
            body.text,
            attach=attach,
            tools=None if body.tools is None else [_make_tool(one) for one in body.tools],
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

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.put("/messages/{message}", summary="Edit a question", response_class=Response, responses=_ANSWER_DOCS)
async def edit(
    *, request: Request, conversation: str, message: MessageId, body: EditBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Ask another text in place of a question, with the same attachments; the old branch stays."""

    async def send(chat: StoredConversation) -> AsyncGenerator[Event, None]:
        check_message(chat, message)
        turn = await state.engine_pool.pool.workers.run_uncancellable(lambda: chat.edit(message, body.text))
        return with_start_event(turn, chat.send(turn, max_tokens=body.max_tokens))

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

    async def send(chat: StoredConversation) -> AsyncGenerator[Event, None]:
        check_message(chat, message)
        turn = await state.engine_pool.pool.workers.run_uncancellable(
            lambda: chat.regenerate(message, model=body.model)
        )
        return with_start_event(turn, chat.send(turn, max_tokens=body.max_tokens))

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/messages/{message}/results", summary="Results of tools", response_class=Response, responses=_ANSWER_DOCS)
async def submit_tool_results(
    *, request: Request, conversation: str, message: MessageId, body: ResultsBody, state: StateDep, caller: ChatCaller
) -> Response:
    """Submit the results of the last answer's tool calls; the turn continues with them."""

    async def send(chat: StoredConversation) -> AsyncGenerator[Event, None]:
        check_message(chat, message)
        if chat.head != message:
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

    async def send(chat: StoredConversation) -> AsyncGenerator[Event, None]:
        waits = await state.engine_pool.pool.workers.run(chat.pending_turn)
        events = chat.resume(max_tokens=body.max_tokens)
        return events if waits is None else with_start_event(waits, events)

    return await _start_and_respond(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/stop", summary="Stop the turn that is under way", responses=response_docs(StoppedConversationJson))
async def stop(*, conversation: str, state: StateDep, caller: ChatCaller) -> dict[str, object]:
    """Stop the model; text that arrived until then is kept. Without a running turn, nothing happens."""
    key = await state.engine_pool.pool.workers.run(lambda: state.get_conversation_key(caller, conversation))
    stopped = await state.runs.stop(key)
    chat = await state.get_engine(caller).conversation(key)
    return outcome_to_json(chat.id, chat.name, stopped=stopped, head=chat.head)


@router.post("/keep-alive", summary="Keep the provider's cache", responses=response_docs(KeepAliveResultJson))
async def keep_alive(*, conversation: str, state: StateDep, caller: ChatCaller) -> dict[str, object]:
    """Send the last request again if that is due and pays, so that the cache keeps it; otherwise nothing is sent."""
    key = await state.engine_pool.pool.workers.run(lambda: state.get_conversation_key(caller, conversation))
    async with state.runs.exclusive(key):
        chat = await state.get_engine(caller).conversation(key)
        sent = bool(await chat.keep_alive(once=True))
        cold = await state.engine_pool.pool.workers.run(chat.expired_cache)
    return {"lamella": 1, "conversation": key, "sent": sent, "cold": expired_cache_to_json(cold)}


@router.delete(
    "/messages/{message}", summary="Go on without a message", responses=response_docs(SwitchedConversationJson)
)
async def delete(*, conversation: str, message: MessageId, state: StateDep, caller: ChatCaller) -> dict[str, object]:
    """Continue without a message, on a branch of its own; a question is deleted with its answer."""

    def do(chat: StoredConversation) -> dict[str, object]:
        check_message(chat, message)
        chat.delete(message)
        return outcome_to_json(chat.id, chat.name, head=chat.head)

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
    place = None if not given else parse_event_id(given)
    if place is not None and place.message_id != message:
        raise InvalidOperationError(
            "This id is of another question.", hint="Follow the question that the id begins with."
        )
    chat = await state.get_engine(caller).conversation(key)
    check_message(chat, message)
    run = _get_run(state, key, message=message, after_position=place)
    if run is not None:
        known = place if place is not None and place.run == run.name else None
        return SseResponse(stream_events(run.follow(known), lambda: end_event_body(run)))
    end: dict[str, object] = {}
    events = _replay_answer(state, caller, key, message=message, after_position=place, end=end)
    return SseResponse(stream_events(events, lambda: end))


def _get_run(state: ServerState, key: str, *, message: str, after_position: StreamPosition | None) -> Run | None:
    """Return the run of an answer: the running one, or the one of the stream position while it is remembered."""
    under = state.runs.get_run(key)
    known = None if after_position is None else state.runs.find_run_by_name(after_position.run)
    return next(
        (run for run in (under, known) if run and (run.conversation_key, run.message_id) == (key, message)), None
    )


async def _replay_answer(
    state: ServerState,
    caller: Caller,
    key: str,
    *,
    message: str,
    after_position: StreamPosition | None,
    end: dict[str, object],
) -> AsyncGenerator[PositionedEvent, None]:
    """Yield the events of an answer from the log, after waiting for one that another process is giving.

    ``end`` is filled with the extra fields of the last event.
    """
    told, held = (
        await _load_answer_events(state, caller, key, message=message, after_position=after_position, end=end),
        True,
    )
    while held and not _has_end_event(told):
        # The order matters: check the reservation first, then read the log. Everything that the other process wrote
        # before it released the conversation is then in the log.
        held = await state.runs.is_answered_elsewhere(key)
        if held:
            await asyncio.sleep(_POLL_SECONDS)
        told = await _load_answer_events(state, caller, key, message=message, after_position=after_position, end=end)
    async for one in replay_events(told):
        yield one
    if not _has_end_event(told):
        raise InvalidReplyError(
            f"The answer to {message} was cut off before it was written down.",
            hint="POST …/resume has the question answered.",
        )


async def _load_answer_events(
    state: ServerState,
    caller: Caller,
    key: str,
    *,
    message: str,
    after_position: StreamPosition | None,
    end: dict[str, object],
) -> Sequence[PositionedEvent]:
    chat = await state.get_engine(caller).conversation(key)
    workers = state.engine_pool.pool.workers
    told = await workers.run(lambda: chat.replay_answer(message, after_position))
    turn = await workers.run(lambda: chat.get_turn(message))
    reply = None if turn.reply is None else turn.reply.id
    end.update(conversation=key, message=message, reply=reply, stopped=is_stopped(turn))
    return told


def _has_end_event(events: Sequence[PositionedEvent]) -> bool:
    return bool(events) and events[-1][1].kind == "done"


def _make_tool(body: ToolBody) -> Tool:
    return Tool(name=body.name, description=body.description, parameters=body.parameters)
