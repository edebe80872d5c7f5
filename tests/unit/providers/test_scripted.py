"""The scripted provider gives its replies in order, slowly or with errors if asked."""

import asyncio

import pytest
from tests.wire.material import ask, collect, reply_to, user

from lamella.core.messages import StopReason, TextDelta, ToolCall, Usage
from lamella.errors import InvalidOperationError, ProviderOverloadedError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

REQUEST = ask(user("Hello"), model="scripted")
CALL = ToolCall(id="c", name="search", arguments="{}")


def test_scripted_replies_are_given_in_order_and_requests_recorded() -> None:
    provider = ScriptedProvider("One.", ScriptedReply(text="Two.", usage=Usage(plain=5)))
    first, second = (reply_to(provider, REQUEST) for _ in range(2))
    assert (first.text, second.text) == ("One.", "Two.")
    assert second.usage == Usage(plain=5)
    assert (first.id, second.id) == ("scripted-1", "scripted-2")
    assert provider.requests == [REQUEST, REQUEST]


def test_reply_is_streamed_in_chunks() -> None:
    deltas = collect(ScriptedProvider(ScriptedReply(text="abcde", chunk_size=2)), REQUEST)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["ab", "cd", "e"]


def test_calls_and_reasoning_are_part_of_a_line() -> None:
    reply = reply_to(ScriptedProvider(ScriptedReply(reasoning="Hm.", calls=(CALL,))), REQUEST)
    assert (reply.reasoning, reply.calls, reply.stop) == ("Hm.", (CALL,), StopReason.TOOL_CALLS)


def test_error_follows_text_of_reply() -> None:
    provider = ScriptedProvider(
        ScriptedReply(text="Half", error=ProviderOverloadedError("Busy.", hint="Wait.", wait=1.0))
    )
    seen: list[object] = []

    async def run() -> None:
        async for delta in provider.stream(REQUEST):
            seen.append(delta)

    with pytest.raises(ProviderOverloadedError):
        asyncio.run(run())
    assert seen == [TextDelta(text="Half")]


def test_exhausted_script_raises_error() -> None:
    provider = ScriptedProvider("One.")
    reply_to(provider, REQUEST)
    for _ in range(2):
        with pytest.raises(InvalidOperationError, match="The script has 1 line, and all of them were used"):
            reply_to(provider, REQUEST)


def test_cancellation_is_recorded() -> None:
    provider = ScriptedProvider(ScriptedReply(text="abc", chunk_size=1, delay=30.0))

    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(provider.stream(REQUEST))

    asyncio.run(run())
    assert provider.cancelled == 1
