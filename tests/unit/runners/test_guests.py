"""Guests: providers that somebody else wrote, whose answers may be of any type."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import lamella
from lamella.adapters.providers.scripted import ScriptedProvider
from lamella.core.ledger.call import Call
from lamella.core.messages.delta import ReasoningDelta, Stop, StopReason, TextDelta, ToolCall
from lamella.core.messages.request import ChatRequest
from lamella.core.messages.usage import Usage
from lamella.errors import CallError, ReplyBrokenError

MODEL = "house:guest"
END = Stop(reason=StopReason.END, id="one")
ANY: Any = object()


class Guest:
    """Says whatever it is given."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - that is the point
        self._parts = parts

    async def stream(self, request: ChatRequest) -> AsyncIterator[Any]:
        for part in self._parts:
            yield part

    async def close(self) -> None:
        """There is nothing to give back."""


class Plain:
    """An async iterator that is no generator and cannot be closed."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - that is the point
        self._parts = list(parts)

    def __aiter__(self) -> "Plain":
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - that is the point
        if not self._parts:
            raise StopAsyncIteration
        return self._parts.pop(0)


class Handing(Guest):
    """Hands over what it is given as its stream."""

    def stream(self, request: ChatRequest) -> Any:  # noqa: ANN401 - that is the point
        return self._parts[0]


class Waiting(Guest):
    """Its stream has to be awaited, which a stream has not."""

    async def stream(self, request: ChatRequest) -> Any:  # type: ignore[override]  # noqa: ANN401 - that is the point
        return self._parts


def talk(folder: Path, provider: Any) -> tuple[list[str | None], list[Call]]:  # noqa: ANN401 - that is the point
    """What is kept of an answer, and its calls; raises what sending raised, once that is known."""
    url = f"sqlite:///{folder}/chats.db"

    async def send() -> None:
        async with lamella.open(url, model=MODEL, provider=provider) as engine:
            chat = await engine.conversation("demo")
            async for _ in chat.send("Hi?"):
                pass

    try:
        asyncio.run(send())
    finally:
        with lamella.open(url) as engine:
            chat = engine.chat("demo")
            kept = [told.reply.text if told.reply else None for told in chat.turns()]
            calls = [call for some in chat.ledger() for call in some]
    return kept, calls


def kept_of(folder: Path) -> list[str | None]:
    with lamella.open(f"sqlite:///{folder}/chats.db") as engine:
        return [told.reply.text if told.reply else None for told in engine.chat("demo").turns()]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (None, "Guest gave None as a part"),
        ("a text", "Guest gave 'a text' of type str as a part"),
        (5, "Guest gave 5 of type int"),
        (TextDelta(text=b"bytes"), "a TextDelta whose text is b'bytes' of type bytes"),  # type: ignore[arg-type]
        (TextDelta(text=None), "a TextDelta whose text is None"),  # type: ignore[arg-type]
        (ReasoningDelta(text=["a"]), r"a ReasoningDelta whose text is \['a'\] of type list"),  # type: ignore[arg-type]
        (ToolCall(id="1", name="f", arguments={"a": 1}), "a ToolCall whose arguments is"),  # type: ignore[arg-type]
        (Stop(reason="end", id="1"), "a Stop whose reason is 'end' of type str"),  # type: ignore[arg-type]
        (Stop(reason=StopReason.END, id=7), "whose id is 7 of type int"),  # type: ignore[arg-type]
        ({"text": "x" * 500}, "Guest gave a dict as a part"),
    ],
)
def test_a_part_of_another_type_is_named_and_what_was_said_before_is_kept(
    tmp_path: Path, part: object, words: str
) -> None:
    with pytest.raises(ReplyBrokenError, match=words) as raised:
        talk(tmp_path, Guest(TextDelta(text="So far."), part, TextDelta(text="never"), END))
    assert "Yield TextDelta" in raised.value.hint
    assert kept_of(tmp_path) == ["So far."]


@pytest.mark.parametrize(
    ("usage", "fault"),
    [
        (Usage(plain="12", output=3), "Guest reports plain '12' of type str."),  # type: ignore[arg-type]
        (Usage(plain=12, read=-4), "Guest reports read -4 of type int."),
        (Usage(plain=1.5, write=True), "Guest reports plain 1.5 of type float, write True of type bool."),  # type: ignore[arg-type]
        (Usage(output=3, reasoning=9), "Guest reports reasoning 9 of output 3."),
    ],
)
def test_usage_that_cannot_be_true_is_unknown_and_the_answer_stays(tmp_path: Path, usage: Usage, fault: str) -> None:
    kept, (call,) = talk(tmp_path, Guest(TextDelta(text="Yes."), usage, END))
    assert kept == ["Yes."]
    assert call.usage == Usage(fault=fault)
    assert call.stop == "end"


def test_an_iterator_without_a_way_to_close_it_is_read_to_its_end(tmp_path: Path) -> None:
    kept, _ = talk(tmp_path, Handing(Plain(TextDelta(text="Yes."), END)))
    assert kept == ["Yes."]


@pytest.mark.parametrize(
    ("provider", "words"),
    [(Handing([END, END]), "Handing gives a list"), (Waiting(END), "Waiting gives a coroutine")],
)
def test_a_stream_that_is_none_says_so_and_the_question_waits(tmp_path: Path, provider: Guest, words: str) -> None:
    with pytest.raises(CallError, match=words) as raised:
        talk(tmp_path, provider)
    assert "async generator" in raised.value.hint
    assert kept_of(tmp_path) == [None]


@pytest.mark.parametrize("provider", ["openai", ANY, ScriptedProvider])
def test_what_cannot_answer_is_refused_at_the_door(tmp_path: Path, provider: Any) -> None:  # noqa: ANN401 - any value
    with pytest.raises(CallError, match=r"provider is (of type|the class) \w+, and no object that has stream\(\)"):
        lamella.open(f"sqlite:///{tmp_path}/chats.db", provider=provider)
