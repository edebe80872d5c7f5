"""The staged runner: tools in stages that search, none in others, and a word where no work was begun."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runner_provider import Speaker

import lamella
from lamella import Conversation
from lamella.runners.agent import run_staged

MODEL = "anthropic:claude-opus-5-5"


@pytest.fixture
def speaker() -> Speaker:
    return Speaker("One.", "Two.", "Three.")


@pytest.fixture
def chat(tmp_path: Path, speaker: Speaker) -> Iterator[Conversation]:
    (tmp_path / "beans.md").write_text("# Beans\n", encoding="utf-8")
    with lamella.open("sqlite://", provider=speaker, model=MODEL, vault=tmp_path) as engine:  # type: ignore[arg-type]
        yield engine.chat("work", runner="staged", layout="in_place")


def say(chat: Conversation, text: str) -> list[str]:
    """The warnings that an answer came with."""

    async def main() -> list[str]:
        turns = [event.turn async for event in chat.send(text) if event.kind == "envelope"]
        return [line for turn in turns if turn is not None for line in turn.envelope.warnings]

    return asyncio.run(main())


def test_only_searching_stage_gets_tools(chat: Conversation, speaker: Speaker) -> None:
    chat.start_workflow("rfc")
    say(chat, "What is the problem?")
    chat.write_stage({"problem": "Desks.", "goals": "Fewer."})
    chat.submit_stage()
    chat.approve_stage()
    say(chat, "And how is it today?")
    chat.write_stage({"state": "By hand."})
    chat.submit_stage()
    chat.approve_stage()
    say(chat, "Which ways are there?")
    told = [[tool.name for tool in request.tools] for request in speaker.requests]
    assert told[0] == told[2] == []
    assert "search_notes" in told[1]


def test_staged_runner_without_workflow_warns_and_answers(chat: Conversation, speaker: Speaker) -> None:
    assert any("No workflow was begun" in line for line in say(chat, "Hello?"))
    assert chat.turns()[-1].reply is not None
    assert len(speaker.requests) == 1


def test_docstring_describes_runner_to_users() -> None:
    assert (run_staged.__doc__ or "").startswith("Chat in the stages of a workflow")
