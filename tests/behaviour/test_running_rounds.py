"""A turn that goes on and on: of its own earlier results the calls stay, and the last two rounds stand whole."""

import lamella
from lamella import Conversation
from lamella.providers import ToolCall, ToolOutput
from lamella.testing import Line, ScriptedProvider

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


def test_earlier_results_of_a_running_turn_become_stubs_and_the_last_two_rounds_stay() -> None:
    chat = Conversation(layout="in_place", window=8_000, reserve=500)
    chat.ask("Read the book.", tools=[read_page])
    for number in range(8):
        chat.reply(reply(number))
        turn = chat.give([ToolOutput(call=f"c{number}", output=read_page(number))])
        assert turn.tokens.total <= turn.tokens.limit
    results = [message.text for message in turn.messages if message.role == "tool"]
    assert len(results) == 8
    assert [text.startswith("<left_out>") for text in results[:4]] == [True] * 4
    assert [text.startswith(f"Page {number}.") for number, text in enumerate(results[-2:], start=6)] == [True, True]
    assert chat.recall("Page 0")[0].passage.text == read_page(0)


def test_a_running_turn_with_stubs_is_sent_the_same_after_a_reload() -> None:
    calls = [Line(text="", calls=(ToolCall(id=f"c{n}", name="look", arguments="{}"),)) for n in range(7)]
    engine = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(*calls))
    settings = {"layout": "in_place", "window": 8_000, "reserve": 500}
    chat = engine.chat("book", **settings)
    chat.ask("Read the book.", tools=[read_page])
    for number in range(7):
        chat.reply(reply(number))
        chat.give([ToolOutput(call=f"c{number}", output=read_page(number))])
    live = chat.ask("And?").messages
    again = engine.chat("book").regenerate().messages
    assert [message.to_dict() for message in again] == [message.to_dict() for message in live]
