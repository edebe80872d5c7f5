"""An answer arrives in pieces, adds up to a reply, and its connection is closed when reading stops."""

import asyncio

from tests.wire.kinds import Wire
from tests.wire.material import (
    DOT,
    READ,
    ROUND,
    SEARCH,
    answered,
    ask,
    collect,
    grown,
    note,
    reply_to,
    round_of,
    system,
    take,
    user,
)
from tests.wire.script import Endless, Say, Wanted

from lamella.core.messages import ModelRequest, StopDelta, StopReason, TextDelta, ToolOutput, Usage
from lamella.core.values import replace

LONG_SYSTEM = system(note("tides", 40_000))


def _simple(wire: Wire) -> ModelRequest:
    return ask(LONG_SYSTEM, user("When is high tide?"), model=wire.model)


def test_text_arrives_in_pieces_and_the_last_delta_is_the_stop(wire: Wire) -> None:
    with wire.serve(Say(text="At noon, and again at midnight.")) as server:
        deltas = collect(wire.connect(server.url + wire.root, wire.key, 10.0), _simple(wire))
    pieces = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces) == "At noon, and again at midnight."
    assert isinstance(deltas[-1], StopDelta)
    assert deltas[-1].reason is StopReason.END
    assert sum(isinstance(delta, Usage) for delta in deltas) == 1


def test_usage_sums_to_server_count(wire: Wire) -> None:
    with wire.serve(Say(), Say()) as server:
        first = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _simple(wire))
        second = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _simple(wire))
    assert first.usage.prompt_tokens == second.usage.prompt_tokens
    assert first.usage.read == 0
    assert second.usage.read is not None
    assert second.usage.read > 0
    assert second.usage.output == 7
    assert first.usage.fault is None


def test_calls_and_reasoning_arrive_whole_and_can_be_answered(wire: Wire) -> None:
    request = ModelRequest(model=wire.model, messages=_simple(wire).messages, tools=(SEARCH, READ))
    wanted = (
        Wanted(id="call_1", name="search", arguments={"q": "high tide"}),
        Wanted(id="call_2", name="read", arguments={}),
    )
    with wire.serve(Say(text="", reasoning="I should look.", calls=wanted), Say(text="At noon.")) as server:
        reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request)
        outputs = tuple(ToolOutput(call=call.id, output=f"{call.name} found it") for call in reply.calls)
        later = answered(request, round_of(reply, *outputs))
        done = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), later)
    assert [(call.name, call.arguments.replace(" ", "")) for call in reply.calls] == [
        ("search", '{"q":"hightide"}'),
        ("read", "{}"),
    ]
    assert len({call.id for call in reply.calls}) == 2
    assert reply.reasoning == "I should look."
    assert reply.stop is StopReason.TOOL_CALLS
    assert done.text == "At noon."


def test_tool_round_of_other_provider_can_be_sent(wire: Wire) -> None:
    asked = ModelRequest(model=wire.model, messages=(user("Tides?", DOT),), tools=(SEARCH,), conversation="x")
    request = answered(asked, ROUND)
    with wire.serve(Say(text="Done.")) as server:
        assert reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request).text == "Done."


def test_rounds_of_earlier_turn_keep_their_position(wire: Wire) -> None:
    request = ask(user("Tides?"), model=wire.model)
    failed = replace(ROUND, outputs=(ToolOutput(call="call_1", output="", failed=True),))
    later = grown(answered(replace(request, tools=(SEARCH,)), ROUND, failed), "At noon.", "Sure?")
    with wire.serve(Say(text="Yes.")) as server:
        assert reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), later).text == "Yes."
    sent = server.calls[0].raw.decode()
    places = [sent.index(words) for words in ("Tides?", "Let me look.", "Two notes on tides.", "At noon.", "Sure?")]
    assert places == sorted(places)
    assert sent.count("Let me look.") == 2


def test_provider_reply_accompanies_each_call(wire: Wire) -> None:
    wanted = (Wanted(id="call_1", name="search", arguments={}),)
    with wire.serve(Say(calls=wanted), Say()) as server:
        calling = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _simple(wire))
        plain = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _simple(wire))
    assert calling.provider_reply is not None
    assert calling.provider_reply.format == wire.name
    assert plain.provider_reply is None


def test_answer_without_text_is_an_empty_reply(wire: Wire) -> None:
    with wire.serve(Say(text="")) as server:
        reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _simple(wire))
    assert (reply.text, reply.calls) == ("", ())


def test_closed_provider_can_be_used_again(wire: Wire) -> None:
    with wire.serve(Say(text="One."), Say(text="Two.")) as server:
        provider = wire.connect(server.url + wire.root, wire.key, 10.0)
        assert [reply_to(provider, _simple(wire)).text for _ in range(2)] == ["One.", "Two."]


def test_answers_at_the_same_time_do_not_mix(wire: Wire) -> None:
    async def run(url: str) -> list[str]:
        provider = wire.connect(url, wire.key, 10.0)

        async def answer() -> str:
            return "".join(
                [delta.text async for delta in provider.stream(_simple(wire)) if isinstance(delta, TextDelta)]
            )

        texts = await asyncio.gather(*(answer() for _ in range(6)))
        await provider.close()
        return sorted(texts)

    said = [f"This is answer {number}." for number in range(6)]
    with wire.serve(*(Say(text=text) for text in said)) as server:
        assert asyncio.run(run(server.url + wire.root)) == said


def test_closing_the_stream_closes_the_connection(wire: Wire) -> None:
    async def run(url: str) -> bool:
        provider = wire.connect(url, wire.key, 10.0)
        stream = provider.stream(_simple(wire))
        reading = asyncio.ensure_future(anext(stream))
        assert await asyncio.to_thread(server.arrived.wait, 30.0)
        await asyncio.sleep(0.1)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await stream.aclose()  # type: ignore[attr-defined]
        left = await asyncio.to_thread(server.left.wait, 10.0)
        await provider.close()
        return left

    with wire.serve(Endless()) as server:
        assert asyncio.run(run(server.url + wire.root))


def test_leaving_a_stream_after_some_text_closes_the_connection(wire: Wire) -> None:
    async def run(url: str) -> bool:
        provider = wire.connect(url, wire.key, 10.0)
        stream = provider.stream(_simple(wire))
        await take(stream, 2)
        await stream.aclose()  # type: ignore[attr-defined]
        left = await asyncio.to_thread(server.left.wait, 10.0)
        await provider.close()
        return left

    with wire.serve(Endless(text=True)) as server:
        assert asyncio.run(run(server.url + wire.root))
