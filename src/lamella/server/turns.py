"""Turns over HTTP: from a request to a run, and from a run to the response.

``ServerTurn`` is a requested turn, and ``CodeQuestionTurn`` a code question that comes with its history.
``parse_attachments`` reads attachments, given by the fields of their kind or by a name as users type it.
``build_response`` returns one body, or a stream of server-sent events (``SseResponse``).
"""

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from secrets import token_hex
from time import perf_counter
from typing import Annotated

import msgspec
from fastapi import Request
from fastapi.responses import Response
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from opentelemetry.trace import Span
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Send as Send_streams

from lamella import CompactionReceipt, ModelCall, ToolCall
from lamella.attach import (
    ActiveNote,
    Attachment,
    Canvas,
    Code,
    Codebase,
    Dataview,
    Folder,
    Image,
    Note,
    Office,
    Pdf,
    Selection,
    Tag,
    Unknown,
    Url,
    WebTab,
    YouTube,
)
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.conversation.runs import MakeEvents, Run, StreamPosition
from lamella.conversation.turn import BuiltTurn
from lamella.conversation.turn_runner import EventName, TurnEvent
from lamella.errors import ArtifactError, InvalidReplyError, NotAvailableError, RunInProgressError
from lamella.schemas.answers import DoneEventJson, done_event_to_json, event_to_json, finished_turn_to_json
from lamella.schemas.body import JsonBody
from lamella.schemas.code import SolutionJson
from lamella.server.errors import HttpHints, http_error_to_json
from lamella.server.observability import (
    finish_answer_span,
    get_error_code,
    log_answer,
    record_compaction_span,
    start_answer_span,
)
from lamella.server.openapi import json_response
from lamella.server.state import Caller, ServerState, run_until_disconnect
from lamella.wiring import mask_url_secrets, solve_request

_ATTACHMENT_CLASSES: dict[str, type] = {
    "note": Note,
    "active_note": ActiveNote,
    "pdf": Pdf,
    "office": Office,
    "canvas": Canvas,
    "code": Code,
    "url": Url,
    "web_tab": WebTab,
    "youtube": YouTube,
    "folder": Folder,
    "tag": Tag,
    "codebase": Codebase,
    "dataview": Dataview,
    "selected_text": Selection,
    "web_selection": Selection,
    "image": Image,
    "unknown": Unknown,
}
_MAX_ATTACHMENTS = 500
_Line = Annotated[int, Field(ge=1)]


class AttachmentBody(BaseModel):
    """An attachment by the fields of its kind; without text it is read from the vault or fetched."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(examples=["note"])
    path: str | None = Field(default=None, examples=["project-spec.md"])
    url: str | None = None
    tag: str | None = None
    query: str | None = None
    question: str | None = None
    lines: tuple[_Line, _Line] | None = None
    text: str | None = None
    title: str | None = None
    policy: str | None = None
    data: str | None = Field(default=None, description="The bytes of a picture in base64.")
    media_type: str | None = None
    fresh: bool | None = None


# A string is a name as users type it after an @: a path, a note's title, a folder, a tag or an address.
AttachedList = Annotated[list[AttachmentBody | str], Field(max_length=_MAX_ATTACHMENTS)]


def parse_attachments(attachments: Sequence[AttachmentBody | str], state: ServerState) -> list[Attachment]:
    """Return the attachments of a request as the engine accepts them."""
    found: list[Attachment] = []
    for one in attachments:
        found += _resolve_name(one, state) if isinstance(one, str) else [_parse_attachment(one)]
    return found


def resolve_links(text: str, state: ServerState) -> tuple[list[Attachment], list[str]]:
    """Return the attachments for each ``[[Note]]`` in a question, and the reason for each link without a note.

    Without a vault nothing is resolved.
    """
    files = state.engine_pool.open_attachment_resolver() if "[[" in text else None
    outcomes = [] if files is None else files.resolve_links(text)
    reasons = [
        f"{one.token} is sent as plain text. {one.format_for(HttpHints())}" for one in outcomes if not one.attachments
    ]
    return [attachment for one in outcomes for attachment in one.attachments], reasons


async def with_notice_events(
    notes: Sequence[str], events: AsyncGenerator[TurnEvent, None]
) -> AsyncGenerator[TurnEvent, None]:
    """Yield the events of a turn, with an event for each note after the first one."""
    async with aclosing(events):
        async for event in events:
            yield event
            for note in notes if event.kind is EventName.ENVELOPE else ():
                yield TurnEvent(kind=EventName.NOTE, message=note)
            notes = () if event.kind is EventName.ENVELOPE else notes


def _resolve_name(name: str, state: ServerState) -> Sequence[Attachment]:
    files = state.engine_pool.open_attachment_resolver()
    if files is None:
        raise NotAvailableError("No vault is served here.", hint="Attach a text with its kind, path and text.")
    return files.resolve(name.removeprefix("@"))


def _parse_attachment(body: AttachmentBody) -> Attachment:
    kind = _ATTACHMENT_CLASSES.get(body.kind)
    if kind is None:
        raise ArtifactError(
            f"There is no kind {body.kind[:40]!r}.", hint=f"Choose one of: {', '.join(_ATTACHMENT_CLASSES)}."
        )
    fields = {name: value for name, value in body.model_dump(exclude={"kind"}).items() if value is not None}
    if kind is Image and "data" in fields:
        fields["data"] = _decode_base64(fields["data"])
    try:
        made: Attachment = kind(**fields)
    except TypeError as error:
        raise ArtifactError(
            f"A {body.kind} attachment lacks a field, or takes none of: {', '.join(sorted(fields))}.",
            hint="docs/reference/formats/blocks-and-kinds.md has the fields of each kind.",
        ) from error
    return made


def _decode_base64(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise ArtifactError("The data of a picture is not base64.", hint="Write its bytes as base64.") from error


# Server-sent events.

# After this many silent seconds a comment is sent, so that no proxy takes the connection for dead.
_PING_SECONDS = 15.0
# How soon a browser reconnects after it lost the connection, in milliseconds.
_RETRY_MILLISECONDS = 1_000

# The position, the name and the body of an event of an answer.
StreamedBody = tuple[StreamPosition, str, JsonBody]


class SseResponse(EventSourceResponse):
    """A response of server-sent events that closes their generator when the client stops reading."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks
        super().__init__(chunks, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def stream_response(self, send: Send_streams) -> None:
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

        async def keep_alive() -> None:
            while True:
                await asyncio.sleep(_PING_SECONDS)
                if loop.time() - sent_at >= _PING_SECONDS:
                    await send({"type": "http.response.body", "body": KEEPALIVE_COMMENT, "more_body": True})

        # A separate task: a timeout around each part would take as long as making the part.
        alive = loop.create_task(keep_alive())
        try:
            async for part in self._chunks:
                sent_at = loop.time()
                await send({"type": "http.response.body", "body": part, "more_body": True})
        finally:
            alive.cancel()
            await self._chunks.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def stream_events(events: AsyncGenerator[StreamedBody, None]) -> AsyncGenerator[bytes, None]:
    """Yield each event with its id as SSE bytes; an error becomes the last event."""
    first = True
    async with aclosing(events):
        try:
            async for position, name, body in events:
                # Clients remember the reconnection time, so the first event is enough.
                yield format_sse_event(
                    data_str=msgspec.json.encode(body).decode(),
                    event=name,
                    id=position.to_event_id(),
                    retry=_RETRY_MILLISECONDS if first else None,
                )
                first = False
        except Exception as error:  # noqa: BLE001 - the response has started, so the error can only be its last event
            yield format_sse_event(data_str=msgspec.json.encode(http_error_to_json(error)).decode(), event="error")


async def follow_run(run: Run, after: StreamPosition | None = None) -> AsyncGenerator[StreamedBody, None]:
    """Yield the events of a run, all or those after a position."""
    async with aclosing(run.follow(after)) as events:
        async for position, event in events:
            yield position, event.kind, _end_to_json(run, event) if event.kind == "done" else event_to_json(event)


def _end_to_json(run: Run, event: TurnEvent) -> DoneEventJson:
    return done_event_to_json(
        event,
        conversation_key=run.conversation_key,
        message_id=run.message_id,
        reply_id=run.reply_id,
        cut=run.cut_reason,
    )


# Requested turns.

# Creates the events of a turn in a conversation that is reserved for this turn.
SendTurn = Callable[[Conversation], Awaitable[AsyncGenerator[TurnEvent, None]]]
# How often to retry if another process has the conversation reserved, but the log shows no open question.
_MAX_START_TRIES = 10
_TOKEN_CLASSES = ("plain", "read", "write", "write_long", "output")


class ServerTurn:
    """A requested turn: its caller, its conversation once that is open, and the warnings of its prompt."""

    def __init__(self, state: ServerState, caller: Caller) -> None:
        self.state = state
        self.caller = caller
        self.chat: Conversation | None = None
        self.warnings: Sequence[str] = ()
        self._recorded_receipts: set[str] = set()
        # The model that the request names, for the log of a turn that fails before it is built.
        self._requested_model = ""
        # The turn as it was first sent, and after each tool round.
        self._sent_turns: list[BuiltTurn] = []

    async def start(self, conversation: str, send: SendTurn, *, queue: bool = False, asks_user: bool = False) -> Run:
        """Start a run; its question is stored when this returns.

        With ``queue`` it waits for a turn that is running. Otherwise that raises ``RunInProgressError``. With
        ``asks_user``, a model that wants to write waits until the user has answered.
        """
        state, workers = self.state, self.state.engine_pool.pool.workers
        key = await workers.run(lambda: state.get_conversation_key(self.caller, conversation))

        async def make() -> AsyncGenerator[TurnEvent, None]:
            self.chat = await state.get_engine(self.caller).conversation(key)
            return self.observe_events(await send(self.chat), self.chat.id)

        run = await self._start_with_retries(key, make, queue=queue, asks_user=asks_user)
        # Read late: the head moves when the answer is stored.
        run.get_head = lambda: "" if self.chat is None else self.chat.head
        return run

    async def _start_with_retries(self, key: str, make_events: MakeEvents, *, queue: bool, asks_user: bool) -> Run:
        """Start a run, and retry while another process has the conversation reserved without an open question.

        Such a process is about to release the conversation.
        """
        state, tries = self.state, 0
        while True:
            tries += 1
            try:
                return await state.runs.start(key, make_events, queue=queue, asks_user=asks_user)
            except RunInProgressError as error:
                if error.question is not None:
                    raise
                found = await state.engine_pool.pool.workers.run(lambda: self._run_in_progress_error(key))
                if found.question is not None or tries >= _MAX_START_TRIES:
                    raise found from error

    def _run_in_progress_error(self, key: str) -> RunInProgressError:
        """Return the error for a run in another process, with its open question if one is stored."""
        asked = self.state.open_conversation(self.caller, key).turns()
        if not asked or asked[-1].reply is not None:
            return RunInProgressError(key, question=None, since=None)
        return RunInProgressError(key, question=asked[-1].message.id, since=asked[-1].message.at)

    async def observe_events(
        self, events: AsyncGenerator[TurnEvent, None], conversation: str | None
    ) -> AsyncGenerator[TurnEvent, None]:
        """Yield the same events, and record the answer in the log, the metrics and a trace span when it ends.

        ``conversation`` is None if the turn is not stored.
        """
        chunks: list[str] = []
        begun, ended = perf_counter(), "stopped"
        failed: BaseException | None = None
        span = start_answer_span(conversation or "", self.caller.name)
        try:
            async with aclosing(events):
                async for event in events:
                    ended = self._record_event(event, chunks, begun, span=span) or ended
                    yield event
        except Exception as error:
            ended, failed = "failed", error
            raise
        finally:
            calls, text = self._list_calls(), "".join(chunks)
            record = self._record_answer(conversation, calls, end_reason=ended, text=text, error=failed)
            finish_answer_span(span, record, error=failed)

    def _record_event(self, event: TurnEvent, text_parts: list[str], started_at: float, *, span: Span) -> str | None:
        """Record an event in the metrics; return how the turn ended if this event is its end, otherwise None."""
        meters = self.state.metrics
        if event.turn is not None:
            self.warnings = event.turn.envelope.warnings
            self._sent_turns.append(event.turn)
            self._record_receipt(event.turn.compaction, span)
        if event.text:
            if not text_parts:
                meters.record_first_token(perf_counter() - started_at)
            text_parts.append(event.text)
        if event.kind != "done":
            return None
        return "calls" if event.calls else "done"

    def _list_calls(self) -> list[ModelCall]:
        """Return the model calls made for the answer, each once."""
        # By identity, because the turns of one answer share their call objects.
        return list({id(call): call for turn in self._sent_turns for call in turn.ledger.calls}.values())

    def _record_receipt(self, receipt: CompactionReceipt | None, span: Span) -> None:
        # Each event of a turn carries the receipt of the compaction before it. Count it once.
        if receipt is None or receipt.id in self._recorded_receipts:
            return
        self._recorded_receipts.add(receipt.id)
        steps = [step.name.value for step in receipt.steps]
        self.state.metrics.record_compaction_steps(steps)
        record_compaction_span(span, steps, before=receipt.tokens_before, after=receipt.tokens_after)

    def _get_model(self, calls: Sequence[ModelCall]) -> str | None:
        """Return the model that was asked, or should have been asked if the turn failed before; None if unknown."""
        asked = [call.model for call in calls[-1:]] + [turn.envelope.model for turn in self._sent_turns[-1:]]
        configured = None if self.chat is None else self.chat.settings.get("model")
        return next((str(name) for name in (*asked, self._requested_model, configured) if name), None)

    def _record_answer(
        self,
        conversation: str | None,
        calls: Sequence[ModelCall],
        *,
        end_reason: str,
        text: str,
        error: BaseException | None = None,
    ) -> dict[str, object]:
        model = self._get_model(calls)
        usage = (
            {name: _sum_known(getattr(one.usage, name) for one in calls) for name in _TOKEN_CLASSES} if calls else {}
        )
        billed = [one.billed for one in calls if one.billed is not None]
        cost = float(sum(billed)) if billed else None
        self.state.metrics.record_answer(end_reason=end_reason, usage=usage, cost=cost)
        for one in calls:
            self.state.metrics.record_layer_tokens(one.by_layer)
        fields: dict[str, object] = {
            "conversation": conversation,
            "caller": self.caller.name,
            # The model's name may contain an address with a password.
            "model": None if model is None else mask_url_secrets(model),
            "ended": end_reason,
            "stop": calls[-1].stop if calls else None,
            "tokens": usage,
            "cost": cost,
        }
        if error is not None:
            fields["error"] = get_error_code(error)
        log_answer(fields, text=text, with_preview=self.state.settings.preview)
        return fields


def _sum_known(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the known counts, or None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


async def build_response(server_turn: ServerTurn, run: Run, request: Request, *, stream: bool) -> Response:
    """Return the response of a run: a stream of events, or one body when it has ended."""
    if stream:
        return SseResponse(stream_events(follow_run(run)))
    calls = await run_until_disconnect(request, _client_tool_calls(run))
    chat = server_turn.chat
    assert chat is not None, "a run that is over was begun in a chat"

    def view() -> Response:
        turn, ledger = chat.get_turn(run.message_id or ""), chat.ledger()[-1:]
        body = finished_turn_to_json(
            chat.id, turn, ledger, calls=calls, warnings=server_turn.warnings, cut=run.cut_reason
        )
        return json_response(body)

    # In a worker thread: earlier turns of the conversation are read from the store on first use.
    return await server_turn.state.engine_pool.pool.workers.run(view)


async def _client_tool_calls(run: Run) -> list[ToolCall]:
    """Wait for the end of an answer, and return the tool calls that the client must run."""
    async with aclosing(run.follow()) as events:
        return [call for _, event in [one async for one in events] for call in event.calls]


# Code questions.

_RUN_KEY_BYTES = 16


class CodeQuestionTurn(ServerTurn):
    """A code question with its history, in a stored conversation or in none."""

    _solution: SolutionJson | None = None
    _last_message_id = ""

    async def answer(
        self, request: Request, body: Mapping[str, object], key: str | None, *, warnings: Sequence[str] = ()
    ) -> SolutionJson:
        """Return the whole answer; ``key`` is the conversation it is stored in, or None.

        ``warnings`` are added to those of the answer. Raises ``InvalidReplyError`` if the run was stopped before its end.
        """
        engine, runs = self.state.get_engine(self.caller), self.state.runs
        self._requested_model = str(body.get("model") or "")

        async def make() -> AsyncGenerator[TurnEvent, None]:
            return self.observe_events(self._solution_events(engine, body, key, warnings=warnings), key)

        # A question that is not stored gets a random key. It blocks no conversation, but counts in the limit of runs.
        run = await runs.start(key or f"unkept-{token_hex(_RUN_KEY_BYTES)}", make)
        run.get_head = lambda: self._last_message_id
        await run_until_disconnect(request, _wait_for_end(run))
        if self._solution is None:
            where = "" if key is None else f" What was said is kept: GET /v1/conversations/{key}."
            raise InvalidReplyError("The answer was stopped before its end.", hint=f"Ask again.{where}")
        return self._solution

    async def _solution_events(
        self, engine: Engine, body: Mapping[str, object], key: str | None, *, warnings: Sequence[str]
    ) -> AsyncGenerator[TurnEvent, None]:
        """Yield the events of the answer; the last one is held back until the whole solution is known."""
        heard: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        solving = asyncio.get_running_loop().create_task(
            solve_request(engine, body, warnings=warnings, on_event=heard.put_nowait)
        )
        solving.add_done_callback(lambda _: heard.put_nowait(None))
        end: list[TurnEvent] = []
        try:
            while (event := await heard.get()) is not None:
                if event.kind == "done":
                    end.append(event)
                else:
                    yield event
            self._solution = await solving
            self._last_message_id = "" if key is None else (await engine.conversation(key)).head
            for event in end:
                yield event
        finally:
            solving.cancel()
            await asyncio.wait([solving])


async def _wait_for_end(run: Run) -> None:
    """Wait for the end of an answer."""
    async with aclosing(run.follow()) as events:
        async for _ in events:
            pass
