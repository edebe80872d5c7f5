"""Titles: given ones before those that are made of the first question, in lists as in conversations."""

import pytest

from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.log import find_explicit_title, find_title, get_title
from lamella.conversation.turn import TurnRequest
from lamella.wiring import open_backend

LONG = "When is high tide, and who says so, and why does nobody ever ask the moon?"
CUT = "When is high tide, and who says so, and why does nobody…"


@pytest.fixture
def backend() -> Backend:
    return open_backend("memory:")


def listed(backend: Backend) -> dict[str, str]:
    return {one.name: one.title for one in backend.store.list_conversations()}


def test_first_question_is_title_until_renamed(backend: Backend) -> None:
    chat = Conversation.open(backend, "tides")
    assert chat.title == ""
    chat.ask(TurnRequest(text=f"  {LONG}\n"))
    assert (chat.title, listed(backend)) == (CUT, {"tides": CUT})
    chat.ask(TurnRequest(text="And low tide?"))
    assert (chat.title, listed(backend)) == (CUT, {"tides": CUT})
    chat.rename("Tides")
    chat.ask(TurnRequest(text="And now?"))
    assert (chat.title, listed(backend)) == ("Tides", {"tides": "Tides"})


def test_title_given_before_first_question_is_kept(backend: Backend) -> None:
    chat = Conversation.open(backend, "tides")
    chat.rename("Tides")
    chat.ask(TurnRequest(text=LONG))
    assert (chat.title, listed(backend)) == ("Tides", {"tides": "Tides"})


def test_forked_and_imported_conversation_keeps_title(backend: Backend) -> None:
    chat = Conversation.open(backend, "tides")
    chat.ask(TurnRequest(text=LONG))
    copy_branch_into_new_conversation(backend, chat.id, chat.head, name="other")
    assert listed(backend) == {"tides": CUT, "other": CUT}
    taken = ConversationRepository(backend.store, backend.clock).export_conversation(chat.id)
    elsewhere = open_backend("memory:")
    conversations = ConversationRepository(elsewhere.store, elsewhere.clock)
    conversations.import_conversation(taken)
    assert (taken.title, listed(elsewhere)) == (CUT, {"tides": CUT})
    chat.ask(TurnRequest(text="And low tide?"))
    conversations.import_conversation(ConversationRepository(backend.store, backend.clock).export_conversation(chat.id))
    assert listed(elsewhere) == {"tides": CUT}
    assert list(conversations.verify()) == []


def test_missing_title_row_is_no_damage_and_false_title_is(backend: Backend) -> None:
    chat = Conversation.open(backend, "tides")
    chat.ask(TurnRequest(text=LONG))
    records = backend.store.load(chat.id)
    conversations = ConversationRepository(backend.store, backend.clock)
    backend.store.rebuild_list_row(chat.id, lambda _records: "")
    assert list(conversations.verify()) == []
    backend.store.rebuild_list_row(chat.id, lambda _records: "Another")
    damages = list(conversations.verify())
    assert [damage.is_repairable for damage in damages] == [True]
    conversations.repair(damages)
    assert listed(backend) == {"tides": CUT}
    assert (find_title(records), find_explicit_title(records)) == (CUT, None)
    assert get_title(conversations.load_log(chat.id)) == CUT
