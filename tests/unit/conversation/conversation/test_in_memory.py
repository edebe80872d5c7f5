"""Commands of a conversation in memory: they wait, and for as long as a question cannot be asked."""

import pytest

from lamella import ContextBudgetExceededError, Note
from lamella.conversation.conversation import Conversation


def test_pending_attachment_is_sent_with_next_question_only() -> None:
    chat = Conversation(layout="in_place")
    chat.attach(Note(path="a.md", text="Alpha."))
    assert "Alpha." in chat.preview("One.").messages[-1].text
    assert "Alpha." in chat.ask("One.").messages[-1].text
    chat.reply("Yes.")
    assert chat.ask("Two.").messages[-1].text == "Two."


def test_oversized_question_keeps_pending_attachment() -> None:
    chat = Conversation(window=400, reserve=50)
    chat.attach(Note(path="a.md", text="Alpha."))
    with pytest.raises(ContextBudgetExceededError):
        chat.ask("word " * 500)
    assert [one.id for one in chat.pending_commands.attach] == ["a.md"]


def test_question_attachment_wins_over_pending_text() -> None:
    chat = Conversation()
    chat.attach(Note(path="a.md", text="Old."))
    text = chat.ask("One.", attach=[Note(path="a.md", text="New.")]).messages[-1].text
    assert "New." in text
    assert "Old." not in text
