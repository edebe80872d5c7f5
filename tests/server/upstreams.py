"""Loopback upstreams with the APIs of Anthropic and OpenAI, and servers in front of them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.server.running import MODEL, RunningServer, running
from tests.wire.gemini_server import KEY, gemini_server
from tests.wire.gemini_server import MODEL as GEMINI
from tests.wire.script import Act
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, serve

from lamella.ports import ModelProvider
from lamella.providers import (
    AnthropicProvider,
    Delta,
    GeminiProvider,
    ModelRequest,
    OpenAIChatProvider,
    OpenAIResponsesProvider,
)

Json = dict[str, Any]
Answer = Callable[[Call], Outcome]


def sse(fields: Mapping[str, object] | str, name: str = "") -> bytes:
    data = fields if isinstance(fields, str) else json.dumps(fields)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def events_of(kinds: Sequence[Json]) -> list[bytes]:
    return [sse(one, one["type"]) for one in kinds]


# Anthropic's API.

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
MESSAGE_USAGE = {"input_tokens": 20, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 0}


def message_events(*blocks: Json, stop: str = "end_turn") -> list[bytes]:
    usage = {**MESSAGE_USAGE, "output_tokens": 1}
    kinds: list[Json] = [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": usage}},
        {"type": "ping"},
    ]
    for index, block in enumerate(blocks or ({"type": "text", "text": "At noon."},)):
        kinds += [{"index": index, **one} for one in _block_events(block)]
    kinds += [
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return events_of(kinds)


def _block_events(block: Json) -> list[Json]:
    empty, deltas = dict(block), []
    match block["type"]:
        case "text":
            empty["text"] = ""
            deltas = [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            empty |= {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use":
            empty["input"] = {}
            written = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in (written[:3], written[3:])]
    started = {"type": "content_block_start", "content_block": empty}
    middle = [{"type": "content_block_delta", "delta": delta} for delta in deltas]
    return [started, *middle, {"type": "content_block_stop"}]


def message_body(*blocks: Json, stop: str = "end_turn") -> Json:
    usage = {**MESSAGE_USAGE, "output_tokens": 7}
    content = list(blocks or ({"type": "text", "text": "At noon."},))
    return {**MESSAGE, "content": content, "stop_reason": stop, "usage": usage}


# OpenAI's APIs.

CHAT_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 80},
}


def chat_events(text: str = "At noon.", *, calls: Sequence[Json] = (), finish: str = "stop") -> list[bytes]:
    def chunk(delta: Json, reason: str | None = None) -> Json:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt", "choices": choices}

    deltas: list[Json] = []
    deltas += (
        [{"role": "assistant", "content": ""}, *({"content": word} for word in re.findall(r"\S+ ?", text))]
        if text
        else []
    )
    for index, call in enumerate(calls):
        function = call["function"]
        head = {"index": index, "id": call["id"], "type": "function"}
        deltas += [
            {"tool_calls": [{**head, "function": {"name": function["name"], "arguments": ""}}]},
            {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]},
        ]
    usage = {**chunk({}), "choices": [], "usage": CHAT_USAGE}
    return [*(sse(chunk(one)) for one in deltas), sse(chunk({}, finish)), sse(usage), sse("[DONE]")]


def chat_body(text: str = "At noon.") -> Json:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": None}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt",
        "choices": [choice],
        "usage": CHAT_USAGE,
    }


RESPONSE_USAGE = {
    "input_tokens": 100,
    "output_tokens": 7,
    "total_tokens": 107,
    "input_tokens_details": {"cached_tokens": 80},
}


def response_body(*items: Json, status: str = "completed") -> Json:
    text = {"type": "output_text", "text": "At noon.", "annotations": []}
    said = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "resp_up1",
        "object": "response",
        "created_at": 1,
        "model": "gpt",
        "status": status,
        "output": list(items or (said,)),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": RESPONSE_USAGE,
    }


def response_events(*items: Json) -> list[bytes]:
    body = response_body(*items)
    kinds: list[Json] = [{"type": "response.created", "response": {**body, "status": "in_progress", "output": []}}]
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        kinds.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            text = item["content"][0]["text"]
            kinds.append({"type": "response.output_text.delta", **place, "content_index": 0, "delta": text})
        if item["type"] == "function_call":
            kinds.append({"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]})
        kinds.append({"type": "response.output_item.done", "output_index": index, "item": item})
    kinds.append({"type": "response.completed", "response": body})
    return events_of([{**one, "sequence_number": number} for number, one in enumerate(kinds)])


# Servers in front of an upstream.


def answer_usually(call: Call) -> Outcome:
    """Answer as each API does, streamed if the request asks for it."""
    path = call.path.partition("?")[0]
    if path.endswith("/count_tokens"):
        return json_answer({"input_tokens": 42})
    if path.endswith("/embeddings"):
        return json_answer({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]})
    streamed = call.method == "POST" and bool(call.body.get("stream"))
    if path.endswith("/messages"):
        return Flow(chunks=message_events()) if streamed else json_answer(message_body(), headers={"request-id": "r1"})
    if path.endswith("/chat/completions"):
        return Flow(chunks=chat_events()) if streamed else json_answer(chat_body(), headers={"x-request-id": "r1"})
    return Flow(chunks=response_events()) if streamed else json_answer(response_body(), headers={"x-request-id": "r1"})


PROVIDERS: dict[str, Callable[[str], ModelProvider]] = {
    "anthropic": lambda url: AnthropicProvider(key="sk-operator", address=url),
    "openai": lambda url: OpenAIResponsesProvider(key="sk-operator", address=f"{url}/v1"),
    "compatible": lambda url: OpenAIChatProvider(key="sk-operator", address=f"{url}/v1"),
}


@dataclass(frozen=True, slots=True)
class Proxied:
    """A server, and what its upstream has seen."""

    server: RunningServer
    upstream: Loopback

    @property
    def sent(self) -> bytes:
        """The body that the upstream got last."""
        return self.upstream.calls[-1].raw

    def post(self, path: str, body: object, **headers: str) -> Any:  # noqa: ANN401 - a response
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "content-type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.server.client.post(path, content=data, headers=given)


@contextmanager
def proxied(
    kind: str,
    answer: Answer = answer_usually,
    *,
    store: str = "memory:",
    serve_settings: Mapping[str, object] | None = None,
    model: str = MODEL,
) -> Iterator[Proxied]:
    """A server whose provider is an upstream on this machine."""
    with (
        serve(answer, Loopback()) as upstream,
        running(store, PROVIDERS[kind](upstream.url), serve=serve_settings, model=model) as server,
    ):
        yield Proxied(server, upstream)


class LoopProvider(GeminiProvider):
    """Remembers the event loop that it is used in, where it has to be closed."""

    loop: asyncio.AbstractEventLoop

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.loop = asyncio.get_running_loop()
        return super().stream(request)


@contextmanager
def upstream_of(
    kind: str, *acts: Act, serve_settings: Mapping[str, object] | None = None
) -> Iterator[tuple[RunningServer, Loopback]]:
    """A server in front of an upstream of a kind; ``acts`` are what Gemini does."""
    if kind != "gemini":
        with serve(answer_usually, Loopback()) as seen, running("memory:", PROVIDERS[kind](seen.url)) as server:
            yield server, seen
        return
    with gemini_server(*acts) as google:
        provider = LoopProvider(key=KEY, address=google.url, timeout=10.0)
        with running("memory:", provider, serve=serve_settings, model=f"gemini:{GEMINI}") as server:
            yield server, google
            asyncio.run_coroutine_threadsafe(provider.close(), provider.loop).result()


PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


def body_for(wire: str, messages: Sequence[object], **more: object) -> Json:
    """A request of an API with messages that all of them read."""
    field = "input" if wire == "responses" else "messages"
    required = {"max_tokens": 100} if wire == "messages" else {}
    return {"model": "lamella", **required, field: list(messages), **more}
