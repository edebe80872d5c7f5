"""OpenAI's Responses API on the loopback: its checks, its cache, its events."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.wire.caching import Served
from tests.wire.openai_caching import MODEL, OpenAICache, Turn, error, refuse
from tests.wire.script import Act, Fail, Say
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, misbehave, serve

PATH = "/v1/responses"


@dataclass(slots=True, kw_only=True)
class ResponsesServer(Loopback):
    """The server's state: its script and its cache."""

    acts: deque[Act]
    cache: OpenAICache = field(default_factory=OpenAICache)
    served: list[Served] = field(default_factory=list)

    def __post_init__(self) -> None:
        Loopback.__init__(self)

    def answer(self, call: Call) -> Outcome:
        refusal = refuse(call, PATH) or _find_wrong(call.body)
        if refusal is not None:
            return error(refusal)
        act = self.acts.popleft() if self.acts else Say()
        begun = _response(Say(), {}, number=0, status="in_progress")
        opening = [_event("response.created", {"response": begun}, 0)]
        word = _event("response.output_text.delta", {**_place(0), "content_index": 0, "delta": "more "}, 1)
        idle = _event("response.in_progress", {"response": begun}, 1)
        outcome = misbehave(act, opening, idle=idle, word=word)
        if outcome is not None:
            return outcome
        if isinstance(act, Fail):
            return Flow(chunks=[*opening, _failed(act)]) if act.inside else error(act)
        assert isinstance(act, Say)
        return self._say(act, call.body)

    def _say(self, say: Say, body: dict[str, Any]) -> Outcome:
        served = self.cache.serve(body, [_turn(item) for item in body["input"]])
        self.served.append(served)
        usage = {**_usage(served), **say.usage}
        response = _response(say, usage, number=len(self.served), status="incomplete" if say.stop else "completed")
        if not body.get("stream"):
            return json_answer(response)
        return Flow(chunks=[_event(kind, data, at) for at, (kind, data) in enumerate(_events(say, response))])


@contextmanager
def responses_server(*acts: Act) -> Iterator[ResponsesServer]:
    server = ResponsesServer(acts=deque(acts))
    with serve(server.answer, server):
        yield server


def _find_wrong(body: dict[str, Any]) -> Fail | None:
    called = {item["call_id"] for item in body["input"] if item.get("type") == "function_call"}
    answered = {item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"}
    if called != answered:
        return Fail(status=400, kind="invalid_request_error", words="No tool output found for function call")
    return None


def _turn(item: dict[str, Any]) -> Turn:
    if item.get("type") == "function_call_output":
        return "tool", [item]
    content = item.get("content")
    if "role" in item:
        return item["role"], content if isinstance(content, list) else [{"type": "text", "text": content}]
    return "assistant", [item]


def _usage(served: Served) -> dict[str, Any]:
    return {
        "input_tokens": served.total,
        "input_tokens_details": {
            "cached_tokens": served.read,
            "cache_write_tokens": served.short + served.long,
            "cache_write_tokens_details": {"ttl_30m_tokens": served.short, "ttl_12h_tokens": served.long},
        },
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": served.total + 7,
    }


def _output(say: Say) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if say.reasoning:
        summary = [{"type": "summary_text", "text": say.reasoning}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VjcmV0"})
    if say.text:
        content = [{"type": "output_text", "text": say.text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    items += [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }
        for call in say.calls
    ]
    return items


def _response(say: Say, usage: dict[str, Any], *, number: int, status: str) -> dict[str, Any]:
    done = status != "in_progress"
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": MODEL,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": say.stop} if say.stop else None,
        "output": _output(say) if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if done else None,
        "prompt_cache_diagnostics": say.diagnosis,
    }


def _place(index: int) -> dict[str, Any]:
    return {"output_index": index, "item_id": f"item_{index}"}


def _event(kind: str, data: dict[str, Any], number: int) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data, 'sequence_number': number})}\n\n".encode()


def _failed(fail: Fail) -> bytes:
    response = _response(Say(), {}, number=0, status="in_progress")
    failed = {**response, "status": "failed", "error": {"code": fail.kind, "message": fail.words}}
    return _event("response.failed", {"response": failed}, 1)


def _events(say: Say, response: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.created", {"response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(_output(say)):
        place = _place(index)
        yield "response.output_item.added", {"output_index": index, "item": item}
        match item["type"]:
            case "reasoning":
                for text in _halves(say.reasoning):
                    yield "response.reasoning_summary_text.delta", {**place, "summary_index": 0, "delta": text}
            case "message":
                for text in _halves(say.text):
                    yield "response.output_text.delta", {**place, "content_index": 0, "delta": text, "logprobs": []}
            case "function_call":
                for text in _halves(item["arguments"]):
                    yield "response.function_call_arguments.delta", {**place, "delta": text}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield f"response.{response['status']}", {"response": response}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
