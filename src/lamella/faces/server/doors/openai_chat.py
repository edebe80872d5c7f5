"""``/v1/chat/completions``: clients of OpenAI's chat API get the engine."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella import ToolCall, ToolOutput
from lamella.engine.hosts.history import HostMessage, HostRequest, build_turns
from lamella.errors import CallError
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.doors.bodies import ChatCompletionJson
from lamella.faces.server.doors.hosted import HeardAnswer, HostedTurn, follow
from lamella.faces.server.doors.parts import keep_given, read_text, read_tools, read_user
from lamella.faces.server.doors.wire import ConversationHeader, DoorBody, DoorWire
from lamella.faces.server.failures import tell_error
from lamella.faces.server.state import State, Talker
from lamella.faces.server.streams import CHUNKS

router = APIRouter(prefix="/v1", tags=["doors"])
_PATH = "/v1/chat/completions"
_Fields = Mapping[str, Any]
# What would change the answer in a way that its reader counts on.
_REFUSED = ("logprobs", "top_logprobs", "audio", "functions", "function_call", "prediction", "stop")
_STOPS = {"end": "stop", "length": "length", "tools": "tool_calls", "refused": "content_filter", "window": "length"}
_STREAMED = told(ChatCompletionJson, content=CHUNKS, description="Chunks, or the whole completion.")


class StreamOptions(BaseModel):
    """Whether a stream ends with its usage."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool = False


class ChatCompletionBody(DoorBody):
    """A request as OpenAI's chat API takes it."""

    messages: Annotated[
        list[dict[str, JsonValue]], Field(min_length=1, examples=[[{"role": "user", "content": "When to sow?"}]])
    ]
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    reasoning_effort: str | None = None
    tool_choice: JsonValue = None
    n: int | None = None
    response_format: dict[str, JsonValue] | None = None


@router.post("/chat/completions", summary="OpenAI's chat API", response_class=Response, responses=_STREAMED)
async def complete_chat(
    *, request: Request, body: ChatCompletionBody, state: State, caller: Talker, conversation: ConversationHeader = None
) -> Response:
    """Answer a history as OpenAI's API does, in the conversation that it is."""
    return await _WIRE.answer(request, body, state, caller=caller, named=conversation)


def _refuse(body: ChatCompletionBody) -> list[str]:
    wrong = ["n"] if (body.n or 1) > 1 else []
    wrong += ["response_format"] if body.response_format and body.response_format.get("type") != "text" else []
    return [*wrong, *(["tool_choice"] if body.tool_choice not in (None, "auto", "none") else [])]


def _read_request(body: ChatCompletionBody) -> HostRequest:
    system = [read_text(one.get("content")) for one in body.messages if one.get("role") in ("system", "developer")]
    said = [_read_message(one) for one in body.messages if one.get("role") not in ("system", "developer")]
    return HostRequest(
        turns=build_turns(said),
        system="\n\n".join(system) if system else None,
        tools=read_tools(body.tools, off=body.tool_choice == "none", kind="function", schema="parameters"),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        settings=keep_given(temperature=body.temperature, reasoning_effort=body.reasoning_effort),
    )


def _read_message(given: _Fields) -> HostMessage:
    match given.get("role"):
        case "user":
            return read_user(given.get("content") or "")
        case "assistant":
            calls = tuple(_read_call(one) for one in given.get("tool_calls") or ())
            return HostMessage("assistant", read_text(given.get("content")), calls=calls)
        case "tool":
            output = ToolOutput(call=str(given.get("tool_call_id")), output=read_text(given.get("content")))
            return HostMessage("tool", outputs=(output,))
    raise CallError(f"There is no role {str(given.get('role'))[:40]!r}.", hint="Use system, user, assistant or tool.")


def _read_call(given: object) -> ToolCall:
    called = given.get("function") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(called, dict):
        raise CallError("A tool call is not of type function.", hint="Send it as it came.")
    return ToolCall(id=str(given.get("id")), name=str(called.get("name")), arguments=str(called.get("arguments") or ""))


def _name(turn: HostedTurn) -> str:
    return f"chatcmpl-{turn.run.conversation}-{turn.name}"


def _head(turn: HostedTurn, kind: str) -> dict[str, object]:
    return {"id": _name(turn), "object": kind, "created": int(turn.run.since.timestamp()), "model": turn.model}


def _complete(turn: HostedTurn, _body: ChatCompletionBody, heard: HeardAnswer) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": heard.text or None, "refusal": None}
    if heard.calls:
        message["tool_calls"] = [_write_call(call) for call in heard.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _tell_stop(heard)}
    return {**_head(turn, "chat.completion"), "choices": [choice], "usage": _write_usage(heard)}


def _tell_stop(heard: HeardAnswer) -> str:
    return "tool_calls" if heard.calls else _STOPS.get(heard.stop, "stop")


def _write_call(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _write_usage(heard: HeardAnswer) -> dict[str, object]:
    prompt, output = heard.count("prompt"), heard.count("output")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": heard.count("read")},
        "completion_tokens_details": {"reasoning_tokens": heard.count("reasoning")},
    }


async def _stream(turn: HostedTurn, body: ChatCompletionBody) -> AsyncGenerator[bytes, None]:
    head, heard = _head(turn, "chat.completion.chunk"), HeardAnswer()

    def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _write_data({**head, "choices": [choice]})

    try:
        yield chunk({"role": "assistant", "content": ""})
        async for event in follow(turn.run):
            heard.take(event)
            if event.text:
                yield chunk({"content": event.text})
        for number, call in enumerate(heard.calls):
            yield chunk({"tool_calls": [{"index": number, **_write_call(call)}]})
        yield chunk({}, _tell_stop(heard))
        if body.stream_options is not None and body.stream_options.include_usage:
            yield _write_data({**head, "choices": [], "usage": _write_usage(heard)})
        yield b"data: [DONE]\n\n"
    except Exception as error:  # noqa: BLE001 - the stream has begun: its last part says what went wrong
        yield _write_data(tell_error(error, _PATH)[1])


def _write_data(body: Mapping[str, object]) -> bytes:
    """A part of a stream that has no name."""
    return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


_WIRE = DoorWire(refused=_REFUSED, refuse=_refuse, read=_read_request, write=_complete, stream=_stream)
