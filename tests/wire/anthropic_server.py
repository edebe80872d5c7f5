"""Anthropic's Messages API on the loopback: its checks, its cache, its events."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.wire.caching import MarkedCache, Served
from tests.wire.script import Act, Fail, Say
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, misbehave, serve

KEY = "sk-ant-right"
MODEL = "claude-opus-5-5"
_LIVES = {"5m": 300.0, "1h": 3_600.0}
_UNMARKABLE = {"thinking", "redacted_thinking"}


@dataclass(slots=True, kw_only=True)
class AnthropicServer(Loopback):
    """The server's state: its script and its cache."""

    acts: deque[Act]
    cache: MarkedCache = field(default_factory=lambda: MarkedCache(minimum=512))
    served: list[Served] = field(default_factory=list)

    def __post_init__(self) -> None:
        Loopback.__init__(self)

    def answer(self, call: Call) -> Outcome:
        refusal = _refuse(call)
        if refusal is not None:
            return _error(refusal)
        act = self.acts.popleft() if self.acts else Say()
        opening = [_event("message_start", {"message": _message(Say(), Served(plain=9), number=0, begun=True)})]
        word = _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "more "}})
        outcome = misbehave(act, opening, idle=_event("ping", {}), word=word)
        if outcome is not None:
            return outcome
        if isinstance(act, Fail):
            return Flow(chunks=[*opening, _event("error", _failure(act))]) if act.inside else _error(act)
        assert isinstance(act, Say)
        return self._say(act, call.body)

    def _say(self, say: Say, body: dict[str, Any]) -> Outcome:
        blocks = list(_blocks(body))
        marks = _marks(body, blocks)
        served = self.cache.serve(body["model"], [_bare(block) for block in blocks], marks)
        self.served.append(served)
        if not body.get("stream"):
            return json_answer(_message(say, served, number=len(self.served)))
        return Flow(chunks=list(_events(say, served, number=len(self.served))))


@contextmanager
def anthropic_server(*acts: Act) -> Iterator[AnthropicServer]:
    server = AnthropicServer(acts=deque(acts))
    with serve(server.answer, server):
        yield server


def _refuse(call: Call) -> Fail | None:
    """What the real API checks first."""
    if call.path != "/v1/messages":
        return Fail(status=404, kind="not_found_error", words="Not Found")
    if call.headers.get("authorization") != f"Bearer {KEY}":
        return Fail(status=401, kind="authentication_error", words="invalid key")
    body = call.body
    if body["model"] != MODEL:
        return Fail(status=404, kind="not_found_error", words=f"model: {body['model']}")
    wrong = next(_find_wrong(body), None)
    return Fail(status=400, kind="invalid_request_error", words=wrong) if wrong else None


def _find_wrong(body: dict[str, Any]) -> Iterator[str]:
    blocks = list(_blocks(body))
    marked = [block["cache_control"] for block in blocks if "cache_control" in block]
    automatic = "cache_control" in body
    if len(marked) + automatic > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked) + automatic}."
    lives = [mark.get("ttl", "5m") for mark in marked]
    if lives != sorted(lives):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    if any(block.get("type") == "text" and not block["text"].strip() for block in blocks):
        yield "text content blocks must be non-empty"
    if any("cache_control" in block and block.get("type") in _UNMARKABLE for block in blocks):
        yield "cache_control cannot be set on thinking blocks"
    if any(not message["content"] for message in body["messages"]):
        yield "all messages must have non-empty content"
    if not body["messages"] or body["messages"][0]["role"] != "user":
        yield "messages: first message must use the user role"
    yield from _unpaired(body["messages"])


def _unpaired(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message, following in zip(messages, [*messages[1:], {"content": []}], strict=True):
        calls = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
        results = {block.get("tool_use_id") for block in following["content"]}
        if calls - results:
            yield f"tool_use ids were found without tool_result blocks: {', '.join(sorted(calls - results))}"


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from body.get("tools", [])
    yield from body.get("system", [])
    for message in body["messages"]:
        yield from message["content"]


def _marks(body: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[int, float]:
    marks = {
        at: _LIVES[block["cache_control"].get("ttl", "5m")]
        for at, block in enumerate(blocks)
        if "cache_control" in block
    }
    if "cache_control" in body:
        last = max(at for at, block in enumerate(blocks) if block.get("type") not in _UNMARKABLE)
        marks[last] = _LIVES[body["cache_control"].get("ttl", "5m")]
    return marks


def _bare(block: dict[str, Any]) -> bytes:
    # Key order is kept: the real cache reads rendered text, in which it shows.
    return json.dumps({name: value for name, value in block.items() if name != "cache_control"}).encode()


def _failure(fail: Fail) -> dict[str, Any]:
    return {"type": "error", "error": {"type": fail.kind, "message": fail.words}, "request_id": "req_1"}


def _error(fail: Fail) -> Outcome:
    return json_answer(_failure(fail), status=fail.status, headers=fail.headers)


def _usage(say: Say, served: Served, *, split: bool) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "input_tokens": served.plain,
        "cache_read_input_tokens": served.read,
        "cache_creation_input_tokens": served.short + served.long,
        "output_tokens": 7,
        "service_tier": "standard",
    }
    if split:
        usage["cache_creation"] = {
            "ephemeral_5m_input_tokens": served.short,
            "ephemeral_1h_input_tokens": served.long,
        }
    return {**usage, **say.usage}


def _content(say: Say) -> list[dict[str, Any]]:
    thought = [{"type": "thinking", "thinking": say.reasoning, "signature": "c2ln"}] if say.reasoning else []
    text = [{"type": "text", "text": say.text}] if say.text else []
    calls = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in say.calls]
    return [*thought, *text, *calls]


def _message(say: Say, served: Served, *, number: int, begun: bool = False) -> dict[str, Any]:
    stop = say.stop or ("tool_use" if say.calls else "end_turn")
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [] if begun else _content(say),
        "stop_reason": None if begun else stop,
        "stop_sequence": None,
        "usage": _usage(say, served, split=True),
        "diagnostics": say.diagnosis,
    }


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def _events(say: Say, served: Served, *, number: int) -> Iterator[bytes]:
    yield _event("message_start", {"message": _message(say, served, number=number, begun=True)})
    yield _event("ping", {})
    for index, block in enumerate(_content(say)):
        yield from _block_events(index, block)
    stop = _message(say, served, number=number)["stop_reason"]
    usage = _usage(say, served, split=False)
    yield _event("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    yield _event("message_stop", {})


def _block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    empty, deltas = _pieces(block)
    yield _event("content_block_start", {"index": index, "content_block": empty})
    for delta in deltas:
        yield _event("content_block_delta", {"index": index, "delta": delta})
    yield _event("content_block_stop", {"index": index})


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, str]]]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": text} for text in _halves(block["text"])
            ]
        case "thinking":
            thoughts = [{"type": "thinking_delta", "thinking": text} for text in _halves(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    written = json.dumps(block["input"]) if block["input"] else ""
    parts = [{"type": "input_json_delta", "partial_json": text} for text in ["", *_halves(written)]]
    return {**block, "input": {}}, parts


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
