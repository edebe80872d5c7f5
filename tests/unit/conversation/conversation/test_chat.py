"""Commands of a stored conversation: written at once, read by other processes, and sent with the next question."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.conversation.backends import Ticking

from lamella import Note
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.transcript import load_script, replay_conversation_script
from lamella.core.values import replace
from lamella.errors import ConflictError
from lamella.wiring import open_backend

Open = Callable[[], Conversation]


@pytest.fixture
def backend(tmp_path: Path) -> Backend:
    (tmp_path / "a.md").write_text("Alpha.", encoding="utf-8")
    (tmp_path / "b.md").write_text("Beta.", encoding="utf-8")
    return replace(open_backend("memory:", vault=tmp_path), clock=Ticking(), make_key=str)


@pytest.fixture
def open_chat(backend: Backend) -> Open:
    return lambda: Conversation.open(backend, "demo", {"layout": "in_place", "attachments": "sticky"})


def sent(chat: Conversation) -> list[str]:
    return [message.text for message in chat.preview("And now?").messages]


def test_other_process_finds_pending_commands_and_sends_the_same(open_chat: Open) -> None:
    conversation = open_chat()
    assert isinstance(conversation, Conversation)
    conversation.ask("One.", attach=[Note(path="a.md")])
    conversation.reply("Yes.")
    conversation.attach(Note(path="b.md"))
    conversation.detach("a.md")
    other = open_chat()
    assert other.pending_commands == conversation.pending_commands
    assert sent(other) == sent(conversation)
    assert "Beta." in other.ask("And now?").messages[-1].text
    assert not other.pending_commands
    assert list(other.working_set) == ["b.md"]


def test_chat_unaware_of_command_gets_conflict(open_chat: Open) -> None:
    conversation, other = open_chat(), open_chat()
    conversation.ask("One.")
    conversation.reply("Yes.")
    other.reload()
    conversation.attach(Note(path="a.md"))
    with pytest.raises(ConflictError):
        other.ask("Two.")
    other.reload()
    assert "Alpha." in other.ask("Two.").messages[-1].text


def test_command_can_be_first_event_of_conversation(open_chat: Open) -> None:
    open_chat().attach(Note(path="a.md"))
    conversation = open_chat()
    assert "Alpha." in conversation.ask("What?").messages[-1].text
    assert conversation.title == "What?"


def test_edit_and_regeneration_keep_pending_commands(open_chat: Open) -> None:
    conversation = open_chat()
    first = conversation.ask("One.").envelope.message_id
    conversation.reply("Yes.")
    conversation.attach(Note(path="a.md"))
    conversation.edit(first, "One, otherwise.")
    conversation.reply("Yes.")
    conversation.regenerate()
    conversation.reply("No.")
    conversation.fork(first)
    assert [one.id for one in conversation.pending_commands.attach] == ["a.md"]


def test_command_during_open_question_applies_to_next(open_chat: Open) -> None:
    conversation = open_chat()
    conversation.ask("One.")
    conversation.attach(Note(path="a.md"))
    conversation.reply("Yes.")
    assert "Alpha." in conversation.ask("Two.").messages[-1].text


def test_fork_of_last_message_includes_pending_commands(open_chat: Open, backend: Backend) -> None:
    conversation = open_chat()
    first = conversation.ask("One.", attach=[Note(path="a.md")]).envelope.message_id
    conversation.reply("Yes.")
    conversation.attach(Note(path="b.md"))
    conversation.pin("turn:1")
    copy_branch_into_new_conversation(backend, conversation.id, conversation.head, name="later")
    copy_branch_into_new_conversation(backend, conversation.id, first, name="earlier")
    assert sent(Conversation.open(backend, "later", {})) == sent(conversation)
    assert not Conversation.open(backend, "earlier", {}).pending_commands
    assert list(ConversationRepository(backend.store, Ticking()).verify()) == []


def test_erased_attachment_is_not_pending(open_chat: Open, backend: Backend) -> None:
    conversation = open_chat()
    conversation.ask("One.")
    conversation.reply("Yes.")
    conversation.attach(Note(path="a.md"), Note(path="b.md"))
    conversations = ConversationRepository(backend.store, Ticking())
    assert conversations.erase_artifact(conversation.id, "a.md") == 1
    conversation.reload()
    assert [one.id for one in conversation.pending_commands.attach] == ["b.md"]
    assert list(conversations.verify()) == list(conversations.verify_erased(conversation.id)) == []


def test_script_of_conversation_sends_the_same(open_chat: Open, backend: Backend) -> None:
    conversation = open_chat()
    conversation.ask("One.")
    conversation.reply("Yes.")
    conversation.attach(Note(path="a.md"))
    asked = conversation.ask("Two.")
    *_, played = replay_conversation_script(backend, load_script(backend, conversation.id))
    assert [one.text for one in played.messages] == [one.text for one in asked.messages]


def test_command_without_effect_stores_nothing(open_chat: Open) -> None:
    conversation = open_chat()
    conversation.ask("One.", attach=[Note(path="a.md")])
    conversation.reply("Yes.")
    before = conversation.version
    conversation.refresh()
    assert conversation.version == before
