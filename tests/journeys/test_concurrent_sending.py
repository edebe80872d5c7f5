"""Concurrent sending: summaries block nobody, answers fit, and timeouts apply."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.wire.serving import Loopback, Nothing, serve

import lamella
from lamella import Message, Note
from lamella.errors import InvalidOperationError, ProviderTimeoutError, RateLimitError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

MODEL = "house:guest"
# Outlines of replies would make room enough before anybody is asked for a summary.
SMALL: dict[str, object] = {
    "window": 3_000,
    "reserve": 500,
    "layout": "in_place",
    "compaction": {"steps": ["summary", "expendable"]},
}


class Slow:
    """Answers once it is told to, on whatever thread it is asked."""

    def __init__(self) -> None:
        self.asked, self.go_on = Event(), Event()

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked.set()
        assert self.go_on.wait(20)
        return "They talked about beds."


def fill(chat: lamella.Conversation) -> None:
    """As much as fits before something has to go."""
    for number in range(12):
        chat.ask(f"Question {number}?")
        chat.reply(f"Answer {number}. " + "because of that " * 50)


async def begin_waiting(chat: lamella.Conversation, slow: Slow) -> "asyncio.Task[str]":
    """A turn for which something has to go, once its summary was asked for."""
    slow.go_on.set()
    fill(chat)
    slow.go_on.clear()
    slow.asked.clear()
    waiting = asyncio.create_task(say(chat, "And now? " + "Tell me all of it. " * 60))
    await asyncio.to_thread(slow.asked.wait, 20)
    return waiting


async def say(chat: lamella.Conversation, text: str) -> str:
    return "".join([event.text async for event in chat.send(text)])


def test_other_chat_is_answered_while_one_waits_for_summary(tmp_path: Path) -> None:
    slow, script = Slow(), ScriptedProvider(*(f"Answer {number}." for number in range(9)))

    async def talk() -> list[str]:
        url = f"sqlite:///{tmp_path}/chats.db"
        async with lamella.open(url, model=MODEL, provider=script, summarizer=slow) as engine:
            long = await engine.conversation("long", **SMALL)
            short = await engine.conversation("short")
            waiting = await begin_waiting(long, slow)
            answers = [await say(short, "Quick?"), await say(short, "Again?")]
            assert not waiting.done()
            slow.go_on.set()
            answers.append(await waiting)
            assert long.receipts()[-1].automatic
            return answers

    assert asyncio.run(talk()) == ["Answer 0.", "Answer 1.", "Answer 2."]


def test_chat_cancelled_while_waiting_for_summary_stores_nothing(tmp_path: Path) -> None:
    slow, script = Slow(), ScriptedProvider("Yes.")

    async def talk() -> None:
        url = f"sqlite:///{tmp_path}/chats.db"
        async with lamella.open(url, model=MODEL, provider=script, summarizer=slow) as engine:
            conversation = await engine.conversation("long", **SMALL)
            waiting = await begin_waiting(conversation, slow)
            turns = len(conversation.turns())
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            slow.go_on.set()
            assert len(conversation.turns()) == turns
            assert await say(conversation, "Still there?") == "Yes."

    asyncio.run(talk())


@pytest.mark.parametrize("wanted", [0, -1, True, 1.5, "100"])
def test_invalid_max_tokens_is_refused(tmp_path: Path, wanted: int) -> None:
    script = ScriptedProvider("never")
    with lamella.open(f"sqlite:///{tmp_path}/chats.db", model=MODEL, provider=script) as engine:
        conversation = engine.chat("demo")
        with pytest.raises(InvalidOperationError, match="Invalid max_tokens: "):
            conversation.send("hi", max_tokens=wanted)
        assert conversation.turns() == []


def test_answer_longer_than_the_window_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    script = ScriptedProvider("never")
    with lamella.open(f"sqlite:///{tmp_path}/chats.db", model=MODEL, provider=script) as engine:
        conversation = engine.chat("demo", **SMALL)
        with pytest.raises(
            InvalidOperationError, match="3,000 tokens leaves no room for a request in a window of 3,000"
        ):
            conversation.send("hi", max_tokens=3_000)
        assert conversation.turns() == []


def test_max_tokens_beyond_window_is_refused_before_sending(tmp_path: Path) -> None:
    script = ScriptedProvider("Yes.")

    async def talk(chat: lamella.Conversation) -> str:
        note = Note(path="a.md", text="word " * 1_500)
        with pytest.raises(
            InvalidOperationError, match=r"may have 1,600 tokens, and the window of 3,000 has 1,4\d\d left"
        ) as raised:
            async for _ in chat.send("hi", attach=[note], max_tokens=1_600):
                pass
        assert "`chat.send(chat.regenerate(), max_tokens=14" in raised.value.hint
        assert "set reserve to 1600" in raised.value.hint
        assert chat.regenerate().request("anthropic", max_tokens=1_400)["max_tokens"] == 1_400
        assert len(chat.turns()) == 1
        return "".join([event.text async for event in chat.send("hi", max_tokens=1_300)])

    with lamella.open(f"sqlite:///{tmp_path}/chats.db", model=MODEL, provider=script) as engine:
        assert asyncio.run(talk(engine.chat("demo", **SMALL))) == "Yes."
    (request,) = script.requests
    assert request.max_output_tokens == 1_300


def test_retries_stop_at_given_limit() -> None:
    limited = [RateLimitError("Too many.", hint="Wait.", wait=wait) for wait in (0.001, 0.001, 5.0)]

    async def talk(**given: Any) -> int:  # noqa: ANN401 - options
        script = ScriptedProvider(*(ScriptedReply(error=error) for error in limited), "never")
        async with lamella.open("sqlite://", model=MODEL, provider=script, **given) as engine:
            with pytest.raises(RateLimitError):
                await say(engine.chat("demo"), "hi")
        return len(script.requests)

    assert asyncio.run(talk(max_attempts=1)) == 1
    assert asyncio.run(talk(max_attempts=2)) == 2
    assert asyncio.run(talk(timeout=4)) == 3


def test_timeout_of_program_applies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(address: str) -> None:
        model = f"openai-compatible:{address}/v1#some"
        url = f"sqlite:///{tmp_path}/chats.db"
        async with lamella.open(url, model=model, timeout=0.2, max_attempts=1) as engine:
            with pytest.raises(ProviderTimeoutError, match=r"nothing for 0\.2 seconds"):
                await say(engine.chat("demo"), "hi")

    monkeypatch.delenv("LAMELLA_API_KEY", raising=False)
    with serve(lambda _: Nothing(), Loopback()) as server:
        asyncio.run(talk(server.url))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timeout": 0}, "Invalid timeout: 0"),
        ({"timeout": float("nan")}, "Invalid timeout: nan"),
        ({"max_attempts": 0}, "Invalid max_attempts: 0"),
    ],
)
def test_invalid_timeout_is_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidOperationError, match=words):
        lamella.open("sqlite://", **given)  # type: ignore[arg-type]
