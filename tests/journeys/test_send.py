"""Batteries included: a store, a provider and a conversation behind one object."""

import asyncio
from pathlib import Path

import pytest

import lamella
from lamella import Note
from lamella.core.log.call import CacheOutcome
from lamella.core.messages import Usage
from lamella.errors import InvalidOperationError, NotAvailableError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

MODEL = "anthropic:claude-opus-5-5"


def usage(plain: int, read: int) -> Usage:
    return Usage(plain=plain, read=read, write=0, output=5)


def talk(url: str, provider: ScriptedProvider, *questions: str) -> list[str]:
    """Every answer, as it came in pieces."""

    async def run() -> list[str]:
        answers = []
        async with lamella.open(url, model=MODEL, provider=provider) as engine:
            conversation = await engine.conversation("demo", layout="in_place")
            for question in questions:
                pieces = [
                    event.text async for event in conversation.send(question, attach=[Note(path="a.md", text="A")])
                ]
                answers.append("".join(pieces))
        return answers

    return asyncio.run(run())


def test_conversation_continues_in_second_engine(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    first = ScriptedProvider(ScriptedReply(text="It says A.", chunk_size=3, usage=usage(40, 0)))
    assert talk(url, first, "What does it say?") == ["It says A."]
    second = ScriptedProvider("Still A.")
    assert talk(url, second, "And now?") == ["Still A."]
    (request,) = second.requests
    assert [message.text for message in request.messages[:2]] == [
        *(message.text for message in first.requests[0].messages),
        "It says A.",
    ]
    assert request.conversation == first.requests[0].conversation != "demo"


def test_ledger_is_stored_with_conversation(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    lines = [
        ScriptedReply(text="one", usage=usage(40, 0)),
        ScriptedReply(text="two", usage=usage(9, 44)),
        ScriptedReply(text="three"),
    ]
    talk(url, ScriptedProvider(*lines), "first", "second", "third")
    with lamella.open(url) as engine:
        ledger = engine.chat("demo").ledger()
    outcomes = [call.verdict.outcome for calls in ledger for call in calls]
    assert outcomes[0] is CacheOutcome.FIRST
    assert outcomes[2] is CacheOutcome.UNKNOWN
    assert [call.usage.read for calls in ledger for call in calls] == [0, 44, None]
    assert all(call.timing.total is not None for calls in ledger for call in calls)


def test_unknown_runner_is_reported(tmp_path: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path}/chats.db", model=MODEL) as engine, pytest.raises(NotAvailableError):
        engine.chat("demo").send("hi", runner="jogger")


def test_missing_model_says_how_to_name_one(tmp_path: Path) -> None:
    with (
        lamella.open(f"sqlite:///{tmp_path}/chats.db") as engine,
        pytest.raises(InvalidOperationError, match="No model"),
    ):
        engine.chat("demo").send("hi")
