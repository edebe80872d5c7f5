"""Requests and answers between APIs: what is translated arrives, what is not is refused or listed."""

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from tests.server.running import running
from tests.server.upstreams import (
    PATHS,
    Proxied,
    answer_usually,
    body_for,
    chat_events,
    message_events,
    proxied,
    response_events,
    upstream_of,
)
from tests.wire.serving import Call, Flow, Outcome

from lamella import ToolCall
from lamella.providers import ProviderReply, StopReason, Usage
from lamella.server.compat.model_calls import LATE_INSTRUCTIONS
from lamella.testing import ScriptedProvider, ScriptedReply

HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}
PIXEL = "iVBORw0KGgo="
PICTURE_URL = f"data:image/png;base64,{PIXEL}"


def translate(kind: str, wire: str, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The body that the upstream gets, and the note of the answer."""
    with proxied(kind) as proxy:
        answer = proxy.post(PATHS[wire], body)
        assert answer.status_code == 200, answer.text
        return json.loads(proxy.sent), answer.headers.get("x-lamella-note", "")


def test_chat_fields_reach_anthropic() -> None:
    function = {"name": "tide", "description": "Tides.", "parameters": SCHEMA, "strict": True}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    body = body_for(
        "chat",
        [
            {"role": "system", "content": "A"},
            {"role": "developer", "content": "B"},
            *HI,
            {"role": "system", "content": "C"},
        ],
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "tide"}},
        parallel_tool_calls=False,
        stop=".",
        temperature=0.5,
        top_p=0.9,
        reasoning_effort="high",
        response_format=form,
        user="u",
        seed=1,
        prompt_cache_key="k",
        store=False,
    )
    sent, note = translate("anthropic", "chat", body)
    assert sent["system"] == [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    assert [one["role"] for one in sent["messages"]] == ["user", "system"]
    assert sent["tools"] == [{"name": "tide", "description": "Tides.", "input_schema": SCHEMA, "strict": True}]
    assert sent["tool_choice"] == {"type": "tool", "name": "tide", "disable_parallel_tool_use": True}
    assert (sent["stop_sequences"], sent["temperature"], sent["top_p"], sent["max_tokens"]) == (
        ["."],
        0.5,
        0.9,
        128_000,
    )
    assert sent["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert note == "unused: user, prompt_cache_key, store, seed, response_format.name"


@pytest.mark.parametrize("kind", ["openai", "compatible"])
def test_anthropic_fields_reach_openai(kind: str) -> None:
    body = body_for(
        "messages",
        [
            *HI,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "tide", "input": {"day": "x"}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [
                            {"type": "text", "text": "noon"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                        ],
                    },
                    {"type": "text", "text": "And?"},
                ],
            },
            {"role": "system", "content": "Late."},
        ],
        system=[{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "B"}],
        tools=[{"name": "tide", "input_schema": SCHEMA}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        thinking={"type": "adaptive"},
        metadata={"user_id": "u"},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    )
    sent, note = translate(kind, "messages", body)
    assert note == "unused: cache_control, metadata, context_management"
    assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("required", False)
    if kind == "openai":
        assert [one.get("role") or one["type"] for one in sent["input"]] == [
            "developer", "user", "function_call", "function_call_output", "user", "developer",
        ]  # fmt: skip
        assert sent["input"][3]["output"][1] == {"type": "input_image", "image_url": PICTURE_URL}
        assert (sent["max_output_tokens"], sent["reasoning"]) == (100, {"effort": "low"})
        assert sent["text"]["format"]["schema"] == SCHEMA
        return
    system, _, call, result, pictures, *_ = sent["messages"]
    assert system == {"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}
    assert call["tool_calls"][0]["function"] == {"name": "tide", "arguments": '{"day":"x"}'}
    assert result == {"role": "tool", "tool_call_id": "t1", "content": "noon"}
    assert pictures["content"][1] == {"type": "image_url", "image_url": {"url": PICTURE_URL}}
    assert [one["role"] for one in sent["messages"]][5:] == ["user", "system"]
    assert (sent["max_tokens"], sent["reasoning_effort"]) == (100, "low")
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA


def test_stop_sequences_of_anthropic_use_chat_completions() -> None:
    with proxied("openai") as proxy:
        assert proxy.post(PATHS["messages"], body_for("messages", HI, stop_sequences=["."])).status_code == 200
        assert (proxy.upstream.calls[-1].path, json.loads(proxy.sent)["stop"]) == ("/v1/chat/completions", ["."])


def test_images_and_documents_of_users_are_translated() -> None:
    parts = [
        {"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": PICTURE_URL}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
    ]
    sent, _ = translate("anthropic", "chat", body_for("chat", [{"role": "user", "content": parts}]))
    kinds = [(one["type"], one.get("source", {}).get("type")) for one in sent["messages"][0]["content"]]
    assert kinds == [("text", None), ("image", "base64"), ("image", "url"), ("document", "base64")]


# Tools of Codex.


def test_custom_namespace_and_search_tools_are_restored() -> None:
    tools: list[dict[str, Any]] = [
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}},
        {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}]},
        {"type": "tool_search", "execution": "client", "description": "Find tools."},
        {"type": "web_search"},
    ]
    calls = [("patch", {"input": "*** Begin"}), ("mcp__read", {"day": "1"}), ("tool_search", {"query": "q"})]
    blocks = [
        {"type": "tool_use", "id": f"t{at}", "name": name, "input": given} for at, (name, given) in enumerate(calls)
    ]
    with proxied("anthropic", lambda _call: Flow(chunks=message_events(*blocks, stop="tool_use"))) as proxy:
        answer = proxy.post(PATHS["responses"], body_for("responses", HI, tools=tools))
        assert "tools.web_search" in answer.headers["x-lamella-note"]
        custom, function, search = answer.json()["output"]
        assert (custom["type"], custom["name"], custom["input"]) == ("custom_tool_call", "patch", "*** Begin")
        assert (function["namespace"], function["name"], function["arguments"]) == ("mcp", "read", '{"day": "1"}')
        assert (search["type"], search["arguments"]) == ("tool_search_call", {"query": "q"})
        sent = json.loads(proxy.sent)
        assert [one["name"] for one in sent["tools"]] == ["patch", "mcp__read", "tool_search"]
        assert "start: X" in sent["tools"][0]["description"]
        outputs = [
            {"type": "custom_tool_call_output", "call_id": "t0", "output": "done"},
            {"type": "function_call_output", "call_id": "t1", "output": "text"},
            {
                "type": "tool_search_output",
                "call_id": "t2",
                "tools": [{"type": "function", "name": "new", "parameters": SCHEMA}],
            },
        ]
        again = body_for("responses", [*HI, custom, function, search, *outputs], tools=tools)
        assert proxy.post(PATHS["responses"], again).status_code == 200
        sent = json.loads(proxy.sent)
        assert [one["input"] for one in sent["messages"][1]["content"]] == [given for _, given in calls]
        assert [one["tool_use_id"] for one in sent["messages"][2]["content"]] == ["t0", "t1", "t2"]
        assert [one["name"] for one in sent["tools"]][-1] == "new"


# Reasoning, both ways.


def test_anthropic_thinking_survives_responses_client() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    call = {"type": "tool_use", "id": "t1", "name": "tide", "input": {}}
    with proxied("anthropic", lambda _call: Flow(chunks=message_events(thinking, call, stop="tool_use"))) as proxy:
        output = proxy.post(PATHS["responses"], body_for("responses", HI)).json()["output"]
        result = {"type": "function_call_output", "call_id": "t1", "output": "noon"}
        # Codex leaves out the status of reasoning and adds an empty content.
        echoed = [{**{k: v for k, v in one.items() if k != "status"}, "content": None} for one in output]
        proxy.post(PATHS["responses"], body_for("responses", [*HI, *echoed, result]))
        assert json.loads(proxy.sent)["messages"][1]["content"] == [thinking, call]


def test_openai_reasoning_survives_anthropic_client() -> None:
    reasoning = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "e1"}
    call = {"type": "function_call", "id": "f1", "call_id": "t1", "name": "tide", "arguments": "{}"}

    def answer(one: Call) -> Outcome:
        return Flow(chunks=response_events(reasoning, call)) if one.body.get("stream") else answer_usually(one)

    with proxied("openai", answer) as proxy:
        content = proxy.post(PATHS["messages"], body_for("messages", HI)).json()["content"]
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "noon"}
        history = [*HI, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        proxy.post(PATHS["messages"], body_for("messages", history))
        assert reasoning in json.loads(proxy.sent)["input"]


def test_foreign_thinking_is_omitted_and_listed() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    history = [*HI, {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, *HI]
    sent, note = translate("compatible", "messages", body_for("messages", history))
    assert (note, "hm" in json.dumps(sent)) == ("unused: reasoning", False)


def test_provider_reply_survives_chat_client() -> None:
    native = ProviderReply(
        format="gemini", json='[{"function_call":{"name":"tide","args":{}},"thought_signature":"t"}]'
    )
    script = ScriptedProvider(
        ScriptedReply(calls=(ToolCall(id="c1", name="tide", arguments="{}"),), provider_reply=native), "At noon."
    )
    with running("memory:", script) as server:
        tools = [{"type": "function", "function": {"name": "tide", "parameters": SCHEMA}}]
        body = body_for("chat", HI, tools=tools)
        message = server.client.post(PATHS["chat"], json=body).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "noon"}
        server.client.post(PATHS["chat"], json={**body, "messages": [*HI, message, result]})
    _, said, told = script.requests[1].messages
    assert (said.provider_reply, said.calls[0].id, told.call_id) == (native, "c1", "c1")


# Answers, through the SDKs.

ANSWERS = {
    "anthropic": lambda: message_events(
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "t1", "name": "tide", "input": {"day": "x"}},
        stop="tool_use",
    ),
    "compatible": lambda: chat_events(
        "Let me look.",
        calls=[{"id": "t1", "function": {"name": "tide", "arguments": '{"day": "x"}'}}],
        finish="tool_calls",
    ),
    "openai": lambda: response_events(
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "id": "f1", "call_id": "t1", "name": "tide", "arguments": '{"day": "x"}'},
    ),
}


def ask_sdk(proxy: Proxied, wire: str, *, stream: bool) -> tuple[str, Any, str, tuple[int, int]]:
    """The text, the call, the end and the counts of an answer, as an SDK reads them."""
    if wire == "messages":
        with anthropic.Anthropic(base_url=proxy.server.url, api_key="unused", max_retries=0) as client:
            given: Any = {"model": "lamella", "max_tokens": 50, "messages": HI}
            if stream:
                with client.messages.stream(**given) as events:
                    made: Any = events.get_final_message()
            else:
                made = client.messages.create(**given)
        text, call = made.content
        usage = made.usage
        return text.text, (call.id, call.input), made.stop_reason, (usage.cache_read_input_tokens, usage.output_tokens)
    with openai.OpenAI(base_url=f"{proxy.server.url}/v1", api_key="unused", max_retries=0) as sdk:
        return _ask_openai(sdk, wire, stream=stream)


def _ask_openai(sdk: openai.OpenAI, wire: str, *, stream: bool) -> tuple[str, Any, str, tuple[int, int]]:
    given: Any = {"model": "lamella", **({"input": "hi"} if wire == "responses" else {"messages": HI})}
    made: Any
    if wire == "responses":
        if stream:
            with sdk.responses.stream(**given) as events:
                list(events)
                made = events.get_final_response()
        else:
            made = sdk.responses.create(**given)
        call = made.output[-1]
        counts = (made.usage.input_tokens_details.cached_tokens, made.usage.output_tokens)
        return made.output_text, (call.call_id, json.loads(call.arguments)), made.status, counts
    if stream:
        with sdk.chat.completions.stream(**given, stream_options={"include_usage": True}) as chunks:
            made = chunks.get_final_completion()
    else:
        made = sdk.chat.completions.create(**given)
    message = made.choices[0].message
    call = message.tool_calls[0]
    counts = (made.usage.prompt_tokens_details.cached_tokens, made.usage.completion_tokens)
    return message.content, (call.id, json.loads(call.function.arguments)), made.choices[0].finish_reason, counts


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        ("chat", "anthropic"),
        ("responses", "anthropic"),
        ("messages", "openai"),
        ("messages", "compatible"),
        ("responses", "compatible"),
    ],
)
def test_answers_are_read_by_the_sdks(wire: str, kind: str, *, stream: bool) -> None:
    ends = {"messages": "tool_use", "chat": "tool_calls", "responses": "completed"}
    with proxied(kind, lambda _call: Flow(chunks=ANSWERS[kind]())) as proxy:
        told = ask_sdk(proxy, wire, stream=stream)
    assert told == ("Let me look.", ("t1", {"day": "x"}), ends[wire], (80, 7))


@pytest.mark.parametrize("wire", PATHS)
def test_answer_cut_by_length_reports_it(wire: str) -> None:
    reply = ScriptedReply(text="At n", stop_reason=StopReason.LENGTH, usage=Usage(plain=1, output=2))
    with running("memory:", ScriptedProvider(reply)) as server:
        body = server.client.post(PATHS[wire], json=body_for(wire, HI)).json()
    ends = {"messages": "stop_reason", "responses": "status"}
    ended = body["choices"][0]["finish_reason"] if wire == "chat" else body[ends[wire]]
    assert ended == {"messages": "max_tokens", "chat": "length", "responses": "incomplete"}[wire]


# Responses that continue earlier ones, and models that clients name.


def test_response_continues_a_stored_one_and_can_be_fetched_and_deleted() -> None:
    with proxied("anthropic") as proxy:
        client = proxy.server.client
        first = proxy.post(PATHS["responses"], body_for("responses", HI)).json()["id"]
        second = proxy.post(
            PATHS["responses"], {"model": "lamella", "input": "And?", "previous_response_id": first}
        ).json()
        texts = [one["content"][0]["text"] for one in json.loads(proxy.sent)["messages"]]
        assert texts == ["hi", "At noon.", "And?"]
        assert client.get(f"/v1/responses/{second['id']}").json() == second
        assert client.delete(f"/v1/responses/{first}").json()["deleted"] is True
        for unknown in (first, "resp_elsewhere", second["id"]):
            body = {"model": "lamella", "input": "Hm?", "previous_response_id": unknown}
            assert proxy.post(PATHS["responses"], body).status_code == 404
        unstored = proxy.post(PATHS["responses"], body_for("responses", HI, store=False)).json()["id"]
        assert client.get(f"/v1/responses/{unstored}").status_code == 404


def test_unknown_model_means_the_default_and_is_noted() -> None:
    with running("memory:", None) as server:
        body = {"model": "gpt-4o-mini", "max_tokens": 5, "messages": HI}
        answer = server.client.post("/v1/messages/count_tokens", json=body)
        assert answer.status_code in (200, 400), answer.text


def test_field_that_provider_lacks_is_refused() -> None:
    with running("memory:", ScriptedProvider("x")) as server:
        answer = server.client.post(PATHS["chat"], json=body_for("chat", HI, stop=["."]))
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "stop")


# Instructions in the middle of a history, which Gemini has no role for.

LATE = {
    "messages": body_for("messages", [*HI, {"role": "system", "content": "Be brief."}], system="A"),
    "chat": body_for("chat", [{"role": "system", "content": "A"}, *HI, {"role": "developer", "content": "Be brief."}]),
    "responses": body_for("responses", [*HI, {"role": "developer", "content": "Be brief."}], instructions="A"),
}


@pytest.mark.parametrize("wire", PATHS)
def test_late_instructions_are_marked_parts_of_the_user_if_switched_on(wire: str) -> None:
    with upstream_of("gemini", serve_settings={"late_instructions": True}) as (server, seen):
        answer = server.client.post(PATHS[wire], json=LATE[wire])
        assert answer.status_code == 200, answer.text
        body = seen.calls[-1].body
        assert body["systemInstruction"]["parts"][0]["text"] == "A"
        (asked,) = body["contents"]
        assert asked["role"] == "user"
        assert "".join(part["text"] for part in asked["parts"]) == f"hi\n\n{LATE_INSTRUCTIONS}\n\nBe brief."


def test_late_instructions_after_an_answer_are_a_message_of_their_own() -> None:
    said = {"role": "assistant", "content": "a"}
    messages = [*HI, said, {"role": "system", "content": "B"}, {"role": "system", "content": "C"}, *HI]
    with upstream_of("gemini", serve_settings={"late_instructions": True}) as (server, seen):
        assert server.client.post(PATHS["chat"], json=body_for("chat", messages)).status_code == 200
        told = ["".join(part["text"] for part in one["parts"]) for one in seen.calls[-1].body["contents"]]
        marked = f"{LATE_INSTRUCTIONS}\n\nB\n\n{LATE_INSTRUCTIONS}\n\nC"
        assert told == ["hi", "a", marked, "hi"]


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode"])
def test_recorded_program_is_answered_by_gemini(name: str) -> None:
    recorded = Path(f"tests/clients/recorded/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    with upstream_of("gemini", serve_settings={"late_instructions": True}) as (server, _):
        for one in map(json.loads, recorded):
            answer = server.client.post(one["path"], json=one["body"] | {"model": "lamella"})
            assert answer.status_code == 200, answer.text
