"""A turn that goes on and on: of its own earlier results the calls stay, and the last two rounds stand whole."""

import pytest

import lamella
from lamella import Conversation
from lamella.providers import Reply, StopReason, ToolCall, ToolOutput
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


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@pytest.mark.parametrize("sizes", [(40, 4_000), (4_000,), (4_000, 10)])
def test_results_that_could_not_be_sent_at_all_become_stubs_and_the_turn_goes_on(
    layout: str, sizes: tuple[int, ...]
) -> None:
    chat = Conversation(layout=layout, window=1_500, reserve=0)
    chat.ask("What is on the desks?")
    for number, size in enumerate(sizes):
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        chat.reply(Reply(text="", calls=(call,), stop=StopReason.TOOLS))
        turn = chat.give([ToolOutput(call=call.id, output=f"Desk {number}. " * size)])
        assert turn.tokens.total <= 0.95 * 1_500
    sent = [message.text for message in turn.messages]
    for number, size in enumerate(sizes):
        assert (f"Desk {number}. " * size in "".join(sent)) == (size < 4_000)
    chat.reply("Much.")
    assert chat.recall("Desk 0", limit=1)
