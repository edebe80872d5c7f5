"""What a guest hands over is looked at part by part, before anything trusts it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lamella.core.messages.delta import (
    Delta,
    Diagnosis,
    NativeReply,
    ReasoningDelta,
    Stop,
    StopReason,
    TextDelta,
    ToolCall,
)
from lamella.core.messages.request import Request
from lamella.core.messages.usage import Usage
from lamella.engine.sending.deltas import check_delta, read_answer
from lamella.errors import ReplyBrokenError

ANY: Any = 7
HALF = "\ud83d"
GOOD = [
    TextDelta(text="hi"),
    ReasoningDelta(text="hm"),
    ToolCall(id="c", name="search", arguments="{}"),
    Usage(plain=3, read=1, write=0, output=2, reasoning=2),
    Usage(),
    Stop(reason=StopReason.END),
    Stop(
        reason=StopReason.TOOLS,
        id="m",
        diagnosis=Diagnosis(verdict="missed", reason="changed", missed=3),
        carried=NativeReply(format="mine", json="[]"),
    ),
]
WRONG = [
    (None, "None"),
    ("text", "'text' of type str"),
    (TextDelta(text=ANY), "a TextDelta whose text is 7 of type int"),
    (ToolCall(id="c", name=ANY, arguments="{}"), "a ToolCall whose name is 7 of type int"),
    (ToolCall(id="c", name="n", arguments=HALF), "half of a character"),
    (Stop(reason=ANY), "a Stop whose reason is 7 of type int"),
    (Stop(reason=StopReason.END, id=HALF), "half of a character"),
    (Stop(reason=StopReason.END, diagnosis=ANY), "a Stop whose diagnosis is 7 of type int"),
    (Stop(reason=StopReason.END, diagnosis=Diagnosis(verdict="v", missed=True)), "whose missed is True of type bool"),
    (Stop(reason=StopReason.END, carried=ANY), "a Stop whose carried is 7 of type int"),
    (Stop(reason=StopReason.END, carried=NativeReply(format="f", json=ANY)), "whose json is 7 of type int"),
]


@pytest.mark.parametrize("delta", GOOD)
def test_a_good_part_passes_as_it_is(delta: object) -> None:
    assert check_delta(delta, "Guest") is delta


@pytest.mark.parametrize(("delta", "said"), WRONG)
def test_a_part_of_another_type_is_an_error_that_names_the_guest_and_what_it_gave(delta: object, said: str) -> None:
    with pytest.raises(ReplyBrokenError, match=r"^Guest gave ") as error:
        check_delta(delta, "Guest")
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
    assert check_delta(usage, "Guest") == Usage(fault=fault)


class Endless:
    """Says one thing, and then the same for ever."""

    def __init__(self, make: Callable[[], Delta]) -> None:
        self.make = make

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
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
def test_an_answer_without_end_is_cut_with_what_came_before(make: Callable[[], Delta]) -> None:
    heard: list[Delta] = []

    async def run() -> None:
        async for delta in read_answer(Endless(make), Request(model="guest", messages=(), answer=100)):
            heard.append(delta)

    with pytest.raises(ReplyBrokenError, match="answer of guest does not end: 100 tokens were asked for"):
        asyncio.run(run())
    assert heard[0] == TextDelta(text="So far.")
    assert sum(len(delta.text) for delta in heard if isinstance(delta, TextDelta)) < 5_000_000
