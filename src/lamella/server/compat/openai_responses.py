"""OpenAI's Responses API: requests to and from the neutral form, and the events of an answer."""

from collections.abc import Iterator, Mapping, Sequence
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
from lamella.server.compat.openai_chat import (
    DEFAULT_FORMAT_NAME,
    image_url,
    parse_custom_tool,
    parse_file_data,
    parse_image_url,
    parse_schema_format,
)
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.streams import SseEvent, decode_event, format_event
from lamella.server.compat.usage import parse_usage, usage_to_json
from lamella.server.compat.wires import ApiFormat

_KNOWN = frozenset(
    {
        "model", "input", "instructions", "stream", "stream_options", "max_output_tokens", "tools", "tool_choice",
        "parallel_tool_calls", "reasoning", "include", "text", "temperature", "top_p", "store", "previous_response_id",
        "truncation", "background", "top_logprobs", "lamella",
    }
)  # fmt: skip
_UNUSED = frozenset(
    {
        "user", "safety_identifier", "metadata", "client_metadata", "prompt_cache_key", "prompt_cache_retention",
        "prompt_cache_options", "prompt_cache_diagnostics", "service_tier",
    }
)  # fmt: skip
_DEFAULTS: Mapping[str, tuple[object, ...]] = {
    "truncation": ("disabled",),
    "background": (False,),
    "top_logprobs": (0,),
}
_UNUSED_INCLUDES = ("reasoning.encrypted_content", "web_search_call.action.sources", "web_search_call.results")
_WEB_SEARCH_TOOLS = ("web_search", "web_search_preview")
# Fields of items that only identify them, and what each type of item has beyond.
_ITEM_FIELDS = ("type", "id", "status", "call_id")
_UNUSED_IN_ITEMS = ("phase", "caller")
_UNUSED_IN_PARTS = ("annotations", "logprobs", "detail", "prompt_cache_breakpoint")
_SEARCH_SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def list_input_items(body: Mapping[str, Any]) -> list[Json]:
    """Return the input as items; a text is the message of a user."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(given or [])


def parse_responses_request(body: Mapping[str, Any]) -> NeutralRequest:
    """Return a request of this API in neutral form; earlier responses are already part of its input."""
    reasoning = read_optional(body, "reasoning", dict) or {}
    request = NeutralRequest(
        wire=ApiFormat.RESPONSES,
        messages=[],
        max_tokens=read_optional(body, "max_output_tokens", int),
        temperature=read_optional(body, "temperature", (int, float)),
        top_p=read_optional(body, "top_p", (int, float)),
        effort=read_optional(reasoning, "effort", str, "reasoning.effort"),
        parallel_calls=read_optional(body, "parallel_tool_calls", bool),
        is_streamed=body.get("stream") is True,
        include_usage=True,
        params={
            "effort": "reasoning.effort",
            "json_format": "text.format",
            "parallel_calls": "parallel_tool_calls",
            "max_tokens": "max_output_tokens",
        },
    )
    request.unused += list_ignored_fields(body, _KNOWN, unused=_UNUSED)
    read_optional(body, "store", bool)
    options = read_optional(body, "stream_options", dict) or {}
    check_known_fields(request, options, "stream_options", (), unused=("include_obfuscation",))
    summaries = ("summary", "context", "generate_summary")
    check_known_fields(request, reasoning, "reasoning", ("effort",), unused=summaries, prefix="reasoning.")
    for name, harmless in _DEFAULTS.items():
        if not is_null_or_empty_container(body.get(name)) and body[name] not in harmless:
            raise unsupported_value_error(name, body[name])
    _parse_tools(request, body)
    if body.get("instructions"):
        request.messages.append(
            NeutralMessage(
                "system", (TextPart(require_type(body["instructions"], str, "instructions")),), "instructions"
            )
        )
    _parse_items(request, list_input_items(body))
    _parse_options(request, body)
    return request


def _parse_options(request: NeutralRequest, body: Mapping[str, Any]) -> None:
    for name in read_optional(body, "include", list) or []:
        if name not in _UNUSED_INCLUDES:
            raise unsupported_value_error("include", name)
        request.record_ignored_field(f"include.{name}")
    text = read_optional(body, "text", dict) or {}
    check_known_fields(request, text, "text", ("format",), unused=("verbosity",), prefix="text.")
    form = read_optional(text, "format", dict, "text.format") or {}
    match form.get("type"):
        case None | "text":
            pass
        case "json_schema":
            request.json_format = parse_schema_format(request, form, "text.format")
        case kind:
            raise unsupported_value_error("text.format.type", kind)


def _parse_items(request: NeutralRequest, items: Sequence[Json]) -> None:
    """Add the items as messages; consecutive items of the model belong to one message."""
    for place, item in enumerate(items):
        role, parts = _parse_item(request, require_type(item, dict, f"input.{place}"), f"input.{place}")
        last = request.messages[-1] if request.messages else None
        is_same_turn = last is not None and last.role == role and role in ("assistant", "tool") and place > 0
        if is_same_turn and last is not None:
            request.messages[-1] = last._replace(parts=(*last.parts, *parts))
        else:
            request.messages.append(NeutralMessage(role, parts, f"input.{place}"))


# What each type of item has besides the fields of all.
_FIELDS_OF_ITEM: Mapping[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "reasoning": ("summary", "content", "encrypted_content"),
    "function_call": ("name", "namespace", "arguments"),
    "function_call_output": ("name", "namespace", "output"),
    "custom_tool_call": ("name", "namespace", "input"),
    "custom_tool_call_output": ("name", "namespace", "output"),
    "tool_search_call": ("execution", "arguments"),
    "tool_search_output": ("execution", "tools"),
}


def _parse_item(request: NeutralRequest, item: Json, param: str) -> tuple[str, tuple[Part, ...]]:
    kind = item.get("type", "message")
    fields = _FIELDS_OF_ITEM.get(str(kind))
    if fields is not None:
        check_known_fields(request, item, param, (*_ITEM_FIELDS, *fields), unused=_UNUSED_IN_ITEMS, prefix="input.")
    match kind:
        case "message":
            role = {"developer": "system"}.get(str(item.get("role")), item.get("role"))
            if role not in ("system", "user", "assistant"):
                raise unsupported_value_error(f"{param}.role", role)
            return role, tuple(_parse_content(request, item.get("content"), f"{param}.content"))
        case "reasoning":
            return "assistant", (unpack_reasoning(item.get("encrypted_content")),)
        case "function_call":
            name = _make_name_for_model(item.get("namespace"), require_type(item.get("name"), str, f"{param}.name"))
            call = require_type(item.get("call_id"), str, f"{param}.call_id")
            given = read_optional(item, "arguments", str, f"{param}.arguments") or "{}"
            return "assistant", (CallPart(call, name, given),)
        case "custom_tool_call":
            given = to_json_text({"input": read_optional(item, "input", str, f"{param}.input") or ""})
            call = require_type(item.get("call_id"), str, f"{param}.call_id")
            name = _make_name_for_model(item.get("namespace"), require_type(item.get("name"), str, f"{param}.name"))
            return "assistant", (CallPart(call, name, given),)
        case "tool_search_call" if item.get("execution") == "client":
            arguments = item.get("arguments")
            given = arguments if isinstance(arguments, str) else to_json_text(arguments or {})
            return "assistant", (CallPart(_read_call_id(item, param), "tool_search", given),)
        case "function_call_output" | "custom_tool_call_output":
            call = require_type(item.get("call_id"), str, f"{param}.call_id")
            parts = _parse_content(request, item.get("output"), f"{param}.output")
            kept = tuple(one for one in parts if isinstance(one, TextPart | ImagePart | DocumentPart))
            return "tool", (ResultPart(call, kept),)
        case "tool_search_output" if item.get("execution", "client") == "client":
            tools = read_optional(item, "tools", list, f"{param}.tools") or []
            _add_tools(request, tools, f"{param}.tools")
            return "tool", (ResultPart(_read_call_id(item, param), (TextPart(to_json_text(tools)),)),)
        case "tool_search_call" | "tool_search_output":
            raise unsupported_value_error(f"{param}.execution", item.get("execution"))
        case _:
            raise unsupported_value_error(f"{param}.type", kind)


def _read_call_id(item: Json, param: str) -> str:
    name = "call_id" if item.get("call_id") is not None else "id"
    call: str = require_type(item.get(name), str, f"{param}.{name}")
    return call


def _parse_content(request: NeutralRequest, content: object, param: str) -> Iterator[Part]:
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield TextPart(content)
        return
    for place, part in enumerate(require_type(content, list, param)):
        at = f"{param}.{place}"
        match require_type(part, dict, at).get("type"):
            case "input_text" | "output_text" | "text":
                check_known_fields(request, part, at, ("type", "text"), unused=_UNUSED_IN_PARTS)
                yield TextPart(require_type(part.get("text"), str, f"{at}.text"))
            case "refusal":
                check_known_fields(request, part, at, ("type", "refusal"))
                yield TextPart(require_type(part.get("refusal"), str, f"{at}.refusal"))
            case "input_image":
                check_known_fields(
                    request, part, at, ("type", "image_url"), unused=_UNUSED_IN_PARTS, prefix="input_image."
                )
                yield parse_image_url(require_type(part.get("image_url"), str, f"{at}.image_url"))
            case "input_file" if isinstance(part.get("file_url"), str):
                check_known_fields(request, part, at, ("type", "file_url", "filename"), unused=_UNUSED_IN_PARTS)
                yield DocumentPart(
                    url=part["file_url"], name=read_optional(part, "filename", str, f"{at}.filename") or ""
                )
            case "input_file":
                check_known_fields(request, part, at, ("type", "file_data", "filename"), unused=_UNUSED_IN_PARTS)
                yield parse_file_data(part, at)
            case kind:
                raise unsupported_value_error(f"{at}.type", kind)


# Tools, under the names by which the model knows them.


def _parse_tools(request: NeutralRequest, body: Mapping[str, Any]) -> None:
    choice = body.get("tool_choice")
    tools = read_optional(body, "tools", list) or []
    kept = []
    for place, tool in enumerate(tools):
        kind = require_type(tool, dict, f"tools.{place}").get("type")
        if kind in _WEB_SEARCH_TOOLS:
            forced = choice == "required" or (isinstance(choice, dict) and choice.get("type") in _WEB_SEARCH_TOOLS)
            if forced:
                raise unsupported_value_error(f"tools.{place}.type", kind)
            request.record_ignored_field(f"tools.{kind}")
        else:
            kept.append(tool)
    _add_tools(request, kept, "tools")
    match choice:
        case None | "auto" | "none" | "required":
            request.tool_choice = choice
        case {"type": "function" | "custom", "name": str(name)}:
            check_known_fields(request, choice, "tool_choice", ("type", "name"))
            request.tool_choice = f"tool:{name}"
        case _:
            raise unsupported_value_error("tool_choice", choice)


def _add_tools(request: NeutralRequest, tools: Sequence[object], param: str, namespace: str | None = None) -> None:
    known = {one.name for one in request.tools}
    for place, tool in enumerate(tools):
        at = f"{param}.{place}"
        given: Json = require_type(tool, dict, at)
        match given.get("type"):
            case "function":
                made = _parse_function(request, given, at, namespace)
            case "custom":
                made = parse_custom_tool(request, given, at, namespace)
            case "namespace":
                check_known_fields(
                    request, given, at, ("type", "name", "tools"), unused=("description",), prefix="tools.namespace."
                )
                name = require_type(given.get("name"), str, f"{at}.name")
                inner = read_optional(given, "tools", list, f"{at}.tools") or []
                _add_tools(request, inner, f"{at}.tools", name)
                continue
            case "tool_search" if given.get("execution") == "client":
                check_known_fields(request, given, at, ("type", "execution", "description", "parameters"))
                schema = read_optional(given, "parameters", dict, f"{at}.parameters") or _SEARCH_SCHEMA
                description = read_optional(given, "description", str, f"{at}.description")
                made = ToolSpec("tool_search", description, schema, kind="tool_search", own_name="tool_search")
            case kind:
                raise unsupported_value_error(f"{at}.type", kind)
        if made.name not in known:
            known.add(made.name)
            request.tools.append(made)


def _parse_function(request: NeutralRequest, tool: Json, param: str, namespace: str | None) -> ToolSpec:
    known = ("type", "name", "description", "parameters", "strict")
    given = {name: value for name, value in tool.items() if value is not False}
    check_known_fields(request, given, param, known, unused=("defer_loading",), prefix="tools.")
    name = require_type(tool.get("name"), str, f"{param}.name")
    schema = read_optional(tool, "parameters", dict, f"{param}.parameters") or {"type": "object", "properties": {}}
    strict = read_optional(tool, "strict", bool, f"{param}.strict")
    named = name if namespace is None else f"{namespace}__{name}"
    description = read_optional(tool, "description", str, f"{param}.description")
    return ToolSpec(named, description, schema, strict, namespace=namespace, own_name=name)


def _make_name_for_model(namespace: object, name: str) -> str:
    return f"{namespace}__{name}" if isinstance(namespace, str) and namespace else name


# Building requests.


def build_responses_body(request: NeutralRequest, model: str) -> Json:
    """Return the body of a streamed request."""
    if request.stop:
        raise request.unsupported_field_error("stop", "the Responses API")
    if request.top_k is not None:
        raise request.unsupported_field_error("top_k", "the Responses API")
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(request, name) is not None:
            raise request.unsupported_field_error(name, "the Responses API")
    if request.seed is not None:
        request.record_ignored_field(request.params.get("seed", "seed"))
    items = [item for message in request.messages for item in _build_items(request, message)]
    body: Json = {"model": model, "input": items, "stream": True, "store": False}
    values: Json = {
        "max_output_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "parallel_tool_calls": request.parallel_calls if request.tools else None,
        "reasoning": None if request.effort is None else {"effort": request.effort},
    }
    body |= {name: value for name, value in values.items() if value is not None}
    # Reasoning comes back encrypted, so that the client can return it with the next request.
    body["include"] = ["reasoning.encrypted_content"]
    body |= {"tools": [_build_tool(one) for one in request.tools]} if request.tools else {}
    if request.tool_choice is not None and request.tools:
        named = request.tool_choice.removeprefix("tool:")
        is_named = named != request.tool_choice
        body["tool_choice"] = {"type": "function", "name": named} if is_named else named
    if request.json_format is not None:
        body["text"] = {"format": _build_format(request.json_format)}
    return body


def _build_tool(tool: ToolSpec) -> Json:
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "name": tool.name, "parameters": tool.schema, "strict": bool(tool.strict), **described}


def _build_format(form: JsonFormat) -> Json:
    described = {"description": form.description} if form.description else {}
    return {
        "type": "json_schema",
        "name": form.name or DEFAULT_FORMAT_NAME,
        "schema": form.schema,
        "strict": bool(form.strict),
        **described,
    }


def _build_items(request: NeutralRequest, message: NeutralMessage) -> Iterator[Json]:
    content: list[Json] = []
    kind = "output_text" if message.role == "assistant" else "input_text"
    role = {"system": "developer"}.get(message.role, message.role)
    for part in message.parts:
        if isinstance(part, TextPart | ImagePart | DocumentPart):
            content.append(_build_part(part, kind))
            continue
        if content:
            yield {"type": "message", "role": role, "content": content}
            content = []
        match part:
            case ReasoningPart(ApiFormat.RESPONSES, native) if native is not None:
                yield native
            case ReasoningPart():
                request.record_ignored_field("reasoning")
            case CallPart(call, name, arguments):
                yield {"type": "function_call", "call_id": call, "name": name, "arguments": arguments}
            case ResultPart():
                yield _build_result(request, part)
    if content:
        yield {"type": "message", "role": role, "content": content}


def _build_result(request: NeutralRequest, result: ResultPart) -> Json:
    if result.has_failed:
        request.record_ignored_field("is_error")
    single = result.parts[0] if len(result.parts) == 1 else None
    output: object = [_build_part(part, "input_text") for part in result.parts]
    output = single.text if isinstance(single, TextPart) else output or ""
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _build_part(part: TextPart | ImagePart | DocumentPart, text_type: str) -> Json:
    match part:
        case TextPart(text):
            return {"type": text_type, "text": text}
        case ImagePart():
            return {"type": "input_image", "image_url": image_url(part)}
        case DocumentPart() if part.url:
            return {"type": "input_file", "file_url": part.url}
        case DocumentPart():
            data = f"data:{part.media_type};base64,{part.data}"
            return {"type": "input_file", "filename": part.name or "document", "file_data": data}


# Reading answers.


class ResponsesEventReader:
    """Reads the events of a streamed answer."""

    def __init__(self) -> None:
        self.has_ended = False
        self.error: Json | None = None
        self._has_calls = False
        self._arguments = ""

    def feed(self, event: SseEvent) -> Iterator[AnswerEvent]:
        """Yield what an event says."""
        fields = decode_event(event)
        match fields.get("type"):
            case "response.created":
                yield AnswerStart(str((fields.get("response") or {}).get("id") or ""))
            case "response.output_text.delta":
                yield AnswerTextDelta(str(fields.get("delta") or ""))
            case "response.refusal.delta":
                yield RefusalDelta(str(fields.get("delta") or ""))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield AnswerReasoningDelta(str(fields.get("delta") or ""))
            case "response.output_item.added":
                item = fields.get("item") or {}
                if item.get("type") == "function_call":
                    self._has_calls, self._arguments = True, ""
                    yield CallStart(str(item.get("call_id")), str(item.get("name")))
            case "response.function_call_arguments.delta":
                self._arguments += str(fields.get("delta") or "")
                yield CallDelta(str(fields.get("delta") or ""))
            case "response.output_item.done":
                yield from self._end_item(fields.get("item") or {})
            case "response.completed" | "response.incomplete":
                yield from self._end_answer(fields.get("response") or {})
            case "response.failed":
                self.error = (fields.get("response") or {}).get("error") or {}
            case "error":
                self.error = fields

    def _end_item(self, item: Json) -> Iterator[AnswerEvent]:
        match item.get("type"):
            case "function_call":
                if not self._arguments:
                    yield CallDelta(str(item.get("arguments") or "{}"))
                yield CallEnd()
            case "reasoning":
                native = {name: value for name, value in item.items() if name != "status" and value is not None}
                yield ReasoningEnd(ApiFormat.RESPONSES, native)

    def _end_answer(self, response: Json) -> Iterator[AnswerEvent]:
        self.has_ended = True
        reason = (response.get("incomplete_details") or {}).get("reason")
        cut = {"max_output_tokens": "length", "content_filter": "refused"}.get(str(reason))
        yield AnswerEnd(
            cut or ("tools" if self._has_calls else "end"), parse_usage(ApiFormat.RESPONSES, response.get("usage"))
        )


# Writing answers.


class ResponsesEventWriter:
    """Writes an answer as events, and keeps it for a body without streaming."""

    def __init__(self, request: NeutralRequest, *, model: str, answer_id: str, created: int) -> None:
        self._request = request
        self._id, self._model, self._created = answer_id, model, created
        self._number = 0
        self._items: list[Json] = []
        self._is_open = False
        self._custom_text: list[str] = []
        self._end: AnswerEnd | None = None
        # What the client's request said, for the body of the response.
        self.repeated: Json = {}

    @property
    def items(self) -> list[Json]:
        """Return the items of the answer so far."""
        return self._items

    def write(self, event: AnswerEvent) -> Iterator[bytes]:
        """Yield an event of the answer in the format of this API."""
        match event:
            case AnswerStart():
                yield self._format_event("response.created", response=self._build_response_body("in_progress"))
                yield self._format_event("response.in_progress", response=self._build_response_body("in_progress"))
            case AnswerTextDelta(text) if text:
                yield from self._begin_message("output_text")
                self._items[-1]["content"][0]["text"] += text
                yield self._format_event(
                    "response.output_text.delta", **self._get_item_position(), content_index=0, delta=text, logprobs=[]
                )
            case RefusalDelta(text) if text:
                yield from self._begin_message("refusal")
                self._items[-1]["content"][0]["refusal"] += text
                yield self._format_event(
                    "response.refusal.delta", **self._get_item_position(), content_index=0, delta=text
                )
            case AnswerReasoningDelta(text) if text:
                yield from self._add_reasoning(text)
            case ReasoningEnd(wire, native):
                yield from self._begin_reasoning()
                self._items[-1]["encrypted_content"] = pack_reasoning(wire, native)
                yield from self._close_open_item()
            case CallStart(call, name):
                yield from self._begin_call(call, name)
            case CallDelta(text) if text:
                yield from self._add_arguments(text)
            case CallEnd():
                yield from self._close_open_item()
            case AnswerEnd():
                self._end = event
                yield from self._close_open_item()
                status = self._get_status()
                yield self._format_event(f"response.{status}", response=self._build_response_body(status))

    def write_error(self, error: Mapping[str, object]) -> bytes:
        """Return the event for an error after the answer began."""
        return self._format_event(
            "error", code=error.get("code"), message=error.get("message"), param=error.get("param")
        )

    def body(self) -> Json:
        """Return the whole answer."""
        return self._build_response_body(self._get_status())

    def _get_status(self) -> str:
        assert self._end is not None, "the answer has ended"
        return (
            "incomplete"
            if self._end.stop in ("length", "window", "refused") and self._get_cut_reason()
            else "completed"
        )

    def _get_cut_reason(self) -> str | None:
        reasons = {"length": "max_output_tokens", "window": "max_output_tokens", "refused": "content_filter"}
        return None if self._end is None else reasons.get(self._end.stop)

    def _build_response_body(self, status: str) -> Json:
        is_done = status != "in_progress"
        cut = {"reason": self._get_cut_reason()} if status == "incomplete" else None
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "model": self._model,
            "status": status,
            "error": None,
            "incomplete_details": cut,
            "instructions": None,
            "metadata": {},
            "output": self._items if is_done else [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "store": False,
            **self.repeated,
            "usage": usage_to_json(ApiFormat.RESPONSES, self._end.usage) if is_done and self._end else None,
        }

    def _begin_message(self, kind: str) -> Iterator[bytes]:
        if self._is_open and self._items[-1]["type"] == "message" and self._items[-1]["content"][0]["type"] == kind:
            return
        part: Json = {"type": kind, "refusal": ""}
        if kind == "output_text":
            part = {"type": kind, "text": "", "annotations": [], "logprobs": []}
        item = {"type": "message", "role": "assistant", "status": "in_progress", "content": []}
        yield from self._open_item("msg", item)
        yield self._format_event(
            "response.content_part.added", **self._get_item_position(), content_index=0, part=dict(part)
        )
        self._items[-1]["content"].append(part)

    def _begin_reasoning(self) -> Iterator[bytes]:
        if not self._is_open or self._items[-1]["type"] != "reasoning":
            yield from self._open_item("rs", {"type": "reasoning", "summary": []})

    def _add_reasoning(self, text: str) -> Iterator[bytes]:
        yield from self._begin_reasoning()
        summary = self._items[-1]["summary"]
        if not summary:
            part = {"type": "summary_text", "text": ""}
            yield self._format_event(
                "response.reasoning_summary_part.added", **self._get_item_position(), summary_index=0, part=dict(part)
            )
            summary.append(part)
        summary[0]["text"] += text
        yield self._format_event(
            "response.reasoning_summary_text.delta", **self._get_item_position(), summary_index=0, delta=text
        )

    def _begin_call(self, call: str, name: str) -> Iterator[bytes]:
        tool = self._request.find_tool(name)
        kind = "function" if tool is None else tool.kind
        own = name if tool is None else tool.own_name
        self._custom_text = []
        if kind == "custom":
            item: Json = {"type": "custom_tool_call", "call_id": call, "name": own, "input": ""}
            yield from self._open_item("ctc", item | ({"namespace": tool.namespace} if tool and tool.namespace else {}))
        elif kind == "tool_search":
            item = {"type": "tool_search_call", "call_id": call, "execution": "client", "arguments": {}}
            yield from self._open_item("tsc", {**item, "status": "in_progress"})
        else:
            item = {"type": "function_call", "call_id": call, "name": own, "arguments": "", "status": "in_progress"}
            namespace = {} if tool is None or tool.namespace is None else {"namespace": tool.namespace}
            yield from self._open_item("fc", {**item, **namespace})

    def _add_arguments(self, text: str) -> Iterator[bytes]:
        if self._items[-1]["type"] == "function_call":
            self._items[-1]["arguments"] += text
            yield self._format_event("response.function_call_arguments.delta", **self._get_item_position(), delta=text)
        else:
            # The text of a custom tool is inside JSON, which is complete only at the end.
            self._custom_text.append(text)

    def _open_item(self, prefix: str, item: Json) -> Iterator[bytes]:
        yield from self._close_open_item()
        self._is_open = True
        self._items.append({"id": f"{prefix}_{self._id.rpartition('_')[2]}_{len(self._items)}", **item})
        yield self._format_event(
            "response.output_item.added", output_index=len(self._items) - 1, item=_copy_item(self._items[-1])
        )

    def _close_open_item(self) -> Iterator[bytes]:
        if not self._is_open:
            return
        self._is_open = False
        item = self._items[-1]
        match item["type"]:
            case "message":
                yield from self._close_message(item)
            case "reasoning" if item["summary"]:
                part = item["summary"][0]
                yield self._format_event(
                    "response.reasoning_summary_text.done",
                    **self._get_item_position(),
                    summary_index=0,
                    text=part["text"],
                )
                yield self._format_event(
                    "response.reasoning_summary_part.done", **self._get_item_position(), summary_index=0, part=part
                )
            case "function_call":
                item["status"] = "completed"
                done = {"name": item["name"], "arguments": item["arguments"]}
                yield self._format_event("response.function_call_arguments.done", **self._get_item_position(), **done)
            case "custom_tool_call":
                given = parse_object("".join(self._custom_text)) or {}
                item["input"] = str(given.get("input", ""))
                yield self._format_event(
                    "response.custom_tool_call_input.delta", **self._get_item_position(), delta=item["input"]
                )
                yield self._format_event(
                    "response.custom_tool_call_input.done", **self._get_item_position(), input=item["input"]
                )
            case "tool_search_call":
                item["arguments"] = parse_object("".join(self._custom_text)) or {}
                item["status"] = "completed"
        yield self._format_event("response.output_item.done", output_index=len(self._items) - 1, item=item)

    def _close_message(self, item: Json) -> Iterator[bytes]:
        item["status"] = "completed"
        part = item["content"][0]
        if part["type"] == "output_text":
            yield self._format_event(
                "response.output_text.done",
                **self._get_item_position(),
                content_index=0,
                text=part["text"],
                logprobs=[],
            )
        else:
            yield self._format_event(
                "response.refusal.done", **self._get_item_position(), content_index=0, refusal=part["refusal"]
            )
        yield self._format_event("response.content_part.done", **self._get_item_position(), content_index=0, part=part)

    def _get_item_position(self) -> Json:
        return {"item_id": self._items[-1]["id"], "output_index": len(self._items) - 1}

    def _format_event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return format_event({"type": kind, "sequence_number": self._number - 1, **fields}, name=kind)


def _copy_item(item: Json) -> Json:
    return {name: list(value) if isinstance(value, list) else value for name, value in item.items()}


def collect_texts(body: Mapping[str, Any]) -> list[str]:
    """Return all texts of a request: instructions, messages, results and arguments of calls."""
    texts = [str(body["instructions"])] if body.get("instructions") else []
    for item in list_input_items(body):
        texts += _item_texts(item)
    return texts


def _item_texts(item: Json) -> Iterator[str]:
    match item.get("type", "message"):
        case "message":
            yield from _content_texts(item.get("content"))
        case "function_call":
            yield str(item.get("arguments") or "")
        case "custom_tool_call":
            yield to_json_text({"input": str(item.get("input") or "")})
        case "tool_search_call":
            arguments = item.get("arguments")
            yield arguments if isinstance(arguments, str) else to_json_text(arguments or {})
        case "tool_search_output":
            yield to_json_text(item.get("tools") or [])
        case "function_call_output" | "custom_tool_call_output":
            yield from _content_texts(item.get("output"))


def _content_texts(content: object) -> Iterator[str]:
    if isinstance(content, str) and content:
        yield content
    if isinstance(content, list):
        texts = (part.get("text") or part.get("refusal") for part in content if isinstance(part, dict))
        yield from (text for text in texts if isinstance(text, str) and text)


def unknown_response_error(previous: str) -> RefusedFieldError:
    """Return the error for a response that this owner does not have."""
    return RefusedFieldError(
        "previous_response_id", f"There is no response {previous[:100]!r}.", hint="Send the input."
    )
