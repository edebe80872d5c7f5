"""Hints: what left the prompt and speaks of the same goes with a question, where that was set."""

from collections.abc import Callable

import pytest
from tests.unit.conversation.backends import make_chat

from lamella import Conversation, Note
from lamella.errors import SettingError
from lamella.stores.memory import InMemoryStore

NOTE = "# Bookings\nThe corner desk has the code K-37 and was booked by Ingrid.\n" + "Nothing else of interest. " * 40
CHATS: list[Callable[..., Conversation | Conversation]] = [Conversation, make_chat]


def talk(chat: Conversation | Conversation) -> None:
    chat.ask("What is this?", attach=[Note(path="desks.md", text=NOTE)])
    chat.reply("A list of bookings.")
    for number in range(8):
        chat.ask(f"And shelf {number}?")
        chat.reply(f"Shelf {number} is free.")
    chat.ask("Thank you.", drop=["desks.md"])
    chat.reply("You are welcome.")


def text_of(chat: Conversation | Conversation, question: str) -> str:
    return chat.ask(question).messages[-1].text


@pytest.mark.parametrize("make", CHATS)
def test_recall_hint_quotes_removed_text_with_its_turn(
    make: Callable[..., Conversation | Conversation],
) -> None:
    chat = make(layout="in_place", recall_hint="on")
    talk(chat)
    shown = text_of(chat, "Who books the corner desks?")
    assert "booked by Ingrid" in shown
    assert "turn 1" in shown
    assert shown.endswith("Who books the corner desks?")


@pytest.mark.parametrize("make", CHATS)
def test_recall_hint_is_off_by_default(make: Callable[..., Conversation | Conversation]) -> None:
    chat = make(layout="in_place")
    talk(chat)
    assert text_of(chat, "Who books the corner desks?") == "Who books the corner desks?"


@pytest.mark.parametrize("question", ["Thank you.", "And now?", "What of the weather in Graz?", "", "shelf", "?!"])
def test_recall_hint_is_absent_without_match(question: str) -> None:
    chat = Conversation(layout="in_place", recall_hint="on")
    talk(chat)
    assert text_of(chat, question) == question


def test_recall_hint_omits_text_still_in_prompt() -> None:
    chat = Conversation(layout="in_place", recall_hint="on")
    chat.ask("What is this?", attach=[Note(path="desks.md", text=NOTE)])
    chat.reply("A list of bookings.")
    assert text_of(chat, "Who books the corner desks?") == "Who books the corner desks?"


def test_recall_hint_matches_preview_and_reopen_and_is_not_doubled_by_edit() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place", recall_hint="on")
    talk(conversation)
    question = "Who books the corner desks?"
    ahead = conversation.preview(question).messages[-1].text
    turn = conversation.ask(question)
    assert turn.messages[-1].text == ahead
    again = make_chat(store).prepare_pending_turn()
    assert again is not None
    assert [message.text for message in again.messages] == [message.text for message in turn.messages]
    conversation.reply("Ingrid.")
    edited = conversation.edit(turn.envelope.message_id, "Who books the corner desk now?")
    assert edited.messages[-1].text.count("booked by Ingrid") == 1


def test_unknown_recall_hint_value_is_refused_with_choices() -> None:
    with pytest.raises(SettingError) as caught:
        Conversation(recall_hint="maybe")
    assert "off" in (caught.value.hint or "")
