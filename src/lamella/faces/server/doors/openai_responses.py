"""``/v1/responses``: clients of OpenAI's Responses API get the engine."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import Field, JsonValue

from lamella import ToolCall, ToolOutput
from lamella.engine.hosts.history import HostMessage, HostRequest, build_turns
from lamella.errors import CallError
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.doors.bodies import ResponseJson
from lamella.faces.server.doors.hosted import HeardAnswer, HostedTurn, follow
from lamella.faces.server.doors.parts import keep_given, read_text, read_tools, read_user
from lamella.faces.server.doors.wire import ConversationHeader, DoorBody, DoorWire
from lamella.faces.server.failures import tell_error
from lamella.faces.server.state import State, Talker
from lamella.faces.server.streams import CHUNKS

router = APIRouter(prefix="/v1", tags=["doors"])
_PATH = "/v1/responses"
_REFUSED = ("background", "conversation", "prompt")
_STREAMED = told(ResponseJson, content=CHUNKS, description="Events, or the whole response.")


class ResponsesBody(DoorBody):
    """A request as OpenAI's Responses API takes it."""

    input: Annotated[str | list[dict[str, JsonValue]], Field(examples=["When to sow?"])]
    instructions: str | None = None
    previous_response_id: Annotated[str | None, Field(max_length=300)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    reasoning: dict[str, JsonValue] | None = None
    text: dict[str, JsonValue] | None = None
    tool_choice: JsonValue = None


@router.post("/responses", summary="OpenAI's Responses API", response_class=Response, responses=_STREAMED)
async def create_response(
    *, request: Request, body: ResponsesBody, state: State, caller: Talker, conversation: ConversationHeader = None
) -> Response:
    """Answer a history as OpenAI's API does, or go on after an earlier response."""
    return await _WIRE.answer(request, body, state, caller=caller, named=conversation)


def _refuse(body: ResponsesBody) -> list[str]:
    wrong = ["tool_choice"] if body.tool_choice not in (None, "auto", "none") else []
    form = (body.text or {}).get("format")
    return [*wrong, *(["text.format"] if isinstance(form, dict) and form.get("type") != "text" else [])]


def _read_before(body: ResponsesBody) -> tuple[str | None, str | None]:
    """The conversation and the answer that an earlier response was; its id says both."""
    name = body.previous_response_id
    if name is None:
        return None, None
    kind, _, named = name.partition("_")
    conversation, _, answer = named.rpartition("_")
    if kind != "resp" or not conversation:
        raise CallError(f"{name[:80]!r} is no response of this server.", hint="Send the id of one as it came.")
    return conversation, answer


def _read_request(body: ResponsesBody) -> HostRequest:
    items = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    system = [body.instructions] if body.instructions else []
    system += [read_text(one.get("content")) for one in items if one.get("role") in ("system", "developer")]
    said = [message for one in items if (message := _read_item(one)) is not None]
    effort = (body.reasoning or {}).get("effort")
    return HostRequest(
        turns=build_turns(_join_calls(said)) if not _only_outputs(said) else _wait_for(said),
        system="\n\n".join(system) if system else None,
        tools=read_tools(body.tools, off=body.tool_choice == "none", kind="function", schema="parameters"),
        max_tokens=body.max_output_tokens,
        settings=keep_given(temperature=body.temperature, reasoning_effort=effort),
    )


def _only_outputs(said: list[HostMessage]) -> bool:
    return bool(said) and all(one.role == "tool" for one in said)


def _wait_for(said: list[HostMessage]) -> tuple[Any, ...]:
    """Results alone, which go with the calls of an earlier response: its question is known by that."""
    outputs = tuple(output for one in said for output in one.outputs)
    calls = tuple(ToolCall(id=one.call, name="earlier", arguments="{}") for one in outputs)
    return build_turns(
        [HostMessage("user"), HostMessage("assistant", calls=calls), HostMessage("tool", outputs=outputs)]
    )


def _read_item(given: Mapping[str, Any]) -> HostMessage | None:
    match given.get("type", "message"):
        case "message" if given.get("role") in ("system", "developer"):
            return None
        case "message" if given.get("role") == "assistant":
            return HostMessage("assistant", read_text(given.get("content")))
        case "message" if given.get("role") == "user":
            return read_user(given.get("content") or "")
        case "function_call":
            call = ToolCall(
                id=str(given.get("call_id")), name=str(given.get("name")), arguments=str(given.get("arguments") or "")
            )
            return HostMessage("assistant", calls=(call,))
        case "function_call_output":
            output = ToolOutput(call=str(given.get("call_id")), output=read_text(given.get("output")))
            return HostMessage("tool", outputs=(output,))
        case "reasoning":
            return None
    raise CallError(f"An item of type {str(given.get('type'))[:40]!r} is not taken here.", hint="Send messages.")


def _join_calls(said: list[HostMessage]) -> list[HostMessage]:
    """Messages in which calls that follow one another, and what was said before them, are of one message."""
    joined: list[HostMessage] = []
    for one in said:
        last = joined[-1] if joined else None
        if one.calls and last is not None and last.role == "assistant":
            joined[-1] = last._replace(calls=(*last.calls, *one.calls))
        else:
            joined.append(one)
    return joined


def _tell_status(heard: HeardAnswer) -> str:
    return "incomplete" if heard.stop in ("length", "window") else "completed"


def _tell(turn: HostedTurn, body: ResponsesBody, heard: HeardAnswer) -> dict[str, object]:
    return _tell_as(turn, body, heard, status=_tell_status(heard))


def _tell_as(turn: HostedTurn, body: ResponsesBody, heard: HeardAnswer, *, status: str) -> dict[str, object]:
    """A response. Its id names the conversation and the answer, also before that is given."""
    done = status != "in_progress"
    cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{turn.run.conversation}_{turn.name}",
        "object": "response",
        "created_at": int(turn.run.since.timestamp()),
        "model": turn.model,
        "status": status,
        "error": None,
        "incomplete_details": cut,
        "instructions": body.instructions,
        "metadata": {},
        "output": _list_output(heard) if done else [],
        "parallel_tool_calls": True,
        "temperature": body.temperature,
        "tool_choice": "auto",
        "tools": body.tools or [],
        "top_p": None,
        "previous_response_id": body.previous_response_id,
        "usage": _write_usage(heard) if done else None,
    }


def _list_output(heard: HeardAnswer) -> list[dict[str, object]]:
    said = [_write_message(heard.text, "completed")] if heard.text else []
    return [*said, *(_write_call(call, "completed") for call in heard.calls)]


def _write_message(text: str, status: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if text else []
    return {"type": "message", "id": "msg_0", "role": "assistant", "status": status, "content": content}


def _write_call(call: ToolCall, status: str) -> dict[str, object]:
    named = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
    return {**named, "arguments": call.arguments, "status": status}


def _write_usage(heard: HeardAnswer) -> dict[str, object]:
    prompt, output = heard.count("prompt"), heard.count("output")
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": heard.count("read"), "cache_write_tokens": heard.count("write")},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": heard.count("reasoning")},
        "total_tokens": prompt + output,
    }


async def _stream(turn: HostedTurn, body: ResponsesBody) -> AsyncGenerator[bytes, None]:
    heard, number = HeardAnswer(), 0

    def event(kind: str, **fields: object) -> bytes:
        nonlocal number
        number += 1
        told = {"type": kind, "sequence_number": number - 1, **fields}
        return format_sse_event(event=kind, data_str=json.dumps(told, ensure_ascii=False))

    try:
        begun = _tell_as(turn, body, heard, status="in_progress")
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        async for one in follow(turn.run):
            if one.text and not heard.text:
                yield event("response.output_item.added", output_index=0, item=_write_message("", "in_progress"))
                yield event("response.content_part.added", **_PLACE, part=_write_part(""))
            heard.take(one)
            if one.text:
                yield event("response.output_text.delta", **_PLACE, delta=one.text, logprobs=[])
        for kind, fields in _finish(heard):
            yield event(kind, **fields)
        yield event(f"response.{_tell_status(heard)}", response=_tell(turn, body, heard))
    except Exception as error:  # noqa: BLE001 - the stream has begun: its last event says what went wrong
        told = tell_error(error, _PATH)[1]["error"]
        assert isinstance(told, dict)
        yield event("error", code=told["code"], message=told["message"], param=None)


_PLACE: dict[str, object] = {"item_id": "msg_0", "output_index": 0, "content_index": 0}


def _write_part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _finish(heard: HeardAnswer) -> Iterator[tuple[str, dict[str, object]]]:
    """What closes the text of an answer, and tells its calls."""
    if heard.text:
        yield "response.output_text.done", {**_PLACE, "text": heard.text, "logprobs": []}
        yield "response.content_part.done", {**_PLACE, "part": _write_part(heard.text)}
        yield "response.output_item.done", {"output_index": 0, "item": _write_message(heard.text, "completed")}
    for index, call in enumerate(heard.calls, start=int(bool(heard.text))):
        place = {"item_id": f"fc_{call.id}", "output_index": index}
        added = {**_write_call(call, "in_progress"), "arguments": ""}
        yield "response.output_item.added", {"output_index": index, "item": added}
        yield "response.function_call_arguments.delta", {**place, "delta": call.arguments}
        yield "response.function_call_arguments.done", {**place, "name": call.name, "arguments": call.arguments}
        yield "response.output_item.done", {"output_index": index, "item": _write_call(call, "completed")}


_WIRE = DoorWire(
    refused=_REFUSED, refuse=_refuse, read=_read_request, write=_tell, stream=_stream, earlier=_read_before
)
