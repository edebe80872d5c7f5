"""Calls as models give them: with ids twice or none, and answers that are asked for once more."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Turn
from lamella.providers import ToolOutput
from lamella.wiring import parse_transcript, replay_transcript


def look(word: str) -> str:
    """Looks up a word."""
    return word


def answer(*ids: str) -> dict[str, object]:
    calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in ids]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return {"object": "chat.completion", "id": "x", "model": "gpt-5", "choices": [choice]}


@pytest.mark.parametrize("ids", [("x", "x"), ("", ""), ("x", "x-2", "x"), ("call-2", "")])
def test_each_call_gets_unique_id(ids: tuple[str, ...]) -> None:
    chat = Conversation(layout="in_place")
    chat.ask("Which?", tools=[look])
    reply = chat.reply(answer(*ids))
    names = [call.id for call in reply.calls]
    assert all(names)
    assert len(set(names)) == len(names)
    turn = chat.submit_tool_outputs([ToolOutput(call=name, output=f"gave {name}") for name in names])
    assert [message.text for message in turn.messages[2:]] == [f"gave {name}" for name in names]


def test_repeating_question_during_tool_rounds_restarts_it() -> None:
    engine = lamella.open("memory:", model="openai:gpt-5")
    conversation = engine.chat("words", layout="in_place")
    conversation.ask("Which?", tools=[look])
    conversation.reply(answer("a"))
    again = conversation.regenerate()
    assert [message.role for message in again.messages] == ["user"]
    assert conversation.pending_tool_calls == ()
    conversation.reply("That one.")
    later = conversation.ask("Sure?").messages
    assert [message.text for message in later] == ["Which?", "That one.", "Sure?"]
    assert [message.text for message in engine.chat("words").regenerate().messages] == [m.text for m in later]


def test_selection_stays_whole_during_tool_calls() -> None:
    chat = Conversation()
    chat.ask("Which?", tools=[look], attach=[lamella.Selection(path="a.md", text="word for word")])
    chat.reply(answer("a"))
    turn = chat.submit_tool_outputs([ToolOutput(call="a", output="that")])
    assert "word for word" in turn.messages[0].text


def as_sent(turn: Turn) -> list[object]:
    return [message.to_dict() for message in turn.messages]


def leave_by_asking(chat: Conversation) -> list[Turn]:
    return []


def leave_by_replying(chat: Conversation) -> list[Turn]:
    chat.reply("Enough.")
    return []


def leave_by_calling_again(chat: Conversation) -> list[Turn]:
    chat.reply(answer("z"))
    turn = chat.submit_tool_outputs([ToolOutput(call="z", output="found")])
    chat.reply("That one.")
    return [turn]


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("leave", [leave_by_asking, leave_by_replying, leave_by_calling_again])
def test_abandoned_calls_are_replayed_as_sent(
    layout: str, rounds: int, leave: Callable[[Conversation], list[Turn]]
) -> None:
    conversation = lamella.open("memory:", model="openai:gpt-5").chat("words", layout=layout)
    turns = [conversation.ask("Which?", tools=[look])]
    conversation.reply(answer("a"))
    for _ in range(rounds):
        turns = [conversation.submit_tool_outputs([ToolOutput(call="a", output="nothing")])]
        conversation.reply(answer("a"))
    turns = leave(conversation) or turns
    turns.append(conversation.ask("Never mind."))
    conversation.reply("Fine.")
    turns.append(conversation.ask("Anything else?"))
    sent = [as_sent(turn) for turn in turns]
    assert [as_sent(turn) for turn in conversation.replay()] == sent
    transcript = parse_transcript(json.dumps(conversation.transcript()).encode(), name="t")
    assert [as_sent(turn) for turn in replay_transcript(transcript, overrides={}, base_folder=Path())] == sent
