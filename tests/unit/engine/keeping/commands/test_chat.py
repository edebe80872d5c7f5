"""Commands of a kept conversation: written down at once, found by another process, and gone with the next question."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.engine.backends import Ticking

from lamella import Chat, Note
from lamella.core.values import replace
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.commands.chat import CommandedChat
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.forking import fork_into
from lamella.engine.script import play_script, read_script
from lamella.errors import ConflictError
from lamella.wiring import open_backend

Open = Callable[[], Chat]


@pytest.fixture
def backend(tmp_path: Path) -> Backend:
    (tmp_path / "a.md").write_text("Alpha.", encoding="utf-8")
    (tmp_path / "b.md").write_text("Beta.", encoding="utf-8")
    return replace(open_backend("memory:", vault=tmp_path), clock=Ticking(), make_key=str)


@pytest.fixture
def open_chat(backend: Backend) -> Open:
    return lambda: Chat(backend, "demo", {"layout": "in_place", "attachments": "sticky"})


def sent(chat: Chat) -> list[str]:
    return [message.text for message in chat.preview("And now?").messages]


def test_another_process_finds_what_waits_and_sends_the_same(open_chat: Open) -> None:
    chat = open_chat()
    assert isinstance(chat._stored, CommandedChat)
    chat.ask("One.", attach=[Note(path="a.md")])
    chat.reply("Yes.")
    chat.attach(Note(path="b.md"))
    chat.detach("a.md")
    other = open_chat()
    assert other.commands == chat.commands
    assert sent(other) == sent(chat)
    assert "Beta." in other.ask("And now?").messages[-1].text
    assert not other.commands
    assert list(other.working_set) == ["b.md"]


def test_a_chat_that_did_not_know_of_a_command_is_told_of_the_conflict(open_chat: Open) -> None:
    chat, other = open_chat(), open_chat()
    chat.ask("One.")
    chat.reply("Yes.")
    other.reload()
    chat.attach(Note(path="a.md"))
    with pytest.raises(ConflictError):
        other.ask("Two.")
    other.reload()
    assert "Alpha." in other.ask("Two.").messages[-1].text


def test_it_may_be_the_first_thing_that_happens_to_a_conversation(open_chat: Open) -> None:
    open_chat().attach(Note(path="a.md"))
    chat = open_chat()
    assert "Alpha." in chat.ask("What?").messages[-1].text
    assert chat.title == "What?"


def test_a_question_in_place_of_another_leaves_what_waits_and_so_does_answering_again(open_chat: Open) -> None:
    chat = open_chat()
    first = chat.ask("One.").envelope.message_id
    chat.reply("Yes.")
    chat.attach(Note(path="a.md"))
    chat.edit(first, "One, otherwise.")
    chat.reply("Yes.")
    chat.regenerate()
    chat.reply("No.")
    chat.fork(first)
    assert [one.id for one in chat.commands.attach] == ["a.md"]


def test_given_while_a_question_waits_for_its_answer_it_goes_with_the_next(open_chat: Open) -> None:
    chat = open_chat()
    chat.ask("One.")
    chat.attach(Note(path="a.md"))
    chat.reply("Yes.")
    assert "Alpha." in chat.ask("Two.").messages[-1].text


def test_a_fork_of_the_last_message_takes_it_along_and_one_of_an_earlier_does_not(
    open_chat: Open, backend: Backend
) -> None:
    chat = open_chat()
    first = chat.ask("One.", attach=[Note(path="a.md")]).envelope.message_id
    chat.reply("Yes.")
    chat.attach(Note(path="b.md"))
    chat.pin("turn:1")
    fork_into(backend, chat.id, chat.head, name="later")
    fork_into(backend, chat.id, first, name="earlier")
    assert sent(Chat(backend, "later", {})) == sent(chat)
    assert not Chat(backend, "earlier", {}).commands
    assert list(Conversations(backend.store, Ticking()).verify()) == []


def test_what_is_erased_does_not_wait_any_more(open_chat: Open, backend: Backend) -> None:
    chat = open_chat()
    chat.ask("One.")
    chat.reply("Yes.")
    chat.attach(Note(path="a.md"), Note(path="b.md"))
    conversations = Conversations(backend.store, Ticking())
    assert conversations.erase_artifact(chat.id, "a.md") == 1
    chat.reload()
    assert [one.id for one in chat.commands.attach] == ["b.md"]
    assert list(conversations.verify()) == list(conversations.verify_erased(chat.id)) == []


def test_a_script_of_the_conversation_sends_what_was_sent(open_chat: Open, backend: Backend) -> None:
    chat = open_chat()
    chat.ask("One.")
    chat.reply("Yes.")
    chat.attach(Note(path="a.md"))
    asked = chat.ask("Two.")
    *_, played = play_script(backend, read_script(backend, chat.id))
    assert [one.text for one in played.messages] == [one.text for one in asked.messages]


def test_a_command_that_comes_to_nothing_writes_nothing(open_chat: Open) -> None:
    chat = open_chat()
    chat.ask("One.", attach=[Note(path="a.md")])
    chat.reply("Yes.")
    before = chat._stored.version
    chat.refresh()
    assert chat._stored.version == before
