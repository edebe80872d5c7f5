"""A long-running turn keeps its calls and its last two rounds whole, and shortens its earlier results.

Where not even the calls have room, the earliest rounds go.
"""

from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Note
from lamella.providers import ModelReply, StopReason, ToolCall, ToolOutput
from lamella.testing import ScriptedProvider, ScriptedReply

PAGE = "All the words of a page that was read. " * 120


def read_page(number: int) -> str:
    """Reads a page."""
    return f"Page {number}. {PAGE}"


def reply(number: int) -> dict[str, object]:
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "read_page", "arguments": f'{{"number": {number}}}'},
    }
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return {"object": "chat.completion", "id": "x", "model": "gpt-5", "choices": [choice]}


def test_old_results_of_running_turn_become_handles_except_last_two_rounds() -> None:
    chat = Conversation(layout="in_place", window=8_000, reserve=500)
    chat.ask("Read the book.", tools=[read_page])
    for number in range(8):
        chat.reply(reply(number))
        turn = chat.submit_tool_outputs([ToolOutput(call=f"c{number}", output=read_page(number))])
        assert turn.tokens.total <= turn.tokens.limit
    results = [message.text for message in turn.messages if message.role == "tool"]
    assert len(results) == 8
    assert [text.startswith("<left_out>") for text in results[:4]] == [True] * 4
    assert [text.startswith(f"Page {number}.") for number, text in enumerate(results[-2:], start=6)] == [True, True]
    assert chat.recall("Page 0")[0].passage.text == read_page(0)


def test_running_turn_with_stubs_is_sent_the_same_after_a_reload() -> None:
    calls = [ScriptedReply(text="", calls=(ToolCall(id=f"c{n}", name="look", arguments="{}"),)) for n in range(7)]
    engine = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(*calls))
    settings = {"layout": "in_place", "window": 8_000, "reserve": 500}
    conversation = engine.chat("book", **settings)
    conversation.ask("Read the book.", tools=[read_page])
    for number in range(7):
        conversation.reply(reply(number))
        conversation.submit_tool_outputs([ToolOutput(call=f"c{number}", output=read_page(number))])
    live = conversation.ask("And?").messages
    again = engine.chat("book").regenerate().messages
    assert [message.to_dict() for message in again] == [message.to_dict() for message in live]


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@pytest.mark.parametrize("sizes", [(40, 4_000), (4_000,), (4_000, 10)])
def test_oversized_results_become_handles_and_turn_continues(layout: str, sizes: tuple[int, ...]) -> None:
    chat = Conversation(layout=layout, window=1_500, reserve=0)
    chat.ask("What is on the desks?")
    for number, size in enumerate(sizes):
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
        turn = chat.submit_tool_outputs([ToolOutput(call=call.id, output=f"Desk {number}. " * size)])
        assert turn.tokens.total <= 0.95 * 1_500
    sent = [message.text for message in turn.messages]
    for number, size in enumerate(sizes):
        assert (f"Desk {number}. " * size in "".join(sent)) == (size < 4_000)
    chat.reply("Much.")
    assert chat.recall("Desk 0", limit=1)


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_removed_rounds_leave_a_line_and_reopen_the_same(layout: str, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'chats.db'}"
    conversation = lamella.open(place, summarizer="off").chat("long", layout=layout, window=1_500, reserve=0)
    conversation.ask("Read the book.", attach=[Note(path="a.md", text="Some words. " * 260)], tools=[read_page])
    for number in range(12):
        conversation.reply(reply(number))
        turn = conversation.submit_tool_outputs([ToolOutput(call=f"c{number}", output=read_page(number))])
        assert turn.tokens.total <= 0.95 * 1_500
    results = [message.text for message in turn.messages if message.role == "tool"]
    assert len(results) < 12
    assert results[0].startswith(f"<left_out>{12 - len(results)} earlier calls of this turn.")
    assert conversation.recall("Page 0")[0].passage.text == read_page(0)
    conversation.reply("That is all.")
    anew = lamella.open(place, summarizer="off").chat("long")
    assert anew.preview("Why?").messages == conversation.preview("Why?").messages


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_attachment_is_reduced_for_last_call_with_notice(layout: str) -> None:
    chat = Conversation(layout=layout, window=1_500, reserve=0)
    turn = chat.ask("Read it.", attach=[Note(path="a.md", text="Some words. " * 430)], tools=[read_page])
    assert "Some words." in turn.messages[-1].text
    call = ToolCall(id="c", name="read_page", arguments='{"number": 1, "why": "' + "because " * 400 + '"}')
    chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
    turn = chat.submit_tool_outputs([ToolOutput(call="c", output=read_page(1))])
    (asked,) = [message.text for message in turn.messages if message.role == "user"]
    assert "- a.md\n</left_out>" in asked
    assert "Some words." not in asked
    assert any("only named: a.md" in warning for warning in turn.envelope.warnings)


@pytest.mark.parametrize("before", ["library", "auto"])
@pytest.mark.parametrize("now", ["library", "in_place", "auto"])
def test_running_turn_can_shrink_after_layout_change(before: str, now: str) -> None:
    conversation = lamella.open("memory:", summarizer="off").chat("book", layout=before, window=8_000, reserve=0)
    for number in range(3):
        note = Note(path=f"{number}.md", text=f"Note {number}.")
        conversation.ask(f"Question {number}?", attach=[note], tools=[read_page])
        conversation.reply(PAGE)
    conversation.set(layout=now)
    conversation.ask("Read the book.")
    for number in range(8):
        conversation.reply(reply(number))
        turn = conversation.submit_tool_outputs([ToolOutput(call=f"c{number}", output=read_page(number))])
        assert turn.tokens.total <= turn.tokens.limit
    assert conversation.receipts()
