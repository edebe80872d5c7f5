"""Rounds of tools through the real SDKs: however an answer came in, its calls are answered and talked on from."""

import dataclasses
import json
from itertools import pairwise
from typing import Any

import pytest
from tests.wire import openai_caching
from tests.wire.cases import NATIVE
from tests.wire.kinds import WIRES, Wire
from tests.wire.material import READ, ROUND, SEARCH, answered, ask, grown, note, reply_to, round_of, system, user
from tests.wire.script import Say, Wanted
from tests.wire.sdks import WAYS, Call, Spoken

from lamella.core.messages import (
    CacheBoundaries,
    ModelReply,
    ModelRequest,
    ProviderReply,
    StopReason,
    ToolCall,
    ToolOutput,
)
from lamella.core.values import replace
from lamella.providers.openai_responses import read_reply
from lamella.providers.sdk_objects import BuiltInWireFormats

SPEAKS = BuiltInWireFormats()
CALLING = Say(
    text="Let me look at it.",
    reasoning="Where is it?",
    calls=(Wanted(id="c1", name="search", arguments={"q": "tides"}), Wanted(id="c2", name="read", arguments={})),
)
OUTPUTS = (ToolOutput(call="c1", output="Two notes."), ToolOutput(call="c2", output="", failed=True))
# Where each format keeps the messages of a request.
PLACES = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}
FORMATS = {
    "anthropic": "anthropic",
    "openai": "openai_chat",
    "openai-responses": "openai_responses",
    "gemini": "gemini",
}


def _ask(model: str) -> ModelRequest:
    shelf = system(note("tides", 20_000), instructions="Be terse. " * 900)
    return replace(ask(shelf, user("When is high tide?"), model=model), tools=(SEARCH, READ))


def _later(request: ModelRequest, reply: ModelReply) -> ModelRequest:
    return grown(answered(request, round_of(reply, *OUTPUTS)), "At noon.", "And low tide?")


def _results(body: dict[str, Any], name: str) -> list[tuple[str, str, bool]]:
    """Every result in a body: the call it answers, its text, whether it failed."""
    talk = body[PLACES[name]]
    match name:
        case "anthropic":
            blocks = (block for message in talk for block in message["content"] if block["type"] == "tool_result")
            return [
                (one["tool_use_id"], "".join(part["text"] for part in one.get("content", [])), "is_error" in one)
                for one in blocks
            ]
        case "openai_chat":
            return [_split(one["tool_call_id"], one["content"]) for one in talk if one["role"] == "tool"]
        case "openai_responses":
            return [_split(one["call_id"], one["output"]) for one in talk if one.get("type") == "function_call_output"]
    parts = (part["functionResponse"] for content in talk for part in content["parts"] if "functionResponse" in part)
    return [(one["id"], next(iter(one["response"].values())), "error" in one["response"]) for one in parts]


def _words(value: object) -> str:
    """All words in a value, one after the other; some formats have a text in parts."""
    if isinstance(value, dict):
        return _words(list(value.values()))
    return value if isinstance(value, str) else "".join(map(_words, value)) if isinstance(value, list) else ""


def _split(call: str, text: str) -> tuple[str, str, bool]:
    return call, text.removeprefix("Error: "), text.startswith("Error: ")


@pytest.mark.parametrize(("spoken", "call"), WAYS)
def test_tool_calls_in_any_form_are_answered_and_continued(spoken: Spoken, call: Call) -> None:
    request = _ask(spoken.model)
    with spoken.serve(dataclasses.replace(CALLING, text="Let me look at it."), Say(text="At noon."), Say()) as server:
        reply = SPEAKS.parse_reply(call(server.url, SPEAKS.build_request_unchecked(spoken.name, request)))
        for further in (answered(request, round_of(reply, *OUTPUTS)), _later(request, reply)):
            spoken.calls[0](server.url, SPEAKS.build_request_unchecked(spoken.name, further))
    assert [(made.id, made.name) for made in reply.calls] == [("c1", "search"), ("c2", "read")]
    assert reply.provider_reply is not None
    name = FORMATS[spoken.name]
    for body in server.bodies[1:]:
        assert _results(body, name) == [("c1", "Two notes.", False), ("c2", "", True)]
        assert "Let me look at it." in _words(body[PLACES[name]])
        # In Chat Completions thoughts are a field of other servers, which OpenAI refuses.
        assert ("Where is it?" in _words(body[PLACES[name]])) == (name != "openai_chat")


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_each_request_of_tool_loop_extends_previous(wire: Wire) -> None:
    request = _ask(wire.model)
    with wire.serve(CALLING, Say(), Say(), Say()) as server:
        reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request)
        first = answered(request, round_of(reply, *OUTPUTS))
        again = round_of(replace(reply, calls=(ToolCall(id="c9", name="read", arguments="{}"),), provider_reply=None),
                         ToolOutput(call="c9", output="Low at six."))  # fmt: skip
        second = answered(first, again)
        third = grown(second, "At noon.", "And low tide?")
        replies = [
            reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), one) for one in (first, second, third)
        ]
    talks = [_unmarked(body[PLACES[wire.name]]) for body in server.bodies]
    for before, after in pairwise(talks):
        assert after[: len(before)] == before
    reads = [one.usage.read or 0 for one in replies]
    assert reads == sorted(reads)
    assert reads[0] > 4_096


def _unmarked(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same without marks, which are no part of what a cache compares."""
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: _unmarked(v) for k, v in value.items() if k not in ("cache_control", "prompt_cache_breakpoint")}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_reply_of_other_format_is_translated(wire: Wire) -> None:
    calls = (ToolCall(id="c1", name="search", arguments='{"q": "x"}'), ToolCall(id="c2", name="read", arguments=""))
    plain = round_of(ModelReply(text="I look.", stop=StopReason.TOOL_CALLS, calls=calls), *OUTPUTS)
    foreign = replace(plain, provider_reply=ProviderReply(format="another", json='["not ours"]'))
    bodies = []
    for one in (plain, foreign):
        with wire.serve() as server:
            reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), answered(_ask(wire.model), one))
        bodies.append(server.bodies[0])
    assert bodies[0] == bodies[1]
    assert "I look." in json.dumps(bodies[0])


@pytest.mark.parametrize("wire", WIRES[1:3], ids=lambda wire: wire.name)
def test_last_message_within_round_is_cached_although_turn_is_unstable(wire: Wire) -> None:
    request = _ask(wire.model)
    with wire.serve(CALLING, Say()) as server:
        reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request)
        inside = replace(
            answered(request, round_of(reply, *OUTPUTS)), cache_boundaries=CacheBoundaries(stable_messages=1)
        )
        reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), inside)
    assert server.bodies[1]["prompt_cache_options"]["mode"] == "implicit"


def test_reasoning_not_provided_by_openai_is_not_requested() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search", "arguments": "{}"},
    ]
    reply = read_reply({"object": "response", "id": "r", "status": "completed", "output": output})
    assert reply is not None
    assert reply.provider_reply is not None
    assert json.loads(reply.provider_reply.json) == [
        {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"}
    ]
    request = replace(_ask(openai_caching.MODEL), model=openai_caching.MODEL)
    body = SPEAKS.build_request_unchecked("openai-responses", answered(request, round_of(reply, OUTPUTS[0])))
    assert [item.get("type") for item in body["input"][-2:]] == ["function_call", "function_call_output"]


def test_split_surrogates_are_joined_when_sent_back() -> None:
    def chunk(**delta: object) -> dict[str, object]:
        return {"object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": None}]}

    def call(arguments: str) -> dict[str, object]:
        function = {"name": "search" if arguments.startswith("{") else "", "arguments": arguments}
        return chunk(tool_calls=[{"index": 0, "id": "c1", "function": function}])

    end = {"object": "chat.completion.chunk", "choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    halves = [
        chunk(reasoning_content="\ud83c"),
        chunk(reasoning_content="\udf0a"),
        call('{"q": "\ud83c'),
        call('\udf0a"}'),
    ]
    reply = SPEAKS.parse_reply([*halves, end])
    assert [made.arguments for made in reply.calls] == ['{"q": "🌊"}']
    assert reply.provider_reply is not None
    assert json.loads(reply.provider_reply.json.encode())["reasoning_content"] == "🌊"


@pytest.mark.parametrize(("model", "kept"), [("deepseek-chat", True), ("house-model", True), ("gpt-6-sol", False)])
def test_reasoning_is_returned_to_servers_that_show_it_not_to_openai(model: str, kept: bool) -> None:  # noqa: FBT001
    native = ProviderReply(format="openai_chat", json=json.dumps(NATIVE["openai_chat"]))
    body = SPEAKS.build_request_unchecked(
        "openai", answered(ask(user("When?"), model=model), replace(ROUND, provider_reply=native))
    )
    said = body["messages"][1]
    assert ("reasoning_content" in said) is kept
    assert (said["content"], [call["id"] for call in said["tool_calls"]]) == ("Let me look.", ["call_1"])
