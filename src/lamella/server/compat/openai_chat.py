"""``/v1/chat/completions``: the endpoint for clients of OpenAI's chat API."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella import ToolCall, ToolOutput
from lamella.conversation.host_history import ClientMessage, ClientRequest, group_into_turns
from lamella.errors import InvalidOperationError
from lamella.server.bodies import response_docs
from lamella.server.compat.shared import (
    ChatCompletionJson,
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
_COMPLETIONS_PATH = "/v1/chat/completions"
_JsonObject = Mapping[str, Any]
# Fields that change the answer in a way that the client relies on, so ignoring them would be wrong.
_UNSUPPORTED_FIELDS = ("logprobs", "top_logprobs", "audio", "functions", "function_call", "prediction", "stop")
_FINISH_REASONS = {
    "end": "stop",
    "length": "length",
    "tools": "tool_calls",
    "refused": "content_filter",
    "window": "length",
}
_RESPONSE_DOCS = response_docs(
    ChatCompletionJson, content=CHUNK_STREAM_DOCS, description="Chunks, or the whole completion."
)


class StreamOptions(BaseModel):
    """Whether a stream ends with the usage."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool = False


class ChatCompletionBody(CompatRequestBody):
    """A request in the format of OpenAI's chat API."""

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


@router.post("/chat/completions", summary="OpenAI's chat API", response_class=Response, responses=_RESPONSE_DOCS)
async def complete_chat(
    *,
    request: Request,
    body: ChatCompletionBody,
    state: StateDep,
    caller: ChatCaller,
    conversation: ConversationHeader = None,
) -> Response:
    """Answer a history as OpenAI's API does, in the conversation that it is."""
    return await _ENDPOINT.answer(request, body, state, caller=caller, conversation_header=conversation)


def _list_unsupported(body: ChatCompletionBody) -> list[str]:
    wrong = ["n"] if (body.n or 1) > 1 else []
    wrong += ["response_format"] if body.response_format and body.response_format.get("type") != "text" else []
    return [*wrong, *(["tool_choice"] if body.tool_choice not in (None, "auto", "none") else [])]


def _parse_request(body: ChatCompletionBody) -> ClientRequest:
    system = [extract_text(one.get("content")) for one in body.messages if one.get("role") in ("system", "developer")]
    said = [_parse_message(one) for one in body.messages if one.get("role") not in ("system", "developer")]
    return ClientRequest(
        turns=group_into_turns(said),
        system="\n\n".join(system) if system else None,
        tools=parse_tools(body.tools, off=body.tool_choice == "none", kind="function", schema="parameters"),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        settings=drop_unset(temperature=body.temperature, reasoning_effort=body.reasoning_effort),
    )


def _parse_message(message: _JsonObject) -> ClientMessage:
    match message.get("role"):
        case "user":
            return parse_user_message(message.get("content") or "")
        case "assistant":
            calls = tuple(_parse_call(one) for one in message.get("tool_calls") or ())
            return ClientMessage("assistant", extract_text(message.get("content")), calls=calls)
        case "tool":
            output = ToolOutput(call=str(message.get("tool_call_id")), output=extract_text(message.get("content")))
            return ClientMessage("tool", outputs=(output,))
    raise InvalidOperationError(
        f"There is no role {str(message.get('role'))[:40]!r}.", hint="Use system, user, assistant or tool."
    )


def _parse_call(call: object) -> ToolCall:
    called = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(called, dict):
        raise InvalidOperationError("A tool call is not of type function.", hint="Send it as it came.")
    return ToolCall(id=str(call.get("id")), name=str(called.get("name")), arguments=str(called.get("arguments") or ""))


def _completion_id(turn: CompatTurn) -> str:
    return f"chatcmpl-{turn.run.conversation_key}-{turn.answer_id}"


def _completion_header(turn: CompatTurn, kind: str) -> dict[str, object]:
    return {
        "id": _completion_id(turn),
        "object": kind,
        "created": int(turn.run.started_at.timestamp()),
        "model": turn.model,
    }


def _response_body(turn: CompatTurn, _body: ChatCompletionBody, answer: StreamedAnswer) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [_call_to_json(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop_reason(answer)}
    return {**_completion_header(turn, "chat.completion"), "choices": [choice], "usage": _usage_to_json(answer)}


def _stop_reason(answer: StreamedAnswer) -> str:
    return "tool_calls" if answer.calls else _FINISH_REASONS.get(answer.stop, "stop")


def _call_to_json(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage_to_json(answer: StreamedAnswer) -> dict[str, object]:
    prompt, output = answer.token_count("prompt"), answer.token_count("output")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": answer.token_count("read")},
        "completion_tokens_details": {"reasoning_tokens": answer.token_count("reasoning")},
    }


async def _stream_chunks(turn: CompatTurn, body: ChatCompletionBody) -> AsyncGenerator[bytes, None]:
    head, heard = _completion_header(turn, "chat.completion.chunk"), StreamedAnswer()

    def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _format_chunk({**head, "choices": [choice]})

    try:
        yield chunk({"role": "assistant", "content": ""})
        async for event in follow_events(turn.run):
            heard.add_event(event)
            if event.text:
                yield chunk({"content": event.text})
        for number, call in enumerate(heard.calls):
            yield chunk({"tool_calls": [{"index": number, **_call_to_json(call)}]})
        yield chunk({}, _stop_reason(heard))
        if body.stream_options is not None and body.stream_options.include_usage:
            yield _format_chunk({**head, "choices": [], "usage": _usage_to_json(heard)})
        yield b"data: [DONE]\n\n"
    except Exception as error:  # noqa: BLE001 - the response has started, so the error can only be its last chunk
        yield _format_chunk(error_response(error, _COMPLETIONS_PATH)[1])


def _format_chunk(body: Mapping[str, object]) -> bytes:
    """Return a chunk of a stream without an event name."""
    return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


_ENDPOINT = CompatEndpoint(
    unsupported_fields=_UNSUPPORTED_FIELDS,
    list_unsupported=_list_unsupported,
    parse_request=_parse_request,
    render_response=_response_body,
    stream=_stream_chunks,
)
