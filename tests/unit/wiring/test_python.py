"""The conversation as a Python program meets it."""

from pathlib import Path

import pytest

import lamella
from lamella import BadInputError, Conversation, LamellaError, Note
from lamella.errors import SettingError
from lamella.testing import ScriptedProvider
from lamella.wiring.python import open_engine


def test_five_line_example_builds_request() -> None:
    chat = Conversation(system="You are terse.")
    turn = chat.ask("Summarize this", attach=[Note(path="project-spec.md", text="# Spec")])
    chat.reply("Here is a summary")
    assert [message.role for message in turn.messages] == ["system", "user"]
    assert turn.messages[0].to_dict() == {"role": "system", "content": "You are terse."}
    assert turn.tokens.total == sum(turn.tokens.by_layer.values())
    assert turn.prefix_change.cause == "first_turn"
    assert turn.envelope.conversation_id == "chat"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"layuot": "x"}, "layuot"),
        ({"window": "wide"}, "window"),
        ({"window": 100, "reserve": 200}, "leaves no room"),
        ({"warn": 0.9}, "not in order"),
        ({"image_notes": "perhaps"}, "image_notes"),
    ],
)
def test_invalid_setting_is_refused_by_name(settings: dict[str, object], told: str) -> None:
    with pytest.raises(SettingError, match=told) as caught:
        Conversation(**settings)  # type: ignore[arg-type]
    assert caught.value.hint


def test_unknown_system_part_is_refused_with_known_ones() -> None:
    with pytest.raises(SettingError, match="no part persona") as caught:
        Conversation(system={"persona": "x"})
    assert "base, guidelines, instructions, project, workflow, memory" in caught.value.hint


def test_every_mistake_of_the_caller_is_one_family_of_errors() -> None:
    with pytest.raises(BadInputError):
        Conversation(layout="sideways")
    assert issubclass(BadInputError, LamellaError)


def test_system_given_as_text_is_the_base() -> None:
    chat = Conversation(system={"base": "B.", "memory": "M."})
    assert chat.ask("hi", system="C.").messages[0].text == "C.\n\nM."


def window_of(url: str, name: str = "chat", **settings: object) -> int:
    with open_engine(url) as engine:
        return engine.chat(name, **settings).ask("Hi.").tokens.limit


def test_conversation_uses_window_of_its_model_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    usual = window_of(url, "usual")
    assert window_of(url, model="local") == 8_192 - 1_024
    assert window_of(url) == 8_192 - 1_024, "also when it is opened by its name alone"
    assert window_of(url, "own", model="local", window=4_096, reserve=96) == 4_000
    assert window_of(url, "own") == 4_000
    assert window_of(url, "unknown", model="scripted:x") == usual
    assert window_of(url, "large", model="anthropic:claude-opus-5-5") == usual
    assert window_of(url, "reserved", model="local", reserve=192) == 8_000
    monkeypatch.setenv("LAMELLA_WINDOW", "20000")
    assert window_of(url) == 20_000 - 4_096


def test_note_larger_than_model_window_is_refused() -> None:
    with open_engine("memory:", model="local", provider=ScriptedProvider("Yes.")) as engine:
        conversation = engine.chat("notes")
        with pytest.raises(lamella.ContextBudgetExceededError):
            conversation.ask("What?", attach=[lamella.Selection(path="a.md", text="word " * 20_000)])
