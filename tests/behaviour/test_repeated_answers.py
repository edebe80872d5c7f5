"""A question that is asked and answered again in the same words, after other tool rounds, is another message."""

from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Message
from lamella.providers import ModelReply, StopReason, ToolCall, ToolOutput

Rounds = tuple[str, ...]


def ask_and_answer(chat: Conversation, outputs: Rounds) -> None:
    chat.ask("Look.")
    for number, output in enumerate(outputs):
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
        chat.submit_tool_outputs([ToolOutput(call=call.id, output=output)])
    chat.reply("It is so.")


def results(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.role == "tool"]


def count_rounds(chat: Conversation) -> int:
    return len(chat.turns()[1].completed_rounds)


@pytest.mark.parametrize(
    ("first", "second"), [(("one",), ()), ((), ("two",)), (("one",), ("two",)), (("one", "two"), ("one",))]
)
@pytest.mark.parametrize("layout", ["in_place", "auto"])
def test_second_answer_keeps_its_own_tool_rounds(layout: str, first: Rounds, second: Rounds, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        chat = engine.chat("demo", layout=layout)
        chat.ask("Hello.")
        chat.reply("Hi.")
        start = chat.head
        ask_and_answer(chat, first)
        chat.ask("And then?")
        chat.reply("Nothing.")
        left = chat.head
        chat.fork(start)
        ask_and_answer(chat, second)
        sent = chat.ask("What else?").messages
        assert results(sent) == list(second)
        chat.reply("That.")
        here = chat.head
    with lamella.open(url) as engine:
        chat = engine.chat("demo", layout=layout)
        assert list(chat.replay())[-1].messages == sent
        assert not list(engine.verify())
        chat.switch(left)
        assert count_rounds(chat) == len(first)
        chat.switch(here)
        assert count_rounds(chat) == count_rounds(engine.fork(chat, here, "copy")) == len(second)
        archive = engine.export_archive(chat, tmp_path / "archives")
    with lamella.open("memory:") as other:
        taken, _, _ = other.import_archive(archive)
        taken = other.chat(taken.name, layout=layout)
        assert list(taken.replay())[-1].messages == sent
        assert count_rounds(taken) == len(second)


def test_same_answer_after_the_same_tool_rounds_is_one_message() -> None:
    chat = Conversation(layout="in_place")
    ask_and_answer(chat, ("one",))
    answered = chat.head
    chat.regenerate()
    call = ToolCall(id="c0", name="look", arguments="{}")
    chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
    chat.submit_tool_outputs([ToolOutput(call="c0", output="one")])
    chat.reply("It is so.")
    assert chat.head == answered
