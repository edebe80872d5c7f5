"""The engine and its chats, as a Python program meets them."""

from pathlib import Path

import pytest

import lamella
from lamella import Chat, Note, ToolResult
from lamella.engine.engine import Engine
from lamella.errors import (
    CallError,
    ConflictError,
    ErasedError,
    LamellaError,
    NotAvailableError,
    SettingError,
    SourceMissingError,
)
from lamella.wiring import open_backend, open_pool


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
    assert (turn.prefix.cause, turn.number) == ("none", 2)


def test_what_a_chat_shows_of_itself(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        assert (chat.name, chat.title, chat.head, chat.turns(), chat.branches()) == ("demo", "", "", [], ())
        turn = chat.ask("one", results=[ToolResult(name="search", output="found")])
        assert (chat.head, chat.id) == (turn.envelope.message_id, turn.envelope.conversation_id)
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
        assert [(listed.name, listed.title, listed.version) for listed in engine.chats()] == [
            ("one", "First", 2),
            ("three", "hi", 1),
        ]
        assert engine.chat("two").turns() == []


def test_a_key_is_nobodys_choice_and_no_two_conversations_share_one(url: str) -> None:
    with lamella.open(url) as engine:
        first = engine.chat("demo")
        first.ask("hi")
        assert engine.chat("demo").id == engine.chat(first.id).id == first.id != "demo"
        engine.erase("demo")
        second = engine.chat("demo")
        second.ask("hi")
        assert (second.name, second.id == first.id) == ("demo", False)
        with pytest.raises(ErasedError, match="The conversation demo was erased"):
            first.ask("Still there?")
        assert [listed.conversation for listed in engine.chats()] == [second.id]


def test_a_chat_that_somebody_else_began_meanwhile_is_theirs_once_it_is_loaded_again(url: str) -> None:
    with lamella.open(url) as engine:
        mine, theirs = engine.chat("demo"), engine.chat("demo")
        theirs.ask("hi")
        theirs.reply("yes")
        with pytest.raises(ConflictError):
            mine.ask("hello")
        mine.reload()
        assert (mine.id, mine.ask("hello").number) == (theirs.id, 2)
        assert len(engine.chats()) == 1


def test_a_conversation_is_found_by_name_key_title_or_a_beginning_of_its_own(url: str) -> None:
    with lamella.open(url) as engine:
        for name in ("garden", "garage"):
            engine.chat(name).ask("hi")
        key = engine.chat("garden").id
        engine.rename("garden", "Vault test")
        for words in ("garden", key, "Vault test", "gard", key[:7]):
            assert (engine.find(words).conversation, engine.find(words).name) == (key, "garden"), words
        with pytest.raises(CallError, match=r"2 conversations begin with 'gar': garden, garage\."):
            engine.find("gar")
        with pytest.raises(CallError, match="no conversation 'boat'"):
            engine.find("boat")
        engine.rename("garage", "Vault test")
        with pytest.raises(CallError, match="2 conversations have the title 'Vault test'"):
            engine.find("Vault test")


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
        assert "`chat.reload()`" in caught.value.hint
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


def talk(engine: Engine, name: str = "demo") -> Chat:
    chat = engine.chat(name, layout="in_place")
    chat.ask("What grows here?", attach=[Note(path="garden.md", text="Beans.")])
    chat.reply("Beans grow.")
    chat.ask("And in winter?")
    chat.reply("Nothing.")
    return chat


def test_words_are_found_in_every_conversation(url: str) -> None:
    with lamella.open(url) as engine:
        talk(engine, "one")
        talk(engine, "two")
        hits = list(engine.search("BEANS grow"))
        assert sorted((hit.name, hit.role, hit.excerpt) for hit in hits) == [
            ("one", "reply", "Beans grow."),
            ("two", "reply", "Beans grow."),
        ]
        with pytest.raises(CallError):
            engine.search("")


def test_a_title_is_given_by_name_or_by_chat(url: str) -> None:
    with lamella.open(url) as engine:
        chat = talk(engine)
        engine.rename("demo", "First")
        engine.rename(chat, "Second")
        assert [listed.title for listed in engine.chats()] == ["Second"]


def test_a_conversation_goes_out_as_markdown_and_comes_back(url: str, tmp_path: Path) -> None:
    with lamella.open(url) as engine:
        chat = talk(engine)
        file = engine.export_archive(chat, tmp_path / "archive")
        assert "What grows here?" in file.read_text(encoding="utf-8")
        assert engine.import_archive(file)[1] == "same"
    with lamella.open("memory:") as other:
        back, taken, warnings = other.import_archive(str(file))
        assert (taken, list(warnings), said(back)) == ("new", [], said(chat))


def test_a_store_is_copied_verified_and_measured(url: str, tmp_path: Path) -> None:
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    with lamella.open(url) as engine:
        talk(engine)
        assert list(engine.copy_to(copy)) == [("demo", "new")]
        assert list(engine.copy_to(copy)) == [("demo", "same")]
        assert list(engine.verify()) == list(engine.verify("demo")) == []
        assert engine.stats().conversations == 1
    with lamella.open(copy) as other:
        assert said(other.chat("demo"))[0] == "What grows here?"


def test_an_artifact_is_erased_from_one_conversation_only(url: str) -> None:
    with lamella.open(url) as engine:
        talk(engine, "one")
        other = talk(engine, "two")
        assert engine.erase_artifact("one", "garden.md") == 1
        assert list(engine.verify_erased("one")) == []
        assert "Beans.\n" in other.ask("And now?").messages[0].text
        sent = engine.chat("one").ask("And now?")
        assert "Beans.\n" not in sent.messages[0].text


def test_a_model_has_a_window_that_fits_it_and_no_layout_of_its_own(url: str) -> None:
    with lamella.open(url) as engine:
        fitting = engine.fit("local")
        assert "layout" not in fitting
        chat = engine.chat("demo", **fitting)
        assert chat.ask("hi").tokens.limit == fitting["window"] - fitting["reserve"]  # type: ignore[operator]


def test_an_engine_without_parts_says_which_it_lacks() -> None:
    engine = Engine(open_backend("memory:"), open_pool(), runners={})
    talk(engine)
    for use in (
        lambda: engine.fit("local"),
        lambda: engine.export_archive("demo", "."),
        lambda: list(engine.copy_to("memory:")),
    ):
        with pytest.raises(NotAvailableError):
            use()


def test_a_conversation_that_nobody_keeps_is_in_no_store(url: str) -> None:
    with lamella.open(url, model="scripted:m") as engine:
        chat = engine.unkept(layout="in_place")
        chat.ask("Who is there?")
        chat.reply("Nobody.")
        assert len(chat.turns()) == 1
        assert engine.chats() == []
        assert not engine.unkept().turns()
