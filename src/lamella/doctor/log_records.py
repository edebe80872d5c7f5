"""Model calls in single records: logged requests, HAR and LHAR entries, exports of tracing tools, our own ledger.

A record is one line of a log, or one element of a document's list. ``read_record`` returns the calls in it, an empty
list for a record that is known to have none, and None for one that is not recognised.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from lamella.doctor.calls import (
    Json,
    LoggedCall,
    ReportedUsage,
    WireFormat,
    first_count,
    get_list,
    get_object,
    get_text,
    parse_time,
    parse_usage,
)
from lamella.doctor.redaction import restore_redacted_call

REQUEST_LINE = "requests"
_REQUEST_FIELDS = ("request", "request_body", "requestBody", "body", "kwargs", "input", "payload", "params", "raw")
_RESPONSE_FIELDS = ("response", "response_body", "responseBody", "output", "result", "completion", "reply")
_TIME_FIELDS = ("timestamp", "at", "time", "start_time", "startTime", "startedDateTime", "created_at", "created", "ts")
_LABEL_FIELDS = ("conversation", "conversation_id", "session_id", "sessionId", "thread_id", "threadId")
_HTTP_ERROR = 400
_SERVER_SENT_PREFIX = "data:"
# Types of observations in Langfuse that are no model calls.
_GENERATION_TYPES = frozenset({"GENERATION", "generation"})
_MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
_MAX_NESTING = 4
_LEDGER_CAUSES = {
    "system_changed": "system_changed",
    "tools_changed": "tools_changed",
    "model_changed": "model_changed",
    "compacted": "summary",
    "history_edited": "history_rewritten",
    "branch": "history_rewritten",
}
_LEDGER_OUTCOMES = {"expired": "expired", "evicted": "provider_miss", "too_short": "below_minimum"}


def read_record(record: Json) -> list[LoggedCall] | None:
    """Return the calls in a record; None if no format fits it."""
    for recognises, read in _FORMATS:
        if recognises(record):
            return read(record)
    return None


def decode_json(text: str | bytes) -> object:
    """Return the value of a JSON text, or None if it is none."""
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError):
        return None
    return value


def read_response(value: object) -> Json:
    """Return a response body from an object, from its JSON, or from a stream of server-sent events."""
    if isinstance(value, str):
        text = value.lstrip()
        if text.startswith(("event:", _SERVER_SENT_PREFIX)):
            return _join_events(text)
        return get_object(decode_json(text)) if text.startswith("{") else {}
    if isinstance(value, list):
        return _merge_events(get_object(one) for one in value)
    body = get_object(value)
    inner = body.get("body")
    if inner is not None and "usage" not in body:
        return read_response(inner)
    return body


def _join_events(text: str) -> Json:
    data = (line[len(_SERVER_SENT_PREFIX) :] for line in text.splitlines() if line.startswith(_SERVER_SENT_PREFIX))
    return _merge_events(get_object(decode_json(one)) for one in data)


def _merge_events(events: Iterator[Json]) -> Json:
    """Return the response that a stream of events describes: its usage, its text, and an error if there was one."""
    usage: dict[str, Any] = {}
    texts: list[str] = []
    result: dict[str, Any] = {}
    for event in events:
        whole = get_object(event.get("response")) or get_object(event.get("message"))
        usage |= {name: value for name, value in get_object(whole.get("usage")).items() if value is not None}
        usage |= {name: value for name, value in get_object(event.get("usage")).items() if value is not None}
        delta = event.get("delta")
        texts.append(get_text(delta) or get_text(get_object(delta).get("text")))
        for choice in get_list(event.get("choices")):
            texts.append(get_text(get_object(get_object(choice).get("delta")).get("content")))
        if event.get("type") == "error" or get_object(event.get("error")):
            result["error"] = event.get("error") or event
        if "diagnostics" in whole:
            result["diagnostics"] = whole["diagnostics"]
    if usage:
        result["usage"] = usage
    text = "".join(texts)
    return {**result, "content": [{"type": "text", "text": text}]} if text else result


def find_reply_text(response: Json) -> str:
    """Return the text of a response of any API."""
    choice = get_object(next(iter(get_list(response.get("choices"))), None))
    message = get_object(choice.get("message")) or response
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [get_text(get_object(part).get("text")) for part in get_list(content)]
    for item in get_list(response.get("output")):
        parts += [get_text(get_object(part).get("text")) for part in get_list(get_object(item).get("content"))]
    return "".join(parts)


def is_request_body(value: object) -> bool:
    """Return whether an object is the body of a request to a model."""
    body = get_object(value)
    if isinstance(body.get("messages"), list):
        return all(isinstance(one, dict) for one in body["messages"]) and "choices" not in body
    return (
        isinstance(body.get("input"), str | list)
        and "model" in body
        and body.get("object") != "response"
        and ("usage" not in body and "encoding_format" not in body)
    )


def guess_wire_format(body: Json, address: str = "") -> WireFormat:
    """Return the API that a request body was made for, from its address or from its fields."""
    path = address.partition("?")[0].rstrip("/")
    if path.endswith("/messages"):
        return WireFormat.MESSAGES
    if path.endswith("/chat/completions"):
        return WireFormat.CHAT
    if path.endswith("/responses") or "messages" not in body:
        return WireFormat.RESPONSES
    messages = get_list(body.get("messages"))
    first = get_object(messages[0]) if messages else {}
    if first.get("role") in ("system", "developer"):
        return WireFormat.CHAT
    tools = get_list(body.get("tools"))
    has_schema = bool(tools) and "input_schema" in get_object(tools[0])
    return (
        WireFormat.MESSAGES
        if "system" in body or has_schema or "claude" in get_text(body.get("model"))
        else WireFormat.CHAT
    )


def build_call(
    body: Json,
    response: Json,
    *,
    record: Json,
    format_name: str = REQUEST_LINE,
    address: str = "",
    status: int | None = None,
) -> LoggedCall:
    """Return the call of a request body, a response body and the record that has both."""
    usage = parse_usage(response.get("usage")) or parse_usage(record.get("usage"))
    error = get_object(response.get("error")) or response.get("type") == "error"
    diagnostics = get_object(response.get("diagnostics")) or get_object(response.get("prompt_cache_diagnostics"))
    reason = diagnostics.get("cache_miss_reason") or diagnostics.get("reason")
    return LoggedCall(
        format=format_name,
        wire=guess_wire_format(body, address),
        body=body,
        model=get_text(body.get("model")) or get_text(response.get("model")) or get_text(record.get("model")) or None,
        at=_find_time(record) or parse_time(response.get("created")) or parse_time(response.get("created_at")),
        usage=usage,
        reply=find_reply_text(response),
        label=_find_label(record),
        failed=bool(error and usage is None) or (status is not None and status >= _HTTP_ERROR),
        miss_reason=get_text(get_object(reason).get("type")) or get_text(reason) or None,
    )


def _find_time(record: Json) -> Any:  # noqa: ANN401 - a moment or None
    return next((moment for name in _TIME_FIELDS if (moment := parse_time(record.get(name)))), None)


def _find_label(record: Json) -> str | None:
    for source in (record, get_object(record.get("metadata"))):
        for name in _LABEL_FIELDS:
            if isinstance(source.get(name), str) and source[name]:
                return str(source[name])
    return None


# Logged requests, in the shapes that loggers write.


def _find_request(record: Json, depth: int = 0) -> tuple[Json, str] | None:
    """Return the request body in a record, and the address that it went to if that is known."""
    if is_request_body(record):
        return record, ""
    if depth >= _MAX_NESTING:
        return None
    for name in _REQUEST_FIELDS:
        value = record.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = decode_json(value)
        if isinstance(value, dict):
            found = _find_request(value, depth + 1)
            if found is not None:
                address = found[1] or get_text(record.get("url")) or get_text(record.get("path"))
                return found[0], address or get_text(value.get("url")) or get_text(value.get("path"))
    return None


def _is_request_record(record: Json) -> bool:
    return _find_request(record) is not None


def _read_request_record(record: Json) -> list[LoggedCall]:
    found = _find_request(record)
    if found is None:
        return []
    body, address = found
    if address.partition("?")[0].endswith("/count_tokens"):
        return []
    source = {} if record is body else record
    nested = get_object(source.get("raw"))
    response: Json = {}
    for holder in (source, nested):
        for name in _RESPONSE_FIELDS:
            if name in holder and holder[name] is not body:
                response = read_response(holder[name])
                if response:
                    break
        if response:
            break
    status = first_count(source, "status", "status_code") or first_count(
        get_object(source.get("response")), "status", "status_code"
    )
    call = build_call(body, response, record=source, address=address, status=status)
    details = get_object(source.get("redacted"))
    return [restore_redacted_call(call, details) if details else call]


# HTTP archives.


def _is_har_entry(record: Json) -> bool:
    return isinstance(get_object(record.get("request")).get("postData"), dict) or (
        "startedDateTime" in record and "request" in record
    )


def _read_har_entry(record: Json) -> list[LoggedCall]:
    request, response = get_object(record.get("request")), get_object(record.get("response"))
    body = get_object(decode_json(get_text(get_object(request.get("postData")).get("text"))))
    address = get_text(request.get("url"))
    if not is_request_body(body) or address.partition("?")[0].endswith("/count_tokens"):
        return []
    content = get_object(response.get("content"))
    text = get_text(content.get("text"))
    if content.get("encoding") == "base64":
        try:
            text = base64.b64decode(text, validate=False).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            text = ""
    status = first_count(response, "status")
    return [
        build_call(body, read_response(text), record=record, format_name="HAR", address=address, status=status or None)
    ]


def _is_lhar_entry(record: Json) -> bool:
    return (get_text(record.get("type")) in ("entry", "session") and "trace_id" in record and "raw" in record) or (
        record.get("type") == "session" and "trace_id" in record
    )


def _read_lhar_entry(record: Json) -> list[LoggedCall]:
    raw, generation = get_object(record.get("raw")), get_object(record.get("gen_ai"))
    body = get_object(raw.get("request_body"))
    http = get_object(record.get("http"))
    if not is_request_body(body):
        return []
    response = read_response(raw.get("response_body"))
    if "usage" not in response and (counts := get_object(generation.get("usage"))):
        more = get_object(record.get("usage_ext"))
        read, written = first_count(more, "cache_read_tokens") or 0, first_count(more, "cache_write_tokens") or 0
        plain = first_count(counts, "input_tokens") or 0
        response = {
            **response,
            "usage": {
                "input_tokens": plain,
                "output_tokens": first_count(counts, "output_tokens"),
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
            }
            if "anthropic" in get_text(http.get("api_format"))
            else {"prompt_tokens": plain, "prompt_tokens_details": {"cached_tokens": read}},
        }
    call = build_call(
        body, response, record={**record, "conversation": get_text(record.get("trace_id")) or None},
        format_name="LHAR", address=get_text(http.get("url")), status=first_count(http, "status_code"),
    )  # fmt: skip
    return [call]


# Exports of tracing tools.


def _is_litellm_record(record: Json) -> bool:
    return "call_type" in record and ("messages" in record or "proxy_server_request" in record)


def _read_litellm_record(record: Json) -> list[LoggedCall]:
    sent = get_object(record.get("proxy_server_request"))
    sent = get_object(sent.get("body")) or sent
    messages = record.get("messages")
    if isinstance(messages, str):
        messages = decode_json(messages)
    parameters = get_object(record.get("model_parameters"))
    body: dict[str, Any] = (
        {**parameters, "messages": messages} if isinstance(messages, list) and messages else dict(sent)
    )
    if not is_request_body(body):
        return []
    response = read_response(record.get("response"))
    usage = get_object(get_object(record.get("metadata")).get("usage_object"))
    if usage and not get_object(response.get("usage")):
        response = {**response, "usage": usage}
    if not get_object(response.get("usage")) and "prompt_tokens" in record:
        response = {**response, "usage": {name: record.get(name) for name in ("prompt_tokens", "completion_tokens")}}
    provider, model = get_text(record.get("custom_llm_provider")), get_text(record.get("model"))
    body["model"] = model or get_text(body.get("model")) or provider
    return [build_call(body, response, record={**record, "usage": None}, format_name="LiteLLM")]


def _is_langfuse_record(record: Json) -> bool:
    return (
        ("traceId" in record or "trace_id" in record)
        and "type" in record
        and ("input" in record or get_text(record.get("type")) not in _GENERATION_TYPES)
        and isinstance(record.get("type"), str)
        and record["type"].isalpha()
        and "attributes" not in record
    ) or (isinstance(record.get("observations"), list))


def _read_langfuse_record(record: Json) -> list[LoggedCall]:
    observations = get_list(record.get("observations"))
    if observations:
        session = record.get("sessionId")
        nested = [{"sessionId": session, **get_object(one)} if session else get_object(one) for one in observations]
        return [call for one in nested for call in _read_langfuse_record(one)]
    if get_text(record.get("type")) not in _GENERATION_TYPES:
        return []
    given = record.get("input")
    if isinstance(given, str):
        given = decode_json(given) or [{"role": "user", "content": given}]
    parameters = get_object(record.get("modelParameters") or record.get("model_parameters"))
    body = {**parameters, **(get_object(given) if isinstance(given, dict) else {"messages": given})}
    body["model"] = get_text(record.get("model")) or get_text(record.get("providedModelName"))
    if not is_request_body(body):
        return []
    output = record.get("output")
    reply = output if isinstance(output, str) else find_reply_text(get_object(output))
    usage = _parse_langfuse_usage(get_object(record.get("usageDetails") or record.get("usage_details")))
    usage = usage or parse_usage(record.get("usage"))
    call = build_call(body, {}, record={**record, "usage": None}, format_name="Langfuse")
    failed = record.get("level") == "ERROR" and usage is None
    return [msgspec.structs.replace(call, usage=usage, reply=reply, failed=failed)]


def _parse_langfuse_usage(details: Json) -> ReportedUsage | None:
    """Return usage in Langfuse's words, whose input does not include what has a name of its own."""
    plain = first_count(details, "input", "input_tokens", "prompt_tokens")
    if plain is None:
        return None
    names = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read", "input_cached")
    read = first_count(details, *names)
    written = first_count(details, "cache_creation_input_tokens", "input_cache_creation", "input_cache_write")
    return ReportedUsage(
        input=plain + (read or 0) + (written or 0), cached=read, written=written,
        output=first_count(details, "output", "output_tokens") or 0,
    )  # fmt: skip


# OpenTelemetry.


def _is_telemetry_record(record: Json) -> bool:
    return any(name in record for name in ("resourceSpans", "scopeSpans", "spans")) or (
        "attributes" in record and any(name in record for name in ("spanId", "span_id", "context", "traceId"))
    )


def _read_telemetry_record(record: Json) -> list[LoggedCall]:
    for name in ("resourceSpans", "scopeSpans", "spans"):
        if name in record:
            return [call for one in get_list(record[name]) for call in _read_telemetry_record(get_object(one))]
    attributes = _read_attributes(record.get("attributes"))
    if not any(name.startswith("gen_ai.") for name in attributes):
        return []
    if (get_text(attributes.get("gen_ai.operation.name")) or "chat") not in _MODEL_OPERATIONS:
        return []  # An agent or a tool: its model calls are spans of their own.
    body, label = _read_span_prompt(record, attributes), attributes.get("gen_ai.conversation.id")
    if not is_request_body(body) or not body.get("messages"):
        return []
    started = next((record[name] for name in ("startTimeUnixNano", "start_time") if name in record), None)
    return [
        LoggedCall(
            format="OpenTelemetry",
            wire=WireFormat.CHAT,
            body=body,
            model=get_text(body.get("model")) or None,
            at=parse_time(started),
            usage=_parse_span_usage(attributes),
            reply=_read_span_reply(attributes),
            label=label if isinstance(label, str) else None,
        )
    ]


def _read_attributes(value: object) -> dict[str, Any]:
    """Return the attributes of a span as plain values."""
    if isinstance(value, dict):
        return value
    return {
        get_text(get_object(one).get("key")): _read_attribute_value(get_object(get_object(one).get("value")))
        for one in get_list(value)
    }


def _read_attribute_value(value: Json) -> Any:  # noqa: ANN401 - any JSON
    for name, one in value.items():
        if name == "intValue":
            return int(one) if isinstance(one, int) or (isinstance(one, str) and one.isdecimal()) else None
        if name == "arrayValue":
            return [_read_attribute_value(get_object(item)) for item in get_list(get_object(one).get("values"))]
        if name == "kvlistValue":
            return _read_attributes(get_object(one).get("values"))
        return one
    return None


def _decode_attribute(attributes: Json, *names: str) -> Any:  # noqa: ANN401 - any JSON
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str):
            value = decode_json(value)
        if value:
            return value
    return None


def _read_span_prompt(record: Json, attributes: Json) -> dict[str, Any]:
    """Return the prompt of a span as the body of a chat request."""
    system = _decode_attribute(attributes, "gen_ai.system_instructions", "gen_ai.request.instructions")
    if system is None and isinstance(attributes.get("gen_ai.system_instructions"), str):
        system = attributes["gen_ai.system_instructions"]
    messages = _decode_attribute(attributes, "gen_ai.input.messages", "gen_ai.prompt", "gen_ai.request.messages")
    if messages is None:
        messages = _read_numbered_messages(attributes) or _read_event_messages(record)
    tools = _decode_attribute(attributes, "gen_ai.tool.definitions", "gen_ai.request.tools")
    own = [{"role": "system", "content": part} for part in _read_instructions(system)]
    model = attributes.get("gen_ai.request.model") or attributes.get("gen_ai.response.model")
    return {
        "model": get_text(model),
        "messages": [*own, *(_convert_parts(get_object(one)) for one in get_list(messages))],
        "tools": get_list(tools),
    }


def _read_instructions(system: object) -> list[str]:
    if isinstance(system, str):
        return [system]
    return [text for one in get_list(system) if (text := get_text(get_object(one).get("content")) or get_text(one))]


def _convert_parts(message: Json) -> Json:
    """Return a message of the OpenTelemetry conventions, which has parts, as a chat message with content."""
    if "parts" not in message:
        return message
    content: list[Json] = []
    for value in get_list(message.get("parts")):
        part = get_object(value)
        match part.get("type"):
            case "text":
                content.append({"type": "text", "text": get_text(part.get("content"))})
            case "tool_call":
                content.append(
                    {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}
                )
            case "tool_call_response":
                result = part.get("response", part.get("result"))
                text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
                content.append({"type": "tool_result", "tool_use_id": get_text(part.get("id")), "content": text})
            case _:
                content.append(part)
    return {"role": message.get("role"), "content": content}


def _read_numbered_messages(attributes: Json) -> list[Json]:
    """Return messages that are spread over attributes such as ``gen_ai.prompt.0.content``."""
    found: list[Json] = []
    while f"gen_ai.prompt.{len(found)}.role" in attributes:
        start = f"gen_ai.prompt.{len(found)}."
        found.append({"role": attributes[start + "role"], "content": get_text(attributes.get(start + "content"))})
    return found


def _read_event_messages(record: Json) -> list[Json]:
    """Return messages that are events of the span."""
    found: list[Json] = []
    for value in get_list(record.get("events")):
        event = get_object(value)
        name, body = get_text(event.get("name")), _read_attributes(event.get("attributes"))
        if name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.removeprefix("gen_ai.").removesuffix(".message")
            found.append({"role": get_text(body.get("role")) or role, "content": get_text(body.get("content"))})
    return found


def _read_span_reply(attributes: Json) -> str:
    for one in get_list(_decode_attribute(attributes, "gen_ai.output.messages")):
        parts = get_list(get_object(one).get("parts"))
        return "".join(get_text(get_object(part).get("content")) for part in parts)
    return get_text(attributes.get("gen_ai.completion.0.content"))


def _parse_span_usage(attributes: Json) -> ReportedUsage | None:
    def count(*names: str) -> int | None:
        return first_count(attributes, *(f"gen_ai.usage.{name}" for name in names))

    total = count("input_tokens", "prompt_tokens")
    if total is None:
        return None
    read = count(
        "cache_read.input_tokens", "cache_read_input_tokens", "details.cache_read_tokens", "details.cached_tokens"
    )
    written = count(
        "cache_write.input_tokens", "cache_creation.input_tokens", "cache_creation_input_tokens",
        "details.cache_write_tokens",
    )  # fmt: skip
    return ReportedUsage(
        input=max(total, (read or 0) + (written or 0)), cached=read, written=written,
        output=count("output_tokens", "completion_tokens") or 0,
    )  # fmt: skip


# Our own ledger.


def _is_ledger(record: Json) -> bool:
    turns = get_list(record.get("turns"))
    return "lamella" in record and bool(turns) and isinstance(get_object(turns[0]).get("calls"), list)


def _read_ledger(record: Json) -> list[LoggedCall]:
    """Return the calls of ``lamella ledger --json``, which has usage and verdicts but no texts."""
    label = get_text(record.get("conversation")) or None
    calls: list[LoggedCall] = []
    for value in get_list(record.get("turns")):
        turn = get_object(value)
        for one in get_list(turn.get("calls")):
            call = get_object(one)
            reported, verdict = get_object(call.get("reported")), get_object(call.get("verdict"))
            plain, read = first_count(reported, "plain"), first_count(reported, "read")
            written = first_count(reported, "write")
            if plain is None or call.get("purpose") != "answer":
                continue
            question = {"role": "user", "content": get_text(turn.get("message"))}
            outcome, cause = get_text(verdict.get("outcome")), get_text(verdict.get("cause"))
            calls.append(
                LoggedCall(
                    format="Lamella ledger",
                    wire=WireFormat.CHAT,
                    body={"messages": [*(get_list(calls[-1].body["messages"]) if calls else ()), question]},
                    model=get_text(call.get("model")) or None,
                    at=parse_time(turn.get("at")),
                    usage=ReportedUsage(
                        input=plain + (read or 0) + (written or 0), cached=read, written=written,
                        output=first_count(reported, "output") or 0,
                    ),
                    label=label,
                    has_whole_prompt=False,
                    known_cause=_LEDGER_OUTCOMES.get(outcome) or (_LEDGER_CAUSES.get(cause) if outcome == "moved" else None),
                )
            )  # fmt: skip
    return calls


_FORMATS: Sequence[tuple[Callable[[Json], bool], Callable[[Json], list[LoggedCall]]]] = (
    (_is_ledger, _read_ledger),
    (_is_lhar_entry, _read_lhar_entry),
    (_is_har_entry, _read_har_entry),
    (_is_litellm_record, _read_litellm_record),
    (_is_telemetry_record, _read_telemetry_record),
    (_is_langfuse_record, _read_langfuse_record),
    (_is_request_record, _read_request_record),
)
