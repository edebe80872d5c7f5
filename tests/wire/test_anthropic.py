"""Anthropic's cache, by its documented rules, over the bytes that the real SDK sends."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.anthropic_server import KEY, MODEL, AnthropicServer, anthropic_server
from tests.wire.material import (
    READ,
    ROUND,
    SEARCH,
    answered,
    ask,
    assistant,
    grown,
    note,
    reply_to,
    round_of,
    system,
    user,
)
from tests.wire.script import Say, Wanted

from lamella.core.messages import CacheBoundaries, CacheDiagnosis, ModelReply, ModelRequest, ToolCall, ToolOutput
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.providers.anthropic import AnthropicProvider, BreakpointPlacement, build_request, read_reply
from lamella.providers.models import BuiltInModelProfiles

PROFILE = BuiltInModelProfiles().get_model_profile(MODEL)
START = ask(system(note("tides", 8_000), instructions="Be terse. " * 300), user("First?"), model=MODEL)


def _send(
    server: AnthropicServer, request: ModelRequest, *, caching: BreakpointPlacement = BreakpointPlacement.EXPLICIT
) -> ModelReply:
    return reply_to(AnthropicProvider(key=KEY, address=server.url, caching=caching, timeout=10.0), request)


def _marked(body: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = [*body.get("tools", []), *body.get("system", []), *(b for m in body["messages"] for b in m["content"])]
    return [block for block in blocks if "cache_control" in block]


@pytest.mark.parametrize("caching", [BreakpointPlacement.EXPLICIT, BreakpointPlacement.AUTOMATIC])
def test_each_turn_reads_all_that_the_one_before_sent(caching: BreakpointPlacement) -> None:
    with anthropic_server() as server:
        request = START
        before = 0
        for number in range(6):
            usage = _send(server, request, caching=caching).usage
            assert usage.read == before
            before = usage.prompt_tokens or 0
            request = grown(request, f"Answer {number}.", f"Question {number}?")
    assert before > 2_000


def test_disabled_caching_sets_no_breakpoint_and_reads_nothing() -> None:
    with anthropic_server() as server:
        replies = [_send(server, START, caching=BreakpointPlacement.OFF) for _ in range(2)]
    assert [(reply.usage.read, reply.usage.write, reply.usage.write_long) for reply in replies] == [(0, 0, 0)] * 2
    assert _marked(server.bodies[0]) == []


@pytest.mark.parametrize("calls", [1, 9, 10, 11, 25])
def test_turn_of_many_blocks_still_reads_previous_end(calls: int) -> None:
    wanted = tuple(ToolCall(id=f"call_{n}", name="search", arguments="{}") for n in range(calls))
    outputs = tuple(ToolOutput(call=call.id, output="Found. " * 40) for call in wanted)
    first = replace(START, tools=(SEARCH,))
    with anthropic_server(Say(calls=(Wanted(id="x", name="search", arguments={}),))) as server:
        reply = _send(server, first)
        round_of_many = round_of(replace(reply, calls=wanted, provider_reply=None), *outputs)
        second = _send(server, answered(first, round_of_many))
        third = _send(server, answered(first, round_of_many, ROUND))
    assert second.usage.read == reply.usage.prompt_tokens
    assert third.usage.read == second.usage.prompt_tokens


def test_library_growing_at_end_is_read_up_to_old_end() -> None:
    shelf = (note("a", 6_000), note("b", 6_000))
    messages = (system(*shelf), user("First?"))
    later = (system(*shelf, note("c", 100)), user("First?"), assistant("Yes."), user("Second?"))
    with anthropic_server() as server:
        _send(server, ask(*messages, model=MODEL))
        usage = _send(server, ask(*later, model=MODEL)).usage
    assert usage.read is not None
    assert usage.read > 3_000


def test_changed_library_still_reads_instructions() -> None:
    instructions = "Be terse. " * 400
    with anthropic_server() as server:
        _send(server, ask(system(note("a", 9_000), instructions=instructions), user("One?"), model=MODEL))
        usage = _send(server, ask(system(note("b", 9_000), instructions=instructions), user("Two?"), model=MODEL)).usage
    assert usage.read is not None
    assert 1_000 <= usage.read < 2_000


def test_other_instructions_still_read_the_tools() -> None:
    tools = tuple(replace(SEARCH, name=f"search_{n}", description="Finds notes. " * 100) for n in range(5))
    with anthropic_server() as server:
        _send(server, replace(START, tools=tools))
        other = ask(system(instructions="Be verbose. " * 300), user("Two?"), model=MODEL)
        usage = _send(server, replace(other, tools=tools)).usage
    assert usage.read is not None
    assert usage.read > 1_000


def test_unstable_message_gets_no_breakpoint() -> None:
    messages = (*START.messages, assistant("Answer."), user("With attachments"))
    request = replace(
        START,
        messages=messages,
        cache_boundaries=CacheBoundaries(stable_prefix_end=None, system_positions=(), stable_messages=3),
    )
    body = build_request(request, PROFILE)
    assert "cache_control" in body["messages"][1]["content"][-1]
    assert "cache_control" not in body["messages"][2]["content"][-1]


def test_stable_parts_of_instructions_end_with_breakpoint() -> None:
    stable, memory = "Be terse. " * 100, "The user likes tea."
    seams = CacheBoundaries(stable_prefix_end=len(stable), system_positions=(len(stable),))
    request = replace(ask(system(instructions=stable + memory), user("One?"), model=MODEL), cache_boundaries=seams)
    blocks = build_request(request, PROFILE)["system"]
    assert [block["text"] for block in blocks] == [stable, memory]
    assert all("cache_control" in block for block in blocks)


@pytest.mark.parametrize(
    ("pause", "ttl"), [(None, None), (10.0, None), (299.0, None), (300.0, "1h"), (3_599.0, "1h"), (7_200.0, None)]
)
def test_lifetime_is_the_shortest_that_outlasts_the_pause(pause: float | None, ttl: str | None) -> None:
    body = build_request(replace(START, expected_pause=pause), PROFILE)
    assert {block["cache_control"].get("ttl") for block in _marked(body)} == {ttl}


def test_entry_lives_for_paid_lifetime() -> None:
    with anthropic_server() as server:
        short = _send(server, START)
        server.cache.now = 301.0
        again = _send(server, replace(START, expected_pause=1_000.0))
        server.cache.now = 1_301.0
        later = _send(server, START)
    assert (short.usage.write, short.usage.write_long) == (server.served[0].short, 0)
    assert (again.usage.read, again.usage.write) == (0, 0)
    assert again.usage.write_long == short.usage.write
    assert later.usage.read == again.usage.write_long


def test_prompt_below_minimum_gets_no_breakpoint() -> None:
    with anthropic_server() as server:
        replies = [_send(server, ask(user("Hi."), model=MODEL)) for _ in range(2)]
    assert _marked(server.bodies[0]) == []
    assert [reply.usage.read for reply in replies] == [0, 0]


def test_streamed_and_whole_answers_give_the_same_reply() -> None:
    from anthropic import AsyncAnthropic

    act = Say(
        text="Here.",
        reasoning="Hm.",
        calls=(Wanted(id="c", name="search", arguments={"q": "x", "n": [1, {"k": None}]}),),
    )
    request = replace(START, tools=(SEARCH,))

    async def whole(url: str) -> ModelReply | None:
        async with AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as client:
            return read_reply(await client.messages.create(**build_request(request, PROFILE)))

    with anthropic_server(act) as server:
        streamed = _send(server, request)
    with anthropic_server(act) as server:
        finished = asyncio.run(whole(server.url))
    assert finished is not None
    assert finished.usage == streamed.usage
    assert [call.name for call in finished.calls] == ["search"]
    parts = [(r.text, r.reasoning, r.stop, r.id, r.provider_reply) for r in (finished, streamed)]
    assert parts[0] == parts[1]


def test_write_lifetimes_of_stream_start_are_kept() -> None:
    with anthropic_server() as server:
        usage = _send(server, replace(START, expected_pause=600.0)).usage
    assert usage.write == 0
    assert usage.write_long == server.served[0].long > 0


def test_reasoning_is_returned_with_its_signature() -> None:
    act = Say(reasoning="Look it up.", calls=(Wanted(id="c", name="search", arguments={"q": "x"}),))
    request = replace(START, tools=(SEARCH, READ))
    with anthropic_server(act) as server:
        reply = _send(server, request)
        done = round_of(reply, ToolOutput(call="c", output="", failed=True))
        _send(server, answered(request, done))
    said, got = server.bodies[1]["messages"][-2:]
    assert said["content"][0] == {"type": "thinking", "thinking": "Look it up.", "signature": "c2ln"}
    assert got["content"][0] == {
        "type": "tool_result", "tool_use_id": "c", "is_error": True, "cache_control": {"type": "ephemeral"},
    }  # fmt: skip


def test_diagnosis_is_requested_and_parsed() -> None:
    missed = {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 1_234}}
    with anthropic_server(Say(), Say(diagnosis=missed)) as server:
        first = _send(server, START)
        second = _send(server, replace(START, previous_reply_id=first.id))
    assert [body["diagnostics"] for body in server.bodies] == [
        {"previous_message_id": None},
        {"previous_message_id": "msg_1"},
    ]
    assert first.diagnosis is None
    assert second.diagnosis == CacheDiagnosis(verdict="miss", reason="system_changed", missed=1_234)


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({"cache_miss_reason": None}, "pending"),
        ({"cache_miss_reason": {"type": "unavailable"}}, "unavailable"),
        ({"cache_miss_reason": {"type": "previous_message_not_found"}}, "previous_message_not_found"),
    ],
)
def test_diagnosis_without_finding_is_parsed(told: dict[str, object], verdict: str) -> None:
    with anthropic_server(Say(diagnosis=told)) as server:
        assert _send(server, START).diagnosis == CacheDiagnosis(verdict=verdict)


@pytest.mark.parametrize("caching", [BreakpointPlacement.EXPLICIT, BreakpointPlacement.AUTOMATIC])
def test_too_many_breakpoints_are_refused(caching: BreakpointPlacement) -> None:
    request = START
    for number in range(8):
        request = grown(request, f"Answer {number}.", f"Question {number}?")
    allowed = 4 - (caching is BreakpointPlacement.AUTOMATIC)
    marked = build_request(replace(request, breakpoints=tuple(range(1, 1 + allowed))), PROFILE, caching=caching)
    assert len(_marked(marked)) == allowed
    with pytest.raises(InvalidOperationError, match=f"{allowed + 1} breakpoints"):
        build_request(replace(request, breakpoints=tuple(range(1, 2 + allowed))), PROFILE, caching=caching)


def test_breakpoint_after_instructions_is_allowed_and_after_nothing_refused() -> None:
    marked = build_request(replace(START, breakpoints=(0,)), PROFILE, caching=BreakpointPlacement.AUTOMATIC)
    assert _marked(marked) == [marked["system"][-1]]
    with pytest.raises(InvalidOperationError, match="message 9"):
        build_request(replace(START, breakpoints=(9,)), PROFILE)


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    """Conversations of any shape, with marks of the caller's own."""
    texts = st.text(max_size=8) | st.just("long " * 800)
    shelf = draw(st.lists(texts, max_size=4))
    opening = [system(*shelf, instructions=draw(texts))] if draw(st.booleans()) else []
    talk = [user("First?")]
    for number in range(draw(st.integers(0, 12))):
        talk += [assistant(draw(texts)), user(f"Question {number}?")]
    messages = (*opening, *talk)
    wanted = tuple(ToolCall(id=f"c{n}", name="search", arguments="{}") for n in range(draw(st.integers(1, 30))))
    many = replace(ROUND, calls=wanted, outputs=tuple(ToolOutput(call=c.id, output="x") for c in wanted))
    places = [place for place, message in enumerate(messages) if message.text.strip()]
    return replace(
        answered(ask(*messages, model=MODEL), *(many,) * draw(st.integers(0, 2))),
        tools=(SEARCH, READ)[: draw(st.integers(0, 2))],
        breakpoints=tuple(draw(st.sets(st.sampled_from(places), max_size=3))) if places else (),
        expected_pause=draw(st.sampled_from([None, 10.0, 1_000.0])),
    )


@settings(deadline=None)
@given(requests(), st.sampled_from(BreakpointPlacement))
def test_request_has_at_most_four_breakpoints(request: ModelRequest, caching: BreakpointPlacement) -> None:
    body = build_request(request, PROFILE, caching=caching)
    assert len(_marked(body)) + ("cache_control" in body) <= 4
    assert body == build_request(request, PROFILE, caching=caching)
    assert "".join(block["text"] for block in body.get("system", [])) in ("", request.messages[0].text)
