"""The provider for OpenAI's Responses API.

``build_request`` builds the arguments of ``responses.create``, as a pure function of the request and the model
profile. ``read_reply`` and ``ResponseAccumulator`` read answers and stream events. ``OpenAIResponsesProvider`` sends
requests with OpenAI's SDK.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
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
    reply_from_deltas,
)
from lamella.ports import HttpEndpoint, ModelRegistry
from lamella.profiles import ModelProfile
from lamella.providers.connection import (
    DEFAULT_TIMEOUT,
    OPENAI_API_URL,
    ErrorResponse,
    RequestTarget,
    error_from_response,
    invalid_answer_error,
    is_response_without_stream,
    open_openai_client,
    openai_endpoint,
    read_delta_batches,
    to_lamella_error,
)
from lamella.providers.entry import discard_remaining_chunks
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.registry import strip_provider
from lamella.providers.wire import (
    Body,
    Fields,
    Part,
    PartLayout,
    as_fields,
    build_extra_body,
    build_openai_cache_fields,
    encode_image,
    enumerate_non_system_messages,
    get_count_at,
    get_fields_at,
    get_items_at,
    get_native_reply,
    get_parts_at,
    get_system_text,
    get_text_at,
    normalise_usage,
    split_at,
    split_cache_writes,
    to_provider_reply,
    tool_schema,
    unreadable_field_error,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

FORMAT_NAME = "openai_responses"
# The API rejects a smaller limit.
_MIN_OUTPUT_TOKENS = 16


def build_request(request: ModelRequest, profile: ModelProfile) -> Body:
    """Return the keyword arguments that send a request with OpenAI's SDK, without ``stream``."""
    items, laid = _build_items(request)
    # Lamella stores the conversation itself. A response that the provider does not store cannot survive an erasure.
    body: Body = {
        "model": strip_provider(request.model),
        "input": items,
        "max_output_tokens": max(request.max_output_tokens, _MIN_OUTPUT_TOKENS),
        "store": False,
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool_schema(tool),
                "strict": False,
            }
            for tool in request.tools
        ]
        body |= {} if request.allows_tool_calls else {"tool_choice": "none"}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort is not None:
        body["reasoning"] = {"effort": request.effort}
    body |= build_openai_cache_fields(request, profile, laid, lifetimes=profile.lifetimes)
    if profile.diagnostics and request.previous_reply_id and "prompt_cache_options" in body:
        body["prompt_cache_options"]["comparison_response_id"] = request.previous_reply_id
    return body | build_extra_body(request, body)


def _build_items(request: ModelRequest) -> tuple[list[Body], PartLayout]:
    """Return the input items, and the layout of their parts.

    Instructions are sent as a developer message, because only a message can carry a breakpoint.
    """
    items: list[Body] = []
    parts: list[Part] = []
    ends: dict[int, int] = {}
    fixed = request.effective_cache_boundaries.stable_prefix_end
    texts = [
        _build_text_part(text) for _, text in split_at(get_system_text(request.messages), (fixed,) if fixed else ())
    ]
    if texts:
        items.append({"role": "developer", "content": texts})
        parts += [Part(body=text, can_have_breakpoint=True) for text in texts]
    library = len(parts) - 1 if parts else None
    if library is not None:
        ends |= {index: library for index, message in enumerate(request.messages) if message.role is Role.SYSTEM}
    for index, message in enumerate_non_system_messages(request.messages):
        user = message.role is Role.USER
        content = _build_content(message)
        built = _build_round_items(message)
        items += built or [{"role": message.role.value, "content": content if user else message.text}]
        parts += [Part(body=part, can_have_breakpoint=user) for part in built or content]
        ends[index] = len(parts) - 1
    return items, PartLayout(
        parts=parts, message_ends=ends, fixed_end=0 if len(texts) > 1 else None, library_end=library
    )


def _build_text_part(text: str) -> Body:
    return {"type": "input_text", "text": text}


def _build_content(message: Message) -> list[Body]:
    pictures = [
        {"type": "input_image", "detail": "auto", "image_url": f"data:{image.media_type};base64,{encode_image(image)}"}
        for image in message.images
    ]
    return [_build_text_part(message.text), *pictures]


def _build_round_items(message: Message) -> list[Body]:
    """Return the items of a tool round (tool calls or a tool result). Empty for an ordinary message."""
    if message.role is Role.TOOL:
        text = f"Error: {message.text}" if message.failed else message.text
        return [{"type": "function_call_output", "call_id": message.call_id, "output": text}]
    native: list[Body] | None = get_native_reply(message, FORMAT_NAME)
    if native is not None or not message.calls:
        return native or []
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}
        for call in message.calls
    ]
    texts = [{"role": "assistant", "content": message.text}] if message.text else []
    return [*texts, *calls]


# Replies, from the SDK's object or from stream events.

_INCOMPLETE_REASONS = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSED}
_DELTA_TYPES: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}


def is_answer(fields: Fields) -> bool:
    """Return whether the fields are a response of this API."""
    return fields.get("object") == "response" or ("output" in fields and "status" in fields)


def is_event(fields: Fields) -> bool:
    """Return whether the fields are an event of a streamed response."""
    return get_text_at(fields, "type").startswith("response.")


def read_reply(answer: object) -> ModelReply | None:
    """Return the reply in a finished response (an SDK object or plain data), or None if it has not finished.

    Raises the error that a failed response contains.
    """
    response = as_fields(answer)
    if response.get("status") == "failed":
        raise error_from_response(_to_error_response(get_fields_at(response, "error")), _make_error_target(response))
    if response.get("status") not in ("completed", "incomplete"):
        return None
    items = _get_output_items(response)
    deltas = [delta for item in items for delta in _item_to_deltas(item)]
    return reply_from_deltas([*deltas, *_make_final_deltas(response, items)])


def read_events(events: Iterable[Fields]) -> ModelReply | None:
    """Return the reply that stream events add up to, or None if the end of the stream is missing.

    Raises the error that the stream ended with.
    """
    fold = ResponseAccumulator()
    deltas: list[Delta] = []
    response: Fields = {}
    for event in events:
        response = get_fields_at(event, "response") or response
        deltas += fold.feed(event)
    if fold.failure is not None:
        raise error_from_response(fold.failure, _make_error_target(response))
    return reply_from_deltas(deltas)


def _make_error_target(response: Fields) -> RequestTarget:
    return RequestTarget(
        provider="OpenAI", model=get_text_at(response, "model"), address=OPENAI_API_URL, timeout=DEFAULT_TIMEOUT
    )


def read_usage(response: Fields) -> Usage:
    """Return the token usage. The reported total includes cache reads and cache writes."""
    usage = get_fields_at(response, "usage")
    details = get_fields_at(usage, "input_tokens_details")
    split = get_fields_at(details, "cache_write_tokens_details")
    write, write_long = split_cache_writes(
        get_count_at(details, "cache_write_tokens"),
        short=get_count_at(split, "ttl_30m_tokens"),
        long=get_count_at(split, "ttl_12h_tokens"),
    )
    return normalise_usage(
        total=get_count_at(usage, "input_tokens"),
        read=get_count_at(details, "cached_tokens"),
        write=write,
        write_long=write_long,
        output=get_count_at(usage, "output_tokens"),
        reasoning=get_count_at(get_fields_at(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def read_diagnosis(response: Fields) -> CacheDiagnosis | None:
    """Return the provider's comparison of its cache with an earlier response, or None if there is none."""
    found = get_fields_at(response, "prompt_cache_diagnostics")
    kind = get_text_at(found, "type")
    if not kind:
        return None
    return CacheDiagnosis(
        verdict=kind.removeprefix("cache_"),
        reason=get_text_at(found, "reason") or None,
        missed=get_count_at(found, "cache_missed_tokens"),
    )


class ResponseAccumulator:
    """Accumulates stream events one by one.

    ``finished`` is set after the last event. ``failure`` is set if that event was an error.
    """

    def __init__(self) -> None:
        self.finished = False
        self.failure: ErrorResponse | None = None
        self._items: dict[int, Fields] = {}

    def feed(self, event: Fields) -> Iterator[Delta]:
        """Add an event and yield its deltas."""
        kind = get_text_at(event, "type")
        made = _DELTA_TYPES.get(kind)
        if made is not None and get_text_at(event, "delta"):
            yield made(text=get_text_at(event, "delta"))
        match kind:
            case "response.output_item.done":
                item = get_fields_at(event, "item")
                self._items[get_count_at(event, "output_index") or 0] = item
                yield from _call_to_deltas(item)
            case "response.completed" | "response.incomplete":
                yield from _make_final_deltas(
                    get_fields_at(event, "response"), [self._items[at] for at in sorted(self._items)]
                )
                self.finished = True
            case "response.failed":
                self._record_failure(get_fields_at(get_fields_at(event, "response"), "error"))
            case "error":
                self._record_failure(event)

    def _record_failure(self, error: Fields) -> None:
        self.failure = _to_error_response(error)


def _to_error_response(error: Fields) -> ErrorResponse:
    return ErrorResponse(
        status=200, kind=get_text_at(error, "code") or "server_error", message=get_text_at(error, "message")
    )


def _get_output_items(response: Fields) -> Sequence[Fields]:
    """Return the output items of a response.

    Items of unknown types are ignored later. Text outside of a message raises an error, because it would be lost.
    """
    output = response.get("output")
    if output is not None and not isinstance(output, list):
        raise unreadable_field_error("output", output)
    for item in output or ():
        if not isinstance(item, Mapping) or item.get("type") in (None, "text", "output_text"):
            raise unreadable_field_error("output", item)
    return output or ()


def _item_to_deltas(item: Fields) -> Iterator[Delta]:
    match item.get("type"):
        case "message":
            for part in get_parts_at(item, "content", kind="output_text"):
                if part["type"] == "refusal" and not isinstance(part.get("refusal"), str):
                    raise unreadable_field_error("content", part)
                yield TextDelta(text=get_text_at(part, "text") or get_text_at(part, "refusal"))
        case "reasoning":
            for part in (*get_items_at(item, "summary"), *get_items_at(item, "content")):
                yield ReasoningDelta(text=get_text_at(part, "text"))
    yield from _call_to_deltas(item)


def _call_to_deltas(item: Fields) -> Iterator[Delta]:
    if item.get("type") == "function_call":
        arguments = get_text_at(item, "arguments") or "{}"
        yield ToolCall(id=get_text_at(item, "call_id"), name=get_text_at(item, "name"), arguments=arguments)


def _make_final_deltas(response: Fields, items: Sequence[Fields]) -> Iterator[Delta]:
    yield read_usage(response)
    calls = any(item.get("type") == "function_call" for item in items)
    reason = StopReason.TOOL_CALLS if calls else StopReason.END
    if response.get("status") == "incomplete":
        reason = _INCOMPLETE_REASONS.get(
            get_text_at(get_fields_at(response, "incomplete_details"), "reason"), StopReason.OTHER
        )
    yield StopDelta(
        reason=reason,
        id=get_text_at(response, "id") or None,
        diagnosis=read_diagnosis(response),
        provider_reply=to_provider_reply(_keep_sendable_items(items), FORMAT_NAME) if calls else None,
    )


def _keep_sendable_items(items: Sequence[Fields]) -> list[dict[str, Any]]:
    """Return the items in a form that can be sent back.

    The provider stores nothing, so reasoning items without their encrypted content are left out.
    """
    trimmed = [_drop_nulls(item) for item in items]
    if all(item.get("encrypted_content") for item in trimmed if item.get("type") == "reasoning"):
        return trimmed
    # A call that keeps its id would refer to the reasoning item that led to it.
    spoken = (item for item in trimmed if item.get("type") != "reasoning")
    return [{name: value for name, value in item.items() if name != "id"} for item in spoken]


def _drop_nulls(item: Fields) -> dict[str, Any]:
    """Return an item without null fields.

    The SDK's objects contain null for fields that the server left out, and the API does not accept all of them as
    null.
    """
    return {name: _drop_nested_nulls(value) for name, value in item.items() if value is not None}


def _drop_nested_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case Mapping():
            return _drop_nulls(value)
        case list():
            return [_drop_nested_nulls(one) for one in value]
    return value


# The provider.


class OpenAIResponsesProvider:
    """OpenAI's models through the Responses API. ``timeout`` is how many seconds the server may stay silent."""

    def __init__(
        self,
        *,
        key: str,
        address: str = OPENAI_API_URL,
        timeout: float = DEFAULT_TIMEOUT,
        models: ModelRegistry | None = None,
    ) -> None:
        self._key = key
        self._address = address
        self._timeout = timeout
        self._models = models or BuiltInModelProfiles()
        self._client: AsyncOpenAI | None = None

    @property
    def endpoint(self) -> HttpEndpoint:
        """Return the API that this provider calls, which has Chat Completions as well."""
        return openai_endpoint(provider="OpenAI", key=self._key, address=self._address, api_names=("responses", "chat"))

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self._client = self._client or open_openai_client(key=self._key, address=self._address, timeout=self._timeout)
        target = RequestTarget(
            provider="OpenAI", model=strip_provider(request.model), address=self._address, timeout=self._timeout
        )
        body = build_request(request, self._models.get_model_profile(request.model))
        fold = ResponseAccumulator()
        begun = False
        from httpx2 import HTTPError
        from openai import OpenAIError

        failures = (OpenAIError, HTTPError, ValueError, RecursionError)
        try:
            async with await self._client.responses.create(**body, stream=True) as events:
                begun = True
                async with aclosing(
                    read_delta_batches(events, fold.feed, target=target, to_reply=read_reply)
                ) as batches:
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
            raise to_lamella_error(error, target, started=begun) from error
        if fold.failure is not None:
            raise error_from_response(fold.failure, target)
        if not fold.finished:
            raise invalid_answer_error(target, "it ended before its last event")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
