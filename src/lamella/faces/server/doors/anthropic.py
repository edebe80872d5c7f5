"""``/v1/messages``: clients of Anthropic's API get the engine."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import Field, JsonValue

from lamella import ToolCall, ToolOutput
from lamella.engine.hosts.history import HostMessage, HostRequest, build_turns
from lamella.errors import CallError
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.doors.bodies import AnthropicMessageJson
from lamella.faces.server.doors.hosted import HeardAnswer, HostedTurn, follow
from lamella.faces.server.doors.parts import keep_given, read_text, read_tools, read_user
from lamella.faces.server.doors.wire import ConversationHeader, DoorBody, DoorWire
from lamella.faces.server.failures import tell_error
from lamella.faces.server.state import State, Talker
from lamella.faces.server.streams import CHUNKS

router = APIRouter(prefix="/v1", tags=["doors"])
_PATH = "/v1/messages"
_REFUSED = ("stop_sequences", "mcp_servers", "container")
_STOPS = {"end": "end_turn", "length": "max_tokens", "tools": "tool_use", "refused": "refusal", "window": "max_tokens"}
_STREAMED = told(AnthropicMessageJson, content=CHUNKS, description="Events, or the whole message.")


class AnthropicBody(DoorBody):
    """A request as Anthropic's API takes it."""

    messages: Annotated[
        list[dict[str, JsonValue]], Field(min_length=1, examples=[[{"role": "user", "content": "When to sow?"}]])
    ]
    max_tokens: Annotated[int, Field(ge=1)]
    system: str | list[dict[str, JsonValue]] | None = None
    tool_choice: dict[str, JsonValue] | None = None


@router.post("/messages", summary="Anthropic's API", response_class=Response, responses=_STREAMED)
async def create_message(
    *, request: Request, body: AnthropicBody, state: State, caller: Talker, conversation: ConversationHeader = None
) -> Response:
    """Answer a history as Anthropic's API does, in the conversation that it is."""
    return await _WIRE.answer(request, body, state, caller=caller, named=conversation)


def _refuse(body: AnthropicBody) -> list[str]:
    return [] if _find_choice(body) in ("auto", "none") else ["tool_choice"]


def _find_choice(body: AnthropicBody) -> object:
    return "auto" if body.tool_choice is None else body.tool_choice.get("type")


def _read_request(body: AnthropicBody) -> HostRequest:
    return HostRequest(
        turns=build_turns([message for one in body.messages for message in _read_message(one)]),
        system=None if body.system is None else read_text(body.system),
        tools=read_tools(body.tools, off=_find_choice(body) == "none", kind="custom", schema="input_schema"),
        max_tokens=body.max_tokens,
        settings=keep_given(temperature=body.temperature),
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


def _head(turn: HostedTurn) -> dict[str, object]:
    name = f"msg_{turn.run.conversation}_{turn.name}"
    return {"id": name, "type": "message", "role": "assistant", "model": turn.model, "stop_sequence": None}


def _tell(turn: HostedTurn, _body: AnthropicBody, heard: HeardAnswer) -> dict[str, object]:
    content = [*([_write_text(heard.text)] if heard.text else []), *(_write_call(call) for call in heard.calls)]
    told = {**_head(turn), "content": content, "stop_reason": _tell_stop(heard)}
    return {**told, "usage": _write_usage(heard)}


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


async def _stream(turn: HostedTurn, _body: AnthropicBody) -> AsyncGenerator[bytes, None]:
    heard, open_text = HeardAnswer(), False
    try:
        begun = {**_head(turn), "content": [], "stop_reason": None, "usage": _write_usage(heard)}
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


_WIRE = DoorWire(refused=_REFUSED, refuse=_refuse, read=_read_request, write=_tell, stream=_stream)
