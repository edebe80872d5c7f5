"""A question after one whose answer was deleted, asked otherwise: what is sent is sent again after a reload."""

import pytest

import lamella
from lamella import Chat, Turn
from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.engine.dialogue.answer import Answer

CALLS = Reply(text="", stop=StopReason.TOOLS, calls=(ToolCall(id="k", name="f", arguments="{}"),))


def texts(turn: Turn | None) -> list[str]:
    assert turn is not None
    return [message.text for message in turn.messages]


def ask_two(chat: Chat) -> None:
    """Two questions, of which the first has calls that nobody made, and so the empty answer with a round."""
    chat.ask("one")
    chat._stored.reply(Answer(reply=CALLS))
    chat.ask("two")
    chat.reply("yes")


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_an_edit_is_sent_as_it_will_be_after_a_reload(layout: str) -> None:
    with lamella.open("memory:") as engine:
        chat = engine.chat("demo", layout=layout, model="m")
        ask_two(chat)
        first, second = chat.turns()
        assert first.reply is not None
        chat.delete(first.reply.id)
        sent = texts(chat.edit(chat.turns()[1].message.id, "other"))
        assert texts(engine.chat("demo")._stored.waiting()) == sent
        assert second.message.text == "two"
        assert sent[-1] == "other"
