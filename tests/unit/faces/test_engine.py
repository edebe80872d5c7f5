"""The engine and its chats, as a Python program meets them."""

from pathlib import Path

import pytest

import lamella
from lamella import Chat, Engine, Note, ToolResult
from lamella.errors import CallError, ConflictError, ErasedError, LamellaError, SettingError, SourceMissingError


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


def said(chat: Chat, head: str | None = None) -> list[str]:
    return [node.text for told in chat.turns(head) for node in (told.message, told.reply) if node]


def test_five_lines_keep_a_conversation(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo", layout="in_place")
        chat.ask("Summarize this", attach=[Note(path="spec.md", text="# Spec")], system="You are terse.")
        chat.reply("Here is a summary")
    with lamella.open(url) as engine:
        turn = engine.chat("demo").ask("And now?")
    assert [message.role for message in turn.messages] == ["system", "user", "assistant", "user"]
    assert "# Spec" in turn.messages[1].text
    assert (turn.prefix.cause, turn.envelope.conversation_id, turn.number) == ("none", "demo", 2)


def test_what_a_chat_shows_of_itself(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        assert (chat.id, chat.title, chat.head, chat.turns(), chat.branches()) == ("demo", "", "", [], ())
        turn = chat.ask("one", results=[ToolResult(name="search", output="found")])
        assert chat.head == turn.envelope.message_id
        chat.reply("yes")
        chat.rename("Title")
        assert (chat.title, said(chat), chat.branches()) == ("Title", ["one", "yes"], (chat.head,))


def test_every_deed_of_a_chat_is_there_when_it_is_opened_again(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        chat.ask("one")
        chat.reply("yes")
        first = chat.head
        chat.ask("two")
        chat.reply("no")
        second = chat.head
        chat.edit(chat.turns()[1].message.id, "two, better")
        chat.reply("yes, better")
        chat.regenerate()
        chat.reply("yes, best")
        third = chat.head
        chat.delete(chat.turns()[0].message.id)
        fourth = chat.head
        chat.fork(first)
        chat.switch(second)
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        assert (chat.head, said(chat)) == (second, ["one", "yes", "two", "no"])
        assert said(chat, third) == ["one", "yes", "two, better", "yes, best"]
        assert said(chat, fourth) == ["two, better", "yes, best"]
        assert len(chat.branches()) == 4


def test_chats_are_listed_the_last_changed_first_without_the_erased(url: str) -> None:
    with lamella.open(url) as engine:
        for name in ("one", "two", "three"):
            engine.chat(name).ask("hi")
        engine.chat("one").rename("First")
        engine.erase("two")
        assert [(listed.conversation, listed.title, listed.version) for listed in engine.chats()] == [
            ("one", "First", 2),
            ("three", "", 1),
        ]
        with pytest.raises(ErasedError, match="two was erased"):
            engine.chat("two")


def test_erasing_what_is_not_there_is_refused_and_reserves_no_name(url: str) -> None:
    with lamella.open(url) as engine:
        with pytest.raises(CallError, match="no conversation 'typo'"):
            engine.erase("typo")
        assert engine.chat("typo").ask("hi").number == 1


def test_a_chat_that_is_only_opened_leaves_no_trace(url: str) -> None:
    with lamella.open(url) as engine:
        engine.chat("demo", layout="in_place")
        assert engine.chats() == []


def test_two_programs_that_write_at_once_are_told_and_go_on(url: str) -> None:
    with lamella.open(url) as here, lamella.open(url) as there:
        mine, theirs = here.chat("demo"), there.chat("demo")
        mine.ask("first")
        with pytest.raises(ConflictError) as caught:
            theirs.ask("second")
        assert "Load it again" in caught.value.hint
        theirs.reload()
        theirs.reply("answered there")
        theirs.ask("second")
        mine.reload()
        assert said(mine) == said(theirs) == ["first", "answered there", "second"]


def test_an_engine_reads_attachments_from_its_vault(url: str, tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text("# Spec")
    with lamella.open(url, vault=tmp_path) as engine:
        assert "# Spec" in engine.chat("demo").ask("{[[spec]]}").messages[-1].text
    with lamella.open(url) as engine, pytest.raises(SourceMissingError):
        engine.chat("demo").ask("x", attach=[Note(path="spec.md")])


def test_without_a_ledger_nothing_is_predicted(url: str) -> None:
    with lamella.open(url, ledger=False) as engine:
        turn = engine.chat("demo").ask("hi")
    assert (turn.cache, turn.cost, turn.prefix.cause) == (None, None, "first_turn")


def test_what_an_engine_wrote_stays_when_the_block_ends_in_an_error(url: str) -> None:
    def interrupted() -> None:
        with lamella.open(url) as engine:
            engine.chat("demo").ask("kept")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    with lamella.open(url) as engine:
        assert said(engine.chat("demo")) == ["kept"]


def test_a_closed_engine_says_so(url: str) -> None:
    engine = lamella.open(url)
    chat = engine.chat("demo")
    engine.close()
    with pytest.raises(LamellaError, match="closed"):
        chat.ask("hi")


@pytest.mark.parametrize("wrong", ["", "chats.db", "mysql://host/db", "sqlite:chats.db"])
def test_a_url_that_names_no_store_is_refused_with_those_that_do(wrong: str) -> None:
    with pytest.raises(SettingError) as caught:
        lamella.open(wrong)
    assert "sqlite:///" in caught.value.hint


def test_an_engine_in_memory_forgets_everything() -> None:
    with lamella.open("memory:") as engine:
        engine.chat("demo").ask("hi")
        assert len(engine.chats()) == 1
    assert isinstance(lamella.open("memory:"), Engine)
    assert lamella.open("memory:").chats() == []


def test_a_conversation_needs_a_name(url: str) -> None:
    with lamella.open(url) as engine, pytest.raises(CallError):
        engine.chat("").ask("hi")
