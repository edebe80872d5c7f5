"""Guests: providers that somebody else wrote, whose answers may be of any type."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import lamella
from lamella.core.log.call import CacheUsage, ModelCall
from lamella.core.messages import (
    CacheDiagnosis,
    ModelRequest,
    ProviderReply,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
)
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.providers.scripted import ScriptedProvider

MODEL = "house:guest"
END = StopDelta(reason=StopReason.END, id="one")
ANY: Any = object()


class Guest:
    """Says whatever it is given."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - that is the point
        self._parts = parts

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
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

    def stream(self, request: ModelRequest) -> Any:  # noqa: ANN401 - that is the point
        return self._parts[0]


class Waiting(Guest):
    """Its stream has to be awaited, which a stream has not."""

    async def stream(self, request: ModelRequest) -> Any:  # type: ignore[override]  # noqa: ANN401 - that is the point
        return self._parts


class Unclosed(Guest):
    """Fails when it is closed."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        try:
            for part in self._parts:
                yield part
        finally:
            raise OSError("cannot be closed")


class Foreseeing(Guest):
    """Foresees without being awaited, and has a length of nothing."""

    def predict_cache_usage(self, request: ModelRequest) -> CacheUsage:
        return CacheUsage(read=1, write=0, uncached=2)

    def __len__(self) -> int:
        return 0


def talk(folder: Path, provider: Any) -> tuple[list[str | None], list[ModelCall]]:  # noqa: ANN401 - that is the point
    """What is kept of an answer, and its calls; raises what sending raised, once that is known."""
    url = f"sqlite:///{folder}/chats.db"

    async def send() -> None:
        async with lamella.open(url, model=MODEL, provider=provider) as engine:
            conversation = await engine.conversation("demo")
            async for _ in conversation.send("Hi?"):
                pass

    try:
        asyncio.run(send())
    finally:
        with lamella.open(url) as engine:
            conversation = engine.chat("demo")
            kept = [record.reply.text if record.reply else None for record in conversation.turns()]
            calls = [call for some in conversation.ledger() for call in some]
    return kept, calls


def stored_texts_of(folder: Path) -> list[str | None]:
    with lamella.open(f"sqlite:///{folder}/chats.db") as engine:
        return [record.reply.text if record.reply else None for record in engine.chat("demo").turns()]


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
        (StopDelta(reason="end", id="1"), "a StopDelta whose reason is 'end' of type str"),  # type: ignore[arg-type]
        (StopDelta(reason=StopReason.END, id=7), "whose id is 7 of type int"),  # type: ignore[arg-type]
        (StopDelta(reason=StopReason.END, id="\ud800"), r"a StopDelta whose id, '\\ud800', has half of a character"),
        (StopDelta(reason=StopReason.END, diagnosis=5), "a StopDelta whose diagnosis is 5 of type int"),  # type: ignore[arg-type]
        (StopDelta(reason=StopReason.END, diagnosis=CacheDiagnosis(verdict=5)), "a CacheDiagnosis whose verdict is 5"),  # type: ignore[arg-type]
        (
            StopDelta(reason=StopReason.END, diagnosis=CacheDiagnosis(verdict="\ud800")),
            "a CacheDiagnosis whose verdict, ",
        ),
        (
            StopDelta(reason=StopReason.END, diagnosis=CacheDiagnosis(verdict="miss", missed="9")),  # type: ignore[arg-type]
            "a CacheDiagnosis whose reason is None and whose missed is '9' of type str",
        ),
        (StopDelta(reason=StopReason.END, provider_reply=6), "a StopDelta whose provider_reply is 6 of type int"),  # type: ignore[arg-type]
        (
            StopDelta(reason=StopReason.END, provider_reply=ProviderReply(format="x", json=6)),  # type: ignore[arg-type]
            "a ProviderReply whose json is 6",
        ),
        (
            StopDelta(reason=StopReason.END, provider_reply=ProviderReply(format="x", json="\ud800")),
            "a ProviderReply whose json, ",
        ),
        (ToolCall(id="1", name="\ud800", arguments="{}"), "a ToolCall whose name, "),
        ({"text": "x" * 500}, "Guest gave a dict as a part"),
    ],
)
def test_unknown_delta_type_is_named_and_earlier_text_kept(tmp_path: Path, part: object, words: str) -> None:
    with pytest.raises(InvalidReplyError, match=words) as raised:
        talk(tmp_path, Guest(TextDelta(text="So far."), part, TextDelta(text="never"), END))
    assert "Yield TextDelta" in raised.value.hint
    assert stored_texts_of(tmp_path) == ["So far."]


@pytest.mark.parametrize(
    ("usage", "fault"),
    [
        (Usage(plain="12", output=3), "Guest reports plain '12' of type str."),  # type: ignore[arg-type]
        (Usage(plain=12, read=-4), "Guest reports read -4 of type int."),
        (Usage(plain=1.5, write=True), "Guest reports plain 1.5 of type float, write True of type bool."),  # type: ignore[arg-type]
        (Usage(output=3, reasoning=9), "Guest reports reasoning 9 of output 3."),
        (Usage(plain=2**53 + 1, output=1), "Guest reports plain 9007199254740993 of type int."),
    ],
)
def test_impossible_usage_is_unknown_and_answer_is_kept(tmp_path: Path, usage: Usage, fault: str) -> None:
    kept, (call,) = talk(tmp_path, Guest(TextDelta(text="Yes."), usage, END))
    assert kept == ["Yes."]
    assert call.usage == Usage(fault=fault)
    assert call.stop == "end"


def test_largest_possible_count_is_kept(tmp_path: Path) -> None:
    _, (call,) = talk(tmp_path, Guest(TextDelta(text="Yes."), Usage(plain=2**53, output=1), END))
    assert call.usage == Usage(plain=2**53, output=1)


def test_failure_to_close_finished_stream_keeps_whole_answer(tmp_path: Path) -> None:
    kept, (call,) = talk(tmp_path, Unclosed(TextDelta(text="Yes."), END))
    assert (kept, call.stop) == (["Yes."], "end")


def test_original_error_wins_over_failure_to_close(tmp_path: Path) -> None:
    with pytest.raises(InvalidReplyError, match="Unclosed gave 5"):
        talk(tmp_path, Unclosed(TextDelta(text="So far."), 5, END))
    assert stored_texts_of(tmp_path) == ["So far."]


def test_provider_with_zero_length_and_sync_forecast_works(tmp_path: Path) -> None:
    kept, (call,) = talk(tmp_path, Foreseeing(TextDelta(text="Yes."), END))
    assert kept == ["Yes."]
    assert call.predicted == CacheUsage(read=1, write=0, uncached=2)


def test_iterator_without_aclose_is_read_to_end(tmp_path: Path) -> None:
    kept, _ = talk(tmp_path, Handing(Plain(TextDelta(text="Yes."), END)))
    assert kept == ["Yes."]


@pytest.mark.parametrize(
    ("provider", "words"),
    [(Handing([END, END]), "Handing gives a list"), (Waiting(END), "Waiting gives a coroutine")],
)
def test_provider_without_stream_is_named_and_question_stays_pending(
    tmp_path: Path, provider: Guest, words: str
) -> None:
    with pytest.raises(InvalidOperationError, match=words) as raised:
        talk(tmp_path, provider)
    assert "async generator" in raised.value.hint
    assert stored_texts_of(tmp_path) == [None]


@pytest.mark.parametrize("provider", ["openai", ANY, ScriptedProvider])
def test_object_that_is_not_a_provider_is_refused_on_open(tmp_path: Path, provider: Any) -> None:  # noqa: ANN401 - any value
    with pytest.raises(
        InvalidOperationError, match=r"provider is (of type|the class) \w+, and no object that has stream\(\)"
    ):
        lamella.open(f"sqlite:///{tmp_path}/chats.db", provider=provider)
