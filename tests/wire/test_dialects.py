"""Real SDK clients send the arguments that Lamella builds, and their objects are parsed."""

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from tests.wire import anthropic_server, openai_caching
from tests.wire.cases import cases, golden_path
from tests.wire.kinds import WIRES, Wire
from tests.wire.material import SEARCH, ask, note, system, user
from tests.wire.openai_chat_server import chat_server
from tests.wire.openai_responses_server import responses_server
from tests.wire.script import Fail, Say
from tests.wire.sdks import (
    EVERY,
    SAID,
    WAYS,
    Call,
    Spoken,
    ask_completion_chunks,
    ask_completion_stream,
    ask_content_chunks,
    ask_message_events,
    ask_message_stream,
    ask_response_events,
    ask_response_stream,
    open_anthropic,
    open_gemini,
    open_openai,
)

from lamella.core.messages import ModelReply, ModelRequest, StopReason, ToolCall
from lamella.core.values import replace
from lamella.errors import ContextOverflowError, InvalidOperationError, InvalidReplyError
from lamella.providers.sdk_objects import WIRE_FORMATS, BuiltInWireFormats

SPEAKS = BuiltInWireFormats()


def _request(model: str) -> ModelRequest:
    shelf = system(note("tides", 20_000), instructions="Be terse. " * 900)
    return replace(ask(shelf, user("When is high tide?"), model=model), tools=(SEARCH,))


def _answer(spoken: Spoken, call: Call, *says: Say) -> ModelReply:
    """The reply to the second of two equal requests, so that the cache has something to say."""
    arguments = SPEAKS.build_request_unchecked(spoken.name, _request(spoken.model))
    with spoken.serve(Say(), *says) as server:
        spoken.calls[0](server.url, arguments)
        return SPEAKS.parse_reply(call(server.url, arguments))


@pytest.mark.parametrize(("spoken", "call"), WAYS)
def test_whatever_an_sdk_gives_is_the_same_reply(spoken: Spoken, call: Call) -> None:
    whole = _answer(spoken, spoken.calls[0], SAID)
    reply = _answer(spoken, call, SAID)
    assert (reply.text, reply.stop, reply.id) == (SAID.text, StopReason.TOOL_CALLS, whole.id)
    assert [(made.id, made.name) for made in reply.calls] == [("c1", "search")]
    assert _arguments(reply.calls[0]) == '{"q":"tides"}'
    assert reply.usage == whole.usage
    assert reply.usage.fault is None
    assert reply.usage.read
    assert reply.usage.read > 4_096
    assert reply.usage.output == 7
    assert reply.reasoning == SAID.reasoning


def _arguments(call: ToolCall) -> str:
    return call.arguments.replace(" ", "")


@pytest.mark.parametrize(("spoken", "call"), WAYS)
def test_answer_without_tools_ends(spoken: Spoken, call: Call) -> None:
    reply = _answer(spoken, call, dataclasses.replace(SAID, calls=(), reasoning=""))
    assert (reply.text, reply.stop, reply.calls) == (SAID.text, StopReason.END, ())


@pytest.mark.parametrize(
    ("spoken", "call", "word"),
    [
        pytest.param(EVERY[0], ask_message_stream, "max_tokens", id="anthropic"),
        pytest.param(EVERY[1], ask_completion_stream, "length", id="openai"),
        pytest.param(EVERY[2], ask_response_events, "max_output_tokens", id="openai-responses"),
        pytest.param(EVERY[3], ask_content_chunks, "MAX_TOKENS", id="gemini"),
    ],
)
def test_truncated_answer_is_read(spoken: Spoken, call: Call, word: str) -> None:
    reply = _answer(spoken, call, Say(text=SAID.text, stop=word))
    assert (reply.text, reply.stop) == (SAID.text, StopReason.LENGTH)


@pytest.mark.parametrize("spoken", EVERY, ids=lambda spoken: spoken.name)
def test_unread_stream_is_read(spoken: Spoken) -> None:
    arguments = SPEAKS.build_request_unchecked(spoken.name, _request(spoken.model))
    with spoken.serve(SAID) as server:
        reply = _read_late(spoken.name, server.url, arguments)
    assert reply.text == SAID.text


def _read_late(name: str, url: str, arguments: dict[str, Any]) -> ModelReply:
    if name == "anthropic":
        with open_anthropic(url) as client, client.messages.create(**arguments, stream=True) as events:
            return SPEAKS.parse_reply(events)
    if name == "gemini":
        with open_gemini(url) as google:
            return SPEAKS.parse_reply(google.models.generate_content_stream(**arguments))
    with open_openai(url) as openai:
        if name == "openai":
            return SPEAKS.parse_reply(openai.chat.completions.create(**arguments, stream=True))
        with openai.responses.create(**arguments, stream=True) as response:
            return SPEAKS.parse_reply(response)


def test_truncated_response_from_stream_helper_is_error_with_hint() -> None:
    arguments = SPEAKS.build_request_unchecked("openai-responses", _request(openai_caching.MODEL))
    with responses_server(dataclasses.replace(SAID, calls=(), stop="max_output_tokens")) as server:
        stream = ask_response_stream(server.url, arguments)
    with pytest.raises(InvalidReplyError, match="no completed answer") as caught:
        SPEAKS.parse_reply(stream)
    assert "list" in caught.value.hint


@pytest.mark.parametrize("spoken", EVERY, ids=lambda spoken: spoken.name)
def test_broken_stream_is_no_reply(spoken: Spoken) -> None:
    arguments = SPEAKS.build_request_unchecked(spoken.name, _request(spoken.model))
    streams = {
        "anthropic": ask_message_events,
        "openai": ask_completion_chunks,
        "openai-responses": ask_response_events,
    }
    with spoken.serve(dataclasses.replace(SAID, calls=())) as server:
        events = streams.get(spoken.name, ask_content_chunks)(server.url, arguments)
    assert isinstance(events, list)
    with pytest.raises(InvalidReplyError, match="has not ended"):
        SPEAKS.parse_reply(events[:3])


def test_failed_response_raises_its_error() -> None:
    arguments = SPEAKS.build_request_unchecked("openai-responses", _request(openai_caching.MODEL))
    failing = Fail(kind="context_length_exceeded", words="Your input exceeds the context window.", inside=True)
    with responses_server(failing) as server:
        events = ask_response_events(server.url, arguments)
    assert isinstance(events, list)
    with pytest.raises(ContextOverflowError, match="context window"):
        SPEAKS.parse_reply(events)
    with pytest.raises(ContextOverflowError, match="context window"):
        SPEAKS.parse_reply(events[-1].response)


def test_coroutine_must_be_awaited() -> None:
    request = SPEAKS.build_request_unchecked("anthropic", _request(anthropic_server.MODEL))

    async def read_too_early(url: str) -> None:
        async with AsyncAnthropic(api_key=anthropic_server.KEY, base_url=url) as client:
            unsent = client.messages.create(**request)
            with pytest.raises(InvalidOperationError, match="awaited"):
                SPEAKS.parse_reply(unsent)
            assert SPEAKS.parse_reply(await unsent).text == "Certainly."
            async with client.messages.stream(**request) as stream:
                with pytest.raises(InvalidOperationError, match="awaited"):
                    SPEAKS.parse_reply(stream)
                assert SPEAKS.parse_reply([event async for event in stream]).text == "Certainly."

    with anthropic_server.anthropic_server() as server:
        asyncio.run(read_too_early(server.url))


def test_events_of_an_asynchronous_client_are_read() -> None:
    request = SPEAKS.build_request_unchecked("openai", _request(openai_caching.MODEL))

    async def read(url: str) -> ModelReply:
        async with AsyncOpenAI(api_key=openai_caching.KEY, base_url=f"{url}/v1") as client:
            stream = await client.chat.completions.create(**request, stream=True)
            with pytest.raises(InvalidOperationError, match="awaited"):
                SPEAKS.parse_reply(stream)
            return SPEAKS.parse_reply([chunk async for chunk in stream])

    with chat_server(SAID) as server:
        assert asyncio.run(read(server.url)).text == SAID.text


@pytest.mark.parametrize("unknown", ["At noon.", b"At noon.", None, 7, {"text": "At noon."}, ["At", "noon."], object()])
def test_invalid_response_is_refused_with_hint(unknown: object) -> None:
    with pytest.raises(InvalidOperationError) as caught:
        SPEAKS.parse_reply(unknown)
    assert "Give what the SDK returned" in caught.value.hint


def test_consumed_stream_says_how_to_keep_it() -> None:
    with pytest.raises(InvalidOperationError, match="nothing in this list") as caught:
        SPEAKS.parse_reply([])
    assert "list" in caught.value.hint


@pytest.mark.parametrize(
    ("dialect", "model"),
    [
        ("openai", "claude-opus-5-5"),
        ("openai-responses", "claude-opus-5-5"),
        ("anthropic", "gpt-6"),
        ("gemini", "gpt-6"),
    ],
)
def test_gateway_model_gets_no_native_fields(dialect: str, model: str) -> None:
    written = json.dumps(SPEAKS.build_http_body(dialect, _request(model)))
    for field in ("cache_control", "prompt_cache_breakpoint", "prompt_cache_options", "diagnostics"):
        assert field not in written


def test_model_reply_is_returned_unchanged() -> None:
    reply = ModelReply(text="At noon.", stop=StopReason.END)
    assert SPEAKS.parse_reply(reply) is reply


def test_unknown_provider_is_refused_with_names() -> None:
    with pytest.raises(InvalidOperationError, match="'openapi'") as caught:
        SPEAKS.build_request_unchecked("openapi", _request("gpt-6"))
    assert caught.value.hint == "Choose one of: anthropic, openai, openai-responses, gemini."


@pytest.mark.parametrize(
    ("wire", "dialect", "case"),
    [
        pytest.param(wire, dialect.name, case, id=f"{dialect.name}.{case}")
        for wire, dialect in zip(WIRES, WIRE_FORMATS, strict=True)
        for case in cases(wire)
    ],
)
def test_http_body_equals_sdk_body_without_stream(wire: Wire, dialect: str, case: str) -> None:
    sent = json.loads(golden_path(wire, case).read_text(encoding="utf-8"))
    for name in ("stream", "stream_options"):
        sent.pop(name, None)
    assert json.loads(json.dumps(SPEAKS.build_http_body(dialect, cases(wire)[case]))) == sent


class Broken:
    """An object whose every part fails."""

    def __getattr__(self, name: str) -> object:
        raise ValueError(name)


@pytest.mark.parametrize("answer", [Broken(), object, InvalidReplyError], ids=["broken", "a class", "an error"])
def test_response_failing_on_read_is_refused(answer: object) -> None:
    with pytest.raises(InvalidOperationError, match="no answer that Lamella knows"):
        BuiltInWireFormats().parse_reply(answer)


def _whole_completion(content: object) -> dict[str, object]:
    return {"object": "chat.completion", "choices": [{"message": {"content": content}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "At "}, {"type": "text", "text": "noon."}], "At noon."),
        (["At ", "noon."], "At noon."),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "No."}], "No."),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([], ""),
        (None, ""),
    ],
)
def test_completion_in_parts_is_one_text(content: object, text: str) -> None:
    assert SPEAKS.parse_reply(_whole_completion(content)).text == text


@pytest.mark.parametrize("content", [5, True, {"text": "At noon."}, [5], [None], [{"type": "text", "text": 5}]])
def test_completion_with_non_text_content_is_refused(content: object) -> None:
    with pytest.raises(InvalidReplyError, match=r"The content of the answer is .*, and not a text\."):
        SPEAKS.parse_reply(_whole_completion(content))


def test_completion_without_a_message_is_refused() -> None:
    with pytest.raises(InvalidReplyError, match=r"The message of the answer is 'At noon\.', of type str"):
        SPEAKS.parse_reply({"object": "chat.completion", "choices": [{"message": "At noon.", "finish_reason": "stop"}]})


def _whole_message(content: object) -> dict[str, object]:
    return {"type": "message", "content": content, "stop_reason": "end_turn"}


def _whole_response(content: object) -> dict[str, object]:
    return {"object": "response", "status": "completed", "output": [{"type": "message", "content": content}]}


@pytest.mark.parametrize(
    ("say", "kind"), [(_whole_message, "text"), (_whole_response, "output_text")], ids=["message", "response"]
)
def test_text_content_is_parsed_and_other_refused(say: Callable[[object], object], kind: str) -> None:
    assert SPEAKS.parse_reply(say("At noon.")).text == "At noon."
    assert SPEAKS.parse_reply(say([{"type": kind, "text": "At "}, {"type": kind, "text": "six."}])).text == "At six."
    for content in (5, {"text": "At noon."}, [{"type": kind, "text": None}]):
        with pytest.raises(InvalidReplyError, match="and not a text"):
            SPEAKS.parse_reply(say(content))


@pytest.mark.parametrize("spoken", EVERY, ids=lambda spoken: str(spoken.name))
def test_request_can_forbid_tool_calls(spoken: Spoken) -> None:
    may, may_not = (
        SPEAKS.build_request_unchecked(spoken.name, replace(_request(spoken.model), allows_tool_calls=call))
        for call in (True, False)
    )
    told = [json.dumps(body, default=str).lower() for body in (may, may_not)]
    assert ["none" in text.partition("tool_c")[2][:80] for text in told] == [False, True]
    bare = replace(_request(spoken.model), tools=(), allows_tool_calls=False)
    assert "tool_c" not in json.dumps(SPEAKS.build_request_unchecked(spoken.name, bare), default=str)
    with spoken.serve(Say(text="At noon.")) as server:
        assert SPEAKS.parse_reply(spoken.calls[0](server.url, may_not)).text == "At noon."
