"""A question after one whose answer was deleted, asked otherwise: what is sent is sent again after a reload."""

import pytest

import lamella
from lamella import Conversation, Turn
from lamella.conversation.turn import ModelAnswer
from lamella.core.messages import ModelReply, StopReason, ToolCall

CALLS = ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(ToolCall(id="k", name="f", arguments="{}"),))


def texts(turn: Turn | None) -> list[str]:
    assert turn is not None
    return [message.text for message in turn.messages]


def ask_two(chat: Conversation) -> None:
    """Two questions, of which the first has calls that nobody made, and so the empty answer with a round."""
    chat.ask("one")
    chat.reply(ModelAnswer(reply=CALLS))
    chat.ask("two")
    chat.reply("yes")


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_edit_after_deleted_answer_is_sent_as_after_reload(layout: str) -> None:
    with lamella.open("memory:") as engine:
        conversation = engine.chat("demo", layout=layout, model="m")
        ask_two(conversation)
        first, second = conversation.turns()
        assert first.reply is not None
        conversation.delete(first.reply.id)
        sent = texts(conversation.edit(conversation.turns()[1].message.id, "other"))
        assert texts(engine.chat("demo").prepare_pending_turn()) == sent
        assert second.message.text == "two"
        assert sent[-1] == "other"
