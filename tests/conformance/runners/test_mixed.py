"""Runners mixed in one conversation that is reopened in the middle: each runner's parts leave with it."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.conformance.runners.conftest import Open, collect
from tests.runner_provider import Speaker

from lamella import Conversation, Note
from lamella.core.log.call import PrefixChange
from lamella.providers import ToolCall
from lamella.runners.registry import RUNNERS
from lamella.testing import ScriptedReply

NOTE = Note(path="plan.md", text="# Plan\n\nDig before the frost.\n")


def search(query: str) -> str:
    """Searches the shed."""
    return f"Of {query} there are two."


def ask_all(
    chat: Conversation, runners: Sequence[str], movements: list[PrefixChange], *, first: int = 0
) -> list[list[dict[str, object]]]:
    """What the first request of each runner's turn is; questions are numbered on from the first."""
    sent = []
    for number, runner in enumerate(runners, start=first):
        events = collect(chat.send(f"Question {number}?", runner=runner, attach=[NOTE]), movements)
        turn = next(event.turn for event in events if event.turn is not None)
        sent.append([message.to_dict() for message in turn.messages])
    return sent


@pytest.mark.moves_prefix(reason="each runner has guidelines and tools of its own")
@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_mixed_runners_reopened_in_middle_send_the_same(
    opened: Open, layout: str, movements: list[PrefixChange]
) -> None:
    mix = [*RUNNERS, *reversed(tuple(RUNNERS)), *RUNNERS]
    whole = opened(Speaker(*map(str, range(len(mix))))).chat("whole", layout=layout)
    sent = ask_all(whole, mix, movements)
    half = len(mix) // 2
    speaker = Speaker(*map(str, range(len(mix))))
    begun = ask_all(opened(speaker).chat("halves", layout=layout), mix[:half], movements)
    assert begun + ask_all(opened(speaker).chat("halves"), mix[half:], movements, first=half) == sent


@pytest.mark.moves_prefix(reason="the agent's guidelines and tools come and go")
def test_runner_prompt_parts_leave_with_runner(opened: Open, movements: list[PrefixChange]) -> None:
    speaker = Speaker(*["Yes."] * 4)
    own = {"base": "You are terse.", "guidelines": "Cite."}
    conversation = opened(speaker).chat("garden", layout="in_place", system=own)
    for runner in ("chat", "agent", "chat", "agent"):
        tools = [search] if runner == "agent" else None
        collect(conversation.send("Well?", runner=runner, tools=tools), movements)
    plain, looking, plain_again, looking_again = speaker.requests
    assert plain.messages[0].text == "You are terse.\n\nCite."
    assert "call tools" in looking.messages[0].text
    assert "Cite." not in looking.messages[0].text
    assert plain_again.messages[0] == plain.messages[0]
    assert looking_again.messages[0] == looking.messages[0]
    assert plain.tools == ()
    assert [tool.name for tool in looking.tools] == [tool.name for tool in looking_again.tools]


def test_tools_of_program_remain_when_runner_changes_back(opened: Open) -> None:
    call = ScriptedReply(calls=(ToolCall(id="c", name="search", arguments='{"query": "spades"}'),))
    speaker = Speaker("Yes.", "Well.", call, "Two.")
    conversation = opened(speaker).chat("shed", layout="in_place")

    async def send(runner: str, **given: object) -> None:
        async for _ in conversation.send("Well?", runner=runner, **given):  # type: ignore[arg-type]
            pass

    asyncio.run(send("chat", tools=[search]))
    asyncio.run(send("agent"))
    asyncio.run(send("chat"))
    told = [[tool.name for tool in request.tools] for request in speaker.requests]
    assert told[0] == ["search"]
    assert "search" in told[1]
    assert told[2] == told[3] == ["search"]
    assert conversation.turns()[-1].reply is not None
