"""``/v1/responses``: the endpoint for clients of OpenAI's Responses API."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
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
    CompatEndpoint,
    CompatRequestBody,
    CompatTurn,
    ConversationHeader,
    ResponseJson,
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
_RESPONSES_PATH = "/v1/responses"
_UNSUPPORTED_FIELDS = ("background", "conversation", "prompt")
_RESPONSE_DOCS = response_docs(ResponseJson, content=CHUNK_STREAM_DOCS, description="Events, or the whole response.")


class ResponsesBody(CompatRequestBody):
    """A request in the format of OpenAI's Responses API."""

    input: Annotated[str | list[dict[str, JsonValue]], Field(examples=["When to sow?"])]
    instructions: str | None = None
    previous_response_id: Annotated[str | None, Field(max_length=300)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    reasoning: dict[str, JsonValue] | None = None
    text: dict[str, JsonValue] | None = None
    tool_choice: JsonValue = None


@router.post("/responses", summary="OpenAI's Responses API", response_class=Response, responses=_RESPONSE_DOCS)
async def create_response(
    *,
    request: Request,
    body: ResponsesBody,
    state: StateDep,
    caller: ChatCaller,
    conversation: ConversationHeader = None,
) -> Response:
    """Answer a history as OpenAI's API does, or go on after an earlier response."""
    return await _ENDPOINT.answer(request, body, state, caller=caller, conversation_header=conversation)


def _list_unsupported(body: ResponsesBody) -> list[str]:
    wrong = ["tool_choice"] if body.tool_choice not in (None, "auto", "none") else []
    form = (body.text or {}).get("format")
    return [*wrong, *(["text.format"] if isinstance(form, dict) and form.get("type") != "text" else [])]


def _parse_previous_id(body: ResponsesBody) -> tuple[str | None, str | None]:
    """Return the conversation and the answer of an earlier response; its id contains both."""
    name = body.previous_response_id
    if name is None:
        return None, None
    kind, _, named = name.partition("_")
    conversation, _, answer = named.rpartition("_")
    if kind != "resp" or not conversation:
        raise InvalidOperationError(
            f"{name[:80]!r} is no response of this server.", hint="Send the id of one as it came."
        )
    return conversation, answer


def _parse_request(body: ResponsesBody) -> ClientRequest:
    items = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    system = [body.instructions] if body.instructions else []
    system += [extract_text(one.get("content")) for one in items if one.get("role") in ("system", "developer")]
    said = [message for one in items if (message := _parse_item(one)) is not None]
    effort = (body.reasoning or {}).get("effort")
    return ClientRequest(
        turns=group_into_turns(_join_calls(said)) if not _has_only_outputs(said) else _turn_from_outputs(said),
        system="\n\n".join(system) if system else None,
        tools=parse_tools(body.tools, off=body.tool_choice == "none", kind="function", schema="parameters"),
        max_tokens=body.max_output_tokens,
        settings=drop_unset(temperature=body.temperature, reasoning_effort=effort),
    )


def _has_only_outputs(messages: list[ClientMessage]) -> bool:
    return bool(messages) and all(one.role == "tool" for one in messages)


def _turn_from_outputs(messages: list[ClientMessage]) -> tuple[Any, ...]:
    """Build a turn from tool results alone, which belong to calls of an earlier response.

    The id of that response identifies the question, so the question and the calls are only placeholders here.
    """
    outputs = tuple(output for one in messages for output in one.outputs)
    calls = tuple(ToolCall(id=one.call, name="earlier", arguments="{}") for one in outputs)
    return group_into_turns(
        [ClientMessage("user"), ClientMessage("assistant", calls=calls), ClientMessage("tool", outputs=outputs)]
    )


def _parse_item(item: Mapping[str, Any]) -> ClientMessage | None:
    match item.get("type", "message"):
        case "message" if item.get("role") in ("system", "developer"):
            return None
        case "message" if item.get("role") == "assistant":
            return ClientMessage("assistant", extract_text(item.get("content")))
        case "message" if item.get("role") == "user":
            return parse_user_message(item.get("content") or "")
        case "function_call":
            call = ToolCall(
                id=str(item.get("call_id")), name=str(item.get("name")), arguments=str(item.get("arguments") or "")
            )
            return ClientMessage("assistant", calls=(call,))
        case "function_call_output":
            output = ToolOutput(call=str(item.get("call_id")), output=extract_text(item.get("output")))
            return ClientMessage("tool", outputs=(output,))
        case "reasoning":
            return None
    raise InvalidOperationError(
        f"An item of type {str(item.get('type'))[:40]!r} is not taken here.", hint="Send messages."
    )


def _join_calls(messages: list[ClientMessage]) -> list[ClientMessage]:
    """Merge consecutive function calls, and the text before them, into one message."""
    joined: list[ClientMessage] = []
    for one in messages:
        last = joined[-1] if joined else None
        if one.calls and last is not None and last.role == "assistant":
            joined[-1] = last._replace(calls=(*last.calls, *one.calls))
        else:
            joined.append(one)
    return joined


def _response_status(answer: StreamedAnswer) -> str:
    return "incomplete" if answer.stop in ("length", "window") else "completed"


def _response_body(turn: CompatTurn, body: ResponsesBody, answer: StreamedAnswer) -> dict[str, object]:
    return _build_response(turn, body, answer, status=_response_status(answer))


def _build_response(turn: CompatTurn, body: ResponsesBody, answer: StreamedAnswer, *, status: str) -> dict[str, object]:
    """Return a response body; its id names the conversation and the answer, even before the answer is complete."""
    done = status != "in_progress"
    cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{turn.run.conversation_key}_{turn.answer_id}",
        "object": "response",
        "created_at": int(turn.run.started_at.timestamp()),
        "model": turn.model,
        "status": status,
        "error": None,
        "incomplete_details": cut,
        "instructions": body.instructions,
        "metadata": {},
        "output": _output_items(answer) if done else [],
        "parallel_tool_calls": True,
        "temperature": body.temperature,
        "tool_choice": "auto",
        "tools": body.tools or [],
        "top_p": None,
        "previous_response_id": body.previous_response_id,
        "usage": _usage_to_json(answer) if done else None,
    }


def _output_items(answer: StreamedAnswer) -> list[dict[str, object]]:
    said = [_message_to_json(answer.text, "completed")] if answer.text else []
    return [*said, *(_call_to_json(call, "completed") for call in answer.calls)]


def _message_to_json(text: str, status: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if text else []
    return {"type": "message", "id": "msg_0", "role": "assistant", "status": status, "content": content}


def _call_to_json(call: ToolCall, status: str) -> dict[str, object]:
    named = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
    return {**named, "arguments": call.arguments, "status": status}


def _usage_to_json(answer: StreamedAnswer) -> dict[str, object]:
    prompt, output = answer.token_count("prompt"), answer.token_count("output")
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": answer.token_count("read"),
            "cache_write_tokens": answer.token_count("write"),
        },
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": answer.token_count("reasoning")},
        "total_tokens": prompt + output,
    }


async def _stream_events(turn: CompatTurn, body: ResponsesBody) -> AsyncGenerator[bytes, None]:
    heard, number = StreamedAnswer(), 0

    def event(kind: str, **fields: object) -> bytes:
        nonlocal number
        number += 1
        told = {"type": kind, "sequence_number": number - 1, **fields}
        return format_sse_event(event=kind, data_str=json.dumps(told, ensure_ascii=False))

    try:
        begun = _build_response(turn, body, heard, status="in_progress")
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        async for one in follow_events(turn.run):
            if one.text and not heard.text:
                yield event("response.output_item.added", output_index=0, item=_message_to_json("", "in_progress"))
                yield event("response.content_part.added", **_TEXT_POSITION, part=_text_part_to_json(""))
            heard.add_event(one)
            if one.text:
                yield event("response.output_text.delta", **_TEXT_POSITION, delta=one.text, logprobs=[])
        for kind, fields in _iter_final_events(heard):
            yield event(kind, **fields)
        yield event(f"response.{_response_status(heard)}", response=_response_body(turn, body, heard))
    except Exception as error:  # noqa: BLE001 - the response has started, so the error can only be its last event
        told = error_response(error, _RESPONSES_PATH)[1]["error"]
        assert isinstance(told, dict)
        yield event("error", code=told["code"], message=told["message"], param=None)


_TEXT_POSITION: dict[str, object] = {"item_id": "msg_0", "output_index": 0, "content_index": 0}


def _text_part_to_json(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _iter_final_events(answer: StreamedAnswer) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the events that complete the text of an answer, and those of its function calls."""
    if answer.text:
        yield "response.output_text.done", {**_TEXT_POSITION, "text": answer.text, "logprobs": []}
        yield "response.content_part.done", {**_TEXT_POSITION, "part": _text_part_to_json(answer.text)}
        yield "response.output_item.done", {"output_index": 0, "item": _message_to_json(answer.text, "completed")}
    for index, call in enumerate(answer.calls, start=int(bool(answer.text))):
        place = {"item_id": f"fc_{call.id}", "output_index": index}
        added = {**_call_to_json(call, "in_progress"), "arguments": ""}
        yield "response.output_item.added", {"output_index": index, "item": added}
        yield "response.function_call_arguments.delta", {**place, "delta": call.arguments}
        yield "response.function_call_arguments.done", {**place, "name": call.name, "arguments": call.arguments}
        yield "response.output_item.done", {"output_index": index, "item": _call_to_json(call, "completed")}


_ENDPOINT = CompatEndpoint(
    unsupported_fields=_UNSUPPORTED_FIELDS,
    list_unsupported=_list_unsupported,
    parse_request=_parse_request,
    render_response=_response_body,
    stream=_stream_events,
    parse_previous_id=_parse_previous_id,
)
