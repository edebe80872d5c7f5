"""``/v1/messages``: clients of Anthropic's API get the engine."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import JSONResponse, Response
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella import ToolCall, ToolOutput
from lamella.attach import Tool
from lamella.engine.hosts.history import HostMessage, HostRequest, build_turns
from lamella.errors import CallError
from lamella.faces.server.doors.hosted import (
    HeardAnswer,
    HostedTurn,
    LamellaField,
    follow,
    hear,
    open_turn,
    read_own,
    resolve_model,
)
from lamella.faces.server.doors.parts import read_text, read_user
from lamella.faces.server.failures import tell_error
from lamella.faces.server.state import State, Talker
from lamella.faces.server.streams import STREAM, SseResponse

router = APIRouter(prefix="/v1", tags=["doors"])
_PATH = "/v1/messages"
_REFUSED = ("stop_sequences", "mcp_servers", "container")
_STOPS = {"end": "end_turn", "length": "max_tokens", "tools": "tool_use", "refused": "refusal", "window": "max_tokens"}
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {**STREAM, "application/json": {}}, "description": "Events, or the whole message."}
}


class AnthropicBody(BaseModel):
    """A request as Anthropic's API takes it; further fields of that API are told as ignored."""

    model_config = ConfigDict(extra="allow")

    model: str = ""
    messages: Annotated[
        list[dict[str, JsonValue]], Field(min_length=1, examples=[[{"role": "user", "content": "When to sow?"}]])
    ]
    max_tokens: Annotated[int, Field(ge=1)]
    system: str | list[dict[str, JsonValue]] | None = None
    stream: bool | None = False
    temperature: float | None = None
    tools: list[dict[str, JsonValue]] | None = None
    tool_choice: dict[str, JsonValue] | None = None
    lamella: LamellaField | None = None


@router.post("/messages", summary="Anthropic's API", response_class=Response, responses=_STREAMED)
async def create_message(
    *,
    body: AnthropicBody,
    state: State,
    caller: Talker,
    x_lamella_conversation: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Answer a history as Anthropic's API does, in the conversation that it is."""
    _refuse(body)
    workers = state.suite.pool.workers
    named, attach = await workers.run(lambda: read_own(body.lamella, x_lamella_conversation, state))
    model = resolve_model(body.model, state)
    request = _read_request(body, model, attach)
    ignored = sorted(set(body.model_extra or {}) - set(_REFUSED))
    turn = await open_turn(state, caller, request, conversation=named, ignored=ignored)
    if body.stream:
        response = SseResponse(_stream(turn, body.model or model))
        response.headers.update(turn.headers)
        return response
    heard = await hear(turn.run)
    content = [*([_write_text(heard.text)] if heard.text else []), *(_write_call(call) for call in heard.calls)]
    told = {**_head(turn, body.model or model), "content": content, "stop_reason": _tell_stop(heard)}
    return JSONResponse({**told, "usage": _write_usage(heard)}, headers=turn.headers)


def _refuse(body: AnthropicBody) -> None:
    """Refuses what cannot be done and would be missed."""
    wrong = [name for name in _REFUSED if (body.model_extra or {}).get(name)]
    choice = "auto" if body.tool_choice is None else body.tool_choice.get("type")
    wrong += [] if choice in ("auto", "none") else ["tool_choice"]
    if wrong:
        raise CallError(f"{', '.join(wrong)} cannot be had here.", hint="Leave it out.")


def _read_request(body: AnthropicBody, model: str, attach: list[Any]) -> HostRequest:
    turns = build_turns([message for one in body.messages for message in _read_message(one)])
    turns = (*turns[:-1], turns[-1]._replace(attach=(*turns[-1].attach, *attach)))
    return HostRequest(
        turns=turns,
        system=None if body.system is None else read_text(body.system),
        tools=_read_tools(body),
        model=model,
        max_tokens=body.max_tokens,
        runner=None if body.lamella is None else body.lamella.runner,
        settings={} if body.temperature is None else {"temperature": body.temperature},
    )


def _read_tools(body: AnthropicBody) -> tuple[Tool, ...] | None:
    if body.tools is None:
        return None
    if body.tool_choice is not None and body.tool_choice.get("type") == "none":
        return ()
    strange = [one for one in body.tools if one.get("type", "custom") != "custom"]
    if strange:
        raise CallError(f"A tool of type {str(strange[0].get('type'))[:40]!r} is not run here.", hint="Send your own.")
    return tuple(_read_tool(one) for one in body.tools)


def _read_tool(given: Mapping[str, JsonValue]) -> Tool:
    schema = given.get("input_schema")
    return Tool(
        name=str(given.get("name", "")),
        description=str(given.get("description") or ""),
        parameters=schema if isinstance(schema, dict) else {},
    )


def _read_message(given: Mapping[str, JsonValue]) -> Sequence[HostMessage]:
    content: Any = given.get("content") or ""
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if given.get("role") == "assistant":
        calls = tuple(_read_call(part) for part in parts if part.get("type") == "tool_use")
        return [HostMessage("assistant", read_text([one for one in parts if one.get("type") == "text"]), calls=calls)]
    if given.get("role") != "user":
        raise CallError(f"There is no role {str(given.get('role'))[:40]!r}.", hint="Use user or assistant.")
    results = tuple(_read_result(part) for part in parts if part.get("type") == "tool_result")
    others = [part for part in parts if part.get("type") != "tool_result"]
    told = [HostMessage("tool", outputs=results)] if results else []
    return [*told, read_user(others)] if others else told


def _read_call(part: Mapping[str, Any]) -> ToolCall:
    arguments = json.dumps(part.get("input") or {}, ensure_ascii=False)
    return ToolCall(id=str(part.get("id")), name=str(part.get("name")), arguments=arguments)


def _read_result(part: Mapping[str, Any]) -> ToolOutput:
    output = read_text(part.get("content"))
    return ToolOutput(call=str(part.get("tool_use_id")), output=output, failed=bool(part.get("is_error")))


def _head(turn: HostedTurn, model: str) -> dict[str, object]:
    name = f"msg_{turn.run.conversation}_{turn.run.message}"
    return {"id": name, "type": "message", "role": "assistant", "model": model, "stop_sequence": None}


def _tell_stop(heard: HeardAnswer) -> str:
    return "tool_use" if heard.calls else _STOPS.get(heard.stop, "end_turn")


def _write_text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text, "citations": None}


def _write_call(call: ToolCall) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": _read_arguments(call.arguments)}


def _read_arguments(arguments: str) -> dict[str, object]:
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {"arguments": arguments}


def _write_usage(heard: HeardAnswer) -> dict[str, object]:
    return {
        "input_tokens": heard.count("plain"),
        "output_tokens": heard.count("output"),
        "cache_read_input_tokens": heard.count("read"),
        "cache_creation_input_tokens": heard.count("write") + heard.count("write_long"),
    }


async def _stream(turn: HostedTurn, model: str) -> AsyncGenerator[bytes, None]:
    heard, open_text = HeardAnswer(), False
    try:
        begun = {**_head(turn, model), "content": [], "stop_reason": None, "usage": _write_usage(heard)}
        yield _event("message_start", message=begun)
        async for event in follow(turn.run):
            heard.take(event)
            if not event.text:
                continue
            if not open_text:
                yield _event("content_block_start", index=0, content_block=_write_text(""))
                open_text = True
            yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": event.text})
        if open_text:
            yield _event("content_block_stop", index=0)
        for index, call in enumerate(heard.calls, start=int(open_text)):
            for part in _stream_call(call, index):
                yield part
        ended = {"stop_reason": _tell_stop(heard), "stop_sequence": None}
        yield _event("message_delta", delta=ended, usage=_write_usage(heard))
        yield _event("message_stop")
    except Exception as error:  # noqa: BLE001 - the stream has begun: its last event says what went wrong
        yield format_sse_event(event="error", data_str=json.dumps(tell_error(error, _PATH)[1], ensure_ascii=False))


def _stream_call(call: ToolCall, index: int) -> list[bytes]:
    delta = {
        "type": "input_json_delta",
        "partial_json": json.dumps(_read_arguments(call.arguments), ensure_ascii=False),
    }
    return [
        _event("content_block_start", index=index, content_block={**_write_call(call), "input": {}}),
        _event("content_block_delta", index=index, delta=delta),
        _event("content_block_stop", index=index),
    ]


def _event(kind: str, **fields: object) -> bytes:
    return format_sse_event(event=kind, data_str=json.dumps({"type": kind, **fields}, ensure_ascii=False))
