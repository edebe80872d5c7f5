"""How answers end and what they consist of, for every pair of APIs that differ; and the lists of models."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.running import running
from tests.server.upstreams import (
    PATHS,
    Proxied,
    body_for,
    chat_events,
    events_of,
    message_events,
    proxied,
    response_body,
    response_events,
    sse,
    upstream_of,
)
from tests.wire.script import Say, Wanted
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, serve

HI = [{"role": "user", "content": "hi"}]
Json = dict[str, Any]


def response_stream(status: str = "completed", reason: str | None = None, *items: Json) -> list[bytes]:
    body = response_body(*items, status=status)
    body["incomplete_details"] = {"reason": reason} if reason else None
    created = {"type": "response.created", "response": {**body, "status": "in_progress", "output": []}}
    text = {"type": "response.output_text.delta", "output_index": 0, "item_id": "m1", "content_index": 0, "delta": "a"}
    return events_of([created, text, {"type": f"response.{status}", "response": body}])


def read_end(wire: str, answer: Json) -> str:
    """How an answer ended, as the client of an API reads it."""
    if wire == "messages":
        return str(answer["stop_reason"])
    if wire == "chat":
        return str(answer["choices"][0]["finish_reason"])
    return str((answer["incomplete_details"] or {}).get("reason") or answer["status"])


CALL = {"type": "tool_use", "id": "t1", "name": "tide", "input": {}}
CHAT_CALL = {"id": "t1", "function": {"name": "tide", "arguments": "{}"}}
ENDS: list[tuple[str, Callable[[], list[bytes]], dict[str, str]]] = [
    ("anthropic", lambda: message_events(stop="end_turn"), {"chat": "stop", "responses": "completed"}),
    ("anthropic", lambda: message_events(stop="max_tokens"), {"chat": "length", "responses": "max_output_tokens"}),
    ("anthropic", lambda: message_events(stop="stop_sequence"), {"chat": "stop", "responses": "completed"}),
    ("anthropic", lambda: message_events(CALL, stop="tool_use"), {"chat": "tool_calls", "responses": "completed"}),
    ("anthropic", lambda: message_events(stop="pause_turn"), {"chat": "stop", "responses": "completed"}),
    ("anthropic", lambda: message_events(stop="refusal"), {"chat": "content_filter", "responses": "content_filter"}),
    (
        "anthropic",
        lambda: message_events(stop="model_context_window_exceeded"),
        {"chat": "length", "responses": "max_output_tokens"},
    ),
    ("compatible", lambda: chat_events(finish="stop"), {"messages": "end_turn", "responses": "completed"}),
    ("compatible", lambda: chat_events(finish="length"), {"messages": "max_tokens", "responses": "max_output_tokens"}),
    (
        "compatible",
        lambda: chat_events(calls=[CHAT_CALL], finish="tool_calls"),
        {"messages": "tool_use", "responses": "completed"},
    ),
    (
        "compatible",
        lambda: chat_events(finish="content_filter"),
        {"messages": "refusal", "responses": "content_filter"},
    ),
    ("openai", response_stream, {"messages": "end_turn"}),
    ("openai", lambda: response_stream("incomplete", "max_output_tokens"), {"messages": "max_tokens"}),
    ("openai", lambda: response_stream("incomplete", "content_filter"), {"messages": "refusal"}),
]


@pytest.mark.parametrize(("kind", "events", "ends"), ENDS)
def test_stop_reason_is_translated(kind: str, events: Callable[[], list[bytes]], ends: dict[str, str]) -> None:
    with proxied(kind, lambda _call: Flow(chunks=events())) as proxy:
        for wire, end in ends.items():
            answer = proxy.post(PATHS[wire], body_for(wire, HI))
            assert answer.status_code == 200, answer.text
            assert read_end(wire, answer.json()) == end


# Kinds of events.

PARTS: Json = {
    "anthropic": lambda: message_events(
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "text", "text": "At noon."},
        CALL,
        stop="tool_use",
    ),
    "compatible": lambda: [
        sse({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "hm"}}]}),
        *chat_events("At noon.", calls=[CHAT_CALL], finish="tool_calls"),
    ],
    "openai": lambda: [
        *events_of([{"type": "response.created", "response": {**response_body(), "output": []}}]),
        *events_of(
            [{"type": "response.in_progress"}, {"type": "response.reasoning_summary_text.delta", "delta": "hm"}]
        ),
        *response_events(
            {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "e"},
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "At noon."}],
            },
            {"type": "function_call", "id": "f1", "call_id": "t1", "name": "tide", "arguments": "{}"},
        )[1:],
    ],
}
# The kinds of events that each client gets for reasoning, a text and a call.
KINDS = {
    "messages": {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "thinking_delta", "text_delta", "input_json_delta",
    },
    "chat": {"role", "reasoning_content", "content", "tool_calls", "finish_reason", "usage", "[DONE]"},
    "responses": {
        "response.created", "response.in_progress", "response.output_item.added", "response.output_item.done",
        "response.content_part.added", "response.content_part.done", "response.output_text.delta",
        "response.output_text.done", "response.function_call_arguments.delta", "response.function_call_arguments.done",
        "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.completed",
    },
}  # fmt: skip
OTHER_APIS = [
    ("messages", "compatible"), ("messages", "openai"), ("chat", "anthropic"), ("responses", "anthropic"),
    ("responses", "compatible"),
]  # fmt: skip


def kinds_in(wire: str, stream: str) -> Iterator[str]:
    for event in filter(None, stream.split("\n\n")):
        data = event.partition("data: ")[2]
        if data == "[DONE]":
            yield data
            continue
        fields = json.loads(data)
        if wire == "chat":
            yield from (name for name in ("usage",) if fields.get(name))
            for choice in fields["choices"]:
                yield from (name for name, value in choice["delta"].items() if value is not None)
                yield from ("finish_reason" for _ in range(1) if choice["finish_reason"])
            continue
        assert event.startswith(f"event: {fields['type']}\n")
        yield fields["type"]
        yield from (str(fields["delta"]["type"]) for _ in range(1) if fields["type"] == "content_block_delta")


@pytest.mark.parametrize(("wire", "kind"), OTHER_APIS)
def test_every_kind_of_event_is_written_for_the_client(wire: str, kind: str) -> None:
    with proxied(kind, lambda _call: Flow(chunks=PARTS[kind]())) as proxy:
        more = {"stream_options": {"include_usage": True}} if wire == "chat" else {}
        answer = proxy.post(PATHS[wire], body_for(wire, HI, stream=True, **more))
        assert answer.status_code == 200, answer.text
        # Only signed reasoning has an event of its own at its end.
        assert KINDS[wire] - set(kinds_in(wire, answer.text)) == set()


# Models.


def list_models(call: Call) -> Outcome:
    if call.method == "GET":
        return json_answer({"object": "list", "data": [{"id": "tides-large"}, {"id": "tides-small"}, {"id": 5}, "x"]})
    return Flow(chunks=chat_events())


def test_models_of_the_upstream_are_listed_and_can_be_named() -> None:
    with serve(list_models, Loopback()) as upstream:
        model = f"openai-compatible:{upstream.url}/v1#tides"
        with running("memory:", None, model=model) as server:
            listed = server.client.get("/v1/models").json()
            assert [one["id"] for one in listed["data"]] == [model, "tides-large", "tides-small"]
            assert server.client.get("/v1/models/tides-small").json()["id"] == "tides-small"
            assert server.client.get("/v1/models/tides-huge").status_code == 404
            for name, sent, is_noted in (("tides-small", "tides-small", False), ("tides-huge", "tides", True)):
                answer = server.client.post(PATHS["chat"], json=body_for("chat", HI, stream=True) | {"model": name})
                assert answer.status_code == 200, answer.text
                assert upstream.calls[-1].body["model"] == sent
                assert ("x-lamella-note" in answer.headers) is is_noted
            assert [call.path for call in upstream.calls if call.method == "GET"] == ["/v1/models"]


def test_list_of_models_has_the_configured_ones_if_the_upstream_lists_none() -> None:
    with proxied("openai", lambda _call: json_answer({"error": {"message": "no"}}, status=404)) as proxy:
        listed = proxy.server.client.get("/v1/models").json()
        assert [one["id"] for one in listed["data"]] == ["scripted:tides"]


def test_answer_that_the_client_changed_is_sent_as_it_is_now() -> None:
    with upstream_of("gemini", Say(text="I look.", calls=(Wanted(id="c1", name="tide", arguments={}),))) as (
        server,
        upstream,
    ):
        _check_changed_answer(Proxied(server, upstream))


def _check_changed_answer(gemini: Proxied) -> None:
    tools = [{"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}]
    said = gemini.post(PATHS["chat"], body_for("chat", HI, tools=tools)).json()["choices"][0]["message"]
    call = said["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "noon"}
    for text, is_signed in ((said["content"], True), ("[redacted]", False)):
        changed = {"role": "assistant", "content": text, "tool_calls": said["tool_calls"]}
        gemini.post(PATHS["chat"], body_for("chat", [*HI, changed, result], tools=tools))
        parts = gemini.upstream.calls[-1].body["contents"][1]["parts"]
        assert "".join(part.get("text", "") for part in parts) == text
        assert any("thoughtSignature" in part for part in parts) is is_signed
    forged = [{**call, "id": f"{call['id'][:60]}x"}]
    changed = {"role": "assistant", "content": said["content"], "tool_calls": forged}
    assert gemini.post(PATHS["chat"], body_for("chat", [*HI, changed], tools=tools)).status_code == 200
