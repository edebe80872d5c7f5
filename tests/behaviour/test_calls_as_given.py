"""Calls as models give them: with ids twice or none, and answers that are asked for once more."""

import pytest

import lamella
from lamella import Conversation
from lamella.providers import ToolOutput


def look(word: str) -> str:
    """Looks up a word."""
    return word


def answer(*ids: str) -> dict[str, object]:
    calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in ids]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return {"object": "chat.completion", "id": "x", "model": "gpt-5", "choices": [choice]}


@pytest.mark.parametrize("ids", [("x", "x"), ("", ""), ("x", "x-2", "x"), ("call-2", "")])
def test_every_call_gets_an_id_of_its_own(ids: tuple[str, ...]) -> None:
    chat = Conversation(layout="in_place")
    chat.ask("Which?", tools=[look])
    reply = chat.reply(answer(*ids))
    names = [call.id for call in reply.calls]
    assert all(names)
    assert len(set(names)) == len(names)
    turn = chat.give([ToolOutput(call=name, output=f"gave {name}") for name in names])
    assert [message.text for message in turn.messages[2:]] == [f"gave {name}" for name in names]


def test_a_question_that_is_asked_once_more_in_the_middle_of_its_rounds_begins_anew() -> None:
    engine = lamella.open("memory:", model="openai:gpt-5")
    chat = engine.chat("words", layout="in_place")
    chat.ask("Which?", tools=[look])
    chat.reply(answer("a"))
    again = chat.regenerate()
    assert [message.role for message in again.messages] == ["user"]
    assert chat.calls == ()
    chat.reply("That one.")
    later = chat.ask("Sure?").messages
    assert [message.text for message in later] == ["Which?", "That one.", "Sure?"]
    assert [message.text for message in engine.chat("words").regenerate().messages] == [m.text for m in later]


def test_a_selection_stands_while_tools_are_called() -> None:
    chat = Conversation()
    chat.ask("Which?", tools=[look], attach=[lamella.Selection(path="a.md", text="word for word")])
    chat.reply(answer("a"))
    turn = chat.give([ToolOutput(call="a", output="that")])
    assert "word for word" in turn.messages[0].text
