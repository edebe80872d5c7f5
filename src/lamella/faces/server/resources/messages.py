"""Messages: ask, follow, stop, go on, edit, answer again, and hand back what tools gave."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella import ToolOutput
from lamella.attach import Tool
from lamella.engine.chat import Chat
from lamella.engine.runs.place import EventPlace, TellingEvent, read_place
from lamella.engine.runs.retelling import was_stopped
from lamella.engine.runs.run import Run, announce
from lamella.engine.sending.events import Event
from lamella.errors import CallError, ReplyBrokenError
from lamella.faces.server.asking import AskedTurn, Send, respond, tell_each, tell_end
from lamella.faces.server.attached import AttachedList, read_attached
from lamella.faces.server.bodies.answers import AnswerJson
from lamella.faces.server.bodies.conversations import MovedChatJson, StoppedChatJson
from lamella.faces.server.bodies.library import KeptCacheJson
from lamella.faces.server.bodies.shape import Told, told
from lamella.faces.server.resources.conversations import check_message
from lamella.faces.server.state import Caller, Reader, ServerState, State, Talker
from lamella.faces.server.streams import STREAM, SseResponse, stream_events
from lamella.views.caches.cold import view_cold
from lamella.views.outcomes import view_outcome

router = APIRouter(prefix="/v1/conversations/{conversation}", tags=["messages"])
Message = Annotated[str, Path(min_length=1, max_length=100)]
_Names = Annotated[list[str], Field(max_length=500)]
_Answer = Annotated[int | None, Field(ge=1, le=10_000_000)]
# How often it is looked whether another process has answered.
_LOOK = 0.3
_STREAMED = told(AnswerJson, content=STREAM, description="Events, or the whole answer.")
_EVENTS: Told = {200: {"content": STREAM, "description": "Events."}}


class _AnswerBody(BaseModel):
    """How an answer is wanted: as it comes or whole; and what to do while another turn is under way."""

    model_config = ConfigDict(extra="forbid")

    stream: bool = True
    queue: Annotated[bool, Field(description="Wait for the turn that is under way, in place of 409.")] = False
    max_tokens: _Answer = None


class ToolBody(BaseModel):
    """A tool that the client runs: its calls come back in the event `done`."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: str = ""
    parameters: dict[str, JsonValue] = {}


class AskBody(_AnswerBody):
    """A question, and what goes with it."""

    text: Annotated[str, Field(examples=["Summarize this"])]
    attach: AttachedList = []
    detach: _Names = []
    drop: _Names = []
    pin: _Names = []
    unpin: _Names = []
    fold: bool = False
    memory: Annotated[bool, Field(description="Take up what changed in the memory.")] = False
    system: str | dict[str, str] | None = None
    model: Annotated[str | None, Field(max_length=300)] = None
    runner: Annotated[str | None, Field(max_length=100)] = None
    tools: Annotated[list[ToolBody] | None, Field(max_length=200)] = None


class EditBody(_AnswerBody):
    """Another text in place of a question."""

    text: str


class AgainBody(_AnswerBody):
    """To have a question answered again."""

    model: Annotated[str | None, Field(max_length=300)] = None


class ResumeBody(_AnswerBody):
    """To go on with a turn that was left open."""


class OutputBody(BaseModel):
    """What a call gave back."""

    model_config = ConfigDict(extra="forbid")

    call: Annotated[str, Field(min_length=1, max_length=500)]
    output: str
    failed: bool = False


class ResultsBody(_AnswerBody):
    """What the calls of the last answer gave back, one for each."""

    outputs: Annotated[list[OutputBody], Field(min_length=1, max_length=500)]


async def _answer(
    request: Request, state: ServerState, caller: Caller, *, conversation: str, body: _AnswerBody, send: Send
) -> Response:
    """Begin a turn, and answer with it as it was wished."""
    asking = AskedTurn(state, caller)
    run = await asking.start(conversation, send, queue=body.queue)
    return await respond(asking, run, request, stream=body.stream)


@router.post("/messages", summary="Ask", response_class=Response, responses=_STREAMED)
async def ask(*, request: Request, conversation: str, body: AskBody, state: State, caller: Talker) -> Response:
    """Ask a question. The event `envelope` says that it is written down, `done` that its answer is."""

    async def send(chat: Chat) -> AsyncGenerator[Event, None]:
        # Files are read elsewhere than on the loop; most questions name none, and wait for nobody.
        workers = state.suite.pool.workers
        attach = await workers.run(lambda: read_attached(body.attach, state)) if body.attach else []
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

    return await _answer(request, state, caller, conversation=conversation, body=body, send=send)


@router.put("/messages/{message}", summary="Edit a question", response_class=Response, responses=_STREAMED)
async def edit(
    *, request: Request, conversation: str, message: Message, body: EditBody, state: State, caller: Talker
) -> Response:
    """Ask another text in place of a question, with the same attachments; the old branch stays."""

    async def send(chat: Chat) -> AsyncGenerator[Event, None]:
        check_message(chat, message)
        turn = await state.suite.pool.workers.finish(lambda: chat.edit(message, body.text))
        return announce(turn, chat.send(turn, max_tokens=body.max_tokens))

    return await _answer(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/messages/{message}/regenerate", summary="Answer again", response_class=Response, responses=_STREAMED)
async def regenerate(
    *, request: Request, conversation: str, message: Message, body: AgainBody, state: State, caller: Talker
) -> Response:
    """Have a question answered again; the new answer stands beside the old one."""

    async def send(chat: Chat) -> AsyncGenerator[Event, None]:
        check_message(chat, message)
        turn = await state.suite.pool.workers.finish(lambda: chat.regenerate(message, model=body.model))
        return announce(turn, chat.send(turn, max_tokens=body.max_tokens))

    return await _answer(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/messages/{message}/results", summary="Results of tools", response_class=Response, responses=_STREAMED)
async def give_results(
    *, request: Request, conversation: str, message: Message, body: ResultsBody, state: State, caller: Talker
) -> Response:
    """Hand back what the calls of the last answer gave; the turn goes on with it."""

    async def send(chat: Chat) -> AsyncGenerator[Event, None]:
        check_message(chat, message)
        if chat.head != message:
            raise CallError(f"The question {message} waits for no results.", hint="Hand back what the last one asked.")
        given = [ToolOutput(call=one.call, output=one.output, failed=one.failed) for one in body.outputs]
        turn = await state.suite.pool.workers.finish(lambda: chat.give(given))
        return announce(turn, chat.send(turn, tools=chat.told_tools(turn), max_tokens=body.max_tokens))

    return await _answer(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/resume", summary="Go on with an open turn", response_class=Response, responses=_STREAMED)
async def resume(*, request: Request, conversation: str, body: ResumeBody, state: State, caller: Talker) -> Response:
    """Go on with a turn that was left open, such as by a server that was killed."""

    async def send(chat: Chat) -> AsyncGenerator[Event, None]:
        waits = await state.suite.pool.workers.run(chat.waiting)
        events = chat.resume(max_tokens=body.max_tokens)
        return events if waits is None else announce(waits, events)

    return await _answer(request, state, caller, conversation=conversation, body=body, send=send)


@router.post("/stop", summary="Stop the turn that is under way", responses=told(StoppedChatJson))
async def stop(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Stop the model; what it said until then is kept. Where nothing is under way nothing happens."""
    key = await state.suite.pool.workers.run(lambda: state.find_key(caller, conversation))
    stopped = await state.runs.stop(key)
    chat = await state.engine_of(caller).conversation(key)
    return view_outcome(chat.id, chat.name, stopped=stopped, head=chat.head)


@router.post("/keep-alive", summary="Keep the provider's cache", responses=told(KeptCacheJson))
async def keep_cache(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Send the last request once more if that is due and pays, so that the cache keeps it; else nothing is sent."""
    key = await state.suite.pool.workers.run(lambda: state.find_key(caller, conversation))
    async with state.runs.hold(key):
        chat = await state.engine_of(caller).conversation(key)
        sent = bool(await chat.keep_alive(once=True))
        cold = await state.suite.pool.workers.run(chat.cold)
    return {"lamella": 1, "conversation": key, "sent": sent, "cold": view_cold(cold)}


@router.delete("/messages/{message}", summary="Go on without a message", responses=told(MovedChatJson))
async def delete(*, conversation: str, message: Message, state: State, caller: Talker) -> dict[str, object]:
    """Go on without a message, on a branch of its own; a question goes with its answer."""

    def do(chat: Chat) -> dict[str, object]:
        check_message(chat, message)
        chat.delete(message)
        return view_outcome(chat.id, chat.name, head=chat.head)

    return await state.change(caller, conversation, do)


@router.get("/messages/{message}/events", summary="Follow an answer", response_class=Response, responses=_EVENTS)
async def follow(
    *,
    conversation: str,
    message: Message,
    state: State,
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=300)] = None,
    after: Annotated[str | None, Query(max_length=300, description="As the header, for who cannot set one.")] = None,
) -> Response:
    """The events of an answer, all or those after `Last-Event-ID`: as they come, or from the log once it is over."""
    key = await state.suite.pool.workers.run(lambda: state.find_key(caller, conversation))
    given = last_event_id or after
    place = None if not given else read_place(given)
    if place is not None and place.message != message:
        raise CallError("This id is of another question.", hint="Follow the question that the id begins with.")
    chat = await state.engine_of(caller).conversation(key)
    check_message(chat, message)
    run = _find_run(state, key, message=message, place=place)
    if run is not None:
        known = place if place is not None and place.run == run.name else None
        return SseResponse(stream_events(run.follow(known), lambda: tell_end(run)))
    end: dict[str, object] = {}
    events = _retell(state, caller, key, message=message, place=place, end=end)
    return SseResponse(stream_events(events, lambda: end))


def _find_run(state: ServerState, key: str, *, message: str, place: EventPlace | None) -> Run | None:
    """The run of an answer: what is under way, or the one that the place is in, as long as it is kept in mind."""
    under = state.runs.find(key)
    known = None if place is None else state.runs.find_named(place.run)
    return next((run for run in (under, known) if run and (run.conversation, run.message) == (key, message)), None)


async def _retell(
    state: ServerState,
    caller: Caller,
    key: str,
    *,
    message: str,
    place: EventPlace | None,
    end: dict[str, object],
) -> AsyncGenerator[TellingEvent, None]:
    """An answer from the log; one that another process is giving is waited for. ``end`` gets what its end says."""
    told, held = await _read_log(state, caller, key, message=message, place=place, end=end), True
    while held and not _is_done(told):
        # What was written before it was let go is read after that.
        held = await state.runs.is_held_elsewhere(key)
        if held:
            await asyncio.sleep(_LOOK)
        told = await _read_log(state, caller, key, message=message, place=place, end=end)
    async for one in tell_each(told):
        yield one
    if not _is_done(told):
        raise ReplyBrokenError(
            f"The answer to {message} was cut off before it was written down.",
            hint="POST …/resume has the question answered.",
        )


async def _read_log(
    state: ServerState,
    caller: Caller,
    key: str,
    *,
    message: str,
    place: EventPlace | None,
    end: dict[str, object],
) -> Sequence[TellingEvent]:
    chat = await state.engine_of(caller).conversation(key)
    workers = state.suite.pool.workers
    told = await workers.run(lambda: chat.retell(message, place))
    turn = await workers.run(lambda: chat.find_turn(message))
    reply = None if turn.reply is None else turn.reply.id
    end.update(conversation=key, message=message, reply=reply, stopped=was_stopped(turn))
    return told


def _is_done(told: Sequence[TellingEvent]) -> bool:
    return bool(told) and told[-1][1].kind == "done"


def _make_tool(one: ToolBody) -> Tool:
    return Tool(name=one.name, description=one.description, parameters=one.parameters)
