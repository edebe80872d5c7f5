"""OpenAI's cache by its documented rules, in both APIs, over the bytes that the real SDK sends."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.material import SEARCH, answered, ask, assistant, grown, note, reply_to, round_of, system, user
from tests.wire.openai_caching import KEY, LOCAL_MODEL, MODEL, OLD_MODEL
from tests.wire.openai_chat_server import ChatServer, Dialect, chat_server
from tests.wire.openai_responses_server import ResponsesServer, responses_server
from tests.wire.script import Say, Wanted

from lamella.core.messages import (
    UNKNOWN_USAGE,
    CacheBoundaries,
    CacheDiagnosis,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolOutput,
)
from lamella.core.values import replace
from lamella.errors import AuthenticationError, InvalidOperationError
from lamella.providers import openai_chat as chat_request
from lamella.providers import openai_chat as chat_response
from lamella.providers import openai_responses as responses_request
from lamella.providers import openai_responses as responses_response
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.openai_chat import OpenAIChatProvider
from lamella.providers.openai_responses import OpenAIResponsesProvider
from lamella.providers.wire import prompt_cache_key

MODELS = BuiltInModelProfiles()
PROFILE = MODELS.get_model_profile(MODEL)
START = ask(system(note("tides", 8_000), instructions="Be terse. " * 500), user("First?"), model=MODEL)
Build = Callable[..., dict[str, Any]]
BUILDS = [
    pytest.param(chat_request.build_request, id="chat"),
    pytest.param(responses_request.build_request, id="responses"),
]
Server = ChatServer | ResponsesServer
SERVERS = [pytest.param(chat_server, id="chat"), pytest.param(responses_server, id="responses")]


def _send(server: Server, request: ModelRequest) -> ModelReply:
    made = OpenAIChatProvider if isinstance(server, ChatServer) else OpenAIResponsesProvider
    return reply_to(made(key=KEY, address=f"{server.url}/v1", timeout=10.0), request)


def _parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    turns = body.get("messages") or body["input"]
    return [part for turn in turns for part in (turn.get("content") or []) if isinstance(part, dict)]


def _marked(body: dict[str, Any]) -> list[str]:
    return [part["text"] for part in _parts(body) if "prompt_cache_breakpoint" in part]


@pytest.mark.parametrize("serve", SERVERS)
def test_each_turn_reads_all_that_the_one_before_sent(serve: Callable[..., Any]) -> None:
    with serve() as server:
        request = START
        before = 0
        for number in range(5):
            usage = _send(server, request).usage
            assert usage.read == before
            assert usage.write == (usage.prompt_tokens or 0) - before
            before = usage.prompt_tokens or 0
            request = grown(request, f"Answer {number}.", f"Question {number}?")
    assert server.bodies[0]["prompt_cache_options"] == {"mode": "implicit", "ttl": "30m"}


@pytest.mark.parametrize("serve", SERVERS)
def test_old_model_gets_no_breakpoints_and_reads_in_steps(serve: Callable[..., Any]) -> None:
    old = replace(START, model=OLD_MODEL)
    with serve() as server:
        first = _send(server, old).usage
        second = _send(server, grown(old, "Yes.", "Second?")).usage
    assert b"prompt_cache_options" not in server.calls[0].raw
    assert (first.read, first.write) == (0, 0)
    assert second.read is not None
    assert second.read > 1_024
    assert second.read % 128 == 0


@pytest.mark.parametrize("serve", SERVERS)
def test_unstable_message_is_not_written(serve: Callable[..., Any]) -> None:
    shelf = note("tides", 8_000)
    first = replace(
        ask(system(shelf), user("First? " * 200), assistant("Yes."), user("<note> Second?"), model=MODEL),
        cache_boundaries=replace(CacheBoundaries(), stable_prefix_end=None, stable_messages=3),
    )
    stripped = (*first.messages[:3], user("Second?"), assistant("No."), user("<note> Third?"))
    second = replace(first, messages=stripped, cache_boundaries=CacheBoundaries(stable_messages=5))
    with serve() as server:
        written = _send(server, first).usage
        usage = _send(server, second).usage
    assert server.bodies[0]["prompt_cache_options"]["mode"] == "explicit"
    assert written.plain is not None
    assert written.plain > 0
    assert usage.read == written.write


@pytest.mark.parametrize("serve", SERVERS)
def test_changed_library_still_reads_instructions(serve: Callable[..., Any]) -> None:
    with serve() as server:
        _send(server, START)
        other = ask(system(note("moon", 8_000), instructions="Be terse. " * 500), user("Two?"), model=MODEL)
        usage = _send(server, other).usage
    assert usage.read is not None
    assert 1_024 <= usage.read < 2_000


@pytest.mark.parametrize("serve", SERVERS)
def test_tool_round_reads_previous_request(serve: Callable[..., Any]) -> None:
    request = replace(START, tools=(SEARCH,))
    with serve(Say(reasoning="Hm.", calls=(Wanted(id="c1", name="search", arguments={"q": "x"}),))) as server:
        reply = _send(server, request)
        done = round_of(reply, ToolOutput(call="c1", output="None.", failed=True))
        usage = _send(server, answered(request, done)).usage
    assert usage.read == reply.usage.prompt_tokens
    assert b"Error: None." in server.calls[1].raw


@pytest.mark.parametrize("serve", SERVERS)
def test_conversations_have_caches_of_their_own(serve: Callable[..., Any]) -> None:
    with serve() as server:
        _send(server, START)
        assert _send(server, replace(START, conversation="another")).usage.read == 0
    assert [body["prompt_cache_key"] for body in server.bodies] == ["harbour", "another"]


def test_long_name_becomes_a_key_of_64_characters() -> None:
    assert prompt_cache_key("x" * 64) == "x" * 64
    assert len(prompt_cache_key("x" * 65)) == 64
    assert prompt_cache_key("x" * 65) != prompt_cache_key("x" * 66)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("pause", [None, 60.0, 7_200.0])
def test_lifetime_without_known_price_is_not_requested(build: Build, pause: float | None) -> None:
    assert build(replace(START, expected_pause=pause), PROFILE)["prompt_cache_options"]["ttl"] == "30m"


def test_lifetime_priced_by_user_is_requested_if_supported() -> None:
    priced = replace(
        PROFILE, lifetimes=tuple(replace(one, write=PROFILE.lifetimes[0].write) for one in PROFILE.lifetimes)
    )
    request = replace(START, expected_pause=7_200.0)
    assert responses_request.build_request(request, priced)["prompt_cache_options"]["ttl"] == "12h"
    assert chat_request.build_request(request, priced)["prompt_cache_options"]["ttl"] == "30m"


def test_diagnosis_is_requested_and_parsed() -> None:
    told = {
        "type": "cache_miss",
        "reason": "tools_changed",
        "cache_missed_tokens": 900,
        "comparison_reusable_tokens": 5,
    }
    with responses_server(Say(), Say(diagnosis=told), Say(diagnosis={"type": "cache_hit"})) as server:
        first = _send(server, START)
        second, third = (_send(server, replace(START, previous_reply_id=first.id)) for _ in range(2))
    asked = [body["prompt_cache_options"].get("comparison_response_id") for body in server.bodies]
    assert asked == [None, "resp_1", "resp_1"]
    assert first.diagnosis is None
    assert second.diagnosis == CacheDiagnosis(verdict="miss", reason="tools_changed", missed=900)
    assert third.diagnosis == CacheDiagnosis(verdict="hit")


async def _whole(server: Server, request: ModelRequest) -> ModelReply | None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0) as client:
        profile = MODELS.get_model_profile(request.model)
        if isinstance(server, ChatServer):
            body = chat_request.build_request(request, profile)
            return chat_response.read_reply(await client.chat.completions.create(**body))
        body = responses_request.build_request(request, profile)
        return responses_response.read_reply(await client.responses.create(**body))


@pytest.mark.parametrize("serve", SERVERS)
@pytest.mark.parametrize("model", [MODEL, OLD_MODEL])
def test_streamed_and_whole_answers_give_the_same_reply(serve: Callable[..., Any], model: str) -> None:
    act = Say(text="Here.", reasoning="Hm.", calls=(Wanted(id="c", name="search", arguments={"q": "x"}),))
    request = replace(START, model=model, tools=(SEARCH,))
    with serve(act) as server:
        streamed = _send(server, request)
    with serve(act) as server:
        assert asyncio.run(_whole(server, request)) == streamed


@pytest.mark.parametrize(
    ("stop", "reason"), [("max_output_tokens", StopReason.LENGTH), ("content_filter", StopReason.REFUSED)]
)
def test_truncated_response_has_stop_reason(stop: str, reason: StopReason) -> None:
    with responses_server(Say(stop=stop)) as server:
        assert _send(server, START).stop is reason


@pytest.mark.parametrize(
    ("dialect", "first", "second"),
    [
        (Dialect.OPENAI, 0, "some"),
        (Dialect.VLLM, None, None),
        (Dialect.VLLM_DETAILS, 0, "some"),
        (Dialect.SGLANG, None, "some"),
        (Dialect.LLAMA_CPP, 0, "some"),
        (Dialect.OLLAMA, None, None),
        (Dialect.DEEPSEEK, 0, "some"),
    ],
)
def test_cached_tokens_that_a_server_does_not_report_are_unknown_and_never_zero(
    dialect: Dialect, first: int | None, second: str | None
) -> None:
    request = replace(START, model=LOCAL_MODEL)
    with chat_server(dialect=dialect) as server:
        replies = [_send(server, request), _send(server, request)]
        whole = asyncio.run(_whole(server, request))
    assert replies[0].usage.read == first
    assert (replies[1].usage.read is None) == (second is None)
    assert replies[1].usage.prompt_tokens == server.served[1].total
    assert whole is not None
    assert whole.usage == replies[1].usage


def test_missing_usage_is_unknown() -> None:
    plain = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    reply = chat_response.read_reply(plain)
    assert reply is not None
    assert reply.usage == UNKNOWN_USAGE
    assert chat_response.read_reply({"choices": []}) is None
    assert responses_response.read_reply({"status": "in_progress"}) is None


def test_local_server_gets_plain_strings_and_basic_fields() -> None:
    body = chat_request.build_request(replace(START, model=LOCAL_MODEL), MODELS.get_model_profile(LOCAL_MODEL))
    assert sorted(body) == ["max_tokens", "messages", "model"]
    assert all(isinstance(message["content"], str) for message in body["messages"])


@pytest.mark.parametrize("build", BUILDS)
def test_breakpoint_after_instructions_is_allowed_and_after_nothing_refused(build: Build) -> None:
    assert len(_marked(build(replace(START, breakpoints=(0,)), PROFILE))) == 2
    with pytest.raises(InvalidOperationError, match="message 9"):
        build(replace(START, breakpoints=(9,)), PROFILE)


def test_local_server_needs_no_key_and_openai_does() -> None:
    with chat_server() as server:
        local = OpenAIChatProvider(key="", address=f"{server.url}/v1", timeout=10.0)
        with pytest.raises(AuthenticationError, match="401"):
            reply_to(local, START)
    assert server.calls[0].headers["authorization"] == "Bearer none"
    with pytest.raises(AuthenticationError, match="is empty"):
        reply_to(OpenAIChatProvider(key=""), START)


@pytest.mark.parametrize("build", BUILDS)
def test_too_many_breakpoints_are_refused(build: Build) -> None:
    request = START
    for number in range(4):
        request = grown(request, f"Answer {number}.", f"Question {number}?")
    assert len(_marked(build(replace(request, breakpoints=(1, 3, 5)), PROFILE))) == 3
    with pytest.raises(InvalidOperationError):
        build(replace(request, breakpoints=(1, 3, 5, 7)), PROFILE)


@settings(deadline=None)
@given(
    turns=st.lists(st.text(max_size=6) | st.just("long " * 900), max_size=12),
    kept=st.integers(0, 30),
    marks=st.sets(st.integers(0, 1), max_size=2),
    build=st.sampled_from([chat_request.build_request, responses_request.build_request]),
)
def test_no_request_writes_more_than_four_breakpoints(
    turns: list[str], kept: int, marks: set[int], build: Build
) -> None:
    request = START
    for text in turns:
        request = grown(request, text, f"About {text}?")
    count = len(request.messages)
    request = replace(
        request,
        cache_boundaries=replace(request.effective_cache_boundaries, stable_messages=min(kept, count)),
        breakpoints=tuple(marks),
    )
    body = build(request, PROFILE)
    implicit = body["prompt_cache_options"]["mode"] == "implicit"
    assert len(_marked(body)) + implicit <= 4
    assert implicit == (kept >= count)
