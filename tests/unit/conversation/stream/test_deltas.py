"""Each delta of a foreign provider is validated before use."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lamella.conversation.stream import stream_checked_deltas, validate_delta
from lamella.core.messages import (
    CacheDiagnosis,
    Delta,
    ModelRequest,
    ProviderReply,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
)
from lamella.errors import InvalidReplyError

ANY: Any = 7
HALF = "\ud83d"
GOOD = [
    TextDelta(text="hi"),
    ReasoningDelta(text="hm"),
    ToolCall(id="c", name="search", arguments="{}"),
    Usage(plain=3, read=1, write=0, output=2, reasoning=2),
    Usage(),
    StopDelta(reason=StopReason.END),
    StopDelta(
        reason=StopReason.TOOL_CALLS,
        id="m",
        diagnosis=CacheDiagnosis(verdict="missed", reason="changed", missed=3),
        provider_reply=ProviderReply(format="mine", json="[]"),
    ),
]
WRONG = [
    (None, "None"),
    ("text", "'text' of type str"),
    (TextDelta(text=ANY), "a TextDelta whose text is 7 of type int"),
    (ToolCall(id="c", name=ANY, arguments="{}"), "a ToolCall whose name is 7 of type int"),
    (ToolCall(id="c", name="n", arguments=HALF), "half of a character"),
    (StopDelta(reason=ANY), "a StopDelta whose reason is 7 of type int"),
    (StopDelta(reason=StopReason.END, id=HALF), "half of a character"),
    (StopDelta(reason=StopReason.END, diagnosis=ANY), "a StopDelta whose diagnosis is 7 of type int"),
    (
        StopDelta(reason=StopReason.END, diagnosis=CacheDiagnosis(verdict="v", missed=True)),
        "whose missed is True of type bool",
    ),
    (StopDelta(reason=StopReason.END, provider_reply=ANY), "a StopDelta whose provider_reply is 7 of type int"),
    (
        StopDelta(reason=StopReason.END, provider_reply=ProviderReply(format="f", json=ANY)),
        "whose json is 7 of type int",
    ),
]


@pytest.mark.parametrize("delta", GOOD)
def test_valid_delta_passes_unchanged(delta: object) -> None:
    assert validate_delta(delta, "Guest") is delta


@pytest.mark.parametrize(("delta", "said"), WRONG)
def test_invalid_delta_names_provider_and_value(delta: object, said: str) -> None:
    with pytest.raises(InvalidReplyError, match=r"^Guest gave ") as error:
        validate_delta(delta, "Guest")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("usage", "fault"),
    [
        (Usage(plain=-1), "Guest reports plain -1 of type int."),
        (Usage(plain=2**53 + 1), "Guest reports plain 9007199254740993 of type int."),
        (Usage(output=3, reasoning=9), "Guest reports reasoning 9 of output 3."),
    ],
)
def test_usage_that_cannot_be_true_is_unknown_with_the_reason(usage: Usage, fault: str) -> None:
    assert validate_delta(usage, "Guest") == Usage(fault=fault)


class Endless:
    """Says one thing, and then the same for ever."""

    def __init__(self, make: Callable[[], Delta]) -> None:
        self.make = make

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(text="So far.")
        while True:
            yield self.make()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextDelta(text="word " * 100),
        lambda: TextDelta(text=""),
        lambda: TextDelta(text="x" * 100_000_000),
        lambda: ReasoningDelta(text="hm " * 100),
        lambda: ToolCall(id="c", name="n", arguments="{" * 1_000),
        lambda: Usage(plain=1),
    ],
)
def test_endless_answer_is_cut_and_earlier_text_kept(make: Callable[[], Delta]) -> None:
    heard: list[Delta] = []

    async def run() -> None:
        async for delta in stream_checked_deltas(
            Endless(make), ModelRequest(model="guest", messages=(), max_output_tokens=100)
        ):
            heard.append(delta)

    with pytest.raises(InvalidReplyError, match="answer of guest does not end: 100 tokens were asked for"):
        asyncio.run(run())
    assert heard[0] == TextDelta(text="So far.")
    assert sum(len(delta.text) for delta in heard if isinstance(delta, TextDelta)) < 5_000_000


@pytest.mark.parametrize("empty", [TextDelta(text=""), ReasoningDelta(text=""), Usage(plain=1), None])
def test_stream_of_empty_deltas_is_given_up(empty: Delta | None) -> None:
    heard: list[Delta] = []

    class Dripping(Endless):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            yield TextDelta(text="So far.")
            while True:
                await asyncio.sleep(0.002)
                if empty is not None:
                    yield empty

    async def run() -> None:
        request = ModelRequest(model="guest", messages=(), max_output_tokens=100)
        provider = Dripping(lambda: TextDelta(text=""))
        async for delta in stream_checked_deltas(provider, request, max_empty_seconds=0.1):
            heard.append(delta)

    with pytest.raises(InvalidReplyError, match=r"for 0\.1 seconds nothing came but empty parts"):
        asyncio.run(run())
    assert heard[0] == TextDelta(text="So far.")
