"""The provider for Chat Completions, of OpenAI or of any server with a compatible API.

``build_request`` builds the arguments of ``chat.completions.create``, as a pure function of request and model profile.
``read_reply`` and ``CompletionStreamReader`` read answers and stream chunks; ``ReasoningSplitter`` separates reasoning
that servers send inside the text. ``OpenAIChatProvider`` sends requests with OpenAI's SDK.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from lamella.core.messages import (
    Delta,
    Message,
    ModelReply,
    ModelRequest,
    ProviderReply,
    ReasoningDelta,
    Role,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
    join_text,
    reply_from_deltas,
)
from lamella.ports import HttpEndpoint, ModelRegistry
from lamella.profiles import ModelProfile
from lamella.providers.connection import (
    DEFAULT_TIMEOUT,
    OPENAI_API_URL,
    RequestTarget,
    invalid_answer_error,
    is_response_without_stream,
    open_openai_client,
    openai_endpoint,
    read_delta_batches,
    to_lamella_error,
)
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
    get_system_text,
    get_text_at,
    normalise_usage,
    split_at,
    supports_openai_breakpoints,
    to_provider_reply,
    tool_schema,
    unreadable_field_error,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

FORMAT_NAME = "openai_chat"
# Servers that return reasoning text use one of these fields.
REASONING_FIELDS = ("reasoning_content", "reasoning")


def build_request(request: ModelRequest, profile: ModelProfile) -> Body:
    """Return the keyword arguments that send a request with OpenAI's SDK, without ``stream``."""
    body: Body = {"model": strip_provider(request.model)}
    own = profile.provider == "openai"
    body["messages"], laid = _build_messages(request, in_parts=supports_openai_breakpoints(profile), is_openai=own)
    body["max_completion_tokens" if own else "max_tokens"] = request.max_output_tokens
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool_schema(tool)},
            }
            for tool in request.tools
        ]
        body |= {} if request.allows_tool_calls else {"tool_choice": "none"}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort is not None:
        body["reasoning_effort"] = request.effort
    # This API supports only the shortest cache lifetime.
    body |= build_openai_cache_fields(request, profile, laid, lifetimes=profile.lifetimes[:1])
    return body | build_extra_body(request, body)


def _build_messages(request: ModelRequest, *, in_parts: bool, is_openai: bool) -> tuple[list[Body], PartLayout]:
    """Return the messages, and the layout of their parts.

    If the parts carry no breakpoints (``in_parts`` is false), texts are plain strings, which every server accepts.
    """
    messages: list[Body] = []
    parts: list[Part] = []
    ends: dict[int, int] = {}
    fixed = request.effective_cache_boundaries.stable_prefix_end
    instructions = list(split_at(get_system_text(request.messages), (fixed,) if fixed else ()))
    if instructions:
        texts = [{"type": "text", "text": text} for _, text in instructions]
        joined = "".join(text for _, text in instructions)
        messages.append({"role": "system", "content": texts if in_parts else joined})
        parts += [Part(body=text, can_have_breakpoint=in_parts) for text in texts]
    library = len(parts) - 1 if parts else None
    if library is not None:
        ends |= {index: library for index, message in enumerate(request.messages) if message.role is Role.SYSTEM}
    for index, message in enumerate_non_system_messages(request.messages):
        content = _build_content(message)
        can_mark = in_parts and message.role is Role.USER
        as_list = can_mark or bool(message.images)
        built = _build_tool_round_message(message, is_openai=is_openai)
        messages.append(built or {"role": message.role.value, "content": content if as_list else message.text})
        parts += [Part(body=part, can_have_breakpoint=can_mark) for part in ([built] if built else content)]
        ends[index] = len(parts) - 1
    return messages, PartLayout(
        parts=parts, message_ends=ends, fixed_end=0 if len(instructions) > 1 else None, library_end=library
    )


def _build_content(message: Message) -> list[Body]:
    pictures = [
        {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{encode_image(image)}"}}
        for image in message.images
    ]
    return [{"type": "text", "text": message.text}, *pictures]


def _build_tool_round_message(message: Message, *, is_openai: bool) -> Body | None:
    """Return a message of a tool round (tool calls or a tool result), or None for an ordinary message.

    OpenAI's ``is_openai`` models reject reasoning text in this API, such as that of a server used earlier in the
    conversation. It is therefore removed for them.
    """
    if message.role is Role.TOOL:
        text = f"Error: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    native: Body | None = get_native_reply(message, FORMAT_NAME)
    if native is not None:
        return {name: value for name, value in native.items() if not (is_openai and name in REASONING_FIELDS)}
    if not message.calls:
        return None
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


# Reasoning inside the text: a ``<think>`` block at the start of an answer.

_OPEN_TAG, _CLOSE_TAG = "<think>", "</think>"
# Up to this much white space may precede the block. An answer with more has no such block.
_MAX_LEADING_SPACE = 64


class ReasoningSplitter:
    """Splits streamed text into reasoning and answer, wherever the chunks end.

    Only a block at the start is reasoning. A block further down is a quotation and stays in the text.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._state = self._read_start_of_answer

    def feed(self, text: str) -> Iterator[TextDelta | ReasoningDelta]:
        """Add text and yield the parts that are now known to be reasoning or answer."""
        self._buffer += text
        step = None
        # Compared with !=, not with "is not": every access to a method creates a new object.
        while self._buffer and step != self._state:
            step = self._state
            yield from step()

    def finish(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text that was held back, after the last chunk."""
        buffered, self._buffer = self._buffer, ""
        if buffered and self._state == self._read_reasoning:
            yield ReasoningDelta(text=buffered)
        elif buffered and self._state != self._skip_space_after_reasoning:
            yield TextDelta(text=buffered)

    def _read_start_of_answer(self) -> Iterator[TextDelta | ReasoningDelta]:
        start = self._buffer.lstrip()
        if len(self._buffer) - len(start) > _MAX_LEADING_SPACE:
            self._state = self._read_answer
        elif start.startswith(_OPEN_TAG):
            self._buffer, self._state = start[len(_OPEN_TAG) :], self._read_reasoning
        elif not _OPEN_TAG.startswith(start):
            self._state = self._read_answer
        yield from ()

    def _read_reasoning(self) -> Iterator[TextDelta | ReasoningDelta]:
        thought, closed, rest = self._buffer.partition(_CLOSE_TAG)
        if closed:
            self._buffer, self._state = rest, self._skip_space_after_reasoning
        else:
            # The chunk may end within the closing tag. That part is held back until the next chunk decides.
            kept = next(size for size in range(len(_CLOSE_TAG) - 1, -1, -1) if self._buffer.endswith(_CLOSE_TAG[:size]))
            thought, self._buffer = self._buffer[: len(self._buffer) - kept], _CLOSE_TAG[:kept]
        if thought:
            yield ReasoningDelta(text=thought)

    def _skip_space_after_reasoning(self) -> Iterator[TextDelta | ReasoningDelta]:
        self._buffer = self._buffer.lstrip()
        if self._buffer:
            self._state = self._read_answer
        yield from ()

    def _read_answer(self) -> Iterator[TextDelta | ReasoningDelta]:
        text, self._buffer = self._buffer, ""
        yield TextDelta(text=text)


# Replies, from the SDK's object or from stream chunks.

_STOP_REASONS = {
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "content_filter": StopReason.REFUSED,
}
# Ollama does not report cached tokens but sends 0 for them. It is recognised by its name in this field.
_OLLAMA_FINGERPRINT = "fp_ollama"


def is_answer(fields: Fields) -> bool:
    """Return whether the fields are a completion. Not all compatible servers set the ``object`` field."""
    return fields.get("object") == "chat.completion" or _has_choice_field(fields, "message")


def is_event(fields: Fields) -> bool:
    """Return whether the fields are a chunk of a streamed completion."""
    return fields.get("object") == "chat.completion.chunk" or _has_choice_field(fields, "delta")


def _has_choice_field(fields: Fields, part: str) -> bool:
    return any(part in choice for choice in get_items_at(fields, "choices"))


def read_reply(answer: object) -> ModelReply | None:
    """Return the reply in a finished completion (an SDK object or plain data), or None if it is not one."""
    completion = as_fields(answer)
    choices = get_items_at(completion, "choices")
    if not choices:
        return None
    fold = CompletionStreamReader()
    message = get_fields_at(choices[0], "message")
    if not message:
        raise unreadable_field_error("message", choices[0].get("message"))
    calls = [{"index": index, **call} for index, call in enumerate(get_items_at(message, "tool_calls"))]
    choice = {"delta": {**message, "tool_calls": calls}, "finish_reason": choices[0].get("finish_reason")}
    return reply_from_deltas([*fold.feed({**completion, "choices": [choice]}), *fold.finish()])


def read_events(chunks: Iterable[Fields]) -> ModelReply | None:
    """Return the reply that stream chunks add up to, or None if the end of the stream is missing."""
    fold = CompletionStreamReader()
    deltas = [delta for chunk in chunks for delta in fold.feed(chunk)]
    return reply_from_deltas([*deltas, *fold.finish()])


def read_usage(completion: Fields) -> Usage:
    """Return the token usage. If a server reports no cached tokens, their number is unknown."""
    usage = get_fields_at(completion, "usage")
    details = get_fields_at(usage, "prompt_tokens_details")
    read = _get_first_known_count(
        get_count_at(details, "cached_tokens"), get_count_at(usage, "prompt_cache_hit_tokens")
    )
    return normalise_usage(
        total=get_count_at(usage, "prompt_tokens"),
        read=None if get_text_at(completion, "system_fingerprint") == _OLLAMA_FINGERPRINT else read,
        write=_get_first_known_count(
            get_count_at(details, "cache_write_tokens"), get_count_at(details, "created_cache_tokens")
        ),
        output=get_count_at(usage, "completion_tokens"),
        reasoning=get_count_at(get_fields_at(usage, "completion_tokens_details"), "reasoning_tokens"),
    )


class CompletionStreamReader:
    """Accumulates stream chunks one by one.

    ``finish`` yields the values that are known only at the end. ``finished`` is whether a finish reason has arrived.
    """

    def __init__(self) -> None:
        self._usage_chunk: Fields = {}
        self._finish_reason = ""
        self._id: str | None = None
        # Collected in lists and joined once. A string that grows by single characters would be copied each time.
        self._text: list[str] = []
        self._splitter = ReasoningSplitter()
        self._reasoning_parts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, list[str]]] = {}

    @property
    def finished(self) -> bool:
        return bool(self._finish_reason)

    def feed(self, chunk: Fields) -> Iterator[Delta]:
        """Add a chunk and yield its deltas."""
        self._id = get_text_at(chunk, "id") or self._id
        # Usage arrives in a separate chunk after the last choice. Some servers send it with every chunk.
        if get_fields_at(chunk, "usage"):
            self._usage_chunk = chunk
        for choice in get_items_at(chunk, "choices")[:1]:
            delta = get_fields_at(choice, "delta")
            yield from self._add_reasoning(delta)
            yield from self._record_text(self._splitter.feed(_read_content(delta) or get_text_at(delta, "refusal")))
            self._add_call(delta)
            self._finish_reason = get_text_at(choice, "finish_reason") or self._finish_reason

    def finish(self) -> Iterator[Delta]:
        """Yield tool calls, usage and the stop after the last chunk. Yields nothing if the answer broke off."""
        if not self.finished:
            return
        yield from self._record_text(self._splitter.finish())
        calls = [{name: "".join(parts) for name, parts in self._calls[index].items()} for index in sorted(self._calls)]
        for call in calls:
            yield ToolCall(id=call["id"], name=call["name"], arguments=join_text((call["arguments"] or "{}",)))
        if self._usage_chunk:
            yield read_usage(self._usage_chunk)
        reason = _STOP_REASONS.get(self._finish_reason, StopReason.OTHER)
        yield StopDelta(
            # Some servers send "stop" although the reply calls tools.
            reason=StopReason.TOOL_CALLS if calls and reason is StopReason.END else reason,
            id=self._id,
            provider_reply=self._to_provider_reply(calls) if calls else None,
        )

    def _add_reasoning(self, delta: Fields) -> Iterator[Delta]:
        name = next((name for name in REASONING_FIELDS if get_text_at(delta, name)), None)
        if name is not None:
            self._reasoning_parts.setdefault(name, []).append(get_text_at(delta, name))
            yield ReasoningDelta(text=get_text_at(delta, name))

    def _record_text(self, parts: Iterable[TextDelta | ReasoningDelta]) -> Iterator[Delta]:
        for part in parts:
            if isinstance(part, TextDelta):
                self._text.append(part.text)
            yield part

    def _add_call(self, delta: Fields) -> None:
        for part in get_items_at(delta, "tool_calls"):
            call = self._calls.setdefault(get_count_at(part, "index") or 0, {"id": [], "name": [], "arguments": []})
            function = get_fields_at(part, "function")
            call["id"] = [get_text_at(part, "id")] if get_text_at(part, "id") else call["id"]
            call["name"].append(get_text_at(function, "name"))
            call["arguments"].append(get_text_at(function, "arguments"))

    def _to_provider_reply(self, calls: list[dict[str, str]]) -> ProviderReply:
        fields = {
            "role": "assistant",
            "content": "".join(self._text) or None,
            "tool_calls": [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"] or "{}"},
                }
                for call in calls
            ],
            **{name: "".join(parts) for name, parts in self._reasoning_parts.items()},
        }
        return to_provider_reply(fields, FORMAT_NAME)


def _read_content(delta: Fields) -> str:
    """Return the text of a delta or message. Some servers send it as a list of parts."""
    content = delta.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise unreadable_field_error("content", content)
    return "".join(_read_part(part) for part in content)


def _read_part(part: object) -> str:
    if isinstance(part, str):
        return part
    fields = as_fields(part)
    text = fields.get("text", fields.get("refusal"))
    if isinstance(text, str):
        return text
    # A part of another type, such as reasoning or an image, has no text. A part with a text type must have one.
    if not fields or fields.get("type") in (None, "text", "output_text", "refusal"):
        raise unreadable_field_error("content", part)
    return ""


def _get_first_known_count(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


# The provider.


class OpenAIChatProvider:
    """OpenAI, vLLM, SGLang, llama.cpp, Ollama and other servers, chosen by ``address``.

    ``timeout`` is how many seconds the server may stay silent.
    """

    def __init__(
        self,
        *,
        key: str,
        address: str = OPENAI_API_URL,
        timeout: float = DEFAULT_TIMEOUT,
        models: ModelRegistry | None = None,
    ) -> None:
        # The SDK requires a key, but most local servers need none.
        self._key = key if key or address == OPENAI_API_URL else "none"
        self._address = address
        self._timeout = timeout
        self._models = models or BuiltInModelProfiles()
        self._client: AsyncOpenAI | None = None

    @property
    def endpoint(self) -> HttpEndpoint:
        """Return the API that this provider calls; only OpenAI itself is known to have the Responses API as well."""
        is_openai = self._address == OPENAI_API_URL
        return openai_endpoint(
            provider="OpenAI" if is_openai else "The server",
            key=self._key,
            address=self._address,
            api_names=("chat", "responses") if is_openai else ("chat",),
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self._client = self._client or open_openai_client(key=self._key, address=self._address, timeout=self._timeout)
        target = RequestTarget(
            provider="The server" if self._address != OPENAI_API_URL else "OpenAI",
            model=strip_provider(request.model),
            address=self._address,
            timeout=self._timeout,
        )
        body = build_request(request, self._models.get_model_profile(request.model))
        fold = CompletionStreamReader()
        begun = whole = False
        from httpx2 import HTTPError
        from openai import OpenAIError

        try:
            sending = self._client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
            async with await sending as chunks:
                begun, whole = True, is_response_without_stream(chunks.response.headers)
                async with aclosing(
                    read_delta_batches(chunks, fold.feed, target=target, to_reply=read_reply)
                ) as batches:
                    async for deltas in batches:
                        for delta in deltas:
                            yield delta
        except (OpenAIError, HTTPError, ValueError, RecursionError) as error:
            # After the finish reason the answer is complete. A later error can only lose the usage.
            if not fold.finished:
                raise to_lamella_error(error, target, started=begun) from error
        if not fold.finished and not whole:
            raise invalid_answer_error(target, "it ended before its last chunk")
        for delta in fold.finish():
            yield delta

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
