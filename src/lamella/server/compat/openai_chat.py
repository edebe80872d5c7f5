"""OpenAI's Chat Completions API: requests to and from the neutral form, and the events of an answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lamella.server.compat.neutral import (
    PROVIDER_FORMAT,
    AnswerEnd,
    AnswerEvent,
    AnswerReasoningDelta,
    AnswerStart,
    AnswerTextDelta,
    CallDelta,
    CallEnd,
    CallPart,
    CallStart,
    DocumentPart,
    ImagePart,
    Json,
    JsonFormat,
    NeutralMessage,
    NeutralRequest,
    Part,
    ReasoningEnd,
    ReasoningPart,
    RefusalDelta,
    ResultPart,
    TextPart,
    ToolSpec,
    check_known_fields,
    is_null_or_empty_container,
    list_ignored_fields,
    pack_reasoning_into_call_id,
    read_optional,
    require_type,
    split_data_url,
    split_packed_call_id,
    unsupported_value_error,
)
from lamella.server.compat.streams import DONE, SseEvent, decode_event, format_event
from lamella.server.compat.usage import TokenUsage, parse_usage, usage_to_json
from lamella.server.compat.wires import ApiFormat

_KNOWN = frozenset(
    {
        "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "tools", "tool_choice",
        "parallel_tool_calls", "response_format", "stop", "temperature", "top_p", "reasoning_effort", "functions",
        "function_call", "n", "logprobs", "presence_penalty", "frequency_penalty", "modalities", "store", "seed",
        "lamella",
    }
)  # fmt: skip
_UNUSED = frozenset(
    {
        "user", "safety_identifier", "metadata", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options",
        "prompt_cache_diagnostics", "service_tier", "verbosity",
    }
)  # fmt: skip
# What these fields may say without changing the answer.
_DEFAULTS: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "modalities": (["text"],),
    "store": (False,),
}
_MAX_STOP_SEQUENCES = 4
# The name of a schema without one. OpenAI's APIs require_type a name.
DEFAULT_FORMAT_NAME = "answer"
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_MESSAGE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "system": ("role", "content"),
    "developer": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "refusal", "audio", "tool_calls", "function_call"),
    "tool": ("role", "content", "tool_call_id"),
    "function": ("role", "content", "name"),
}
# The field with the arguments of each kind of call.
_CALL_FIELDS = {"function": "arguments", "custom": "input"}
# Names of authors, and what programs repeat of an answer.
_UNUSED_IN_MESSAGES = ("name", "annotations", "cache_control", "reasoning_content", "reasoning", "reasoning_details")
_UNUSED_IN_PARTS = ("cache_control", "prompt_cache_breakpoint")


def parse_chat_request(body: Mapping[str, Any]) -> NeutralRequest:
    """Return a request of this API in neutral form."""
    stop = read_optional(body, "stop", (str, list))
    options = read_optional(body, "stream_options", dict) or {}
    request = NeutralRequest(
        wire=ApiFormat.CHAT,
        messages=[],
        max_tokens=read_optional(body, "max_completion_tokens", int) or read_optional(body, "max_tokens", int),
        temperature=read_optional(body, "temperature", (int, float)),
        top_p=read_optional(body, "top_p", (int, float)),
        stop=[stop] if isinstance(stop, str) else stop or None,
        seed=read_optional(body, "seed", int),
        effort=read_optional(body, "reasoning_effort", str),
        parallel_calls=read_optional(body, "parallel_tool_calls", bool),
        is_streamed=body.get("stream") is True,
        include_usage=read_optional(options, "include_usage", bool, "stream_options.include_usage") or False,
        presence_penalty=read_optional(body, "presence_penalty", (int, float)) or None,
        frequency_penalty=read_optional(body, "frequency_penalty", (int, float)) or None,
        params={
            "effort": "reasoning_effort",
            "json_format": "response_format",
            "parallel_calls": "parallel_tool_calls",
            "max_tokens": "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens",
        },
    )
    request.unused += list_ignored_fields(body, _KNOWN, unused=_UNUSED)
    check_known_fields(request, options, "stream_options", ("include_usage",), unused=("include_obfuscation",))
    for name, harmless in _DEFAULTS.items():
        if not is_null_or_empty_container(body.get(name)) and body[name] not in harmless:
            raise unsupported_value_error(name, body[name])
    for place, message in enumerate(body["messages"]):
        request.messages += _parse_message(request, message, f"messages.{place}")
    request.tools = [*_parse_tools(request, body), *_parse_functions(request, body)]
    request.tool_choice = _parse_tool_choice(request, body)
    request.json_format = _parse_answer_format(request, read_optional(body, "response_format", dict))
    if body.get("store") is False:
        request.record_ignored_field("store")
    return request


def _parse_message(request: NeutralRequest, message: Json, param: str) -> Iterator[NeutralMessage]:
    content = message.get("content")
    role = message.get("role")
    fields = _MESSAGE_FIELDS.get(str(role))
    if fields is not None:
        check_known_fields(request, message, param, fields, unused=_UNUSED_IN_MESSAGES, prefix="messages.")
    match role:
        case "system" | "developer":
            yield NeutralMessage("system", tuple(_parse_content(request, content, f"{param}.content")), param)
        case "user":
            yield NeutralMessage("user", tuple(_parse_content(request, content, f"{param}.content")), param)
        case "assistant":
            yield NeutralMessage("assistant", tuple(_parse_answer(request, message, param)), param)
        case "tool":
            call, _ = split_packed_call_id(require_type(message.get("tool_call_id"), str, f"{param}.tool_call_id"))
            yield NeutralMessage("tool", (_parse_result(request, call, content, param),), param)
        case "function":
            name = require_type(message.get("name"), str, f"{param}.name")
            yield NeutralMessage("tool", (_parse_result(request, name, content, param),), param)
        case _:
            raise unsupported_value_error(f"{param}.role", role)


def _parse_result(request: NeutralRequest, call: str, content: object, param: str) -> ResultPart:
    parts = _parse_content(request, content, f"{param}.content")
    return ResultPart(call, tuple(part for part in parts if isinstance(part, TextPart | ImagePart | DocumentPart)))


def _parse_answer(request: NeutralRequest, message: Json, param: str) -> Iterator[Part]:
    if message.get("audio") is not None:
        raise unsupported_value_error(f"{param}.audio", "audio")
    yield from _parse_content(request, message.get("content"), f"{param}.content")
    if isinstance(message.get("refusal"), str):
        yield TextPart(message["refusal"])
    for place, call in enumerate(read_optional(message, "tool_calls", list, f"{param}.tool_calls") or []):
        at = f"{param}.tool_calls.{place}"
        known = ("id", "type", "function", "custom", "index")
        check_known_fields(
            request, require_type(call, dict, at), at, known, unused=("extra_content",), prefix="tool_calls."
        )
        if call.get("type", "function") not in list(_CALL_FIELDS):
            raise unsupported_value_error(f"{at}.type", call["type"])
        kind = "custom" if call.get("custom") else "function"
        name, arguments = _parse_call(request, call.get(kind), f"{at}.{kind}", _CALL_FIELDS[kind])
        own, reasoning = split_packed_call_id(require_type(call.get("id"), str, f"{at}.id"))
        if reasoning is not None:
            yield reasoning
        yield CallPart(own, name, arguments)
    if message.get("function_call") is not None:
        name, arguments = _parse_call(request, message["function_call"], f"{param}.function_call", "arguments")
        yield CallPart(name, name, arguments)


def _parse_call(request: NeutralRequest, value: object, param: str, field: str) -> tuple[str, str]:
    """Return the name and the arguments of a call; ``field`` has the arguments."""
    call: Json = require_type(value, dict, param)
    check_known_fields(request, call, param, ("name", field))
    return require_type(call.get("name"), str, f"{param}.name"), read_optional(
        call, field, str, f"{param}.{field}"
    ) or ""


def _parse_content(request: NeutralRequest, content: object, param: str) -> Iterator[Part]:
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield TextPart(content)
        return
    for place, part in enumerate(require_type(content, list, param)):
        at = f"{param}.{place}"
        match require_type(part, dict, at).get("type"):
            case "text" | "refusal" as kind:
                check_known_fields(request, part, at, ("type", kind), unused=(*_UNUSED_IN_PARTS, "annotations"))
                yield TextPart(require_type(part.get(kind), str, f"{at}.{kind}"))
            case "image_url":
                check_known_fields(request, part, at, ("type", "image_url"), unused=_UNUSED_IN_PARTS)
                image = part.get("image_url")
                given: Json = {"url": image} if isinstance(image, str) else require_type(image, dict, f"{at}.image_url")
                check_known_fields(request, given, f"{at}.image_url", ("url",), unused=("detail",), prefix="image_url.")
                yield parse_image_url(require_type(given.get("url"), str, f"{at}.image_url.url"))
            case "file":
                check_known_fields(request, part, at, ("type", "file"), unused=_UNUSED_IN_PARTS)
                yield _parse_file(request, require_type(part.get("file"), dict, f"{at}.file"), f"{at}.file")
            case kind:
                raise unsupported_value_error(f"{at}.type", kind)


def parse_image_url(url: str) -> ImagePart:
    """Return the image at an address, which may contain its data."""
    data = split_data_url(url)
    return ImagePart(url=url) if data is None else ImagePart(media_type=data[0], data=data[1])


def _parse_file(request: NeutralRequest, file: Json, param: str) -> DocumentPart:
    check_known_fields(request, file, param, ("file_data", "filename"))
    return parse_file_data(file, param)


def parse_file_data(file: Json, param: str) -> DocumentPart:
    """Return a file whose data is in a data URL."""
    data = split_data_url(read_optional(file, "file_data", str, f"{param}.file_data") or "")
    if data is None:
        raise unsupported_value_error(param, "a file without its data")
    return DocumentPart(data[0], data[1], name=read_optional(file, "filename", str, f"{param}.filename") or "")


def _parse_tools(request: NeutralRequest, body: Mapping[str, Any]) -> Iterator[ToolSpec]:
    for place, tool in enumerate(read_optional(body, "tools", list) or []):
        param = f"tools.{place}"
        check_known_fields(
            request, require_type(tool, dict, param), param, ("type", "function", "custom"), unused=("cache_control",)
        )
        match tool.get("type", "function"):
            case "function":
                function = require_type(tool.get("function"), dict, f"{param}.function")
                yield _parse_function(request, function, f"{param}.function")
            case "custom":
                custom = require_type(tool.get("custom"), dict, f"{param}.custom")
                yield parse_custom_tool(request, custom, f"{param}.custom")
            case kind:
                raise unsupported_value_error(f"{param}.type", kind)


def _parse_functions(request: NeutralRequest, body: Mapping[str, Any]) -> Iterator[ToolSpec]:
    for place, function in enumerate(read_optional(body, "functions", list) or []):
        yield _parse_function(request, require_type(function, dict, f"functions.{place}"), f"functions.{place}")


def _parse_function(request: NeutralRequest, function: Json, param: str) -> ToolSpec:
    check_known_fields(request, function, param, ("name", "description", "parameters", "strict"))
    name = require_type(function.get("name"), str, f"{param}.name")
    schema = read_optional(function, "parameters", dict, f"{param}.parameters") or {"type": "object", "properties": {}}
    strict = read_optional(function, "strict", bool, f"{param}.strict")
    description = read_optional(function, "description", str, f"{param}.description")
    return ToolSpec(name, description, schema, strict, own_name=name)


def parse_custom_tool(request: NeutralRequest, tool: Json, param: str, namespace: str | None = None) -> ToolSpec:
    """Return a tool that takes a text as a function with one string; a grammar goes into the description."""
    known = ("type", "name", "description", "format")
    check_known_fields(request, tool, param, known, unused=("defer_loading",), prefix="tools.")
    name = require_type(tool.get("name"), str, f"{param}.name")
    description = read_optional(tool, "description", str, f"{param}.description") or ""
    described = [description, _parse_grammar(request, tool, param)]
    schema = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
        "additionalProperties": False,
    }
    named = name if namespace is None else f"{namespace}__{name}"
    text = "\n\n".join(filter(None, described))
    return ToolSpec(named, text, schema, kind="custom", namespace=namespace, own_name=name)


def _parse_grammar(request: NeutralRequest, tool: Json, param: str) -> str:
    """Return the grammar of a custom tool; the Chat Completions API has it one level deeper than the Responses API."""
    form: Json = read_optional(tool, "format", dict, f"{param}.format") or {}
    if form.get("type", "grammar") not in ("text", "grammar"):
        raise unsupported_value_error(f"{param}.format.type", form["type"])
    check_known_fields(
        request, form, f"{param}.format", ("type", "grammar", "definition"), unused=("syntax",), prefix="tools.format."
    )
    grammar: Json = read_optional(form, "grammar", dict, f"{param}.format.grammar") or {}
    check_known_fields(
        request, grammar, f"{param}.format.grammar", ("definition",), unused=("syntax",), prefix="tools.format."
    )
    given = {**form, **grammar}
    return read_optional(given, "definition", str, f"{param}.format.definition") or ""


def _parse_tool_choice(request: NeutralRequest, body: Mapping[str, Any]) -> str | None:
    field = "tool_choice" if body.get("tool_choice") is not None else "function_call"
    choice = body.get(field)
    match choice:
        case None:
            return None
        case "auto" | "none" | "required":
            return str(choice)
        case {"type": "function" | "custom" as kind} if isinstance(choice.get(kind), dict):
            check_known_fields(request, choice, field, ("type", kind))
            at, named = f"{field}.{kind}", choice[kind]
        case {"name": str()}:
            at, named = field, choice
        case _:
            raise unsupported_value_error(field, choice)
    check_known_fields(request, named, at, ("name",))
    return f"tool:{require_type(named.get('name'), str, f'{at}.name')}"


def _parse_answer_format(request: NeutralRequest, form: Json | None) -> JsonFormat | None:
    match None if form is None else form.get("type"):
        case None | "text":
            return None
        case "json_schema":
            assert form is not None
            check_known_fields(request, form, "response_format", ("type", "json_schema"))
            inner = require_type(form.get("json_schema"), dict, "response_format.json_schema")
            return parse_schema_format(request, inner, "response_format.json_schema")
        case kind:
            raise unsupported_value_error("response_format.type", kind)


def parse_schema_format(request: NeutralRequest, form: Json, param: str) -> JsonFormat:
    """Return the format of an answer that follows a schema."""
    check_known_fields(request, form, param, ("type", "name", "schema", "strict", "description"))
    schema = require_type(form.get("schema"), dict, f"{param}.schema")
    strict = read_optional(form, "strict", bool, f"{param}.strict")
    name, description = (read_optional(form, one, str, f"{param}.{one}") for one in ("name", "description"))
    return JsonFormat(schema, name, strict, description)


# Building requests.


def build_chat_body(request: NeutralRequest, model: str, *, is_openai: bool) -> Json:
    """Return the body of a streamed request, for OpenAI or for another server with its API."""
    body: Json = {"model": model, "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    for message in request.messages:
        body["messages"] += _build_messages(request, message)
    if request.top_k is not None:
        raise request.unsupported_field_error("top_k", "this API")
    if len(request.stop or ()) > _MAX_STOP_SEQUENCES:
        raise request.unsupported_field_error("stop", "this API, which takes at most 4")
    values: Json = {
        "max_completion_tokens" if is_openai else "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": request.stop,
        "seed": request.seed,
        "presence_penalty": request.presence_penalty,
        "frequency_penalty": request.frequency_penalty,
        "reasoning_effort": request.effort,
        "parallel_tool_calls": request.parallel_calls if request.tools else None,
    }
    body |= {name: value for name, value in values.items() if value is not None}
    body |= {"tools": [_build_tool(one) for one in request.tools]} if request.tools else {}
    if request.tool_choice is not None and request.tools:
        named = request.tool_choice.removeprefix("tool:")
        is_named = named != request.tool_choice
        body["tool_choice"] = {"type": "function", "function": {"name": named}} if is_named else named
    return body | (
        {} if request.json_format is None else {"response_format": _build_answer_format(request.json_format)}
    )


def _build_tool(tool: ToolSpec) -> Json:
    function: Json = {"name": tool.name, "parameters": tool.schema}
    function |= {"description": tool.description} if tool.description else {}
    function |= {} if tool.strict is None else {"strict": tool.strict}
    return {"type": "function", "function": function}


def _build_answer_format(form: JsonFormat) -> Json:
    schema: Json = {"name": form.name or DEFAULT_FORMAT_NAME, "schema": form.schema}
    schema |= {} if form.strict is None else {"strict": form.strict}
    schema |= {"description": form.description} if form.description else {}
    return {"type": "json_schema", "json_schema": schema}


def _build_messages(request: NeutralRequest, message: NeutralMessage) -> Iterator[Json]:
    if message.role == "tool":
        results = [part for part in message.parts if isinstance(part, ResultPart)]
        yield from (_build_result(request, message, one) for one in results)
        # Tool messages have text only. Pictures follow in a message that names the call.
        for one in results:
            pictures = [_build_part(part, message.param) for part in one.parts if not isinstance(part, TextPart)]
            if pictures:
                yield {"role": "user", "content": [{"type": "text", "text": image_label(one.call_id)}, *pictures]}
        return
    if any(isinstance(part, ReasoningPart) for part in message.parts):
        request.record_ignored_field("reasoning")
    content = [part for part in message.parts if isinstance(part, TextPart | ImagePart | DocumentPart)]
    calls = [part for part in message.parts if isinstance(part, CallPart)]
    built: Json = {"role": message.role, "content": _build_content(content, message.param)}
    if calls:
        built["content"] = built["content"] or None
        built["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
            for one in calls
        ]
    if built["content"] or calls:
        yield built


def image_label(call_id: str) -> str:
    """Return the line in front of pictures that belong to the result of a call."""
    return f"[Pictures of the result of call {call_id}]"


def _build_result(request: NeutralRequest, message: NeutralMessage, result: ResultPart) -> Json:
    if result.has_failed:
        request.record_ignored_field("is_error")
    texts = [part for part in result.parts if isinstance(part, TextPart)]
    return {"role": "tool", "tool_call_id": result.call_id, "content": _build_content(texts, message.param)}


def _build_content(parts: Sequence[Part], param: str) -> str | list[Json]:
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return [_build_part(part, param) for part in parts]


def _build_part(part: Part, param: str) -> Json:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart():
            return {"type": "image_url", "image_url": {"url": image_url(part)}}
        case DocumentPart() if part.data:
            data = f"data:{part.media_type};base64,{part.data}"
            return {"type": "file", "file": {"filename": part.name or "document", "file_data": data}}
    raise unsupported_value_error(f"{param}.content", "this part")


def image_url(part: ImagePart) -> str:
    """Return the address of an image; one with data becomes a data URL."""
    return part.url or f"data:{part.media_type};base64,{part.data}"


# Reading answers.

_STOPS = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refused",
}


class ChatChunkReader:
    """Reads the chunks of a streamed answer."""

    def __init__(self) -> None:
        self.has_ended = False
        self.error: Json | None = None
        self._has_started = False
        self._stop: str | None = None
        self._usage = TokenUsage()
        self._call: int | None = None

    def feed(self, event: SseEvent) -> Iterator[AnswerEvent]:
        """Yield what a chunk says."""
        if event.data == DONE:
            yield from self.finish()
            return
        chunk = decode_event(event)
        if chunk.get("error"):
            error = chunk["error"]
            self.error = error if isinstance(error, dict) else {"message": str(error)}
            return
        if not self._has_started:
            self._has_started = True
            yield AnswerStart(str(chunk.get("id") or ""))
        self._usage = parse_usage(ApiFormat.CHAT, chunk.get("usage"), self._usage)
        for choice in (chunk.get("choices") or [])[:1]:
            yield from self._read_delta(choice.get("delta") or {})
            if choice.get("finish_reason"):
                self._stop = _STOPS.get(str(choice["finish_reason"]), "end")

    def finish(self) -> Iterator[AnswerEvent]:
        """Yield the end, if the stream had one; some servers send no last line."""
        if self._stop is not None and not self.has_ended:
            self.has_ended = True
            yield from self._end_call()
            yield AnswerEnd(self._stop, self._usage)

    def _read_delta(self, delta: Json) -> Iterator[AnswerEvent]:
        reasoning = next((delta[name] for name in _REASONING_FIELDS if isinstance(delta.get(name), str)), "")
        if reasoning:
            yield AnswerReasoningDelta(reasoning)
        if delta.get("content"):
            yield from self._end_call()
            yield AnswerTextDelta(str(delta["content"]))
        if delta.get("refusal"):
            yield RefusalDelta(str(delta["refusal"]))
        for call in delta.get("tool_calls") or []:
            function = call.get("function") or {}
            index = call.get("index", 0 if self._call is None else self._call + bool(call.get("id")))
            if index != self._call:
                yield from self._end_call()
                self._call = index
                yield CallStart(str(call.get("id") or f"call_{index}"), str(function.get("name") or ""))
            if function.get("arguments"):
                yield CallDelta(str(function["arguments"]))

    def _end_call(self) -> Iterator[AnswerEvent]:
        if self._call is not None:
            self._call = None
            yield CallEnd()


# Writing answers.

_FINISH_REASONS = {
    "end": "stop",
    "length": "length",
    "tools": "tool_calls",
    "sequence": "stop",
    "refused": "content_filter",
    "window": "length",
}


class ChatChunkWriter:
    """Writes an answer as chunks, and keeps it for a body without streaming."""

    def __init__(self, request: NeutralRequest, *, model: str, answer_id: str, created: int) -> None:
        self._request = request
        self._head = {"id": answer_id, "created": created, "model": model}
        self._texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._calls: list[Json] = []
        self._reasoning: ReasoningEnd | None = None
        self._end: AnswerEnd | None = None

    def write(self, event: AnswerEvent) -> Iterator[bytes]:
        """Yield an event of the answer in the format of this API."""
        match event:
            case AnswerStart():
                yield self._format_chunk({"role": "assistant", "content": "", "refusal": None})
            case AnswerTextDelta(text) if text:
                yield self._format_text_chunk("content", text)
            case RefusalDelta(text) if text:
                yield self._format_text_chunk("refusal", text)
            case AnswerReasoningDelta(text) if text:
                yield self._format_text_chunk("reasoning_content", text)
            case ReasoningEnd() if event.wire.startswith(PROVIDER_FORMAT):
                self._reasoning = event
            case CallStart(call, name):
                if self._reasoning is not None:
                    call, self._reasoning = pack_reasoning_into_call_id(call, *self._reasoning), None
                function = {"name": name, "arguments": ""}
                self._calls.append({"id": call, "type": "function", "function": function})
                yield self._call_chunk({"id": call, "type": "function", "function": dict(function)})
            case CallDelta(text) if text:
                self._calls[-1]["function"]["arguments"] += text
                yield self._call_chunk({"function": {"arguments": text}})
            case AnswerEnd(stop, usage):
                self._end = event
                yield self._format_chunk({}, finish_reason=_FINISH_REASONS.get(stop, "stop"))
                if self._request.include_usage:
                    told = {"choices": [], "usage": usage_to_json(ApiFormat.CHAT, usage)}
                    yield format_event({"object": "chat.completion.chunk", **self._head, **told})
                yield b"data: [DONE]\n\n"

    def write_error(self, error: Mapping[str, object]) -> bytes:
        """Return the chunk for an error after the answer began; no end follows it."""
        return format_event({"error": error})

    def body(self) -> Json:
        """Return the whole answer."""
        assert self._end is not None, "the answer has ended"
        joined = {name: "".join(parts) for name, parts in self._texts.items()}
        message: Json = {
            "role": "assistant",
            "content": joined["content"] or None,
            "refusal": joined["refusal"] or None,
        }
        if not self._calls and message["refusal"] is None:
            message["content"] = joined["content"]
        message |= {"reasoning_content": joined["reasoning_content"]} if joined["reasoning_content"] else {}
        message |= {"tool_calls": self._calls} if self._calls else {}
        finish = _FINISH_REASONS.get(self._end.stop, "stop")
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        usage = usage_to_json(ApiFormat.CHAT, self._end.usage)
        return {"object": "chat.completion", **self._head, "choices": [choice], "usage": usage}

    def _format_text_chunk(self, name: str, text: str) -> bytes:
        self._texts[name].append(text)
        return self._format_chunk({name: text})

    def _call_chunk(self, call: Json) -> bytes:
        return self._format_chunk({"tool_calls": [{"index": len(self._calls) - 1, **call}]})

    def _format_chunk(self, delta: Json, *, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return format_event({"object": "chat.completion.chunk", **self._head, "choices": [choice]})


def collect_texts(body: Mapping[str, Any]) -> list[str]:
    """Return all texts of a request: messages, results and arguments of calls."""
    return [text for message in body["messages"] for text in _message_texts(message)]


def _message_texts(message: Json) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str) and content:
        yield content
    if isinstance(content, list):
        texts = (part.get("text") or part.get("refusal") for part in content if isinstance(part, dict))
        yield from (text for text in texts if isinstance(text, str) and text)
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        yield message["refusal"]
    listed = message.get("tool_calls")
    named = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    calls = [call.get("custom") or call.get("function") for call in named]
    for call in (*calls, message.get("function_call")):
        if isinstance(call, dict):
            yield str(call.get("input") or call.get("arguments") or "")
