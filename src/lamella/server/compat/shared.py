"""Response bodies of the compatibility endpoints, in the format of each API."""

import re
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import quote, unquote

from fastapi import Header, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, JsonValue

from lamella import ToolCall
from lamella.attach import Attachment, Image, Note, Tool
from lamella.conversation.conversation import StoredConversation
from lamella.conversation.engine import Engine
from lamella.conversation.host_history import (
    AnswerIds,
    ClientHistoryChange,
    ClientMessage,
    ClientRequest,
    HistoryTailIndex,
    SendEvents,
    matches_history,
    name_from_first_question,
    new_answer_id,
    prepare_conversation,
)
from lamella.conversation.runs import PositionedEvent, Run
from lamella.conversation.turn_runner import Event
from lamella.errors import InvalidOperationError, NameConflictError, NotFoundError, RunInProgressError
from lamella.server.bodies import Count, JsonBody
from lamella.server.state import Caller, ServerState, run_until_disconnect
from lamella.server.turns import AttachedList, SendTurn, ServerTurn, SseResponse, parse_attachments
from lamella.wiring import split_message


class CalledFunctionJson(JsonBody):
    """The name and the arguments of a called function."""

    name: str
    arguments: str


class FunctionCallJson(JsonBody):
    """A function call of the model."""

    id: str
    type: Literal["function"]
    function: CalledFunctionJson


class CompletionMessageJson(JsonBody):
    """The model's answer, with its function calls in `tool_calls` if it has any."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[FunctionCallJson] | None = None


class CompletionChoiceJson(JsonBody):
    """The only choice of a completion."""

    index: Literal[0]
    message: CompletionMessageJson
    logprobs: None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class CompletionUsageJson(JsonBody):
    """Token counts, including cached tokens."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class ChatCompletionJson(JsonBody):
    """A complete answer in the format of OpenAI's chat API."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoiceJson]
    usage: CompletionUsageJson


class ResponseUsageJson(JsonBody):
    """Token counts, including cached tokens."""

    input_tokens: Count
    input_tokens_details: dict[str, int]
    output_tokens: Count
    output_tokens_details: dict[str, int]
    total_tokens: Count


class ResponseJson(JsonBody):
    """A complete answer in the format of OpenAI's Responses API."""

    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: Literal["completed", "incomplete", "in_progress"]
    error: None
    incomplete_details: dict[str, str] | None
    instructions: str | None
    output: list[dict[str, JsonValue]]
    previous_response_id: str | None
    usage: ResponseUsageJson | None


class MessageUsageJson(JsonBody):
    """Token counts by price class."""

    input_tokens: Count
    output_tokens: Count
    cache_read_input_tokens: Count
    cache_creation_input_tokens: Count


class AnthropicMessageJson(JsonBody):
    """A complete answer in the format of Anthropic's API."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, JsonValue]]
    stop_reason: Literal["end_turn", "max_tokens", "tool_use", "refusal"] | None
    stop_sequence: None
    usage: MessageUsageJson


# Turns of compatibility endpoints: from a client's whole history to a run in the matching conversation.

CONVERSATION_HEADER = "x-lamella-conversation"
# How many conversations with the same first question are tried before the client must name one.
_MAX_SAME_BEGINNING = 20
_DEFAULT_MODEL_ALIAS = "lamella"
_HEADER_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_MAX_NAMED_FIELDS = 20


class LamellaField(BaseModel):
    """The field `lamella` of a request, for options that the client's own API does not have."""

    model_config = ConfigDict(extra="forbid")

    conversation: str | None = None
    attach: AttachedList = []
    runner: str | None = None


@dataclass(slots=True, kw_only=True)
class CompatTurn:
    """The turn that a client's history ends with: its run, the model name to return, and notes for the client."""

    server_turn: ServerTurn
    run: Run
    model: str
    answer: str
    notes: list[str] = field(default_factory=list)

    @property
    def answer_id(self) -> str:
        """Return the unique id of the answer, which stays the same while the answer is streamed."""
        return f"{self.run.message_id}.{self.answer}"

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that every compatibility endpoint adds to its response."""
        # The key of an imported conversation may contain characters that a header cannot.
        told = {"X-Lamella-Conversation": quote(self.run.conversation_key, safe="")}
        return {**told, "X-Lamella-Note": "; ".join(self.notes)} if self.notes else told


@dataclass(slots=True)
class StreamedAnswer:
    """The part of an answer that a run has produced so far."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: Mapping[str, int | None] = field(default_factory=dict)
    stop: str = "end"

    def add_event(self, event: Event) -> None:
        """Add an event of the run."""
        self.text += event.text
        self.reasoning += event.message if event.kind == "reasoning" else ""
        if event.usage is not None:
            names = ("plain", "read", "write", "write_long", "output", "reasoning", "prompt")
            self.usage = {name: getattr(event.usage, name) for name in names}
        if event.kind == "done":
            self.calls = list(event.calls)
            made = [] if event.turn is None else event.turn.ledger.calls
            self.stop = made[-1].stop if made else self.stop

    def token_count(self, name: str) -> int:
        """Return the tokens of a price class; an unknown count is 0, because these APIs have no value for unknown."""
        return self.usage.get(name) or 0


async def collect_answer(run: Run) -> StreamedAnswer:
    """Wait for the end of a run and return the whole answer."""
    heard = StreamedAnswer()
    async with aclosing(run.follow()) as events:
        async for _, event in events:
            heard.add_event(event)
    return heard


async def follow_events(run: Run) -> AsyncGenerator[Event, None]:
    """Yield the events of a run as they come."""
    told: AsyncGenerator[PositionedEvent, None] = run.follow()
    async with aclosing(told):
        async for _, event in told:
            yield event


async def open_turn(
    state: ServerState,
    caller: Caller,
    request: ClientRequest,
    *,
    conversation: str | None,
    ignored: Sequence[str],
    can_be_named: bool,
) -> CompatTurn:
    """Start a run for the last question of a history, in the named conversation or in the one that matches it.

    With ``can_be_named``, the client can continue from this answer by its id.
    """
    notes = _ignored_fields_header(ignored)
    tails = HistoryTailIndex(
        state.engine_pool.backend.store.shared_table, clock=state.engine_pool.backend.clock, owner=caller.owner
    )
    cut = None
    if conversation is None and request.past_turns:
        cut = await state.engine_pool.pool.workers.run(
            lambda: _find_truncated_history(state.get_engine(caller), request, tails)
        )
    for name in [*([cut] if cut is not None else []), *_candidate_names(request, conversation)]:
        find = partial(
            _get_or_create_conversation, state, caller, request, name=name, is_named=conversation is not None
        )
        found = await state.engine_pool.pool.workers.run(find)
        if found is None:
            continue
        asked, answer = ServerTurn(state, caller), new_answer_id()
        ending = tails if conversation is None else None
        send = _make_send(state, request, notes=notes, tails=ending, answer_id=answer if can_be_named else None)
        try:
            run = await asked.start(found, send, queue=conversation is not None)
        except RunInProgressError:
            if conversation is not None:
                raise
            # Another request with the same beginning is being answered in this conversation. Try the next one.
            continue
        return CompatTurn(server_turn=asked, run=run, model=request.model or "", answer=answer, notes=notes)
    raise InvalidOperationError(
        f"{_MAX_SAME_BEGINNING} conversations begin like this one.",
        hint=f"Name it in the header {CONVERSATION_HEADER}.",
    )


def _ignored_fields_header(names: Sequence[str]) -> list[str]:
    """Return a note with the ignored request fields; names that a header cannot contain are only counted."""
    plain = [name for name in names if _HEADER_SAFE_NAME.fullmatch(name)][:_MAX_NAMED_FIELDS]
    more = [f"{len(names) - len(plain)} more"] if len(names) > len(plain) else []
    return [f"ignored: {', '.join((*plain, *more))}"] if names else []


def _make_send(
    state: ServerState,
    request: ClientRequest,
    *,
    notes: list[str],
    tails: HistoryTailIndex | None,
    answer_id: str | None,
) -> SendTurn:
    """Return the function that sends the last question.

    ``tails`` is given if the client did not name the conversation; its record of the history's ending is then updated.
    ``answer_id`` is the id of the answer, if the client can continue from it.
    """
    backend, workers = state.engine_pool.backend, state.engine_pool.pool.workers
    answers = AnswerIds(backend.store.shared_table, clock=backend.clock)

    def prepare(chat: StoredConversation) -> tuple[SendEvents, ClientHistoryChange]:
        after = None if request.after_message is None else _resolve_answer(answers, request.after_message, chat)
        return prepare_conversation(chat, request._replace(after_message=after), is_named=tails is None)

    async def send(chat: StoredConversation) -> AsyncGenerator[Event, None]:
        ready, change = await workers.run_uncancellable(lambda: prepare(chat))
        if change is not ClientHistoryChange.NONE:
            notes.append(change.value)
        return note_end(ready(), chat) if tails is not None or answer_id is not None else ready()

    async def note_end(events: AsyncGenerator[Event, None], chat: StoredConversation) -> AsyncGenerator[Event, None]:
        """Yield the same events, then record how the conversation ends.

        By that record it is recognised when the client later sends only a part of its history, or an answer's id.
        """
        said: list[str] = []
        async with aclosing(events):
            async for event in events:
                said.append(event.text)
                yield event
        if tails is not None:
            move = partial(
                tails.update_tail,
                request.past_turns,
                request.current_turn.question,
                "".join(said),
                conversation_key=chat.id,
            )
            await workers.run_uncancellable(move)
        if answer_id is not None:
            await workers.run_uncancellable(partial(answers.remember_answer, answer_id, chat))

    return send


def _resolve_answer(answers: AnswerIds, answer_id: str, chat: StoredConversation) -> str:
    found = answers.find_message(answer_id, chat)
    if found is None:
        raise NotFoundError(
            "The conversation has no such response.", hint="Send the id of one as it came, or the whole history."
        )
    return found


def _find_truncated_history(engine: Engine, request: ClientRequest, tails: HistoryTailIndex) -> str | None:
    """Return the conversation of a history with an unknown beginning and a known ending, or None."""
    if engine.find_conversation(name_from_first_question(request.turns)) is not None:
        return None
    key = tails.find_conversation(request.past_turns)
    known = None if key is None else engine.find_conversation(key)
    return known.conversation if known is not None and known.conversation == key else None


def _candidate_names(request: ClientRequest, conversation: str | None) -> list[str]:
    if conversation is not None:
        return [conversation]
    base = name_from_first_question(request.turns)
    return [base, *(f"{base}-{number}" for number in range(2, _MAX_SAME_BEGINNING + 1))]


def _get_or_create_conversation(
    state: ServerState, caller: Caller, request: ClientRequest, *, name: str, is_named: bool
) -> str | None:
    """Return the key of a conversation that can belong to a history, or None.

    A conversation is created if none has the name. None means that the one with the name is busy or has another
    history.
    """
    engine = state.get_engine(caller)
    listed = engine.find_conversation(name)
    if listed is None:
        settings = {
            key: value
            for key, value in state.engine_pool.default_settings_for(request.model or "").items()
            if key != "system"
        }
        try:
            return engine.create(name, title=None, **{**settings, "model": request.model}).id
        except NameConflictError:
            return None
    if is_named:
        return listed.conversation
    run = state.runs.get_run(listed.conversation)
    free = run is None or run.is_brief or run.is_ending
    return listed.conversation if free and matches_history(engine.chat(listed.conversation), request) else None


def resolve_model(name: str, state: ServerState) -> str:
    """Return the model that a client means, by its full name or by its name without the provider."""
    named = state.engine_pool.list_allowed_models()
    if name in ("", _DEFAULT_MODEL_ALIAS):
        return state.engine_pool.model
    return next((one for one in named if name in (one, one.partition(":")[2])), name)


def read_lamella_options(
    field: LamellaField | None, header: str | None, state: ServerState
) -> tuple[str | None, list[Any]]:
    """Return the conversation that a client names and its attachments, from the header and the field `lamella`."""
    own = field or LamellaField()
    return unquote(header or "") or own.conversation, list(parse_attachments(own.attach, state))


# texts, images, documents and tools.

ContentPart = Mapping[str, Any]
_TEXT_PART_TYPES = ("text", "input_text", "output_text")


def parse_user_message(content: str | Sequence[ContentPart]) -> ClientMessage:
    """Return a user's message: the typed text, and the documents and images in it."""
    parts: Sequence[ContentPart] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    # A part may be nothing but a document. If the whole message is, the documents count as typed text.
    message = _parse_parts(parts, allow_no_text=True)
    return message if message.text else _parse_parts(parts, allow_no_text=False)


def _parse_parts(parts: Sequence[ContentPart], *, allow_no_text: bool) -> ClientMessage:
    typed: list[str] = []
    attach: list[Attachment] = []
    for part in parts:
        if part.get("type") in _TEXT_PART_TYPES:
            text, found = split_message(_text_or_empty(part.get("text")), allow_no_text=allow_no_text)
            typed.append(text)
            attach += found
        else:
            attach.append(_parse_attachment_part(part))
    return ClientMessage("user", "\n\n".join(filter(None, typed)), tuple(attach))


def extract_text(content: object) -> str:
    """Return the text of a message that is a string or a list of text parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        raise InvalidOperationError(
            "The content of a message is no text and no list.", hint="Write it as the API has it."
        )
    return "".join(
        _text_or_empty(part.get("text") or part.get("refusal")) for part in content if isinstance(part, Mapping)
    )


def parse_tools(tools: Sequence[ContentPart] | None, *, off: bool, kind: str, schema: str) -> tuple[Tool, ...] | None:
    """Return the tools that a client runs; None if it sent none, and empty if they are ``off``.

    ``kind`` is the type of such tools in the client's API, ``schema`` the field that describes their arguments.
    """
    if tools is None or off:
        return None if tools is None else ()
    return tuple(_parse_tool(one, kind=kind, schema=schema) for one in tools)


def _parse_tool(tool: ContentPart, *, kind: str, schema: str) -> Tool:
    given = tool.get(kind, tool)
    if tool.get("type", kind) != kind or not isinstance(given, Mapping):
        raise InvalidOperationError(
            f"A tool of type {str(tool.get('type'))[:40]!r} is not run here.", hint="Send your own."
        )
    parameters = given.get(schema)
    return Tool(
        name=str(given.get("name", "")),
        description=str(given.get("description") or ""),
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def drop_unset(**settings: object) -> dict[str, object]:
    """Return the settings that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parse_attachment_part(part: ContentPart) -> Attachment:
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, Mapping) else given
        if isinstance(url, str):
            return Image(url=url)
    source = part.get("source")
    if isinstance(source, Mapping) and kind == "image":
        return _parse_image(source)
    if isinstance(source, Mapping) and kind == "document" and source.get("type") == "text":
        return Note(path=_text_or_empty(part.get("title")) or "document.md", text=_text_or_empty(source.get("data")))
    raise InvalidOperationError(
        f"A part of type {str(kind)[:40]!r} is not taken here.", hint="Send texts, pictures and documents as text."
    )


def _parse_image(source: Mapping[str, Any]) -> Image:
    if source.get("type") == "url":
        return Image(url=_text_or_empty(source.get("url")))
    try:
        data = b64decode(_text_or_empty(source.get("data")), validate=True)
    except ValueError as error:
        raise InvalidOperationError(
            "The data of a picture is not base64.", hint="Write its bytes as base64."
        ) from error
    return Image(data=data, media_type=_text_or_empty(source.get("media_type")) or None)


# The common part of the compatibility endpoints; each API adds how it is parsed and rendered.

ConversationHeader = Annotated[str | None, Header(alias="x-lamella-conversation", max_length=200)]


class CompatRequestBody(BaseModel):
    """Fields of requests at every compatibility endpoint; the response lists other fields as ignored."""

    model_config = ConfigDict(extra="allow")

    model: str = ""
    stream: bool | None = False
    temperature: float | None = None
    tools: list[dict[str, JsonValue]] | None = None
    lamella: LamellaField | None = None


_RequestBody = TypeVar("_RequestBody", bound=CompatRequestBody)


def _no_earlier_response(_body: CompatRequestBody) -> tuple[str | None, str | None]:
    return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatEndpoint(Generic[_RequestBody]):
    """One API: how its requests are checked and parsed, and how its responses are rendered and streamed.

    ``unsupported_fields`` lists fields that are rejected, and ``list_unsupported`` returns further ones.
    ``parse_previous_id`` returns the
    conversation and the reply that a request continues from, if the API has ids for them.
    """

    unsupported_fields: tuple[str, ...]
    list_unsupported: Callable[[_RequestBody], Sequence[str]]
    parse_request: Callable[[_RequestBody], ClientRequest]
    render_response: Callable[[CompatTurn, _RequestBody, StreamedAnswer], dict[str, object]]
    stream: Callable[[CompatTurn, _RequestBody], AsyncGenerator[bytes, None]]
    parse_previous_id: Callable[[_RequestBody], tuple[str | None, str | None]] = _no_earlier_response

    async def answer(
        self,
        request: Request,
        body: _RequestBody,
        state: ServerState,
        *,
        caller: Caller,
        conversation_header: str | None,
    ) -> Response:
        """Answer a history in the conversation it belongs to, as a stream or as one body."""
        extra = body.model_extra or {}
        wrong = [*(name for name in self.unsupported_fields if extra.get(name)), *self.list_unsupported(body)]
        if wrong:
            raise InvalidOperationError(f"{', '.join(wrong)} cannot be had here.", hint="Leave it out.")
        asked, conversation = await self._parse(body, state, caller, conversation_header=conversation_header)
        ignored = sorted(set(extra) - set(self.unsupported_fields))
        nameable = self.parse_previous_id is not _no_earlier_response
        turn = await open_turn(state, caller, asked, conversation=conversation, ignored=ignored, can_be_named=nameable)
        # The response has the model name that the client sent, not the resolved one.
        turn.model = body.model or turn.model
        if body.stream:
            response = SseResponse(self.stream(turn, body))
            response.headers.update(turn.headers)
            return response
        return JSONResponse(
            self.render_response(turn, body, await run_until_disconnect(request, collect_answer(turn.run))),
            headers=turn.headers,
        )

    async def _parse(
        self, body: _RequestBody, state: ServerState, caller: Caller, *, conversation_header: str | None
    ) -> tuple[ClientRequest, str | None]:
        """Parse a request, and return it with the conversation that the client names, or None."""
        workers = state.engine_pool.pool.workers
        conversation, attach = await workers.run(lambda: read_lamella_options(body.lamella, conversation_header, state))
        before, after = self.parse_previous_id(body)
        request = self.parse_request(body)
        asked = request.current_turn._replace(attach=(*request.current_turn.attach, *attach))
        request = request._replace(
            turns=(*request.past_turns, asked),
            model=resolve_model(body.model, state),
            runner=None if body.lamella is None else body.lamella.runner,
            after_message=after,
        )
        if before is not None:
            conversation = await workers.run(lambda: state.get_conversation_key(caller, before))
        return request, conversation
