"""Settings of a conversation that apply to its next turns."""

from pathlib import Path

import pytest
from msgspec import convert
from tests.unit.conversation.backends import make_backend, make_chat

import lamella
from lamella.conversation.conversation import Conversation
from lamella.conversation.settings import SYSTEM_PART_SETTINGS, SettingsOverrides
from lamella.conversation.turn import TurnRequest
from lamella.core.log.events.codec import build_event_batch
from lamella.core.log.events.message import QuestionEvent
from lamella.core.messages import ModelRequest
from lamella.errors import SettingError
from lamella.stores.memory import InMemoryStore

BASE = "You are terse."


def request(turn: lamella.Turn) -> ModelRequest:
    return turn.build_model_request(model="m", max_answer_tokens=9)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/chats.db"


def test_settings_give_new_conversation_its_system_prompt(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_SYSTEM", BASE)
    monkeypatch.setenv("LAMELLA_INSTRUCTIONS", "Be brief.")
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        first = conversation.ask("One?")
        conversation.reply("Yes.")
    monkeypatch.setenv("LAMELLA_SYSTEM", "Another.")
    with lamella.open(url) as engine:
        second = engine.chat("demo").ask("Two?")
    assert first.messages[0].text == second.messages[0].text == f"{BASE}\n\nBe brief."


def test_saved_setting_applies_from_next_turn_and_after_reload(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo", system=BASE, temperature=0.5)
        assert request(conversation.ask("One?")).temperature == 0.5
        conversation.reply("Yes.")
        conversation.set(instructions="Be brief.", temperature=0.25, reasoning_effort="low")
        conversation.rename("Nothing is lost by this")
        turn = conversation.ask("Two?")
        assert (turn.prefix_change.cause, turn.messages[0].text) == ("system_changed", f"{BASE}\n\nBe brief.")
        conversation.reply("No.")
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        again = request(conversation.ask("Three?"))
        assert again.messages[0].text == f"{BASE}\n\nBe brief."
        assert (again.temperature, again.effort) == (0.25, "low")
        conversation.reply("Well.")
        conversation.set(temperature=None, reasoning_effort="default", system="")
        last = request(conversation.ask("Four?"))
        assert (last.temperature, last.effort, last.messages[0].text) == (None, None, "Be brief.")


def test_saved_system_prompt_waits_for_first_turn_and_default_does_not() -> None:
    store = InMemoryStore()
    chat = Conversation.open(make_backend(store), "chat", {"system": "Fits."})
    chat.save_settings()
    assert (
        not Conversation.open(make_backend(store), "chat").preview(TurnRequest(text="One?")).envelope.prompt.system.base
    )
    chat.set(system=BASE, instructions="Be brief.")
    chat.save_settings()
    assert (
        Conversation.open(make_backend(store), "chat").ask(TurnRequest(text="One?")).messages[0].text
        == f"{BASE}\n\nBe brief."
    )


def test_saved_system_prompt_is_there_after_reopen(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("set")
        conversation.set(system="You are a cook.")
        conversation.save_settings()
    with lamella.open(url) as engine:
        assert engine.chat("set").preview("One?").messages[0].text.startswith("You are a cook.")


@pytest.mark.parametrize("goes", [False, True])
def test_saved_system_prompt_waits_for_next_turn_of_any_branch(*, goes: bool) -> None:
    store = InMemoryStore()
    chat = Conversation.open(make_backend(store), "chat", {"system": BASE, "instructions": "Be brief."})
    asked = chat.ask(TurnRequest(text="One?"))
    chat.reply("Yes.")
    chat.set(system="You are a cook.")
    chat.save_settings()
    if goes:
        chat.switch(asked.envelope.message_id)
    live = chat.preview(TurnRequest(text="Two?")).messages
    again = Conversation.open(make_backend(store), "chat").ask(TurnRequest(text="Two?")).messages
    assert again[0].text == "You are a cook.\n\nBe brief."
    assert again == live


def test_existing_conversation_keeps_its_layout(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for layout in ("library", "in_place"):
        monkeypatch.setenv("LAMELLA_LAYOUT", layout)
        with lamella.open(url) as engine:
            conversation = engine.chat(layout)
            conversation.ask("One?")
            conversation.reply("Yes.")
        monkeypatch.delenv("LAMELLA_LAYOUT")
        with lamella.open(url) as engine:
            conversation = engine.chat(layout)
            turn = conversation.ask("Two?")
            assert (turn.envelope.layout, turn.prefix_change.cause) == (layout, "none")
            conversation.reply("No.")
            assert engine.chat("new").preview("One?").envelope.layout == "auto"
            copy = engine.fork(layout, conversation.head, f"of {layout}")
            assert copy.preview("Three?").envelope.layout == layout
            assert [turn.envelope.layout for turn in conversation.replay()] == [layout, layout]
    monkeypatch.setenv("LAMELLA_LAYOUT", "library")
    with lamella.open(url) as engine:
        assert engine.chat("in_place").preview("Three?").envelope.layout == "library"
        assert engine.chat("in_place", layout="auto").preview("Three?").envelope.layout == "auto"


def test_old_turns_are_in_library_and_open_ones_follow_settings() -> None:
    message: dict[str, object] = {"id": "q", "parent": "", "text": "One?"}
    unset: dict[str, object] = {"history": None, "image_notes": None}
    asked: dict[str, dict[str, object]] = {"first": {}, "given": {"layout": "in_place"}, "open": unset}
    found: dict[str, str] = {}
    for name, terms in asked.items():
        store = InMemoryStore()
        event = convert({**message, **terms}, QuestionEvent)
        store.append("chat", build_event_batch(event, timestamp="2026-01-01T00:00:00Z"), expected=0)
        found[name] = str(make_chat(store).preview("Two?").envelope.layout)
    assert found == {"first": "library", "given": "in_place", "open": "auto"}


def test_refused_setting_changes_nothing(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        for wrong in ({"temprature": 1.0}, {"temperature": 3.0}, {"temperature": float("nan")}, {"system": 3}):
            with pytest.raises(SettingError) as refused:
                conversation.set(reasoning_effort="low", **wrong)
        assert refused.value.hint.startswith("system takes a text, or a table of its parts.")
        assert request(conversation.ask("One?")).effort is None


def test_regenerated_question_uses_new_settings(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo", system=BASE)
        conversation.ask("One?")
        conversation.reply("Yes.")
        conversation.set(temperature=1.0, system="You are kind.")
        again = request(conversation.regenerate())
        assert (again.temperature, again.messages[0].text) == (1.0, "You are kind.")
        conversation.reply("Yes indeed.")
        assert len(conversation.branches()) == 2
    with lamella.open(url) as engine:
        assert request(engine.chat("demo").ask("Two?")).messages[0].text == "You are kind."


def test_settings_events_never_read_files(url: str, tmp_path: Path) -> None:
    file = tmp_path / "how.md"
    file.write_text("Be brief.", encoding="utf-8")
    with lamella.open(url) as engine:
        conversation = engine.chat("demo", instructions_file=str(file), layout="in_place")
        assert conversation.ask("One?").messages[0].text == "Be brief."
        file.unlink()
        conversation.reply("Yes.")
        assert conversation.ask("Two?").messages[0].text == "Be brief."
        assert "how.md" not in str(conversation.transcript())


def test_settings_of_the_system_prompt_are_not_written_down() -> None:
    settings = SettingsOverrides(
        lambda given: pytest.fail(str(given)), dict.fromkeys(SYSTEM_PART_SETTINGS, "x") | {"window": 9}
    )
    settings.mark_written()
    assert set(settings.unsaved) == set(SYSTEM_PART_SETTINGS)


def test_memory_conversation_uses_base_prompt_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_SYSTEM", BASE)
    monkeypatch.setenv("LAMELLA_INSTRUCTIONS", "Be brief.")
    assert lamella.Conversation().ask("One?").messages[0].text == f"{BASE}\n\nBe brief."
    assert lamella.Conversation(system="").ask("One?").messages[0].text == "Be brief."
    chat = lamella.Conversation(system="Mine.", instructions="", temperature=0)
    turn = chat.ask("One?")
    assert (turn.messages[0].text, request(turn).temperature) == ("Mine.", 0)
