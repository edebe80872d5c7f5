"""OpenAI's Chat Completions on the loopback, and the servers that speak it with other ideas about usage."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.wire.caching import Served
from tests.wire.openai_caching import LOCAL_MODEL, OpenAICache, Turn, error, failure, refuse
from tests.wire.script import Act, Fail, Say
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, misbehave, serve

PATH = "/v1/chat/completions"


class Dialect(StrEnum):
    """Who is speaking."""

    OPENAI = "openai"
    VLLM = "vllm"
    VLLM_DETAILS = "vllm_details"
    SGLANG = "sglang"
    LLAMA_CPP = "llama_cpp"
    OLLAMA = "ollama"
    DEEPSEEK = "deepseek"


@dataclass(slots=True, kw_only=True)
class ChatServer(Loopback):
    """The server's state: its script, its cache and its dialect."""

    acts: deque[Act]
    dialect: Dialect = Dialect.OPENAI
    cache: OpenAICache = field(default_factory=OpenAICache)
    served: list[Served] = field(default_factory=list)

    def __post_init__(self) -> None:
        Loopback.__init__(self)

    def answer(self, call: Call) -> Outcome:
        refusal = refuse(call, PATH) or _find_wrong(call.body)
        if refusal is not None:
            return error(refusal)
        act = self.acts.popleft() if self.acts else Say()
        opening = [_event(_chunk({"role": "assistant", "content": ""}))]
        word = _event(_chunk({"content": "more "}))
        outcome = misbehave(act, opening, idle=b": keep-alive\n\n", word=word)
        if outcome is not None:
            return outcome
        if isinstance(act, Fail):
            return Flow(chunks=[*opening, _event(failure(act))]) if act.inside else error(act)
        assert isinstance(act, Say)
        return self._say(act, call.body)

    def _say(self, say: Say, body: dict[str, Any]) -> Outcome:
        served = self.cache.serve(body, [_turn(message) for message in body["messages"]])
        self.served.append(served)
        usage = {**_usage(served, self.dialect), **say.usage}
        if not body.get("stream"):
            return json_answer(_completion(say, usage, self.dialect))
        wants_usage = body.get("stream_options", {}).get("include_usage")
        return Flow(chunks=list(_chunks(say, usage if wants_usage else None, self.dialect)))


@contextmanager
def chat_server(*acts: Act, dialect: Dialect = Dialect.OPENAI) -> Iterator[ChatServer]:
    server = ChatServer(acts=deque(acts), dialect=dialect)
    with serve(server.answer, server):
        yield server


def _find_wrong(body: dict[str, Any]) -> Fail | None:
    if body["model"] == LOCAL_MODEL and any(
        isinstance(message["content"], list) and all(part["type"] == "text" for part in message["content"])
        for message in body["messages"]
        if message.get("content")
    ):
        return Fail(status=400, kind="invalid_request_error", words="content must be a string")
    called = {call["id"] for message in body["messages"] for call in message.get("tool_calls", [])}
    answered = {message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"}
    if called != answered:
        return Fail(status=400, kind="invalid_request_error", words="tool_calls must be followed by tool messages")
    return None


def _turn(message: dict[str, Any]) -> Turn:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    calls = [{"type": "tool_calls", "tool_calls": message["tool_calls"]}] if "tool_calls" in message else []
    return message["role"], [*parts, *calls]


def _usage(served: Served, dialect: Dialect) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "prompt_tokens": served.total,
        "completion_tokens": 7,
        "total_tokens": served.total + 7,
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    match dialect:
        case Dialect.OPENAI:
            usage["prompt_tokens_details"] = {"cached_tokens": served.read, "cache_write_tokens": served.short}
        case Dialect.VLLM_DETAILS:
            usage["prompt_tokens_details"] = {"cached_tokens": served.read, "created_cache_tokens": served.plain}
        case Dialect.VLLM:
            usage["prompt_tokens_details"] = None
        case Dialect.SGLANG:
            usage["prompt_tokens_details"] = {"cached_tokens": served.read} if served.read else None
        case Dialect.LLAMA_CPP:
            usage["prompt_tokens_details"] = {"cached_tokens": served.read}
        case Dialect.OLLAMA:
            usage["prompt_tokens_details"] = {"cached_tokens": 0}
        case Dialect.DEEPSEEK:
            usage |= {"prompt_cache_hit_tokens": served.read, "prompt_cache_miss_tokens": served.plain}
    return usage


def _calls(say: Say) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in say.calls
    ]


def _head(dialect: Dialect, kind: str) -> dict[str, Any]:
    fingerprint = "fp_ollama" if dialect is Dialect.OLLAMA else "fp_1"
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m", "system_fingerprint": fingerprint}


def _completion(say: Say, usage: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    message |= {"reasoning_content": say.reasoning} if say.reasoning else {}
    message |= {"tool_calls": _calls(say)} if say.calls else {}
    choice = {"index": 0, "message": message, "finish_reason": _reason(say), "logprobs": None}
    return {**_head(dialect, "chat.completion"), "choices": [choice], "usage": usage}


def _reason(say: Say) -> str:
    return say.stop or ("tool_calls" if say.calls else "stop")


def _chunk(delta: dict[str, Any], *, reason: str | None = None, dialect: Dialect = Dialect.OPENAI) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {**_head(dialect, "chat.completion.chunk"), "choices": choices}


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _chunks(say: Say, usage: dict[str, Any] | None, dialect: Dialect) -> Iterator[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": text} for text in _halves(say.reasoning)]
    deltas += [{"content": text} for text in _halves(say.text)]
    for index, call in enumerate(_calls(say)):
        function = call["function"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
            for text in _halves(function["arguments"])
        ]
    yield from (_event(_chunk(delta, dialect=dialect)) for delta in deltas)
    yield _event(_chunk({}, reason=_reason(say), dialect=dialect))
    if usage is not None:
        yield _event({**_chunk({}, dialect=dialect), "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
