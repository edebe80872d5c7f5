"""Anthropic's Messages API: requests to and from the neutral form, and the events of an answer."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from lamella.server.compat.neutral import (
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
    pack_reasoning,
    parse_object,
    read_optional,
    require_type,
    to_json_text,
    unpack_reasoning,
    unsupported_value_error,
)
from lamella.server.compat.streams import SseEvent, decode_event, format_event
from lamella.server.compat.usage import TokenUsage, parse_usage, usage_to_json
from lamella.server.compat.wires import ApiFormat

_KNOWN = frozenset(
    {
        "model", "max_tokens", "stream", "system", "messages", "thinking", "output_config", "output_format", "tools",
        "tool_choice", "stop_sequences", "temperature", "top_p", "top_k", "context_management", "metadata", "lamella",
    }
)  # fmt: skip
_UNUSED = frozenset({"cache_control", "diagnostics", "service_tier", "speed"})
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_EFFORT_NAMES = {"minimal": "low", "none": "none"}
# Thinking budgets in tokens up to which an effort is meant.
_LOW_BUDGET, _MEDIUM_BUDGET = 2_048, 8_192
# The fields of each kind of source of a document.
_DOCUMENT_SOURCES: Mapping[str, tuple[str, ...]] = {
    "base64": ("type", "media_type", "data"),
    "text": ("type", "media_type", "data"),
    "url": ("type", "url"),
    "content": ("type", "content"),
    "file": ("type", "file_id"),
}
# Blocks of a tool's result that other APIs do not have. They are sent as their JSON.
_JSON_BLOCKS = ("tool_reference", "browser_state")


def parse_messages_request(body: Mapping[str, Any]) -> NeutralRequest:
    """Return a request of this API in neutral form."""
    request = NeutralRequest(
        wire=ApiFormat.MESSAGES,
        messages=[],
        max_tokens=read_optional(body, "max_tokens", int),
        temperature=read_optional(body, "temperature", (int, float)),
        top_p=read_optional(body, "top_p", (int, float)),
        top_k=read_optional(body, "top_k", int),
        stop=read_optional(body, "stop_sequences", list) or None,
        is_streamed=body.get("stream") is True,
        include_usage=True,
        params={"stop": "stop_sequences", "parallel_calls": "tool_choice.disable_parallel_tool_use"},
    )
    request.unused += list_ignored_fields(body, _KNOWN, unused=_UNUSED)
    system = body.get("system")
    if not is_null_or_empty_container(system):
        request.messages.append(NeutralMessage("system", tuple(_text_parts(request, system, "system")), "system"))
    for place, message in enumerate(body["messages"]):
        request.messages += _parse_message(request, message, f"messages.{place}")
    _parse_tools(request, body)
    _parse_thinking(request, body)
    _parse_output_options(request, body)
    _record_harmless_fields(request, body)
    return request


def _text_parts(request: NeutralRequest, content: object, param: str) -> list[TextPart]:
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    blocks = require_type(content, list, param)
    return [_text_block(request, block, f"{param}.{place}") for place, block in enumerate(blocks)]


def _text_block(request: NeutralRequest, value: object, param: str) -> TextPart:
    block: Json = require_type(value, dict, param)
    if block.get("type") != "text":
        raise unsupported_value_error(f"{param}.type", block.get("type"))
    check_known_fields(request, block, param, ("type", "text"), unused=("cache_control", "citations"))
    return TextPart(require_type(block.get("text"), str, f"{param}.text"))


def _parse_message(request: NeutralRequest, message: Json, param: str) -> Iterator[NeutralMessage]:
    role = message.get("role")
    content = message.get("content")
    check_known_fields(request, message, param, ("role", "content"))
    if role == "system":
        yield NeutralMessage("system", tuple(_text_parts(request, content, f"{param}.content")), param)
        return
    if role not in ("user", "assistant"):
        raise unsupported_value_error(f"{param}.role", role)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts: list[Part] = []
    results: list[Part] = []
    for place, block in enumerate(require_type(blocks, list, f"{param}.content")):
        for part in _parse_block(
            request, require_type(block, dict, f"{param}.content.{place}"), f"{param}.content.{place}"
        ):
            (results if isinstance(part, ResultPart) else parts).append(part)
    if results:
        yield NeutralMessage("tool", tuple(results), param)
    if parts or not results:
        yield NeutralMessage(role, tuple(parts), param)


def _parse_block(request: NeutralRequest, block: Json, param: str) -> Iterator[Part]:
    match block.get("type"):
        case "thinking":
            yield unpack_reasoning(block.get("signature"))
        case "redacted_thinking":
            yield ReasoningPart(None, None)
        case "tool_use":
            check_known_fields(
                request, block, param, ("type", "id", "name", "input"), unused=("cache_control", "caller", "citations")
            )
            arguments = to_json_text(require_type(block.get("input"), dict, f"{param}.input"))
            name = require_type(block.get("name"), str, f"{param}.name")
            yield CallPart(require_type(block.get("id"), str, f"{param}.id"), name, arguments)
        case "tool_result":
            known = ("type", "tool_use_id", "content", "is_error")
            check_known_fields(request, block, param, known, unused=("cache_control",))
            content = block.get("content")
            inner = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            parts = [
                part
                for place, one in enumerate(require_type(inner, list, f"{param}.content"))
                for part in _parse_visible_block(
                    request, require_type(one, dict, f"{param}.content.{place}"), f"{param}.content.{place}"
                )
            ]
            call = require_type(block.get("tool_use_id"), str, f"{param}.tool_use_id")
            has_failed = read_optional(block, "is_error", bool, f"{param}.is_error") or False
            yield ResultPart(call, tuple(parts), has_failed)
        case _:
            yield from _parse_visible_block(request, block, param)


def _parse_visible_block(
    request: NeutralRequest, block: Json, param: str
) -> Iterator[TextPart | ImagePart | DocumentPart]:
    """Yield the parts of a block that a user or a tool shows the model."""
    match block.get("type"):
        case "text":
            yield _text_block(request, block, param)
        case "image":
            check_known_fields(request, block, param, ("type", "source"), unused=("cache_control",))
            yield _parse_image(request, block, param)
        case "document":
            yield from _parse_document(request, block, param)
        case "search_result":
            known = ("type", "title", "source", "content")
            check_known_fields(request, block, param, known, unused=("cache_control", "citations"))
            for place, one in enumerate(require_type(block.get("content"), list, f"{param}.content")):
                _text_block(request, one, f"{param}.content.{place}")
            yield from map(TextPart, _search_result_texts(block))
        case kind if kind in _JSON_BLOCKS:
            yield TextPart(_block_json(block))
        case kind:
            raise unsupported_value_error(f"{param}.type", kind)


def _search_result_texts(block: Json) -> list[str]:
    return [
        *_iter_texts_in(block.get("title")),
        *_iter_texts_in(block.get("source")),
        *_iter_texts_in(block.get("content")),
    ]


def _block_json(block: Json) -> str:
    return to_json_text({name: value for name, value in block.items() if name != "cache_control"})


def _parse_image(request: NeutralRequest, block: Json, param: str) -> ImagePart:
    source = require_type(block.get("source"), dict, f"{param}.source")
    match source.get("type"):
        case "base64":
            check_known_fields(request, source, f"{param}.source", ("type", "media_type", "data"))
            media = require_type(source.get("media_type"), str, f"{param}.source.media_type")
            return ImagePart(media_type=media, data=require_type(source.get("data"), str, f"{param}.source.data"))
        case "url":
            check_known_fields(request, source, f"{param}.source", ("type", "url"))
            return ImagePart(url=require_type(source.get("url"), str, f"{param}.source.url"))
    raise unsupported_value_error(f"{param}.source.type", source.get("type"))


def _parse_document(request: NeutralRequest, block: Json, param: str) -> Iterator[TextPart | ImagePart | DocumentPart]:
    source = require_type(block.get("source"), dict, f"{param}.source")
    name = read_optional(block, "title", str, f"{param}.title") or ""
    kind = source.get("type")
    check_known_fields(request, source, f"{param}.source", _DOCUMENT_SOURCES.get(str(kind), ("type",)))
    is_text = kind in ("text", "content")
    if block.get("citations") != {"enabled": False}:
        check_known_fields(
            request, block, param, ("type", "source", "title", "cache_control", *(("context",) if is_text else ()))
        )
    check_known_fields(request, {"cache_control": block.get("cache_control")}, param, (), unused=("cache_control",))
    if is_text:
        # The other APIs have no titles of texts, so the title is a text of its own.
        yield from map(TextPart, _list_document_head_lines(block))
    match kind:
        case "base64":
            media = require_type(source.get("media_type"), str, f"{param}.source.media_type")
            yield DocumentPart(media, require_type(source.get("data"), str, f"{param}.source.data"), name=name)
        case "text":
            yield TextPart(require_type(source.get("data"), str, f"{param}.source.data"))
        case "url":
            yield DocumentPart(url=require_type(source.get("url"), str, f"{param}.source.url"), name=name)
        case "content" if isinstance(source.get("content"), str):
            yield TextPart(source["content"])
        case "content":
            at = f"{param}.source.content"
            for place, one in enumerate(require_type(source.get("content"), list, at)):
                yield from _parse_visible_block(request, require_type(one, dict, f"{at}.{place}"), f"{at}.{place}")
        case _:
            raise unsupported_value_error(f"{param}.source.type", kind)


def _list_document_head_lines(block: Json) -> list[str]:
    return [*_iter_texts_in(block.get("title")), *_iter_texts_in(block.get("context"))]


def _parse_tools(request: NeutralRequest, body: Mapping[str, Any]) -> None:
    for place, tool in enumerate(read_optional(body, "tools", list) or []):
        param = f"tools.{place}"
        kind = require_type(tool, dict, param).get("type")
        if kind not in (None, "custom"):
            raise unsupported_value_error(f"{param}.type", kind)
        known = ("type", "name", "description", "input_schema", "strict")
        harmless = ("cache_control", "defer_loading", "eager_input_streaming")
        given = {one: value for one, value in tool.items() if value is not False and value != ["direct"]}
        check_known_fields(request, given, param, known, unused=harmless, prefix="tools.")
        name = require_type(tool.get("name"), str, f"{param}.name")
        schema = require_type(tool.get("input_schema"), dict, f"{param}.input_schema")
        strict = read_optional(tool, "strict", bool, f"{param}.strict")
        description = read_optional(tool, "description", str, f"{param}.description")
        request.tools.append(ToolSpec(name, description, schema, strict, own_name=name))
    choice = read_optional(body, "tool_choice", dict)
    if choice is None:
        return
    check_known_fields(request, choice, "tool_choice", ("type", "name", "disable_parallel_tool_use"))
    match choice.get("type"):
        case "auto" | "none" as same:
            request.tool_choice = same
        case "any":
            request.tool_choice = "required"
        case "tool":
            request.tool_choice = f"tool:{require_type(choice.get('name'), str, 'tool_choice.name')}"
        case other:
            raise unsupported_value_error("tool_choice.type", other)
    is_serial = read_optional(choice, "disable_parallel_tool_use", bool, "tool_choice.disable_parallel_tool_use")
    request.parallel_calls = None if is_serial is None else not is_serial


def _parse_thinking(request: NeutralRequest, body: Mapping[str, Any]) -> None:
    thinking = read_optional(body, "thinking", dict) or {}
    check_known_fields(
        request,
        thinking,
        "thinking",
        ("type", "budget_tokens"),
        unused=("display", "block_binding"),
        prefix="thinking.",
    )
    match thinking.get("type"):
        case None | "adaptive" | "between_tools":
            pass
        case "disabled":
            request.effort = "none"
        case "enabled":
            budget = require_type(thinking.get("budget_tokens"), int, "thinking.budget_tokens")
            request.effort = "low" if budget <= _LOW_BUDGET else "medium" if budget <= _MEDIUM_BUDGET else "high"
        case other:
            raise unsupported_value_error("thinking.type", other)
    request.params["effort"] = "thinking" if thinking else "output_config.effort"


def _parse_output_options(request: NeutralRequest, body: Mapping[str, Any]) -> None:
    config = read_optional(body, "output_config", dict) or {}
    for name, value in config.items():
        if name not in ("effort", "format") and not is_null_or_empty_container(value):
            raise unsupported_value_error(f"output_config.{name[:60]}", value)
    if config.get("effort") is not None and request.effort != "none":
        request.effort = require_type(config["effort"], str, "output_config.effort")
    form = config.get("format") or body.get("output_format")
    param = "output_config.format" if config.get("format") else "output_format"
    request.params["json_format"] = param
    if form is None:
        return
    if require_type(form, dict, param).get("type") != "json_schema":
        raise unsupported_value_error(f"{param}.type", form.get("type"))
    check_known_fields(request, form, param, ("type", "schema"), unused=("name",), prefix=f"{param}.")
    request.json_format = JsonFormat(require_type(form.get("schema"), dict, f"{param}.schema"), strict=True)


def _record_harmless_fields(request: NeutralRequest, body: Mapping[str, Any]) -> None:
    metadata = read_optional(body, "metadata", dict) or {}
    if metadata:
        request.record_ignored_field("metadata")
    management = read_optional(body, "context_management", dict) or {}
    check_known_fields(request, management, "context_management", ("edits",))
    for edit in read_optional(management, "edits", list, "context_management.edits") or []:
        # Keeping all thinking is what happens anyway.
        keeps = isinstance(edit, dict) and str(edit.get("type")).startswith("clear_thinking")
        if not keeps or edit.get("keep") != "all" or len(edit) > len(("type", "keep")):
            raise unsupported_value_error("context_management", edit)
    if management:
        request.record_ignored_field("context_management")


# Building requests.


def build_messages_body(request: NeutralRequest, model: str, *, max_tokens: int) -> Json:
    """Return the body of a streamed request; ``max_tokens`` is the model's own maximum, if the client sets none."""
    leading = 0
    while leading < len(request.messages) and request.messages[leading].role == "system":
        leading += 1
    system = [_build_part(request, part) for one in request.messages[:leading] for part in one.parts]
    body: Json = {"model": model, "max_tokens": request.max_tokens or max_tokens, "stream": True}
    body |= {"system": system} if system else {}
    body["messages"] = [_build_message(request, one) for one in _join_results(request.messages[leading:])]
    body["messages"] = [one for one in body["messages"] if one["content"]]
    body |= _build_tools(request)
    values = {"temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
    body |= {name: value for name, value in values.items() if value is not None}
    body |= {"stop_sequences": request.stop} if request.stop else {}
    if request.seed is not None:
        request.record_ignored_field(request.params.get("seed", "seed"))
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(request, name) is not None:
            raise request.unsupported_field_error(name, "Anthropic's API")
    return body | _build_output_options(request)


def _join_results(messages: Sequence[NeutralMessage]) -> Iterator[NeutralMessage]:
    """Yield the messages; consecutive results of tools become one message, as the API requires."""
    for role, group in groupby(messages, key=lambda one: one.role):
        if role == "tool":
            yield NeutralMessage("tool", tuple(part for one in group for part in one.parts))
        else:
            yield from group


def _build_tools(request: NeutralRequest) -> Json:
    tools = [
        {"name": one.name, "input_schema": one.schema}
        | ({"description": one.description} if one.description else {})
        | ({"strict": True} if one.strict else {})
        for one in request.tools
    ]
    choice: Json | None = None
    match request.tool_choice:
        case None:
            choice = None if request.parallel_calls is None or not tools else {"type": "auto"}
        case "required":
            choice = {"type": "any"}
        case "auto" | "none" as same:
            choice = {"type": same} if tools else None
        case named:
            choice = {"type": "tool", "name": named.removeprefix("tool:")}
    if choice is not None and request.parallel_calls is False and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return ({"tools": tools} if tools else {}) | ({"tool_choice": choice} if choice else {})


def _build_output_options(request: NeutralRequest) -> Json:
    config: Json = {}
    thinking: Json = {}
    if request.effort is not None:
        effort = _EFFORT_NAMES.get(request.effort, request.effort)
        if effort == "none":
            thinking = {"thinking": {"type": "disabled"}}
        elif effort in _EFFORTS:
            config["effort"] = effort
        else:
            raise request.unsupported_field_error("effort", "Anthropic's API")
    if request.json_format is not None:
        config["format"] = {"type": "json_schema", "schema": request.json_format.schema}
        request.record_unused_format_names()
    return thinking | ({"output_config": config} if config else {})


def _build_message(request: NeutralRequest, message: NeutralMessage) -> Json:
    content = [_build_part(request, part) for part in message.parts]
    role = "user" if message.role == "tool" else message.role
    return {"role": role, "content": [one for one in content if one]}


def _build_part(request: NeutralRequest, part: Part) -> Json:
    match part:
        case TextPart(text):
            # The API rejects empty text blocks.
            return {"type": "text", "text": text} if text else {}
        case ImagePart():
            return {"type": "image", "source": _build_source(part.media_type, part.data, part.url)}
        case DocumentPart():
            return _build_document(part)
        case ReasoningPart(ApiFormat.MESSAGES, native) if native is not None:
            return native
        case ReasoningPart():
            request.record_ignored_field("reasoning")
            return {}
        case CallPart(call, name, arguments):
            given = parse_object(arguments)
            return {
                "type": "tool_use",
                "id": call,
                "name": name,
                "input": {"input": arguments} if given is None else given,
            }
        case ResultPart(call, parts, has_failed):
            content = [made for made in (_build_part(request, one) for one in parts) if made]
            failed = {"is_error": True} if has_failed else {}
            return {"type": "tool_result", "tool_use_id": call, **({"content": content} if content else {}), **failed}


def _build_document(part: DocumentPart) -> Json:
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": _build_source(part.media_type, part.data, part.url), **title}


def _build_source(media_type: str, data: str, url: str) -> Json:
    return {"type": "url", "url": url} if url else {"type": "base64", "media_type": media_type, "data": data}


# Reading answers.

_STOPS = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "sequence",
    "tool_use": "tools",
    "refusal": "refused",
    "model_context_window_exceeded": "window",
    "pause_turn": "end",
}


class MessagesEventReader:
    """Reads the events of a streamed answer."""

    def __init__(self) -> None:
        self.has_ended = False
        self.error: Json | None = None
        self._usage = TokenUsage()
        self._stop = "end"
        self._sequence: str | None = None
        self._block: Json = {}

    def feed(self, event: SseEvent) -> Iterator[AnswerEvent]:
        """Yield what an event says."""
        fields = decode_event(event)
        match fields.get("type"):
            case "message_start":
                message = fields.get("message") or {}
                self._usage = parse_usage(ApiFormat.MESSAGES, message.get("usage"), self._usage)
                yield AnswerStart(str(message.get("id") or ""))
            case "content_block_start":
                self._block = dict(fields.get("content_block") or {})
                yield from self._start_block()
            case "content_block_delta":
                yield from self._add_delta(fields.get("delta") or {})
            case "content_block_stop":
                yield from self._end_block()
            case "message_delta":
                delta = fields.get("delta") or {}
                self._stop = _STOPS.get(str(delta.get("stop_reason")), "end")
                self._sequence = delta.get("stop_sequence")
                self._usage = parse_usage(ApiFormat.MESSAGES, fields.get("usage"), self._usage)
            case "message_stop":
                self.has_ended = True
                yield AnswerEnd(self._stop, self._usage, self._sequence)
            case "error":
                self.error = fields.get("error") or {}

    def _start_block(self) -> Iterator[AnswerEvent]:
        match self._block.get("type"):
            case "text" if self._block.get("text"):
                yield AnswerTextDelta(self._block["text"])
            case "tool_use":
                self._block["json"] = ""
                yield CallStart(str(self._block.get("id")), str(self._block.get("name")))

    def _add_delta(self, delta: Json) -> Iterator[AnswerEvent]:
        match delta.get("type"):
            case "text_delta":
                yield AnswerTextDelta(str(delta.get("text") or ""))
            case "thinking_delta":
                self._block["thinking"] = self._block.get("thinking", "") + str(delta.get("thinking") or "")
                yield AnswerReasoningDelta(str(delta.get("thinking") or ""))
            case "signature_delta":
                self._block["signature"] = self._block.get("signature", "") + str(delta.get("signature") or "")
            case "input_json_delta":
                self._block["json"] = self._block.get("json", "") + str(delta.get("partial_json") or "")
                yield CallDelta(str(delta.get("partial_json") or ""))

    def _end_block(self) -> Iterator[AnswerEvent]:
        match self._block.get("type"):
            case "thinking" | "redacted_thinking":
                yield ReasoningEnd(ApiFormat.MESSAGES, self._block)
            case "tool_use":
                if not self._block.get("json"):
                    yield CallDelta(to_json_text(self._block.get("input") or {}))
                yield CallEnd()
        self._block = {}


# Writing answers.

_STOP_REASONS = {
    "end": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    "sequence": "stop_sequence",
    "refused": "refusal",
    "window": "model_context_window_exceeded",
}


class MessagesEventWriter:
    """Writes an answer as events, and keeps it for a body without streaming."""

    def __init__(self, request: NeutralRequest, *, model: str, answer_id: str, created: int) -> None:
        del request, created  # the other APIs repeat them in their answers
        self._model = model
        self._id = answer_id
        self._blocks: list[Json] = []
        self._open: str | None = None
        self._arguments: list[str] = []
        self._end: AnswerEnd | None = None

    def write(self, event: AnswerEvent) -> Iterator[bytes]:
        """Yield an event of the answer in the format of this API."""
        match event:
            case AnswerStart():
                begun = {
                    **self._common_message_fields(),
                    "content": [],
                    "stop_reason": None,
                    "usage": self._usage(TokenUsage()),
                }
                yield _format_sse_event("message_start", message=begun)
            case AnswerTextDelta(text) | RefusalDelta(text) if text:
                yield from self._begin_block("text", {"type": "text", "text": ""})
                self._blocks[-1]["text"] += text
                yield self._format_delta_event({"type": "text_delta", "text": text})
            case AnswerReasoningDelta(text) if text:
                yield from self._begin_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                self._blocks[-1]["thinking"] += text
                yield self._format_delta_event({"type": "thinking_delta", "thinking": text})
            case ReasoningEnd(wire, native):
                yield from self._begin_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                signature = pack_reasoning(wire, native)
                self._blocks[-1]["signature"] = signature
                yield self._format_delta_event({"type": "signature_delta", "signature": signature})
                yield from self._end_open_block()
            case CallStart(call, name):
                yield from self._end_open_block()
                self._arguments = []
                yield from self._begin_block("tool_use", {"type": "tool_use", "id": call, "name": name, "input": {}})
            case CallDelta(text):
                self._arguments.append(text)
                yield self._format_delta_event({"type": "input_json_delta", "partial_json": text})
            case CallEnd():
                written = "".join(self._arguments)
                given = parse_object(written)
                self._blocks[-1]["input"] = {"input": written} if given is None else given
                yield from self._end_open_block()
            case AnswerEnd(stop, usage, sequence):
                self._end = event
                yield from self._end_open_block()
                delta = {"stop_reason": _STOP_REASONS.get(stop, "end_turn"), "stop_sequence": sequence}
                yield _format_sse_event("message_delta", delta=delta, usage=self._usage(usage))
                yield _format_sse_event("message_stop")

    def write_error(self, error: Mapping[str, object]) -> bytes:
        """Return the event for an error after the answer began."""
        return _format_sse_event("error", error=error)

    def body(self) -> Json:
        """Return the whole answer."""
        assert self._end is not None, "the answer has ended"
        ended = {"stop_reason": _STOP_REASONS.get(self._end.stop, "end_turn"), "stop_sequence": self._end.sequence}
        return {
            **self._common_message_fields(),
            "content": self._blocks,
            **ended,
            "usage": self._usage(self._end.usage),
        }

    def _common_message_fields(self) -> Json:
        """Return the fields that the start of a stream and a whole answer have in common."""
        named = {"id": self._id, "type": "message", "role": "assistant", "model": self._model}
        return {**named, "stop_sequence": None}

    def _usage(self, usage: TokenUsage) -> dict[str, object]:
        return usage_to_json(ApiFormat.MESSAGES, usage)

    def _begin_block(self, kind: str, block: Json) -> Iterator[bytes]:
        if self._open == kind:
            return
        yield from self._end_open_block()
        self._open = kind
        self._blocks.append(block)
        yield _format_sse_event("content_block_start", index=len(self._blocks) - 1, content_block=dict(block))

    def _end_open_block(self) -> Iterator[bytes]:
        if self._open is not None:
            self._open = None
            yield _format_sse_event("content_block_stop", index=len(self._blocks) - 1)

    def _format_delta_event(self, delta: Json) -> bytes:
        return _format_sse_event("content_block_delta", index=len(self._blocks) - 1, delta=delta)


def _format_sse_event(kind: str, **fields: object) -> bytes:
    return format_event({"type": kind, **fields}, name=kind)


def collect_texts(body: Mapping[str, Any]) -> list[str]:
    """Return all texts of a request: system prompt, messages, results and arguments of calls."""
    return [*_iter_texts_in(body.get("system")), *_iter_texts_in(body.get("messages"))]


def _iter_texts_in(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [text for one in value for text in _iter_texts_in(one)]
    if not isinstance(value, dict):
        return []
    match value.get("type"):
        case "text":
            return _iter_texts_in(value.get("text"))
        case "tool_use":
            return [to_json_text(value.get("input"))]
        case "document" if isinstance(value.get("source"), dict):
            source = value["source"]
            if source.get("type") not in ("text", "content"):
                return []
            shown = source.get("data") if source.get("type") == "text" else source.get("content")
            return [*_list_document_head_lines(value), *_iter_texts_in(shown)]
        case "search_result":
            return _search_result_texts(value)
        case kind if kind in _JSON_BLOCKS:
            return [_block_json(value)]
        case "thinking" | "redacted_thinking" | "image":
            return []
    return _iter_texts_in(value.get("content"))
