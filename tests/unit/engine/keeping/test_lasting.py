"""What lasts: settings of a conversation that its next turn is asked under."""

from pathlib import Path

import pytest
from msgspec import convert
from tests.unit.engine.backends import make_backend, make_chat

import lamella
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.events.codec import write_event
from lamella.core.log.events.message import MessageEvent
from lamella.core.messages.request import Request
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.lasting import PART_SETTINGS, ChatSettings
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import SettingError

BASE = "You are terse."


def request(turn: lamella.Turn) -> Request:
    return turn.chat_request(model="m", answer=9)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/chats.db"


def test_settings_give_a_conversation_its_system_prompt_and_later_ones_leave_it_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMELLA_SYSTEM", BASE)
    monkeypatch.setenv("LAMELLA_INSTRUCTIONS", "Be brief.")
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        first = chat.ask("One?")
        chat.reply("Yes.")
    monkeypatch.setenv("LAMELLA_SYSTEM", "Another.")
    with lamella.open(url) as engine:
        second = engine.chat("demo").ask("Two?")
    assert first.messages[0].text == second.messages[0].text == f"{BASE}\n\nBe brief."


def test_what_is_set_holds_from_the_next_turn_on_and_after_a_reload(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo", system=BASE, temperature=0.5)
        assert request(chat.ask("One?")).temperature == 0.5
        chat.reply("Yes.")
        chat.set(instructions="Be brief.", temperature=0.25, reasoning_effort="low")
        chat.rename("Nothing is lost by this")
        turn = chat.ask("Two?")
        assert (turn.prefix.cause, turn.messages[0].text) == ("system_changed", f"{BASE}\n\nBe brief.")
        chat.reply("No.")
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        again = request(chat.ask("Three?"))
        assert again.messages[0].text == f"{BASE}\n\nBe brief."
        assert (again.temperature, again.effort) == (0.25, "low")
        chat.reply("Well.")
        chat.set(temperature=None, reasoning_effort="default", system="")
        last = request(chat.ask("Four?"))
        assert (last.temperature, last.effort, last.messages[0].text) == (None, None, "Be brief.")


def test_a_system_prompt_that_was_set_for_it_waits_for_the_first_turn_and_one_that_only_fits_does_not() -> None:
    store = MemoryStore()
    chat = StoredChat(make_backend(store), "chat", {"system": "Fits."})
    chat.keep()
    assert not StoredChat(make_backend(store), "chat").preview(Ask(text="One?")).envelope.prompt.system.base
    chat.set({"system": BASE, "instructions": "Be brief."})
    chat.keep()
    assert StoredChat(make_backend(store), "chat").ask(Ask(text="One?")).messages[0].text == f"{BASE}\n\nBe brief."


def test_a_system_prompt_that_a_program_sets_and_keeps_is_there_when_it_is_opened_again(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("set")
        chat.set(system="You are a cook.")
        chat.keep()
    with lamella.open(url) as engine:
        assert engine.chat("set").preview("One?").messages[0].text.startswith("You are a cook.")


@pytest.mark.parametrize("goes", [False, True])
def test_a_system_prompt_that_was_kept_waits_for_the_next_turn_of_whatever_branch(*, goes: bool) -> None:
    store = MemoryStore()
    chat = StoredChat(make_backend(store), "chat", {"system": BASE, "instructions": "Be brief."})
    asked = chat.ask(Ask(text="One?"))
    chat.reply("Yes.")
    chat.set({"system": "You are a cook."})
    chat.keep()
    if goes:
        chat.switch(asked.envelope.message_id)
    live = chat.preview(Ask(text="Two?")).messages
    again = StoredChat(make_backend(store), "chat").ask(Ask(text="Two?")).messages
    assert again[0].text == "You are a cook.\n\nBe brief."
    assert again == live


def test_a_conversation_that_exists_keeps_its_layout_where_nobody_chose_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for layout in ("library", "in_place"):
        monkeypatch.setenv("LAMELLA_LAYOUT", layout)
        with lamella.open(url) as engine:
            chat = engine.chat(layout)
            chat.ask("One?")
            chat.reply("Yes.")
        monkeypatch.delenv("LAMELLA_LAYOUT")
        with lamella.open(url) as engine:
            chat = engine.chat(layout)
            turn = chat.ask("Two?")
            assert (turn.envelope.layout, turn.prefix.cause) == (layout, "none")
            chat.reply("No.")
            assert engine.chat("new").preview("One?").envelope.layout == "auto"
            copy = engine.fork(layout, chat.head, f"of {layout}")
            assert copy.preview("Three?").envelope.layout == layout
            assert [turn.envelope.layout for turn in chat.replay()] == [layout, layout]
    monkeypatch.setenv("LAMELLA_LAYOUT", "library")
    with lamella.open(url) as engine:
        assert engine.chat("in_place").preview("Three?").envelope.layout == "library"
        assert engine.chat("in_place", layout="auto").preview("Three?").envelope.layout == "auto"


def test_turns_of_before_there_was_a_choice_are_in_the_library_and_open_ones_as_settings_say() -> None:
    message: dict[str, object] = {"id": "q", "parent": "", "text": "One?"}
    unset: dict[str, object] = {"history": None, "image_notes": None}
    asked: dict[str, dict[str, object]] = {"first": {}, "given": {"layout": "in_place"}, "open": unset}
    found: dict[str, str] = {}
    for name, terms in asked.items():
        store = MemoryStore()
        event = convert({**message, **terms}, MessageEvent)
        store.append("chat", write_event(event, at="2026-01-01T00:00:00Z"), expected=0)
        found[name] = str(make_chat(store).preview("Two?").envelope.layout)
    assert found == {"first": "library", "given": "in_place", "open": "auto"}


def test_a_setting_that_is_refused_changes_nothing(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        for wrong in ({"temprature": 1.0}, {"temperature": 3.0}, {"temperature": float("nan")}, {"system": 3}):
            with pytest.raises(SettingError) as refused:
                chat.set(reasoning_effort="low", **wrong)
        assert refused.value.hint.startswith("system takes a text, or a table of its parts.")
        assert request(chat.ask("One?")).effort is None


def test_a_question_answered_again_is_asked_under_what_was_set_since(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo", system=BASE)
        chat.ask("One?")
        chat.reply("Yes.")
        chat.set(temperature=1.0, system="You are kind.")
        again = request(chat.regenerate())
        assert (again.temperature, again.messages[0].text) == (1.0, "You are kind.")
        chat.reply("Yes indeed.")
        assert len(chat.branches()) == 2
    with lamella.open(url) as engine:
        assert request(engine.chat("demo").ask("Two?")).messages[0].text == "You are kind."


def test_no_event_names_a_file_to_be_read_nor_is_one_believed(url: str, tmp_path: Path) -> None:
    file = tmp_path / "how.md"
    file.write_text("Be brief.", encoding="utf-8")
    with lamella.open(url) as engine:
        chat = engine.chat("demo", instructions_file=str(file), layout="in_place")
        assert chat.ask("One?").messages[0].text == "Be brief."
        file.unlink()
        chat.reply("Yes.")
        assert chat.ask("Two?").messages[0].text == "Be brief."
        assert "how.md" not in str(chat.transcript())


def test_settings_of_the_system_prompt_are_not_written_down() -> None:
    settings = ChatSettings(lambda given: pytest.fail(str(given)), dict.fromkeys(PART_SETTINGS, "x") | {"window": 9})
    settings.note_written()
    assert set(settings.changed) == set(PART_SETTINGS)


def test_a_conversation_in_memory_has_the_prompt_of_settings_under_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_SYSTEM", BASE)
    monkeypatch.setenv("LAMELLA_INSTRUCTIONS", "Be brief.")
    assert lamella.Conversation().ask("One?").messages[0].text == f"{BASE}\n\nBe brief."
    assert lamella.Conversation(system="").ask("One?").messages[0].text == "Be brief."
    chat = lamella.Conversation(system="Mine.", instructions="", temperature=0)
    turn = chat.ask("One?")
    assert (turn.messages[0].text, request(turn).temperature) == ("Mine.", 0)
