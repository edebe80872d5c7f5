"""What stands for removed text never names the recall tool, so it fits requests with and without the tool."""

import json
from pathlib import Path

import pytest

import lamella
from lamella import Note, ToolResult
from lamella.providers import ModelReply, StopReason, ToolCall, ToolOutput


def sentences(count: int, about: str) -> str:
    return " ".join(f"{about} {number} has a harbour with {number * 7} boats." for number in range(count))


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@pytest.mark.parametrize("history", ["full", "window", "strip"])
def test_no_message_names_recall_while_the_tool_comes_and_goes(layout: str, history: str, tmp_path: Path) -> None:
    settings = {"layout": layout, "history": history, "window": 3_000, "reserve": 100, "tool_output": 600}
    url, sent = f"sqlite:///{tmp_path}/chats.db", list[object]()
    for turn_number in range(12):
        # Opened again for each turn, so that every placeholder is also made from the events.
        with lamella.open(url) as engine:
            chat = engine.chat("demo", **settings)
            attach = [
                Note(path=f"more/{turn_number}-{number}.md", text=sentences(22, f"Note {number}"))
                for number in range(20 if turn_number in (1, 5) else 0)
            ]
            found = [ToolResult(name="look", arguments={"at": turn_number}, output=sentences(30, "Result"))]
            turn = chat.ask(
                f"Question {turn_number}: what of boat K-{turn_number}?",
                attach=attach,
                results=found if turn_number == 2 else [],
                tools=[chat.recall_tool] if turn_number % 3 == 1 else [],
            )
            for number in range(5 if turn_number in (3, 8) else 0):
                call = ToolCall(id=f"c{turn_number}-{number}", name="read", arguments=json.dumps({"n": number}))
                chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
                turn = chat.submit_tool_outputs([ToolOutput(call=call.id, output=sentences(60, f"Page {number}"))])
            sent.append([message.to_dict() for message in turn.messages])
            assert not [message.text for message in turn.messages if "recall" in message.text.lower()]
            chat.reply(f"Reply {turn_number}. " + sentences((20, 8, 2)[turn_number % 3], f"Town {turn_number}"))
            if turn_number == 7:
                chat.compact(to=0.3)
    with lamella.open(url) as engine:
        chat = engine.chat("demo", **settings)
        assert chat.receipts()
        assert [[message.to_dict() for message in turn.messages] for turn in chat.replay()] == sent
