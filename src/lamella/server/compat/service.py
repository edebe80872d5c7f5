"""Serving a request: choose the upstream, send what the client wrote, and return the answer.

``CompatService`` is what the endpoints of one server share. ``answer`` serves a request in two ways. An upstream that
speaks the client's API gets the client's bytes, and its answer is passed on as it comes. Any other upstream gets a
translation, and its answer is translated back. Nothing is taken from an earlier request.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from lamella.errors import InvalidReplyError, LamellaError, NotFoundError
from lamella.ports import HttpEndpoint, HttpModelProvider, ModelProvider
from lamella.providers.registry import find_provider_entry, is_local_model, strip_provider
from lamella.server.compat.accounting import AnswerRecord, record_answer
from lamella.server.compat.anthropic import build_messages_body
from lamella.server.compat.identity import find_conversation_label, find_signatures, hash_each_prefix
from lamella.server.compat.json_spans import decode_json, encode_json
from lamella.server.compat.model_calls import ModelAbilities, build_model_request, read_deltas
from lamella.server.compat.neutral import AnswerEnd, AnswerEvent, AnswerStart, Json, NeutralRequest
from lamella.server.compat.openai_chat import build_chat_body
from lamella.server.compat.openai_responses import (
    ResponsesEventWriter,
    build_responses_body,
    list_input_items,
    unknown_response_error,
)
from lamella.server.compat.recall import (
    RECALL_SPEC,
    RecallableMessages,
    RecallStore,
    can_offer_recall,
    find_recall_conversation,
    is_recall_refused,
    to_sent_messages,
)
from lamella.server.compat.recall_rounds import RecallResponse, add_recall_tool, answer_recalls
from lamella.server.compat.records import KnownRequest, RequestRecords
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.requests import (
    LAMELLA_FIELD,
    Breakpoints,
    ClientRequest,
    PlannedText,
    build_passthrough_body,
    is_equivalent_body,
    parse_request,
    plan_breakpoints,
    plan_document_references,
)
from lamella.server.compat.responses_store import ResponseStore, StoredResponse
from lamella.server.compat.streams import SseReader, StreamMonitor, format_event
from lamella.server.compat.translation import (
    FORMATS,
    AnswerReader,
    AnswerWriter,
    choose_wire,
    has_same_texts,
    model_request_has_same_texts,
    parse_neutral,
)
from lamella.server.compat.upstream import UpstreamClient, UpstreamResponse
from lamella.server.compat.wires import PATHS, ApiFormat
from lamella.server.errors import error_status_and_body
from lamella.server.json_responses import EscapedJSONResponse
from lamella.server.state import Caller, ServerState, resolve_model, run_until_disconnect
from lamella.wiring import AccessScope, mask_keys

NOTE_HEADER = "X-Lamella-Note"
CONVERSATION_HEADER = "X-Lamella-Conversation"
_MAX_NOTE_CHARS = 1_000
# How long the list of an upstream's models is used, and how long one that could not be had is not asked for again.
_LISTED_SECONDS, _UNLISTED_SECONDS = 600.0, 30.0
_LISTING_SECONDS = 10.0
_MAX_LISTED = 10_000
_MAX_LISTING_BYTES = 4_194_304
_GEMINI_MAX_TOKENS = 65_536
_OTHER_MAX_TOKENS = 128_000
# In the words of the refusal of a signature that is bound to other bytes.
_SIGNATURE_REFUSALS = (b"different conversation", b"signature", b"encrypted_content", b"encrypted content")
_BAD_REQUEST = 400
_STATUS_OF_ERROR = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "timeout_error": 504,
    "billing_error": 402,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "api_error": 500,
    "server_error": 500,
}
_LAST_STATUS = 599
_BAD_GATEWAY = 502
_STREAM_HEADERS = {"content-type": "text/event-stream", "x-accel-buffering": "no"}


class UpstreamError(Exception):
    """An error response of an upstream that speaks another API than the client."""

    def __init__(self, status: int, fields: Json, headers: Mapping[str, str]) -> None:
        super().__init__(str(fields.get("message")))
        self.status = status if status >= _BAD_REQUEST else _BAD_GATEWAY
        self.fields = fields
        self.headers = {name: value for name, value in headers.items() if name != "content-type"}


@dataclass(slots=True, kw_only=True)
class Upstream:
    """The model that answers: its full name, its provider, and its HTTP API if the provider has one."""

    model: str
    provider: ModelProvider
    endpoint: HttpEndpoint | None

    @property
    def name_without_provider(self) -> str:
        """Return the model's name without its provider."""
        return strip_provider(self.model)


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request that is being served."""

    request: Request
    caller: Caller
    client: ClientRequest
    upstream: Upstream
    label: str
    notes: list[str] = field(default_factory=list)
    # What the table of the store knows about the request, and whether repeated documents became references.
    known: KnownRequest = field(default_factory=lambda: KnownRequest(None, 0))
    is_laid_out: bool = False
    # What the model may find with the tool for recall; None if the tool is not offered.
    recallable: RecallableMessages | None = None
    hashes: list[str] = field(default_factory=list)
    sent_body: bytes = b""
    started_at: float = field(default_factory=time.perf_counter)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def path(self) -> str:
        """Return the path of the endpoint, which decides the shape of errors."""
        return str(self.request.url.path)

    def headers(self) -> dict[str, str]:
        """Return the headers that every compatibility endpoint adds to its response."""
        named = {CONVERSATION_HEADER: quote(self.label, safe="", errors="replace")}
        return {**named, **format_notes(self.notes)}


def format_notes(notes: Sequence[str]) -> dict[str, str]:
    """Return the header with what a client should know about its answer, if there is anything."""
    note = "; ".join(notes).encode("ascii", "replace").decode()
    printable = "".join(letter for letter in note if letter.isprintable())[:_MAX_NOTE_CHARS]
    return {NOTE_HEADER: printable} if printable else {}


class CompatService:
    """Connections and records that the compatibility endpoints of a server share."""

    def __init__(self, state: ServerState) -> None:
        backend = state.engine_pool.backend
        self.state = state
        self.http = UpstreamClient()
        self.records = RequestRecords(backend.store.shared_table, clock=backend.clock)
        self.responses = ResponseStore(backend.store.shared_table, clock=backend.clock)
        self.recall = RecallStore(backend.store.shared_table, clock=backend.clock)
        # The models that an upstream lists, by its address, with the time at which they are asked for again.
        self._listed: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def close(self) -> None:
        """Close all connections to upstreams."""
        await self.http.close()

    async def find_upstream_or_default(self, caller: Caller, name: str, notes: list[str]) -> Upstream:
        """Return the upstream for the model that a client names.

        Callers that may name any model can use the names that the upstream of the default model lists. Any other name
        that nobody here knows means the default model, and the note says so. A name with a provider is taken at its
        word.
        """
        state, model = self.state, resolve_model(name, self.state)
        trusted = _may_name_any_model(caller)
        try:
            return self._open_upstream(model, trusted=trusted)
        except LamellaError:
            is_explicit = ":" in name and find_provider_entry(name.partition(":")[0]) is not None
            if model == state.engine_pool.model or is_explicit:
                raise
        if name in await self.list_upstream_models(caller):
            # The same server as that of the default model, which the operator has named.
            upstream = self._open_upstream(state.engine_pool.model, trusted=True)
            upstream.model = upstream.model.removesuffix(upstream.name_without_provider) + name
            return upstream
        notes.append(f"model: {name[:100]} is not configured, {mask_keys(state.engine_pool.model)} answers")
        return self._open_upstream(state.engine_pool.model, trusted=trusted)

    async def list_upstream_models(self, caller: Caller) -> tuple[str, ...]:
        """Return the models that the upstream of the default model lists, by its own names.

        Empty for callers that may only use the models that the operator named, and if the upstream lists none.
        """
        if not _may_name_any_model(caller):
            return ()
        endpoint = self._open_upstream(self.state.engine_pool.model, trusted=True).endpoint
        if endpoint is None:
            return ()
        until, names = self._listed.get(endpoint.base_url, (0.0, ()))
        if until <= time.monotonic():
            names = await self._fetch_models(endpoint)
            self._listed[endpoint.base_url] = (
                time.monotonic() + (_LISTED_SECONDS if names else _UNLISTED_SECONDS),
                names,
            )
        return names

    async def _fetch_models(self, endpoint: HttpEndpoint) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(_LISTING_SECONDS):
                response = await self.http.send(endpoint, "/models", None, method="GET", query=_listing_query(endpoint))
                found = decode_json(await response.read(limit=_MAX_LISTING_BYTES))
        except (LamellaError, TimeoutError, ValueError, RecursionError):
            return ()
        listed = found.get("data") if isinstance(found, dict) and not response.is_error else None
        named = (one.get("id") for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
        return tuple(dict.fromkeys(one for one in named if isinstance(one, str) and one))[:_MAX_LISTED]

    def _open_upstream(self, model: str, *, trusted: bool) -> Upstream:
        provider = self.state.engine_pool.get_or_open_provider(model, trusted=trusted)
        endpoint = provider.endpoint if isinstance(provider, HttpModelProvider) else None
        return Upstream(model=model, provider=provider, endpoint=endpoint)

    async def run_in_worker(self, action: Any) -> Any:  # noqa: ANN401 - whatever the action returns
        """Run a function that reads or writes the store in a worker thread."""
        return await self.state.engine_pool.pool.workers.run_uncancellable(action)

    async def answer(self, request: Request, wire: ApiFormat, caller: Caller) -> Response:
        """Serve a request of an API."""
        client = parse_request(wire, await request.body())
        notes: list[str] = []
        upstream = await self.find_upstream_or_default(caller, client.model, notes)
        hashes = hash_each_prefix(caller.owner, wire, client.system_and_tools, client.messages)
        label = (
            find_conversation_label(request.headers, client.body)
            or self._find_own_label(client)
            or f"request-{hashes[:2][-1][:16]}"
        )
        exchange = Exchange(
            request=request, caller=caller, client=client, upstream=upstream, label=label, notes=notes, hashes=hashes
        )
        if self.state.settings.recall:
            await self._prepare_recall(exchange)
        if upstream.endpoint is not None and wire in upstream.endpoint.api_formats:
            return await self._answer_over_same_api(exchange, upstream.endpoint)
        return await self._answer_over_other_api(exchange)

    async def _prepare_recall(self, exchange: Exchange) -> None:
        """Record the texts of a request, and find out whether the model gets the tool for recall.

        A request whose signatures were made without the tool does not get it, because signatures are bound to tools.
        """
        client, owner = exchange.client, exchange.caller.owner
        conversation = find_recall_conversation(exchange.request.headers, client.body)
        if conversation is None or client.body.get("previous_response_id") or client.body.get("conversation"):
            return
        if is_recall_refused(exchange.request.headers, client.body):
            await self.run_in_worker(lambda: self.recall.forget(owner, conversation))
            return
        found = await self.run_in_worker(
            lambda: self.recall.record_and_list_left_out(owner, conversation, to_sent_messages(client, FORMATS))
        )
        signatures = find_signatures(client.messages)
        known = (
            await self.run_in_worker(lambda: self.records.look_up_request(exchange.hashes, signatures))
            if signatures
            else None
        )
        wires = exchange.upstream.endpoint.api_formats if exchange.upstream.endpoint is not None else ()
        if (
            client.wire is ApiFormat.RESPONSES
            and ApiFormat.RESPONSES in wires
            and client.body.get("store") is not False
        ):
            # The upstream would store a response that ends with a call that the client cannot answer.
            return
        had_tool = known is not None and known.has_recall
        if had_tool or (known is None and found.messages and can_offer_recall(client.body)):
            exchange.recallable = found
            exchange.notes.append(f"recall: {len(found.messages)} earlier messages can be found")

    @staticmethod
    def _find_own_label(client: ClientRequest) -> str | None:
        options = client.body.get(LAMELLA_FIELD) or {}
        named = options.get("conversation")
        if named is not None and not isinstance(named, str):
            raise RefusedFieldError("lamella.conversation", "lamella.conversation is no text.")
        return named or None

    # The same API upstream.

    async def _answer_over_same_api(self, exchange: Exchange, endpoint: HttpEndpoint) -> Response:
        client = exchange.client
        await self._check_previous_response(exchange)
        body = await self._build_same_wire(exchange)
        if exchange.recallable is not None:
            body = add_recall_tool(client.wire, body)
        sending = self._send_same_wire(exchange, endpoint, body)
        response = await run_until_disconnect(exchange.request, sending)
        if response.is_error:
            return await self._forward_error(exchange, response)
        if client.wire is ApiFormat.MESSAGES and not client.has_breakpoints:
            await self.run_in_worker(lambda: self.records.save_request(exchange.hashes))
        if exchange.recallable is not None:
            response = self._answer_recalls(exchange, endpoint, response)
        monitor = StreamMonitor(client.wire)
        if response.is_stream:
            return await self._pass_on_stream(exchange, response, monitor)
        try:
            data = await run_until_disconnect(exchange.request, response.read())
        except LamellaError:
            self._record_finished_answer(exchange, monitor, end_reason="failed")
            raise
        monitor.read_body(data)
        await self._save_signatures(exchange, monitor)
        await self._claim_response(exchange, monitor)
        self._record_finished_answer(exchange, monitor, end_reason="done")
        return Response(data, response.status, headers={**response.headers, **exchange.headers()})

    def _answer_recalls(
        self, exchange: Exchange, endpoint: HttpEndpoint, response: UpstreamResponse
    ) -> UpstreamResponse:
        """Return the response whose calls of the tool for recall are answered while it is read."""
        wire, request = exchange.client.wire, exchange.request
        assert exchange.recallable is not None, "the caller has checked it"

        async def send(data: bytes) -> UpstreamResponse:
            query = request.url.query
            further = await self.http.send(endpoint, PATHS[wire], data, query=query, headers=request.headers)
            if further.is_error:
                raise UpstreamError(further.status, _parse_error(await further.read_error()), further.headers)
            return further

        return RecallResponse(response, wire=wire, data=exchange.sent_body, send=send, recallable=exchange.recallable)

    async def _build_same_wire(self, exchange: Exchange, *, without_references: bool = False) -> bytes:
        """Return the body to send. If the check fails, it is the client's own, and that is counted.

        With ``without_references`` every document is sent in full, and none as a reference to an earlier copy.
        """
        client, model = exchange.client, exchange.upstream.name_without_provider
        layout: list[PlannedText] = []
        breakpoints: Breakpoints | None = None
        marks = client.wire is ApiFormat.MESSAGES and not client.has_breakpoints
        layout = await self._plan_references(exchange, needs_history=marks and len(client.messages) > 1)
        if without_references:
            layout = []
        if marks:
            breakpoints = plan_breakpoints(client, seen_messages=exchange.known.seen_messages)
        body = build_passthrough_body(client, model=model, layout=layout, breakpoints=breakpoints)
        changed = bool(layout) or breakpoints is not None or LAMELLA_FIELD in client.body
        if changed and not is_equivalent_body(client, body, model=model, has_added_breakpoints=marks):
            self.state.metrics.record_check_failure()
            exchange.is_laid_out = False
            return build_passthrough_body(client, model=model)
        exchange.is_laid_out = bool(layout)
        _note_references(exchange, layout)
        return body

    async def _plan_references(self, exchange: Exchange, *, needs_history: bool) -> list[PlannedText]:
        """Return the references for a request, after looking up what its signatures and its beginning are bound to."""
        client = exchange.client
        layout = plan_document_references(client)
        signatures = find_signatures(client.messages) if layout else []
        if signatures or needs_history:
            exchange.known = await self.run_in_worker(lambda: self.records.look_up_request(exchange.hashes, signatures))
        if layout and exchange.known.unchanged_until:
            layout = plan_document_references(client, unchanged_until=exchange.known.unchanged_until)
        return layout

    async def _send_same_wire(self, exchange: Exchange, endpoint: HttpEndpoint, body: bytes) -> UpstreamResponse:
        client, request = exchange.client, exchange.request

        async def send(data: bytes) -> UpstreamResponse:
            exchange.sent_body, query = data, request.url.query
            return await self.http.send(endpoint, PATHS[client.wire], data, query=query, headers=request.headers)

        response = await send(body)
        signed = exchange.is_laid_out and bool(find_signatures(client.messages))
        if response.status != _BAD_REQUEST or not signed:
            return response
        refusal = await response.read_error()
        if not any(words in refusal for words in _SIGNATURE_REFUSALS):
            response.response = _ReadResponse(refusal)  # type: ignore[assignment]
            return response
        # The record of the signature is wrong. The client's own bytes are the only other rendering.
        exchange.is_laid_out = False
        again = await self._build_same_wire(exchange, without_references=True)
        return await send(again if exchange.recallable is None else add_recall_tool(client.wire, again))

    async def _forward_error(self, exchange: Exchange, response: UpstreamResponse) -> Response:
        data = await response.read_error()
        self._record_finished_answer(
            exchange, StreamMonitor(exchange.client.wire), end_reason="failed", status=response.status
        )
        if response.status in (401, 403):
            exchange.notes.append("the provider refuses the key of this server; its operator has to check it")
        masked = mask_keys(data.decode("utf-8", "replace")) if data else ""
        status = response.status if response.status >= _BAD_REQUEST else _BAD_GATEWAY
        headers = {**response.headers, **exchange.headers()}
        return Response(masked.encode(), status, headers=headers)

    async def _pass_on_stream(self, exchange: Exchange, response: UpstreamResponse, monitor: StreamMonitor) -> Response:
        parts = self._relay(exchange, response, monitor)
        try:
            first = await run_until_disconnect(exchange.request, anext(parts, b""))
        except LamellaError:
            self._record_finished_answer(exchange, monitor, end_reason="failed")
            raise
        if monitor.has_failed and not monitor.has_ended:
            await parts.aclose()
            return self._error_from_upstream(exchange, monitor.error)
        headers = {**response.headers, **_STREAM_HEADERS, **exchange.headers()}
        return StreamingResponse(_yield_first_then(first, parts), response.status, headers=headers)

    async def _relay(
        self, exchange: Exchange, response: UpstreamResponse, monitor: StreamMonitor
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of an upstream as they are, then an error if the last one is missing."""
        end_reason, has_begun = "stopped", False
        try:
            async with aclosing(response.iter_bytes()) as chunks:
                async for chunk in chunks:
                    whole = monitor.feed(chunk)
                    if monitor.signatures:
                        await self._save_signatures(exchange, monitor)
                    if monitor.has_ended:
                        await self._claim_response(exchange, monitor)
                    if whole:
                        yield whole
                        has_begun = True
            rest = monitor.finish()
            if rest:
                yield rest
            if not monitor.has_ended and not monitor.has_failed:
                raise _cut_off_error()
            end_reason = "done" if monitor.has_ended else "failed"
        except (LamellaError, UpstreamError) as error:
            end_reason = "failed"
            if not has_begun:
                raise
            yield self._error_event(exchange, error)
        finally:
            if has_begun:
                self._record_finished_answer(exchange, monitor, end_reason=end_reason)

    async def _save_signatures(self, exchange: Exchange, monitor: StreamMonitor) -> None:
        """Record, before the client can answer, with which layout the signatures of an answer were made."""
        found, monitor.signatures = monitor.signatures, []
        has_recall = exchange.recallable is not None
        if found and (exchange.is_laid_out or has_recall):
            unchanged = exchange.known.unchanged_until if exchange.is_laid_out else len(exchange.client.messages)
            await self.run_in_worker(
                lambda: self.records.save_signatures(found, unchanged_until=unchanged, has_recall=has_recall)
            )

    async def _check_previous_response(self, exchange: Exchange) -> None:
        previous = exchange.client.body.get("previous_response_id")
        if (
            exchange.client.wire is not ApiFormat.RESPONSES
            or not isinstance(previous, str)
            or not exchange.caller.owner
        ):
            return
        if not await self.run_in_worker(lambda: self.responses.is_owned_by(exchange.caller.owner, previous)):
            raise _unknown_response_error(previous)

    async def _claim_response(self, exchange: Exchange, monitor: StreamMonitor) -> None:
        owner, found = exchange.caller.owner, monitor.response_id
        is_kept = exchange.client.wire is ApiFormat.RESPONSES and exchange.client.body.get("store") is not False
        if is_kept and owner and found is not None:
            monitor.response_id = None
            await self.run_in_worker(lambda: self.responses.record_owner(owner, found))

    # Another API upstream.

    async def _answer_over_other_api(self, exchange: Exchange) -> Response:
        client = exchange.client
        own_input = list_input_items(client.body) if client.wire is ApiFormat.RESPONSES else []
        if client.wire is ApiFormat.RESPONSES:
            await self._expand_previous_response(exchange)
        layout = await self._plan_references(exchange, needs_history=False)
        neutral, events = self._open_translated(exchange, layout)
        if neutral.unused:
            exchange.notes.append(f"unused: {', '.join(neutral.unused)}")
        prefix = {ApiFormat.MESSAGES: "msg_", ApiFormat.CHAT: "chatcmpl-", ApiFormat.RESPONSES: "resp_"}[client.wire]
        writer = FORMATS[client.wire].writer(
            neutral,
            model=client.model or exchange.upstream.name_without_provider,
            answer_id=prefix + token_hex(10),
            created=exchange.created,
        )
        if isinstance(writer, ResponsesEventWriter):
            repeated = ("instructions", "metadata", "previous_response_id", "store", "tools", "tool_choice")
            writer.repeated = {name: client.body[name] for name in repeated if client.body.get(name) is not None}
            writer.repeated["store"] = client.body.get("store") is not False
        output = self._write_translated_answer(exchange, events, writer, own_input)
        if client.is_streamed:
            first = await run_until_disconnect(exchange.request, anext(output, b""))
            return StreamingResponse(
                _yield_first_then(first, output), headers={**_STREAM_HEADERS, **exchange.headers()}
            )
        await run_until_disconnect(exchange.request, _read_to_end(output))
        return EscapedJSONResponse(writer.body(), headers=exchange.headers())

    async def _expand_previous_response(self, exchange: Exchange) -> None:
        """Put the items of earlier responses of this owner in front of the input."""
        client, previous = exchange.client, exchange.client.body.get("previous_response_id")
        if previous is None:
            return
        if not isinstance(previous, str):
            raise unknown_response_error(str(previous))
        items = await self.run_in_worker(lambda: self.responses.collect_items(exchange.caller.owner, previous))
        if items is None:
            raise _unknown_response_error(previous)
        body = {**client.body, "input": [*items, *list_input_items(client.body)]}
        exchange.client = ClientRequest(wire=client.wire, data=client.data, body=body, messages=body["input"])

    def _open_translated(
        self, exchange: Exchange, layout: list[PlannedText]
    ) -> tuple[NeutralRequest, AsyncGenerator[AnswerEvent, None]]:
        """Return the translated request and the events of its answer.

        A translation whose check fails is made again without references. If texts are still missing, nothing is sent.
        """
        for attempt in [layout, []] if layout else [[]]:
            neutral = parse_neutral(exchange.client, attempt)
            if exchange.recallable is not None:
                neutral.tools.append(RECALL_SPEC)
            send = self._prepare_translated(exchange, neutral)
            if send.is_checked:
                _note_references(exchange, attempt)
                if exchange.recallable is None:
                    return neutral, send.start()
                return neutral, answer_recalls(
                    send.start(),
                    neutral,
                    recallable=exchange.recallable,
                    send=lambda: self._prepare_translated(exchange, neutral).start(),  # noqa: B023 - returned with it
                )
            self.state.metrics.record_check_failure()
        raise RefusedFieldError(
            "messages", "The messages cannot be translated for this model without a loss.", hint="Choose another model."
        )

    def _prepare_translated(self, exchange: Exchange, neutral: NeutralRequest) -> "_TranslatedRequest":
        """Return the request for the upstream, not sent yet, and whether it has exactly the texts of the client."""
        endpoint = exchange.upstream.endpoint
        if endpoint is None:
            built = build_model_request(neutral, exchange.upstream.model, self._get_model_abilities(exchange.upstream))
            return _TranslatedRequest(
                model_request_has_same_texts(exchange.client, built),
                lambda: read_deltas(exchange.upstream.provider.stream(built)),
            )
        wire = choose_wire(neutral, endpoint.api_formats)
        body = self._build_translated(exchange, neutral, wire)
        return _TranslatedRequest(
            has_same_texts(exchange.client, wire, body), lambda: self._read_translated(exchange, endpoint, wire, body)
        )

    def _build_translated(self, exchange: Exchange, neutral: NeutralRequest, wire: ApiFormat) -> Json:
        model = exchange.upstream.name_without_provider
        if wire is ApiFormat.MESSAGES:
            from lamella.providers.facts.claude import max_answer_tokens

            body = build_messages_body(neutral, model, max_tokens=max_answer_tokens(model))
            return {"cache_control": {"type": "ephemeral"}, **body}
        if wire is ApiFormat.CHAT:
            return build_chat_body(neutral, model, is_openai=len(exchange.upstream.endpoint.api_formats) > 1)  # type: ignore[union-attr]
        return build_responses_body(neutral, model)

    def _get_model_abilities(self, upstream: Upstream) -> ModelAbilities:
        from lamella.providers.open_provider import get_context_window, supports_images, supports_tools

        services, model = self.state.engine_pool.services, upstream.model
        row = find_provider_entry(model.partition(":")[0])
        kind = "local" if is_local_model(model) else "gemini" if row is not None and "gemini" in row.names else "other"
        longest = _GEMINI_MAX_TOKENS if kind == "gemini" else _OTHER_MAX_TOKENS
        if kind == "local":
            longest = get_context_window(model, services.models) or longest
        return ModelAbilities(
            kind=kind,
            max_tokens=self.state.engine_pool.pool.default_answer_tokens.get(model, longest),
            takes_images=supports_images(model, services.models),
            takes_tools=supports_tools(model, services.models),
            marks_late_instructions=self.state.settings.late_instructions,
        )

    async def _read_translated(
        self, exchange: Exchange, endpoint: HttpEndpoint, wire: ApiFormat, body: Json
    ) -> AsyncGenerator[AnswerEvent, None]:
        response = await self.http.send(endpoint, PATHS[wire], encode_json(body), headers={})
        if response.is_error:
            raise UpstreamError(response.status, _parse_error(await response.read_error()), response.headers)
        reader = FORMATS[wire].reader()
        async with aclosing(_read_events(response, reader)) as events:
            async for event in events:
                yield event
        if not reader.has_ended:
            raise _cut_off_error()

    async def _write_translated_answer(
        self,
        exchange: Exchange,
        events: AsyncGenerator[AnswerEvent, None],
        writer: AnswerWriter,
        own_input: list[Json],
    ) -> AsyncGenerator[bytes, None]:
        """Yield an answer in the client's format, then an error if it broke off after it had begun."""
        monitor, end_reason, has_begun = StreamMonitor(exchange.client.wire), "stopped", False
        # The first event says only that an answer begins. It waits for the next one, so that an error before any
        # content still has an HTTP status.
        held = b""
        try:
            async with aclosing(events):
                async for event in events:
                    held += b"".join(writer.write(event))
                    if isinstance(event, AnswerStart):
                        continue
                    if isinstance(event, AnswerEnd):
                        monitor.usage, end_reason = event.usage, "done"
                        await self._store_response(exchange, writer, own_input)
                    if held:
                        has_begun = True
                        yield held
                        held = b""
            if end_reason != "done":
                raise _cut_off_error()
        except (LamellaError, UpstreamError, *_UNREADABLE) as error:
            end_reason = "failed"
            if not has_begun or not exchange.client.is_streamed:
                raise _to_known_error(error) from error
            yield writer.write_error(self._error_fields(exchange, error))
        finally:
            self._record_finished_answer(exchange, monitor, end_reason=end_reason)

    async def _store_response(self, exchange: Exchange, writer: AnswerWriter, own_input: list[Json]) -> None:
        if exchange.client.wire is not ApiFormat.RESPONSES or exchange.client.body.get("store") is False:
            return
        body, owner = writer.body(), exchange.caller.owner
        await self.run_in_worker(lambda: self.responses.save(owner, body["id"], StoredResponse(own_input, body)))

    # Errors.

    def _error_event(self, exchange: Exchange, error: LamellaError | UpstreamError) -> bytes:
        """Return the event for an error after the answer began, in the format of the client's API."""
        fields = self._error_fields(exchange, error)
        match exchange.client.wire:
            case ApiFormat.MESSAGES:
                return format_event({"type": "error", "error": fields}, name="error")
            case ApiFormat.CHAT:
                return format_event({"error": fields})
        told = {"code": fields.get("code"), "message": fields.get("message"), "param": fields.get("param")}
        return format_event({"type": "error", "sequence_number": 0, **told}, name="error")

    def _error_fields(self, exchange: Exchange, error: Exception) -> Mapping[str, object]:
        if isinstance(error, UpstreamError):
            return error.fields
        fields = error_status_and_body(_to_known_error(error), exchange.path)[1]["error"]
        assert isinstance(fields, dict)
        return fields

    def _error_from_upstream(self, exchange: Exchange, fields: Json) -> Response:
        """Return an error that the upstream sent as its first event, with the status that it means."""
        status = _find_status(fields)
        self._record_finished_answer(exchange, StreamMonitor(exchange.client.wire), end_reason="failed", status=status)
        shape: Json = {"type": "error"} if exchange.client.wire is ApiFormat.MESSAGES else {}
        message = mask_keys(str(fields.get("message") or ""))
        return EscapedJSONResponse(
            {**shape, "error": {**fields, "message": message}}, status, headers=exchange.headers()
        )

    def _record_finished_answer(
        self, exchange: Exchange, monitor: StreamMonitor, *, end_reason: str, status: int = 200
    ) -> None:
        record_answer(
            self.state,
            AnswerRecord(
                label=exchange.label,
                caller=exchange.caller.name,
                model=exchange.upstream.model,
                wire=exchange.client.wire,
                end_reason=end_reason,
                status=status,
                usage=monitor.usage,
                seconds=time.perf_counter() - exchange.started_at,
            ),
        )


def _may_name_any_model(caller: Caller) -> bool:
    return caller.scope is AccessScope.ADMIN and not caller.owner


def _listing_query(endpoint: HttpEndpoint) -> str:
    # Anthropic's API lists 20 models at a time unless it is asked for more.
    return "limit=1000" if ApiFormat.MESSAGES in endpoint.api_formats else ""


def _note_references(exchange: Exchange, layout: list[PlannedText]) -> None:
    if layout:
        exchange.notes.append(f"repeated documents: {sum(len(one.references) for one in layout)}")


class _TranslatedRequest(NamedTuple):
    """A translated request: whether its check succeeded, and the function that sends it."""

    is_checked: bool
    start: Callable[[], AsyncGenerator[AnswerEvent, None]]


class _ReadResponse:
    """A response whose body was read before."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.headers: Mapping[str, str] = {}

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        yield self._data

    async def aclose(self) -> None:
        """Do nothing: the connection was closed when the body was read."""


def upstream_error_response(error: UpstreamError, path: str) -> Response:
    """Return the response for an error of an upstream, in the shape of the client's API."""
    shape: Json = {"type": "error"} if path.startswith("/v1/messages") else {}
    return EscapedJSONResponse({**shape, "error": error.fields}, error.status, headers=error.headers)


def _parse_error(data: bytes) -> Json:
    """Return the fields of an error response; its words come from the upstream, without keys."""
    try:
        found = decode_json(data)
    except (ValueError, RecursionError):
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    fields: Json = error if isinstance(error, dict) else {"message": data[:500].decode("utf-8", "replace")}
    message = mask_keys(str(fields.get("message") or "The provider refused the request."))
    return {
        "type": str(fields.get("type") or "api_error"),
        "code": fields.get("code"),
        "param": fields.get("param"),
        "message": message,
    }


async def _read_events(response: UpstreamResponse, reader: AnswerReader) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the events of a stream; raises if the stream contains an error."""
    sse = SseReader()
    async with aclosing(response.iter_bytes()) as chunks:
        async for chunk in chunks:
            for event in _feed_each(reader, sse.feed(chunk)[1]):
                yield event
    for event in _feed_each(reader, sse.finish()[1]):
        yield event
    finish = getattr(reader, "finish", None)
    if finish is not None:
        for event in finish():
            yield event


def _feed_each(reader: AnswerReader, events: Iterable[Any]) -> Iterable[AnswerEvent]:
    for one in events:
        yield from reader.feed(one)
        if reader.error is not None:
            fields = _parse_error(encode_json({"error": reader.error}))
            raise UpstreamError(_find_status(reader.error), fields, {})


def _find_status(error: Json) -> int:
    """Return the status that an error in a stream means; some servers write it as the code, and codes say more than types."""
    code = error.get("code")
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal() and len(code) < 4) else 0
    if _BAD_REQUEST <= number <= _LAST_STATUS:
        return number
    kinds = (str(error.get(name)) for name in ("code", "type"))
    return next((_STATUS_OF_ERROR[kind] for kind in kinds if kind in _STATUS_OF_ERROR), _BAD_GATEWAY)


# What the readers of answers raise for fields of other types than the API has.
_UNREADABLE = (AttributeError, TypeError, KeyError, ValueError, IndexError)


def _to_known_error(error: Exception) -> Exception:
    return error if isinstance(error, LamellaError | UpstreamError) else _unreadable_answer_error(error)


async def _yield_first_then(first: bytes, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        if first:
            yield first
        async for part in parts:
            yield part


async def _read_to_end(parts: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(parts):
        async for _ in parts:
            pass


def _cut_off_error() -> InvalidReplyError:
    return InvalidReplyError("The provider broke off its answer before its end.", hint="Send the request again.")


def _unreadable_answer_error(error: BaseException) -> InvalidReplyError:
    return InvalidReplyError(
        f"The provider's answer cannot be read: {type(error).__name__}.", hint="Send the request again."
    )


def _unknown_response_error(response_id: str) -> NotFoundError:
    return NotFoundError(f"There is no response {response_id[:100]!r}.", hint="Send the whole input.")
