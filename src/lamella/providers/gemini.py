"""The provider for Google's Gemini models, with stored caches.

``build_request`` builds the arguments of ``models.generate_content``, as a pure function of the request.
``read_reply`` and ``ContentAccumulator`` read answers and stream chunks. ``GeminiProvider`` sends requests with
Google's SDK, which is imported when the first message is sent.

``RemoteCacheManager`` manages stored caches: instructions, library and tools that the provider keeps and bills by the
hour. Lamella deletes them when they are replaced and when the provider closes.
"""

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import DecodeError, Struct, json

from lamella.core.messages import (
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
from lamella.core.values import replace
from lamella.errors import (
    InvalidOperationError,
    LamellaError,
    NotAvailableError,
    ProviderError,
    RequestRejectedError,
    RetryableProviderError,
    SdkNotInstalledError,
    install_hint,
)
from lamella.ports import ModelRegistry, SharedTable
from lamella.profiles import ModelProfile
from lamella.providers.connection import (
    ErrorResponse,
    RequestTarget,
    connection_error,
    error_from_response,
    invalid_answer_error,
    is_response_without_stream,
    limit_response,
    parse_retry_after,
    raise_body_error,
    timeout_error,
)
from lamella.providers.entry import CacheStorageRequest, validate_key_and_address
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.registry import strip_provider
from lamella.providers.wire import (
    Body,
    Fields,
    as_fields,
    build_extra_body,
    enumerate_non_system_messages,
    get_count_at,
    get_fields_at,
    get_items_at,
    get_native_reply,
    get_reasoning_effort,
    get_system_text,
    get_text_at,
    normalise_usage,
    parse_arguments,
    to_canonical_json,
    to_provider_reply,
    tool_schema,
)

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import GenerateContentResponse
    from httpx2 import AsyncClient, Response

FORMAT_NAME = "gemini"
# Older models give tool calls no id. Lamella invents ids with this prefix and does not send them.
GENERATED_ID_PREFIX = "lamella-"
# The fields of the generation config, in the order in which the SDK writes them.
_GENERATION_FIELDS = ("temperature", "max_output_tokens", "thinking_config")
_REASONING_EFFORTS = ("minimal", "low", "medium", "high")


def build_request(request: ModelRequest, *, cached_content: str | None = None) -> Body:
    """Return the keyword arguments that send a request with Google's SDK.

    ``cached_content`` is the name of a stored cache with the instructions and tools. The API rejects a request that has
    both the cache and its contents, so they are left out then.
    """
    config: Body = {
        "max_output_tokens": request.max_output_tokens,
        # The SDK would call tools by itself, but the caller runs them.
        "automatic_function_calling": {"disable": True},
    }
    if request.temperature is not None:
        config["temperature"] = request.temperature
    effort = get_reasoning_effort(request, *_REASONING_EFFORTS)
    if effort is not None:
        config["thinking_config"] = {"thinking_level": effort.upper()}
    config |= {"cached_content": cached_content} if cached_content else build_cached_content(request)
    if "tools" in config and not request.allows_tool_calls:
        # With a stored cache the request must not mention tools.
        config["tool_config"] = {"function_calling_config": {"mode": "NONE"}}
    further = build_extra_body(request, {"contents": ..., "systemInstruction": ..., "tools": ..., "cachedContent": ...})
    if further:
        config["http_options"] = further
    return {"model": strip_provider(request.model), "contents": _build_contents(request), "config": config}


def build_cached_content(request: ModelRequest) -> Body:
    """Return the part of a request that a stored cache can contain: instructions, library and tools."""
    stored: Body = {}
    text = get_system_text(request.messages)
    if text.strip():
        stored["system_instruction"] = text
    if request.tools:
        declarations = [
            {"name": tool.name, "description": tool.description, "parameters_json_schema": tool_schema(tool)}
            for tool in request.tools
        ]
        stored["tools"] = [{"function_declarations": declarations}]
    return stored


def to_http_body(arguments: Body) -> Body:
    """Return the SDK's arguments as the HTTP body, with field names in the API's camel case."""
    config = arguments["config"]
    body: Body = {"contents": [{**content, "parts": _parts_to_http(content)} for content in arguments["contents"]]}
    if "system_instruction" in config:
        body["systemInstruction"] = {"parts": [{"text": config["system_instruction"]}], "role": "user"}
    if "tools" in config:
        body["tools"] = [{"functionDeclarations": tool["function_declarations"]} for tool in config["tools"]]
    if "tool_config" in config:
        body["toolConfig"] = {"functionCallingConfig": config["tool_config"]["function_calling_config"]}
    if "cached_content" in config:
        body["cachedContent"] = config["cached_content"]
    body["generationConfig"] = {_to_camel_case(name): config[name] for name in _GENERATION_FIELDS if name in config}
    further: Body = config.get("http_options", {}).get("extra_body", {})
    return body | further


def _parts_to_http(content: Body) -> list[Body]:
    return [{_to_camel_case(name): _value_to_http(value) for name, value in part.items()} for part in content["parts"]]


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _value_to_http(value: object) -> object:
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode()
    if isinstance(value, list):
        return [_value_to_http(inner) for inner in value]
    return {name: _value_to_http(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _build_contents(request: ModelRequest) -> list[Body]:
    contents: list[Body] = []
    names: dict[str | None, str] = {}
    before: Role | None = None
    for _, message in enumerate_non_system_messages(request.messages):
        parts = [_build_result(message, names)] if message.role is Role.TOOL else _build_parts(message)
        # Ids are unique within one message only: invented ids of older models start again in each message.
        names = {call.id: call.name for call in message.calls} or names
        if message.role is Role.TOOL and before is Role.TOOL:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": _to_api_role(message.role), "parts": parts})
        before = message.role
    # The API rejects a content without parts. Two contents of the same role may follow each other.
    return [content for content in contents if content["parts"]]


def _to_api_role(role: Role) -> str:
    return "model" if role is Role.ASSISTANT else "user"


def _build_parts(message: Message) -> list[Body]:
    native: list[Body] | None = get_native_reply(message, FORMAT_NAME)
    if native is not None:
        return [_decode_signature(part) for part in native]
    texts = [{"text": message.text}] if message.text.strip() else []
    return [*texts, *_build_pictures(message), *({"function_call": _build_call(call)} for call in message.calls)]


def _decode_signature(part: Body) -> Body:
    # The SDK returns a signature as text but expects bytes.
    signature = part.get("thought_signature")
    return {**part, "thought_signature": urlsafe_b64decode(signature)} if isinstance(signature, str) else part


# Stored caches.


def _build_call(call: ToolCall) -> Body:
    return {"name": call.name, "args": parse_arguments(call.arguments), **_call_id_fields(call.id)}


def _build_result(message: Message, names: Mapping[str | None, str]) -> Body:
    output = {"error" if message.failed else "output": message.text}
    call = message.call_id or ""
    response: Body = {"name": names.get(call, call), "response": output, **_call_id_fields(call)}
    if message.images:
        response["parts"] = _build_pictures(message)
    return {"function_response": response}


def _build_pictures(message: Message) -> list[Body]:
    return [{"inline_data": {"mime_type": image.media_type, "data": image.data}} for image in message.images]


def _call_id_fields(call: str) -> Body:
    return {} if call.startswith(GENERATED_ID_PREFIX) else {"id": call}


# Replies, from the SDK's object or from stream chunks.

_CAPITAL_LETTER = re.compile(r"([A-Z])")
_STOP_REASONS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "SAFETY": StopReason.REFUSED,
    "RECITATION": StopReason.REFUSED,
    "BLOCKLIST": StopReason.REFUSED,
    "PROHIBITED_CONTENT": StopReason.REFUSED,
    "SPII": StopReason.REFUSED,
}


# Users choose the names inside tool arguments and results, so these must not be converted.
_USER_NAMED_FIELDS = ("args", "response")


def is_answer(fields: Fields) -> bool:
    """Return whether the fields are a response of this API or a chunk of one. Both have the same form."""
    return any(name in fields for name in ("candidates", "prompt_feedback", "promptFeedback"))


def read_reply(answer: object) -> ModelReply | None:
    """Return the reply in a finished response (an SDK object or plain data), or None if it is not one."""
    return read_events([as_fields(answer)])


def read_events(chunks: Iterable[Fields]) -> ModelReply | None:
    """Return the reply that stream chunks add up to, or None if the end of the stream is missing."""
    fold = ContentAccumulator()
    deltas = [delta for chunk in chunks for delta in fold.feed(_to_snake_case(chunk))]
    return reply_from_deltas([*deltas, *fold.finish()])


def _to_snake_case(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value with field names in the SDK's snake case. The HTTP API uses camel case."""
    if isinstance(value, list):
        return [_to_snake_case(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    snake_case = ((_CAPITAL_LETTER.sub(r"_\1", name).lower(), inner) for name, inner in value.items())
    return {name: inner if name in _USER_NAMED_FIELDS else _to_snake_case(inner) for name, inner in snake_case}


def read_usage(response: Fields) -> Usage:
    """Return the token usage.

    The reported prompt includes cached tokens. The reported answer does not include reasoning.
    """
    usage = get_fields_at(response, "usage_metadata")
    prompt = get_count_at(usage, "prompt_token_count")
    reply_tokens, thought = get_count_at(usage, "candidates_token_count"), get_count_at(usage, "thoughts_token_count")
    reported = prompt is not None
    return normalise_usage(
        total=prompt + (get_count_at(usage, "tool_use_prompt_token_count") or 0) if prompt is not None else None,
        # This API leaves out counts of zero. It never bills a cache write: stored caches are paid by the hour.
        read=get_count_at(usage, "cached_content_token_count") or (0 if reported else None),
        write=0 if reported else None,
        output=None if reply_tokens is None and thought is None else (reply_tokens or 0) + (thought or 0),
        reasoning=thought,
    )


class ContentAccumulator:
    """Accumulates stream chunks one by one.

    ``finish`` yields the values that are known only at the end. ``finished`` is whether a finish reason has arrived.
    """

    def __init__(self) -> None:
        self.has_started = False
        self._usage_chunk: Fields = {}
        self._finish_reason = ""
        self._id: str | None = None
        self._parts: list[dict[str, Any]] = []
        self._call_count = 0

    @property
    def finished(self) -> bool:
        return bool(self._finish_reason)

    def feed(self, chunk: Fields) -> Iterator[Delta]:
        """Add a chunk and yield its deltas."""
        self.has_started = True
        self._id = get_text_at(chunk, "response_id") or self._id
        if get_fields_at(chunk, "usage_metadata"):
            self._usage_chunk = chunk
        if get_text_at(get_fields_at(chunk, "prompt_feedback"), "block_reason"):
            self._finish_reason = "PROHIBITED_CONTENT"
        for candidate in get_items_at(chunk, "candidates")[:1]:
            for part in get_items_at(get_fields_at(candidate, "content"), "parts"):
                yield from self._add_part({name: value for name, value in part.items() if value is not None})
            self._finish_reason = get_text_at(candidate, "finish_reason") or self._finish_reason

    def finish(self) -> Iterator[Delta]:
        """Yield usage and the stop after the last chunk. Yields nothing if the answer broke off."""
        if not self.finished:
            return
        if self._usage_chunk:
            yield read_usage(self._usage_chunk)
        reason = _STOP_REASONS.get(self._finish_reason, StopReason.OTHER)
        yield StopDelta(
            reason=StopReason.TOOL_CALLS if self._call_count and reason is StopReason.END else reason,
            id=self._id,
            provider_reply=to_provider_reply(_keep_sendable_parts(self._parts), FORMAT_NAME)
            if self._call_count
            else None,
        )

    def _add_part(self, part: dict[str, Any]) -> Iterator[Delta]:
        self._parts.append(part)
        text = get_text_at(part, "text")
        if text:
            yield ReasoningDelta(text=text) if part.get("thought") else TextDelta(text=text)
        call = get_fields_at(part, "function_call")
        if call:
            self._call_count += 1
            yield ToolCall(
                id=get_text_at(call, "id") or self._generate_call_id(),
                name=get_text_at(call, "name"),
                arguments=to_canonical_json(call.get("args") or {}),
            )

    def _generate_call_id(self) -> str:
        # The reply's id makes the call id unique within the conversation.
        return (
            f"{GENERATED_ID_PREFIX}{self._id}-{self._call_count}"
            if self._id
            else f"{GENERATED_ID_PREFIX}{self._call_count}"
        )


def _keep_sendable_parts(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Streams end with an empty text part. The API returns it but does not accept it in a request.
    return [part for part in parts if part != {"text": ""}]


# The SDK: opening a client, reading its streams, and translating its exceptions.

API_URL = "https://generativelanguage.googleapis.com"
DEFAULT_TIMEOUT = 120.0
# Exceptions that the SDK raises for a chunk that is JSON but not of the expected form.
PARSE_ERRORS = (ValueError, TypeError, AttributeError, KeyError, RecursionError)
# Collects the HTTP responses of the current request. The SDK gives no access to them and leaves unread ones open.
_RESPONSES: ContextVar["list[Response] | None"] = ContextVar("answers", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkClient:
    """A client of the SDK with its HTTP client, which Lamella has to close itself."""

    client: "Client"
    http: "AsyncClient"

    async def close(self) -> None:
        await self.client.aio.aclose()
        self.client.close()
        await self.http.aclose()


def open_client(*, key: str, address: str) -> SdkClient:
    """Return a client of Google's SDK without automatic retries.

    The caller enforces the idle timeout, because the SDK's timeout limits whole answers.
    """
    validate_key_and_address(provider="Gemini", key=key, address=address)
    try:
        from google.genai import Client
        from google.genai.types import HttpOptions, HttpRetryOptions
        from httpx2 import AsyncClient
    except ImportError as error:
        raise SdkNotInstalledError("The package google-genai is not installed.", hint=install_hint("gemini")) from error
    # Without this HTTP client the SDK would use aiohttp if that is installed, and raise its exceptions. Redirects are
    # not followed, because the key would be sent along.
    http = AsyncClient(timeout=None, event_hooks={"response": [limit_response, _record_response]})
    options = HttpOptions(
        base_url=address,
        retry_options=HttpRetryOptions(attempts=1),
        httpx_async_client=http,
    )
    return SdkClient(client=Client(api_key=key, vertexai=False, http_options=options), http=http)


class UnstreamedResponse(Exception):  # noqa: N818 - it carries a response, which may be valid
    """A response that is not a stream although a stream was requested."""

    def __init__(self, body: bytes) -> None:
        super().__init__("an answer in one piece")
        self.body = body


class ChunkStream:
    """The chunks of a stream, with an idle timeout for each. Closing it closes the connection."""

    def __init__(
        self, chunks: "AsyncIterator[GenerateContentResponse]", *, timeout: float, target: RequestTarget
    ) -> None:
        self._chunks = chunks
        self._timeout = timeout
        self._target = target
        self._responses: list[Response] = []

    async def read_next(self) -> "GenerateContentResponse | None":
        """Return the next chunk, or None after the last one."""
        noted = _RESPONSES.set(self._responses)
        try:
            async with asyncio.timeout(self._timeout):
                return await anext(self._chunks, None)
        except UnstreamedResponse as whole:
            raise_body_error(whole.body, self._target)
            raise
        finally:
            _RESPONSES.reset(noted)

    async def close(self) -> None:
        for answer in self._responses:
            await answer.aclose()


async def _record_response(response: "Response") -> None:
    """Record a response of the current request. Used as a response hook of the HTTP client.

    Raises ``UnstreamedResponse`` for a successful response that is not a stream.
    """
    answers = _RESPONSES.get()
    if answers is None:
        return
    answers.append(response)
    if response.status_code == 200 and is_response_without_stream(response.headers):
        # The SDK would parse such a response line by line and fail in the middle of it.
        raise UnstreamedResponse(await response.aread())


def to_lamella_error(error: Exception, target: RequestTarget, *, started: bool) -> LamellaError:
    """Return the Lamella error for an exception of the SDK or its transport.

    ``started`` is whether the answer had already started to arrive.
    """
    from google.genai.errors import APIError
    from httpx2 import HTTPError

    if isinstance(error, APIError):
        return error_from_response(
            _parse_sdk_error(error.code, error.details, headers=getattr(error.response, "headers", None)), target
        )
    if isinstance(error, TimeoutError):
        return timeout_error(target)
    if isinstance(error, HTTPError) and not started:
        return connection_error(target, error)
    return invalid_answer_error(target, str(error) or type(error).__name__)


def _parse_sdk_error(code: int | None, details: object, *, headers: object) -> ErrorResponse:
    fields = as_fields(details)
    error = get_fields_at(fields, "error") or fields
    items = get_items_at(error, "details")
    delay = next((get_text_at(detail, "retryDelay") for detail in items if get_text_at(detail, "retryDelay")), "")
    retry_headers = {"retry-after": delay.removesuffix("s")} if delay else {}
    own = headers if isinstance(headers, Mapping) else {}
    return ErrorResponse(
        status=code or 500,
        kind=get_text_at(error, "status"),
        message=get_text_at(error, "message"),
        retry_after=parse_retry_after(retry_headers or own),
        is_api_error="error" in fields,
    )


T = TypeVar("T")
_MILLION = Decimal(1_000_000)
_HOLDER_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStorageAssumptions:
    """When to create a stored cache.

    ``expected_requests`` are expected within one lifetime. ``input_price`` is that of uncached input in dollars per
    million tokens. ``lifetime`` is in seconds. A cache with less than ``renewal_margin`` seconds left is renewed when
    it is used.
    """

    input_price: Decimal
    expected_requests: int
    lifetime: int = 3_600
    renewal_margin: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStorageCosts:
    """The costs in dollars of the expected requests with and without a stored cache."""

    with_cache: Decimal
    without_cache: Decimal

    @property
    def is_worthwhile(self) -> bool:
        return self.with_cache < self.without_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStorageKey:
    """The contents of a stored cache: a conversation's instructions with tools, and its library, each as a hash."""

    conversation: str
    instructions: str
    library: str


class RemoteCache(Struct, frozen=True, kw_only=True):
    """An existing stored cache: its name, the hashes of its contents, and when it expires."""

    name: str
    instructions: str
    library: str
    ends: datetime


class ConversationRemoteCaches(Struct, frozen=True, kw_only=True):
    """The stored caches of a conversation: the one in use, and those that could not be deleted yet.

    ``holder`` is the process that used them last. That process deletes them when it closes.
    """

    holder: str
    caches: tuple[RemoteCache, ...]


def estimate_storage_costs(tokens: int, profile: ModelProfile, plan: CacheStorageAssumptions) -> CacheStorageCosts:
    """Return the costs with and without a stored cache.

    A stored cache costs its creation at the price of uncached input, each read, and the hours. Raises an error if the
    profile has no price for storage or reads.
    """
    if profile.storage is None or profile.read is None:
        raise NotAvailableError(
            "No price is known for storing with this model.", hint="Give `storage` and `read` in a profile of your own."
        )
    size = tokens / _MILLION
    hours = Decimal(plan.lifetime) / 3_600
    reads = plan.expected_requests * profile.read * plan.input_price
    return CacheStorageCosts(
        with_cache=size * (plan.input_price + reads + profile.storage * hours),
        without_cache=size * plan.input_price * plan.expected_requests,
    )


def check_stored_caches_supported(model: str, profile: ModelProfile) -> None:
    """Raise an error if the model does not support stored caches."""
    if not profile.cached_content:
        raise NotAvailableError(
            f"{model} offers no caches of their own.",
            hint="Leave storing off: this model keeps prefixes by itself, for nothing.",
        )


def remote_cache_key(request: ModelRequest) -> CacheStorageKey:
    """Return the key of the stored cache for a request."""
    if not request.conversation:
        raise InvalidOperationError(
            "A cache belongs to a conversation, and the request names none.", hint="Give it a name."
        )
    text = get_system_text(request.messages)
    fixed = request.effective_cache_boundaries.stable_prefix_end or len(text)
    tools = to_canonical_json([[tool.name, tool.description, tool.parameters] for tool in request.tools])
    return CacheStorageKey(
        conversation=request.conversation,
        instructions=_hash_texts(strip_provider(request.model), tools, text[:fixed]),
        library=_hash_texts(text[fixed:]),
    )


def _hash_texts(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()


class RemoteCacheManager:
    """Manages the stored caches of one provider: one per conversation.

    A cache is renewed while it is used, and deleted when it is replaced or the provider closes. With a shared table
    (``shared_table``) all processes of a store know the caches, so one process can use and replace what another
    created.
    """

    def __init__(
        self,
        plan: CacheStorageAssumptions,
        *,
        now: Callable[[], datetime],
        count_tokens: Callable[[ModelRequest], int],
        shared_table: SharedTable | None = None,
    ) -> None:
        self._plan = plan
        self._now = now
        self._count_tokens = count_tokens
        self._shared_table = shared_table
        self._holder = token_hex(_HOLDER_ID_BYTES)
        self._own_caches: dict[str, tuple[RemoteCache, ...]] = {}
        self._creation_tasks: set[asyncio.Task[str]] = set()
        self._lock = asyncio.Lock()

    async def get_or_create(
        self, client: "Client", request: ModelRequest, *, profile: ModelProfile, target: RequestTarget
    ) -> str | None:
        """Return the name of the stored cache for a request, and create the cache if needed.

        None if a stored cache does not pay off or the text is too short for one.
        """
        check_stored_caches_supported(strip_provider(request.model), profile)
        key = remote_cache_key(request)
        async with self._lock:
            known = await self._load_caches(key.conversation)
            found = next((one for one in known if _has_contents_of_key(one, key) and one.ends > self._now()), None)
            if found is not None:
                return await self._renew_stored_cache(client, found, key=key, target=target)
            left = await self._delete_stored_caches(client, known, target)
            if left != known:
                await self._save_caches(key.conversation, left)
            tokens = self._count_tokens(request)
            if tokens < profile.cache.minimum or not estimate_storage_costs(tokens, profile, self._plan).is_worthwhile:
                return None
            # Shielded: a cancellation during the creation must not leave a billed cache whose name is unknown.
            making = asyncio.ensure_future(self._create_stored_cache(client, request, left, key=key, target=target))
            self._creation_tasks.add(making)
            making.add_done_callback(self._creation_tasks.discard)
            return await asyncio.shield(making)

    @property
    def has_caches(self) -> bool:
        """Whether there are caches to delete."""
        return bool(self._own_caches)

    async def forget_cache(self, request: ModelRequest) -> None:
        """Drop the record of a cache that the provider no longer has."""
        key = remote_cache_key(request)
        async with self._lock:
            known = await self._load_caches(key.conversation)
            await self._save_caches(key.conversation, tuple(one for one in known if not _has_contents_of_key(one, key)))

    async def delete_own_caches(self, client: "Client", target: RequestTarget) -> None:
        """Delete every cache that this process used last, even during a cancellation.

        Raises an error that names the caches that could not be deleted and when they expire.
        """
        await asyncio.shield(self._delete_own_caches(client, target))

    async def _delete_own_caches(self, client: "Client", target: RequestTarget) -> None:
        # Caches that are still being created have no name yet, so their creation has to finish first.
        await asyncio.gather(*self._creation_tasks, return_exceptions=True)
        async with self._lock:
            for conversation in list(self._own_caches):
                known = await self._load_caches(conversation, take_over=False)
                await self._save_caches(
                    conversation, await self._delete_stored_caches(client, known, target), is_holder=bool(known)
                )
            doomed = [one for caches in self._own_caches.values() for one in caches]
            if doomed:
                left = ", ".join(f"{one.name} until {one.ends:%Y-%m-%d %H:%M} UTC" for one in doomed)
                raise ProviderError(
                    f"{len(doomed)} caches could not be deleted: {left}.",
                    hint="They end by themselves at that time, and are paid until then. Close again to try once more.",
                )

    async def _create_stored_cache(
        self,
        client: "Client",
        request: ModelRequest,
        undeleted: Sequence[RemoteCache],
        *,
        key: CacheStorageKey,
        target: RequestTarget,
    ) -> str:
        """Create a stored cache, record it together with the undeleted ones (``undeleted``), and return its name."""
        ends = self._now() + timedelta(seconds=self._plan.lifetime)
        config = {**build_cached_content(request), "ttl": f"{self._plan.lifetime}s", "display_name": "lamella"}
        creating = client.aio.caches.create(model=strip_provider(request.model), config=config)  # type: ignore[arg-type]
        made = await _call_cache_api(creating, target)
        cache = RemoteCache(name=made.name or "", instructions=key.instructions, library=key.library, ends=ends)
        await self._save_caches(key.conversation, (cache, *undeleted))
        return cache.name

    async def _renew_stored_cache(
        self, client: "Client", found: RemoteCache, *, key: CacheStorageKey, target: RequestTarget
    ) -> str:
        """Return the name of a stored cache, after extending its lifetime if it expires soon."""
        if found.ends - self._now() < timedelta(seconds=self._plan.renewal_margin):
            ends = self._now() + timedelta(seconds=self._plan.lifetime)
            config = {"ttl": f"{self._plan.lifetime}s"}
            await _call_cache_api(client.aio.caches.update(name=found.name, config=config), target)  # type: ignore[arg-type]
            known = self._own_caches[key.conversation]
            renewed = tuple(replace(one, ends=ends) if one == found else one for one in known)
            await self._save_caches(key.conversation, renewed)
        return found.name

    async def _delete_stored_caches(
        self, client: "Client", caches: Sequence[RemoteCache], target: RequestTarget
    ) -> tuple[RemoteCache, ...]:
        """Delete caches and return those that could not be deleted. They are tried again, at the latest on closing."""
        left: list[RemoteCache] = []
        for doomed in caches:
            try:
                await _call_cache_api(client.aio.caches.delete(name=doomed.name), target)
            except (RequestRejectedError, ProviderError) as error:
                if "not found" not in str(error).lower():
                    left.append(doomed)
        return tuple(left)

    async def _load_caches(self, conversation_key: str, *, take_over: bool = True) -> tuple[RemoteCache, ...]:
        """Return the caches of a conversation, whichever process created them, and make this process their holder.

        If ``take_over`` is false, the caches of another process are not returned.
        """
        shared_table = self._shared_table
        if shared_table is None:
            return self._own_caches.get(conversation_key, ())
        name = _make_table_name(conversation_key)
        found = await asyncio.to_thread(lambda: shared_table.get_many(name, at=self._now()))
        kept = _parse_table_line(found.get(name, ""))
        if kept.holder == self._holder or (take_over and not kept.caches):
            return kept.caches
        if not take_over:
            return ()
        await self._save_caches(conversation_key, kept.caches)
        return kept.caches

    async def _save_caches(
        self, conversation_key: str, caches: tuple[RemoteCache, ...], *, is_holder: bool = True
    ) -> None:
        """Record the caches of a conversation.

        If ``is_holder`` is false, another process holds them by now, so only this process's own record changes.
        """
        self._own_caches.pop(conversation_key, None)
        if caches:
            self._own_caches[conversation_key] = caches
        shared_table, name, at = self._shared_table, _make_table_name(conversation_key), self._now()
        if shared_table is None or not is_holder:
            return
        if not caches:
            await asyncio.to_thread(shared_table.remove, name)
            return
        line = json.encode(ConversationRemoteCaches(holder=self._holder, caches=caches)).decode()
        ends = max(one.ends for one in caches)
        await asyncio.to_thread(lambda: shared_table.set(name, line, at=at, expires_at=ends))


def _has_contents_of_key(cache: RemoteCache, key: CacheStorageKey) -> bool:
    return (cache.instructions, cache.library) == (key.instructions, key.library)


def _parse_table_line(line: str) -> ConversationRemoteCaches:
    """Parse a line of the shared table.

    A line that another version of Lamella wrote counts as empty. The caches that it names expire by themselves.
    """
    try:
        return json.decode(line, type=ConversationRemoteCaches)
    except DecodeError:
        return ConversationRemoteCaches(holder="", caches=())


def _make_table_name(conversation_key: str) -> str:
    return f"gemini-caches:{conversation_key}"


def make_cache_manager(storage_request: CacheStorageRequest | None, profile: ModelProfile) -> RemoteCacheManager | None:
    """Return a manager for stored caches as requested in ``storage_request``.

    None if nothing is requested, the model does not support stored caches, or their prices are unknown.
    """
    if storage_request is None or not profile.cached_content or profile.storage is None or profile.read is None:
        return None

    def count(request: ModelRequest) -> int:
        tools = to_canonical_json([[tool.name, tool.description, tool.parameters] for tool in request.tools])
        return storage_request.count_tokens(get_system_text(request.messages)) + (
            storage_request.count_tokens(tools) if request.tools else 0
        )

    plan = CacheStorageAssumptions(
        input_price=storage_request.input_price, expected_requests=storage_request.requests_per_hour
    )
    return RemoteCacheManager(
        plan, now=storage_request.clock.now, count_tokens=count, shared_table=storage_request.shared_table
    )


async def _call_cache_api(call: Awaitable[T], target: RequestTarget) -> T:
    from google.genai.errors import APIError
    from httpx2 import HTTPError

    try:
        async with asyncio.timeout(target.timeout):
            return await call
    except (APIError, HTTPError, TimeoutError, ValueError) as error:
        raise to_lamella_error(error, target, started=False) from error


# The provider.


class GeminiProvider:
    """Google's Gemini models.

    ``timeout`` is how many seconds the server may stay silent. ``cache_manager`` creates stored caches, if given.
    """

    def __init__(
        self,
        *,
        key: str,
        address: str = API_URL,
        timeout: float = DEFAULT_TIMEOUT,
        models: ModelRegistry | None = None,
        cache_manager: RemoteCacheManager | None = None,
    ) -> None:
        self._key = key
        self._address = address
        self._timeout = timeout
        self._models = models or BuiltInModelProfiles()
        self._cache_manager = cache_manager
        self._client: SdkClient | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        opened = self._client = self._client or open_client(key=self._key, address=self._address)
        target = self._target(strip_provider(request.model))
        cached = None
        if self._cache_manager is not None:
            profile = self._models.get_model_profile(request.model)
            cached = await self._cache_manager.get_or_create(opened.client, request, profile=profile, target=target)
        fold = ContentAccumulator()
        from google.genai.errors import APIError
        from httpx2 import HTTPError

        body = build_request(request, cached_content=cached)
        coming = await opened.client.aio.models.generate_content_stream(**body)
        chunks = ChunkStream(coming, timeout=self._timeout, target=target)
        try:
            while (chunk := await chunks.read_next()) is not None:
                for delta in fold.feed(as_fields(chunk)):
                    yield delta
        except (APIError, HTTPError, TimeoutError, *PARSE_ERRORS) as error:
            # After the finish reason the answer is complete, so a later error changes nothing.
            if not fold.finished:
                raise await self._to_lamella_error(
                    error, target, request=request, cached=cached, started=fold.has_started
                ) from error
        finally:
            await chunks.close()
        if not fold.finished:
            raise invalid_answer_error(target, "it ended before its last chunk")
        for delta in fold.finish():
            yield delta

    async def close(self) -> None:
        """Delete the stored caches of this process, then close the connections."""
        opened, self._client = self._client, None
        if opened is None and self._cache_manager is not None and self._cache_manager.has_caches:
            # The client was closed before, but a cache could not be deleted then. Try once more.
            opened = open_client(key=self._key, address=self._address)
        if opened is None:
            return
        try:
            if self._cache_manager is not None:
                await self._cache_manager.delete_own_caches(opened.client, self._target("caches"))
        finally:
            await opened.close()

    def _target(self, model: str) -> RequestTarget:
        return RequestTarget(provider="Gemini", model=model, address=self._address, timeout=self._timeout)

    async def _to_lamella_error(
        self, error: Exception, target: RequestTarget, *, request: ModelRequest, cached: str | None, started: bool
    ) -> LamellaError:
        """Return the error for a failed request.

        If the provider no longer has the stored cache, the record of it is dropped and the error allows a retry.
        """
        found = to_lamella_error(error, target, started=started)
        if (
            cached
            and self._cache_manager
            and isinstance(found, RequestRejectedError)
            and "cachedcontent" in str(found).lower()
        ):
            await self._cache_manager.forget_cache(request)
            return RetryableProviderError(
                str(found), hint="The cache has ended. Send again: a new one is made.", wait=0.0
            )
        return found
