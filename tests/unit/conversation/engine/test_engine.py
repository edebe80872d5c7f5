"""The engine and its chats, as a Python program meets them."""

from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Note, ToolResult
from lamella.conversation.engine import Engine
from lamella.errors import (
    ConflictError,
    ConversationErasedError,
    InvalidOperationError,
    LamellaError,
    NotAvailableError,
    SettingError,
    SourceNotFoundError,
)
from lamella.wiring import open_backend, open_pool


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


def said(chat: Conversation, head: str | None = None) -> list[str]:
    return [node.text for record in chat.turns(head) for node in (record.message, record.reply) if node]


def test_five_line_example_stores_conversation(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo", layout="in_place")
        conversation.ask("Summarize this", attach=[Note(path="spec.md", text="# Spec")], system="You are terse.")
        conversation.reply("Here is a summary")
    with lamella.open(url) as engine:
        turn = engine.chat("demo").ask("And now?")
    assert [message.role for message in turn.messages] == ["system", "user", "assistant", "user"]
    assert "# Spec" in turn.messages[1].text
    assert (turn.prefix_change.cause, turn.number) == ("none", 2)


def test_chat_properties_describe_conversation(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        assert (
            conversation.name,
            conversation.title,
            conversation.head,
            conversation.turns(),
            conversation.branches(),
        ) == ("demo", "", "", [], ())
        turn = conversation.ask("one", results=[ToolResult(name="search", output="found")])
        assert (conversation.head, conversation.id) == (turn.envelope.message_id, turn.envelope.conversation_id)
        conversation.reply("yes")
        conversation.rename("Title")
        assert (conversation.title, said(conversation), conversation.branches()) == (
            "Title",
            ["one", "yes"],
            (conversation.head,),
        )


def test_every_chat_operation_persists_after_reopen(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        conversation.ask("one")
        conversation.reply("yes")
        first = conversation.head
        conversation.ask("two")
        conversation.reply("no")
        second = conversation.head
        conversation.edit(conversation.turns()[1].message.id, "two, better")
        conversation.reply("yes, better")
        conversation.regenerate()
        conversation.reply("yes, best")
        third = conversation.head
        conversation.delete(conversation.turns()[0].message.id)
        fourth = conversation.head
        conversation.fork(first)
        conversation.switch(second)
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        assert (conversation.head, said(conversation)) == (second, ["one", "yes", "two", "no"])
        assert said(conversation, third) == ["one", "yes", "two, better", "yes, best"]
        assert said(conversation, fourth) == ["two, better", "yes, best"]
        assert len(conversation.branches()) == 4


def test_chats_are_listed_the_last_changed_first_without_the_erased(url: str) -> None:
    with lamella.open(url) as engine:
        for name in ("one", "two", "three"):
            engine.chat(name).ask("hi")
        engine.chat("one").rename("First")
        engine.erase("two")
        assert [(listed.name, listed.title, listed.event_count) for listed in engine.chats()] == [
            ("one", "First", 2),
            ("three", "hi", 1),
        ]
        assert engine.chat("two").turns() == []


def test_conversation_keys_are_unique_and_generated(url: str) -> None:
    with lamella.open(url) as engine:
        first = engine.chat("demo")
        first.ask("hi")
        assert engine.chat("demo").id == engine.chat(first.id).id == first.id != "demo"
        engine.erase("demo")
        second = engine.chat("demo")
        second.ask("hi")
        assert (second.name, second.id == first.id) == ("demo", False)
        with pytest.raises(ConversationErasedError, match="The conversation demo was erased"):
            first.ask("Still there?")
        assert [listed.conversation for listed in engine.chats()] == [second.id]


def test_chat_created_concurrently_is_shared_after_reload(url: str) -> None:
    with lamella.open(url) as engine:
        mine, theirs = engine.chat("demo"), engine.chat("demo")
        theirs.ask("hi")
        theirs.reply("yes")
        with pytest.raises(ConflictError):
            mine.ask("hello")
        mine.reload()
        assert (mine.id, mine.ask("hello").number) == (theirs.id, 2)
        assert len(engine.chats()) == 1


def test_conversation_is_found_by_name_key_title_or_prefix(url: str) -> None:
    with lamella.open(url) as engine:
        for name in ("garden", "garage"):
            engine.chat(name).ask("hi")
        key = engine.chat("garden").id
        engine.rename("garden", "Vault test")
        for words in ("garden", key, "Vault test", "gard", key[:7]):
            assert (engine.resolve_conversation(words).conversation, engine.resolve_conversation(words).name) == (
                key,
                "garden",
            ), words
        with pytest.raises(InvalidOperationError, match=r"2 conversations begin with 'gar': garden, garage\."):
            engine.resolve_conversation("gar")
        with pytest.raises(InvalidOperationError, match="no conversation 'boat'"):
            engine.resolve_conversation("boat")
        engine.rename("garage", "Vault test")
        with pytest.raises(InvalidOperationError, match="2 conversations have the title 'Vault test'"):
            engine.resolve_conversation("Vault test")


def test_erasing_unknown_conversation_is_refused_and_reserves_no_name(url: str) -> None:
    with lamella.open(url) as engine:
        with pytest.raises(InvalidOperationError, match="no conversation 'typo'"):
            engine.erase("typo")
        assert engine.chat("typo").ask("hi").number == 1


def test_chat_that_is_only_opened_leaves_no_trace(url: str) -> None:
    with lamella.open(url) as engine:
        engine.chat("demo", layout="in_place")
        assert engine.chats() == []


def test_concurrent_program_gets_conflict_and_continues(url: str) -> None:
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


def test_engine_reads_attachments_from_vault(url: str, tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text("# Spec")
    with lamella.open(url, vault=tmp_path) as engine:
        assert "# Spec" in engine.chat("demo").ask("{[[spec]]}").messages[-1].text
    with lamella.open(url) as engine, pytest.raises(SourceNotFoundError):
        engine.chat("demo").ask("x", attach=[Note(path="spec.md")])


def test_engine_without_ledger_predicts_nothing(url: str) -> None:
    with lamella.open(url, keep_ledger=False) as engine:
        turn = engine.chat("demo").ask("hi")
    assert (turn.cache, turn.cost, turn.prefix_change.cause) == (None, None, "first_turn")


def test_writes_survive_error_in_with_block(url: str) -> None:
    def interrupted() -> None:
        with lamella.open(url) as engine:
            engine.chat("demo").ask("kept")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    with lamella.open(url) as engine:
        assert said(engine.chat("demo")) == ["kept"]


def test_closed_engine_raises_error(url: str) -> None:
    engine = lamella.open(url)
    conversation = engine.chat("demo")
    engine.close()
    with pytest.raises(LamellaError, match="closed"):
        conversation.ask("hi")


@pytest.mark.parametrize("wrong", ["", "chats.db", "mysql://host/db", "sqlite:chats.db"])
def test_unknown_store_url_is_refused_with_valid_ones(wrong: str) -> None:
    with pytest.raises(SettingError) as caught:
        lamella.open(wrong)
    assert "sqlite:///" in caught.value.hint


def test_engine_in_memory_stores_nothing() -> None:
    with lamella.open("memory:") as engine:
        engine.chat("demo").ask("hi")
        assert len(engine.chats()) == 1
    assert isinstance(lamella.open("memory:"), Engine)
    assert lamella.open("memory:").chats() == []


def test_conversation_needs_a_name(url: str) -> None:
    with lamella.open(url) as engine, pytest.raises(InvalidOperationError):
        engine.chat("").ask("hi")


def talk(engine: Engine, name: str = "demo") -> Conversation:
    conversation = engine.chat(name, layout="in_place")
    conversation.ask("What grows here?", attach=[Note(path="garden.md", text="Beans.")])
    conversation.reply("Beans grow.")
    conversation.ask("And in winter?")
    conversation.reply("Nothing.")
    return conversation


def test_words_are_found_in_every_conversation(url: str) -> None:
    with lamella.open(url) as engine:
        talk(engine, "one")
        talk(engine, "two")
        hits = list(engine.search("BEANS grow"))
        assert sorted((hit.name, hit.role, hit.excerpt) for hit in hits) == [
            ("one", "reply", "Beans grow."),
            ("two", "reply", "Beans grow."),
        ]
        with pytest.raises(InvalidOperationError):
            engine.search("")


def test_title_is_given_by_name_or_by_chat(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = talk(engine)
        engine.rename("demo", "First")
        engine.rename(conversation, "Second")
        assert [listed.title for listed in engine.chats()] == ["Second"]


def test_conversation_is_exported_and_imported_as_markdown(url: str, tmp_path: Path) -> None:
    with lamella.open(url) as engine:
        conversation = talk(engine)
        file = engine.export_archive(conversation, tmp_path / "archive")
        assert "What grows here?" in file.read_text(encoding="utf-8")
        assert engine.import_archive(file)[1] == "same"
    with lamella.open("memory:") as other:
        back, taken, warnings = other.import_archive(str(file))
        assert (taken, list(warnings), said(back)) == ("new", [], said(conversation))


def test_store_is_copied_verified_and_measured(url: str, tmp_path: Path) -> None:
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    with lamella.open(url) as engine:
        talk(engine)
        engine.copy_to(copy)
        assert engine.copy_to(copy) == [("demo", "same")]
        assert list(engine.verify()) == list(engine.verify("demo")) == []
        assert engine.stats().conversations == 1
    with lamella.open(copy) as other:
        assert said(other.chat("demo"))[0] == "What grows here?"


def test_artifact_is_erased_from_one_conversation_only(url: str) -> None:
    with lamella.open(url) as engine:
        talk(engine, "one")
        other = talk(engine, "two")
        assert engine.erase_artifact("one", "garden.md") == 1
        assert list(engine.verify_erased("one")) == []
        assert "Beans.\n" in other.ask("And now?").messages[0].text
        sent = engine.chat("one").ask("And now?")
        assert "Beans.\n" not in sent.messages[0].text


def test_default_settings_have_model_window_and_no_layout(url: str) -> None:
    with lamella.open(url) as engine:
        fitting = engine.default_settings_for("local")
        assert "layout" not in fitting
        conversation = engine.chat("demo", **fitting)
        assert conversation.ask("hi").tokens.limit == fitting["window"] - fitting["reserve"]  # type: ignore[operator]


def test_engine_without_parts_names_missing_one() -> None:
    engine = Engine(open_backend("memory:"), open_pool(), runners={})
    talk(engine)
    for use in (
        lambda: engine.default_settings_for("local"),
        lambda: engine.export_archive("demo", "."),
        lambda: engine.copy_to("memory:"),
    ):
        with pytest.raises(NotAvailableError):
            use()


def test_temporary_conversation_is_not_stored(url: str) -> None:
    with lamella.open(url, model="scripted:m") as engine:
        conversation = engine.temporary_conversation(layout="in_place")
        conversation.ask("Who is there?")
        conversation.reply("Nobody.")
        assert len(conversation.turns()) == 1
        assert engine.chats() == []
        assert not engine.temporary_conversation().turns()
