"""The conversation as a Python program meets it."""

import pytest

from lamella import BadInputError, LamellaError, Note
from lamella.errors import SettingError
from lamella.wiring.python import Conversation


def test_five_lines_give_what_a_model_would_be_sent() -> None:
    chat = Conversation(system="You are terse.")
    turn = chat.ask("Summarize this", attach=[Note(path="project-spec.md", text="# Spec")])
    chat.reply("Here is a summary")
    assert [message.role for message in turn.messages] == ["system", "user"]
    assert turn.messages[0].to_dict() == {"role": "system", "content": "You are terse."}
    assert turn.tokens.total == sum(turn.tokens.by_layer.values())
    assert turn.prefix.cause == "first_turn"
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
def test_a_wrong_setting_is_refused_with_its_name(settings: dict[str, object], told: str) -> None:
    with pytest.raises(SettingError, match=told) as caught:
        Conversation(**settings)  # type: ignore[arg-type]
    assert caught.value.hint


def test_an_unknown_part_of_the_system_prompt_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(SettingError, match="no part persona") as caught:
        Conversation(system={"persona": "x"})
    assert "base, guidelines, instructions, project, workflow, memory" in caught.value.hint


def test_every_mistake_of_the_caller_is_one_family_of_errors() -> None:
    with pytest.raises(BadInputError):
        Conversation(layout="auto")
    assert issubclass(BadInputError, LamellaError)


def test_a_system_given_as_text_is_the_base() -> None:
    chat = Conversation(system={"base": "B.", "memory": "M."})
    assert chat.ask("hi", system="C.").messages[0].text == "C.\n\nM."
