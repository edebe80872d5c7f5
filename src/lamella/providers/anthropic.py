"""The provider for Anthropic's Messages API.

``build_request`` builds the arguments of ``messages.create``, as a pure function of the request and the model profile.
``read_reply`` and ``MessageAccumulator`` read answers and stream events. ``AnthropicProvider`` sends requests with
Anthropic's SDK, which is imported when the first message is sent.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lamella.core.messages import (
    CacheDiagnosis,
    Delta,
    Message,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    Role,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
    find_stable_end_positions,
    join_text,
    reply_from_deltas,
)
from lamella.errors import LamellaError, SdkNotInstalledError, install_hint
from lamella.ports import HttpEndpoint, ModelRegistry
from lamella.profiles import ModelProfile, choose_lifetime
from lamella.providers.connection import (
    ErrorResponse,
    RequestTarget,
    connection_error,
    error_from_response,
    invalid_answer_error,
    is_response_without_stream,
    limit_response,
    limit_response_start,
    parse_retry_after,
    read_delta_batches,
    timeout_error,
)
from lamella.providers.entry import discard_remaining_chunks, validate_key_and_address
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.registry import strip_provider
from lamella.providers.wire import (
    Body,
    BreakpointLimits,
    Fields,
    RequestBlock,
    SectionEnds,
    as_fields,
    build_extra_body,
    encode_image,
    enumerate_non_system_messages,
    get_count_at,
    get_fields_at,
    get_native_reply,
    get_parts_at,
    get_reasoning_effort,
    get_system_text,
    get_text_at,
    list_caller_breakpoints,
    normalise_usage,
    parse_arguments,
    plan_breakpoints,
    split_at,
    split_cache_writes,
    to_canonical_json,
    to_provider_reply,
    tool_schema,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

FORMAT_NAME = "anthropic"
_REASONING_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_TYPES_WITHOUT_BREAKPOINT = ("thinking", "redacted_thinking")


class BreakpointPlacement(StrEnum):
    """The side that places cache breakpoints: Lamella, the provider (one, after the last block), or neither."""

    EXPLICIT = "explicit"
    AUTOMATIC = "automatic"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockLayout:
    """All blocks of a request in the order in which the cache reads them, and the ends of its sections.

    ``message_ends`` maps the position of a message to its last block. ``fixed_end`` is the last block of the most
    stable section.
    """

    tools: list[Body]
    system: list[Body]
    messages: list[Body]
    message_ends: dict[int, int]
    fixed_end: int | None

    @property
    def blocks(self) -> list[Body]:
        return [*self.tools, *self.system, *(block for turn in self.messages for block in turn["content"])]


def build_request(
    request: ModelRequest, profile: ModelProfile, *, caching: BreakpointPlacement = BreakpointPlacement.EXPLICIT
) -> Body:
    """Return the keyword arguments that send a request with Anthropic's SDK, without ``stream``."""
    laid, caching = _build_blocks(request), BreakpointPlacement(request.breakpoint_mode or caching)
    body: Body = {
        "model": strip_provider(request.model),
        "max_tokens": request.max_output_tokens,
        "messages": laid.messages,
    }
    body |= {"system": laid.system} if laid.system else {}
    body |= {"tools": laid.tools} if laid.tools else {}
    body |= {} if request.allows_tool_calls or not laid.tools else {"tool_choice": {"type": "none"}}
    # OpenAI models behind a gateway have breakpoints and diagnostics too, but not those of this API.
    own = profile.provider != "openai"
    if caching is not BreakpointPlacement.OFF and profile.breakpoints and own:
        body |= _set_breakpoints(request, profile, laid, caching=caching)
    if profile.diagnostics and own:
        body["diagnostics"] = {"previous_message_id": request.previous_reply_id}
    effort = get_reasoning_effort(request, *_REASONING_EFFORTS)
    body |= {"output_config": {"effort": effort}} if effort else {}
    # The SDK has no temperature argument any more. Gateways and older models accept one as an extra field.
    given: Body = {} if request.temperature is None else {"temperature": request.temperature}
    further: Body = build_extra_body(request, body | given).get("extra_body", {}) | given
    return body | ({"extra_body": further} if further else {})


def _set_breakpoints(
    request: ModelRequest, profile: ModelProfile, layout: _BlockLayout, *, caching: BreakpointPlacement
) -> Body:
    """Set the breakpoints on the blocks and return the further body fields for caching."""
    lifetime = choose_lifetime(request.expected_pause, profile.lifetimes)
    mark = {"type": "ephemeral"} | ({"ttl": lifetime.name} if lifetime and lifetime.name != "5m" else {})
    automatic = caching is BreakpointPlacement.AUTOMATIC
    blocks = layout.blocks
    marks = plan_breakpoints(
        [_to_block_with_size(block) for block in blocks],
        SectionEnds() if automatic else _stable_block_ends(request, layout),
        limits=BreakpointLimits(
            max_breakpoints=profile.breakpoints - automatic, lookback=profile.lookback, min_tokens=profile.cache.minimum
        ),
        requested=list_caller_breakpoints(request, layout.message_ends),
    )
    longest = profile.lifetimes[-1].name if profile.lifetimes else None
    kept_breakpoints = (
        layout.message_ends.get(request.long_lifetime_until)
        if request.long_lifetime_until is not None and longest
        else None
    )
    for position in marks:
        # The API requires breakpoints with a longer lifetime to come before those with a shorter one.
        lasts = kept_breakpoints is not None and position <= kept_breakpoints
        blocks[position]["cache_control"] = mark | {"ttl": longest} if lasts else mark
    return {"cache_control": mark} if automatic else {}


def _to_block_with_size(block: Body) -> RequestBlock:
    return RequestBlock(
        size=len(to_canonical_json(block).encode()),
        can_have_breakpoint=block.get("type") not in _TYPES_WITHOUT_BREAKPOINT,
    )


def _stable_block_ends(request: ModelRequest, layout: _BlockLayout) -> SectionEnds:
    """Return the last block of each stable section of the request."""
    tail, previous = (
        layout.message_ends.get(position) if position is not None else None
        for position in find_stable_end_positions(request.messages, request.effective_cache_boundaries.stable_messages)
    )
    return SectionEnds(
        tools=len(layout.tools) - 1 if layout.tools else None,
        fixed=layout.fixed_end,
        library=len(layout.tools) + len(layout.system) - 1 if layout.system else None,
        tail=tail,
        previous_tail=previous,
    )


def _build_blocks(request: ModelRequest) -> _BlockLayout:
    """Build all blocks of a request and find the ends of its sections."""
    settled = request.effective_cache_boundaries
    parts = list(
        split_at(
            get_system_text(request.messages),
            (*settled.system_positions, *((settled.stable_prefix_end,) if settled.stable_prefix_end else ())),
        )
    )
    tools = [_build_tool(tool.name, tool.description, tool_schema(tool)) for tool in request.tools]
    stable = [
        at
        for at, (end, _) in enumerate(parts)
        if settled.stable_prefix_end is not None and end <= settled.stable_prefix_end
    ]
    position = len(tools) + len(parts) - 1
    turns, ends = _build_messages(request, position)
    if parts:
        ends |= {index: position for index, message in enumerate(request.messages) if message.role is Role.SYSTEM}
    return _BlockLayout(
        tools=tools,
        system=[{"type": "text", "text": part} for _, part in parts],
        messages=turns,
        message_ends={index: end for index, end in ends.items() if end >= 0},
        fixed_end=len(tools) + stable[-1] if stable else None,
    )


def _build_messages(request: ModelRequest, position: int) -> tuple[list[Body], dict[int, int]]:
    """Return the API's messages, and the last block of each Lamella message, counted from ``position``."""
    turns: list[Body] = []
    ends: dict[int, int] = {}
    before: Role | None = None
    for index, message in enumerate_non_system_messages(request.messages):
        content = _build_content(message)
        if message.role is Role.TOOL and before is Role.TOOL:
            # The API requires one message with the results of all tool calls of the message before.
            turns[-1]["content"] += content
        elif content:
            # The API rejects a message without content. It joins the neighbours of a message that is left out.
            role = Role.ASSISTANT if message.role is Role.ASSISTANT else Role.USER
            turns.append({"role": role.value, "content": content})
        position += len(content)
        ends[index] = position
        before = message.role
    return turns, ends


def _build_tool(name: str, description: str, parameters: object) -> Body:
    return {"name": name, "description": description, "input_schema": parameters}


def _build_content(message: Message) -> list[Body]:
    if message.role is Role.TOOL:
        return [_build_tool_result(message)]
    native: list[Body] | None = get_native_reply(message, FORMAT_NAME)
    if native is not None:
        return native
    pictures = [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": encode_image(image)}}
        for image in message.images
    ]
    texts = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [*texts, *pictures, *_build_calls(message.calls)]


def _build_calls(calls: Sequence[ToolCall]) -> list[Body]:
    return [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": parse_arguments(call.arguments)}
        for call in calls
    ]


def _build_tool_result(message: Message) -> Body:
    block: Body = {"type": "tool_result", "tool_use_id": message.call_id}
    if message.text.strip():
        block["content"] = [{"type": "text", "text": message.text}]
    if message.failed:
        block["is_error"] = True
    return block


# Replies, from the SDK's object or from stream events.

_STOP_REASONS = {
    "end_turn": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_CALLS,
    "pause_turn": StopReason.PAUSED,
    "refusal": StopReason.REFUSED,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
}


def is_answer(fields: Fields) -> bool:
    """Return whether the fields are a message of this API."""
    return fields.get("type") == "message" and "stop_reason" in fields


def is_first_event(fields: Fields) -> bool:
    """Return whether the fields are the first event of a stream of this API."""
    return fields.get("type") == "message_start"


def read_reply(answer: object) -> ModelReply | None:
    """Return the reply in a finished message, given as an SDK object or as plain data.

    None if it is not a message or has not ended.
    """
    message = as_fields(answer)
    if not is_answer(message) or message.get("stop_reason") is None:
        return None
    blocks = [_drop_nulls(block) for block in get_parts_at(message, "content", kind="text")]
    usage = get_fields_at(message, "usage")
    return reply_from_deltas([*_blocks_to_deltas(blocks), read_usage(usage, usage), _build_stop(message, blocks)])


def read_streamed_reply(events: Iterable[Fields]) -> ModelReply | None:
    """Return the reply that stream events add up to, or None if the end of the stream is missing."""
    fold = MessageAccumulator()
    return reply_from_deltas([delta for event in events for delta in fold.feed(event)])


def read_usage(usage: Fields, first_usage: Fields) -> Usage:
    """Return the token usage from the last report and the first report (``first_usage``) of a stream.

    Totals come from the last report. The split of cache writes by lifetime is only in the first one.
    """
    split = get_fields_at(first_usage, "cache_creation")
    write, write_long = split_cache_writes(
        _get_latest_count(usage, first_usage, "cache_creation_input_tokens"),
        short=get_count_at(split, "ephemeral_5m_input_tokens"),
        long=get_count_at(split, "ephemeral_1h_input_tokens"),
    )
    return normalise_usage(
        plain=_get_latest_count(usage, first_usage, "input_tokens"),
        read=_get_latest_count(usage, first_usage, "cache_read_input_tokens"),
        write=write,
        write_long=write_long,
        output=_get_latest_count(usage, first_usage, "output_tokens"),
        reasoning=get_count_at(get_fields_at(usage, "output_tokens_details"), "thinking_tokens"),
    )


class MessageAccumulator:
    """Accumulates stream events one by one. ``finished`` is set after the last event."""

    def __init__(self) -> None:
        self.finished = False
        self._message: Fields = {}
        self._usage: Fields = {}
        self._message_delta: Fields = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        # New text is collected in lists and joined once. Appending to a string would copy it with every delta.
        self._text_parts: dict[int, dict[str, list[str]]] = {}

    def feed(self, event: Fields) -> Iterator[Delta]:
        """Add an event and yield its deltas."""
        match event.get("type"):
            case "message_start":
                self._message = get_fields_at(event, "message")
            case "content_block_start":
                self._blocks[get_count_at(event, "index") or 0] = _drop_nulls(get_fields_at(event, "content_block"))
            case "content_block_delta":
                yield from self._add_delta(get_count_at(event, "index") or 0, get_fields_at(event, "delta"))
            case "content_block_stop":
                yield from self._finish_block(get_count_at(event, "index") or 0)
            case "message_delta":
                self._message_delta = get_fields_at(event, "delta")
                self._usage = get_fields_at(event, "usage")
            case "message_stop":
                yield from self._finish_message()

    def _add_delta(self, index: int, delta: Fields) -> Iterator[Delta]:
        self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "text_delta":
                yield from _yield_if_not_empty(
                    TextDelta(text=self._append_block_text(index, "text", get_text_at(delta, "text")))
                )
            case "thinking_delta":
                yield from _yield_if_not_empty(
                    ReasoningDelta(text=self._append_block_text(index, "thinking", get_text_at(delta, "thinking")))
                )
            case "signature_delta":
                self._append_block_text(index, "signature", get_text_at(delta, "signature"))
            case "input_json_delta":
                self._append_block_text(index, "json", get_text_at(delta, "partial_json"))

    def _append_block_text(self, index: int, name: str, text: str) -> str:
        self._text_parts.setdefault(index, {}).setdefault(name, []).append(text)
        return text

    def _join_block(self, index: int) -> dict[str, Any]:
        """Return a block with all its collected text joined."""
        block = self._blocks.get(index, {})
        for name, parts in self._text_parts.pop(index, {}).items():
            block[name] = "".join((get_text_at(block, name), *parts))
        return block

    def _finish_block(self, index: int) -> Iterator[Delta]:
        block = self._join_block(index)
        if block.get("type") == "tool_use":
            written = join_text((block.pop("json", ""),))
            yield ToolCall(
                id=get_text_at(block, "id"),
                name=get_text_at(block, "name"),
                arguments=written or to_canonical_json(block.get("input", {})),
            )
            block["input"] = parse_arguments(written) if written else block.get("input", {})

    def _finish_message(self) -> Iterator[Delta]:
        start = get_fields_at(self._message, "usage")
        yield read_usage(self._usage, start)
        yield _build_stop(
            {**self._message, **self._message_delta}, [self._join_block(index) for index in sorted(self._blocks)]
        )
        self.finished = True


def _blocks_to_deltas(blocks: list[dict[str, Any]]) -> Iterator[Delta]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield TextDelta(text=get_text_at(block, "text"))
            case "thinking":
                yield ReasoningDelta(text=get_text_at(block, "thinking"))
            case "tool_use":
                arguments = to_canonical_json(block.get("input", {}))
                yield ToolCall(id=get_text_at(block, "id"), name=get_text_at(block, "name"), arguments=arguments)


def _build_stop(message: Fields, blocks: list[dict[str, Any]]) -> StopDelta:
    calls = any(block.get("type") == "tool_use" for block in blocks)
    return StopDelta(
        reason=_STOP_REASONS.get(get_text_at(message, "stop_reason"), StopReason.OTHER),
        id=get_text_at(message, "id") or None,
        diagnosis=read_diagnosis(message),
        provider_reply=to_provider_reply(_keep_sendable_blocks(blocks), FORMAT_NAME) if calls else None,
    )


def read_diagnosis(message: Fields) -> CacheDiagnosis | None:
    """Return why the cache was missed, or None if the provider reports nothing about it."""
    found = message.get("diagnostics")
    if found is None:
        return None
    reason = get_fields_at(get_fields_at(message, "diagnostics"), "cache_miss_reason")
    kind = get_text_at(reason, "type")
    if not kind:
        return CacheDiagnosis(verdict="pending")
    if kind in ("unavailable", "previous_message_not_found"):
        return CacheDiagnosis(verdict=kind)
    return CacheDiagnosis(verdict="miss", reason=kind, missed=get_count_at(reason, "cache_missed_input_tokens"))


def _keep_sendable_blocks(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # The API returns empty text blocks but does not accept them in a request.
    return [block for block in blocks if block.get("type") != "text" or get_text_at(block, "text").strip()]


def _drop_nulls(block: Fields) -> dict[str, Any]:
    return {name: value for name, value in block.items() if value is not None}


def _yield_if_not_empty(delta: TextDelta | ReasoningDelta) -> Iterator[Delta]:
    if delta.text:
        yield delta


def _get_latest_count(usage: Fields, first_usage: Fields, name: str) -> int | None:
    found = get_count_at(usage, name)
    return found if found is not None else get_count_at(first_usage, name)


# The provider.

DEFAULT_TIMEOUT = 120.0
_API_URL = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"


class AnthropicProvider:
    """Claude, or another server that offers the same API at ``address``.

    ``timeout`` is how many seconds the server may stay silent.
    """

    def __init__(
        self,
        *,
        key: str,
        address: str = _API_URL,
        timeout: float = DEFAULT_TIMEOUT,
        caching: BreakpointPlacement = BreakpointPlacement.EXPLICIT,
        models: ModelRegistry | None = None,
    ) -> None:
        self._key = key
        self._address = address
        self._timeout = timeout
        self._caching = caching
        self._models = models or BuiltInModelProfiles()
        self._client: AsyncAnthropic | None = None

    @property
    def endpoint(self) -> HttpEndpoint:
        """Return the API that this provider calls."""
        validate_key_and_address(provider="Anthropic", key=self._key, address=self._address)
        headers = {"x-api-key": self._key, "anthropic-version": _API_VERSION}
        return HttpEndpoint("Anthropic", f"{self._address.rstrip('/')}/v1", ("messages",), headers)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        client = self._get_client()
        target = RequestTarget(
            provider="Anthropic", model=strip_provider(request.model), address=self._address, timeout=self._timeout
        )
        body = build_request(request, self._models.get_model_profile(request.model), caching=self._caching)
        fold = MessageAccumulator()
        from anthropic import AnthropicError
        from httpx2 import HTTPError

        failures = (AnthropicError, HTTPError, ValueError, RecursionError)
        try:
            async with (
                await client.messages.create(**body, stream=True) as events,
                aclosing(read_delta_batches(events, fold.feed, target=target, to_reply=read_reply)) as batches,
            ):
                async for deltas in batches:
                    for delta in deltas:
                        if isinstance(delta, StopDelta):
                            # Drained before the last delta, because the consumer may stop iterating there.
                            await discard_remaining_chunks(batches, *failures)
                        yield delta
                    # Anything that arrives after the last event is not part of the answer.
                    if fold.finished or is_response_without_stream(events.response.headers):
                        return
        except failures as error:
            raise to_lamella_error(error, target) from error
        if not fold.finished:
            raise invalid_answer_error(target, "it ended before its last event")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _get_client(self) -> "AsyncAnthropic":
        if self._client is None:
            validate_key_and_address(provider="Anthropic", key=self._key, address=self._address)
            try:
                from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
            except ImportError as error:
                raise SdkNotInstalledError(
                    "The package anthropic is not installed.", hint=install_hint("anthropic")
                ) from error
            # Redirects are not followed: a server could otherwise send the conversation and the key to another server.
            http = DefaultAsyncHttpxClient(event_hooks={"response": [limit_response]}, follow_redirects=False)
            self._client = AsyncAnthropic(
                api_key=self._key,
                base_url=self._address,
                timeout=self._timeout,
                max_retries=0,
                http_client=limit_response_start(http),
            )
        return self._client


def to_lamella_error(error: Exception, target: RequestTarget) -> LamellaError:
    """Return the Lamella error for an exception of the SDK or its transport."""
    from anthropic import APIConnectionError, APIStatusError, APITimeoutError
    from httpx2 import ConnectError, TimeoutException

    if isinstance(error, APIStatusError):
        return error_from_response(
            _parse_sdk_error(error.status_code, error.body, retry_after=parse_retry_after(error.response.headers)),
            target,
        )
    if isinstance(error, APITimeoutError | TimeoutException):
        return timeout_error(target)
    if isinstance(error, APIConnectionError | ConnectError):
        return connection_error(target, error)
    return invalid_answer_error(target, str(error) or type(error).__name__)


def _parse_sdk_error(status: int, body: object, *, retry_after: float | None) -> ErrorResponse:
    fields: Fields = as_fields(body)
    error = get_fields_at(fields, "error")
    words = get_text_at(error, "message") or (body if isinstance(body, str) else "")
    return ErrorResponse(
        status=status, kind=get_text_at(error, "type"), message=words, retry_after=retry_after, is_api_error=bool(error)
    )
