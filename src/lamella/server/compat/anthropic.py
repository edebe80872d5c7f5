"""``/v1/messages``: the endpoint for clients of Anthropic's API."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import Field, JsonValue

from lamella import ToolCall, ToolOutput
from lamella.conversation.host_history import ClientMessage, ClientRequest, group_into_turns
from lamella.errors import InvalidOperationError
from lamella.server.bodies import response_docs
from lamella.server.compat.shared import (
    AnthropicMessageJson,
    CompatEndpoint,
    CompatRequestBody,
    CompatTurn,
    ConversationHeader,
    StreamedAnswer,
    drop_unset,
    extract_text,
    follow_events,
    parse_tools,
    parse_user_message,
)
from lamella.server.errors import error_response
from lamella.server.state import ChatCaller, StateDep
from lamella.server.turns import CHUNK_STREAM_DOCS

router = APIRouter(prefix="/v1", tags=["doors"])
_MESSAGES_PATH = "/v1/messages"
_UNSUPPORTED_FIELDS = ("stop_sequences", "mcp_servers", "container")
_STOP_REASONS = {
    "end": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    "refused": "refusal",
    "window": "max_tokens",
}
_RESPONSE_DOCS = response_docs(
    AnthropicMessageJson, content=CHUNK_STREAM_DOCS, description="Events, or the whole message."
)


class AnthropicBody(CompatRequestBody):
    """A request in the format of Anthropic's API."""

    messages: Annotated[
        list[dict[str, JsonValue]], Field(min_length=1, examples=[[{"role": "user", "content": "When to sow?"}]])
    ]
    max_tokens: Annotated[int, Field(ge=1)]
    system: str | list[dict[str, JsonValue]] | None = None
    tool_choice: dict[str, JsonValue] | None = None


@router.post("/messages", summary="Anthropic's API", response_class=Response, responses=_RESPONSE_DOCS)
async def create_message(
    *,
    request: Request,
    body: AnthropicBody,
    state: StateDep,
    caller: ChatCaller,
    conversation: ConversationHeader = None,
) -> Response:
    """Answer a history as Anthropic's API does, in the conversation that it is."""
    return await _ENDPOINT.answer(request, body, state, caller=caller, conversation_header=conversation)


def _list_unsupported(body: AnthropicBody) -> list[str]:
    return [] if _tool_choice(body) in ("auto", "none") else ["tool_choice"]


def _tool_choice(body: AnthropicBody) -> object:
    return "auto" if body.tool_choice is None else body.tool_choice.get("type")


def _parse_request(body: AnthropicBody) -> ClientRequest:
    return ClientRequest(
        turns=group_into_turns([message for one in body.messages for message in _parse_message(one)]),
        system=None if body.system is None else extract_text(body.system),
        tools=parse_tools(body.tools, off=_tool_choice(body) == "none", kind="custom", schema="input_schema"),
        max_tokens=body.max_tokens,
        settings=drop_unset(temperature=body.temperature),
    )


def _parse_message(message: Mapping[str, JsonValue]) -> Sequence[ClientMessage]:
    content: Any = message.get("content") or ""
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if message.get("role") == "assistant":
        calls = tuple(_parse_call(part) for part in parts if part.get("type") == "tool_use")
        return [
            ClientMessage("assistant", extract_text([one for one in parts if one.get("type") == "text"]), calls=calls)
        ]
    if message.get("role") != "user":
        raise InvalidOperationError(
            f"There is no role {str(message.get('role'))[:40]!r}.", hint="Use user or assistant."
        )
    results = tuple(_parse_result(part) for part in parts if part.get("type") == "tool_result")
    others = [part for part in parts if part.get("type") != "tool_result"]
    told = [ClientMessage("tool", outputs=results)] if results else []
    return [*told, parse_user_message(others)] if others else told


def _parse_call(part: Mapping[str, Any]) -> ToolCall:
    arguments = json.dumps(part.get("input") or {}, ensure_ascii=False)
    return ToolCall(id=str(part.get("id")), name=str(part.get("name")), arguments=arguments)


def _parse_result(part: Mapping[str, Any]) -> ToolOutput:
    output = extract_text(part.get("content"))
    return ToolOutput(call=str(part.get("tool_use_id")), output=output, failed=bool(part.get("is_error")))


def _message_header(turn: CompatTurn) -> dict[str, object]:
    name = f"msg_{turn.run.conversation_key}_{turn.answer_id}"
    return {"id": name, "type": "message", "role": "assistant", "model": turn.model, "stop_sequence": None}


def _response_body(turn: CompatTurn, _body: AnthropicBody, answer: StreamedAnswer) -> dict[str, object]:
    content = [*([_text_to_json(answer.text)] if answer.text else []), *(_call_to_json(call) for call in answer.calls)]
    told = {**_message_header(turn), "content": content, "stop_reason": _stop_reason(answer)}
    return {**told, "usage": _usage_to_json(answer)}


def _stop_reason(answer: StreamedAnswer) -> str:
    return "tool_use" if answer.calls else _STOP_REASONS.get(answer.stop, "end_turn")


def _text_to_json(text: str) -> dict[str, object]:
    return {"type": "text", "text": text, "citations": None}


def _call_to_json(call: ToolCall) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": _parse_arguments(call.arguments)}


def _parse_arguments(arguments: str) -> dict[str, object]:
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    # The API allows only an object here, so arguments that are no JSON object are wrapped in one.
    return given if isinstance(given, dict) else {"arguments": arguments}


def _usage_to_json(answer: StreamedAnswer) -> dict[str, object]:
    return {
        "input_tokens": answer.token_count("plain"),
        "output_tokens": answer.token_count("output"),
        "cache_read_input_tokens": answer.token_count("read"),
        "cache_creation_input_tokens": answer.token_count("write") + answer.token_count("write_long"),
    }


async def _stream_events(turn: CompatTurn, _body: AnthropicBody) -> AsyncGenerator[bytes, None]:
    heard, open_text = StreamedAnswer(), False
    try:
        begun = {**_message_header(turn), "content": [], "stop_reason": None, "usage": _usage_to_json(heard)}
        yield _format_event("message_start", message=begun)
        async for event in follow_events(turn.run):
            heard.add_event(event)
            if not event.text:
                continue
            if not open_text:
                yield _format_event("content_block_start", index=0, content_block=_text_to_json(""))
                open_text = True
            yield _format_event("content_block_delta", index=0, delta={"type": "text_delta", "text": event.text})
        if open_text:
            yield _format_event("content_block_stop", index=0)
        for index, call in enumerate(heard.calls, start=int(open_text)):
            for part in _call_events(call, index):
                yield part
        ended = {"stop_reason": _stop_reason(heard), "stop_sequence": None}
        yield _format_event("message_delta", delta=ended, usage=_usage_to_json(heard))
        yield _format_event("message_stop")
    except Exception as error:  # noqa: BLE001 - the response has started, so the error can only be its last event
        yield format_sse_event(
            event="error", data_str=json.dumps(error_response(error, _MESSAGES_PATH)[1], ensure_ascii=False)
        )


def _call_events(call: ToolCall, index: int) -> list[bytes]:
    delta = {
        "type": "input_json_delta",
        "partial_json": json.dumps(_parse_arguments(call.arguments), ensure_ascii=False),
    }
    return [
        _format_event("content_block_start", index=index, content_block={**_call_to_json(call), "input": {}}),
        _format_event("content_block_delta", index=index, delta=delta),
        _format_event("content_block_stop", index=index),
    ]


def _format_event(kind: str, **fields: object) -> bytes:
    return format_sse_event(event=kind, data_str=json.dumps({"type": kind, **fields}, ensure_ascii=False))


_ENDPOINT = CompatEndpoint(
    unsupported_fields=_UNSUPPORTED_FIELDS,
    list_unsupported=_list_unsupported,
    parse_request=_parse_request,
    render_response=_response_body,
    stream=_stream_events,
)
