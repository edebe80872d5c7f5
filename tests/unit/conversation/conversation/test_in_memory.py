"""Commands of a conversation in memory: they wait, and for as long as a question cannot be asked."""

import pytest

from lamella import ContextBudgetExceededError, Note
from lamella.conversation.conversation import Conversation


def test_what_waits_goes_with_the_next_question_and_no_other() -> None:
    chat = Conversation(layout="in_place")
    chat.attach(Note(path="a.md", text="Alpha."))
    assert "Alpha." in chat.preview("One.").messages[-1].text
    assert "Alpha." in chat.ask("One.").messages[-1].text
    chat.reply("Yes.")
    assert chat.ask("Two.").messages[-1].text == "Two."


def test_a_question_that_does_not_fit_leaves_it_waiting() -> None:
    chat = Conversation(window=400, reserve=50)
    chat.attach(Note(path="a.md", text="Alpha."))
    with pytest.raises(ContextBudgetExceededError):
        chat.ask("word " * 500)
    assert [one.id for one in chat.pending_commands.attach] == ["a.md"]


def test_what_a_question_attaches_itself_is_the_newer_text() -> None:
    chat = Conversation()
    chat.attach(Note(path="a.md", text="Old."))
    text = chat.ask("One.", attach=[Note(path="a.md", text="New.")]).messages[-1].text
    assert "New." in text
    assert "Old." not in text
