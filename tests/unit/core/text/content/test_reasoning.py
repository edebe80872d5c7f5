"""Reasoning at the start of an answer is not part of it."""

import pytest

import lamella
from lamella.core.text.content import strip_reasoning


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("<think>hm</think>\n\nAt noon.", "At noon."),
        ("\n<think>\nhm\n</think>At noon.", "At noon."),
        ("<think>hm", ""),
        ("At noon. <think>hm</think>", "At noon. <think>hm</think>"),
        ("At noon.", "At noon."),
    ],
)
def test_reasoning_before_an_answer_is_removed(answer: str, text: str) -> None:
    assert strip_reasoning(answer) == text


def test_reasoning_is_not_added_to_history() -> None:
    chat = lamella.Conversation()
    chat.ask("When?")
    assert chat.reply("<think>They want the time.</think>At noon.").text == "At noon."
    assert "They want" not in "".join(message.text for message in chat.ask("And then?").messages)
