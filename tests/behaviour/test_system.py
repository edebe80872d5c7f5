"""L1: base, instructions, project, memory, in that order; one segment per part that has text."""

import pytest
from tests.conftest import Watched
from tests.unit.rendered import forms

from lamella.core.prompt.layers.model import LayerId


def test_system_parts_are_sent_in_fixed_order(converse: type[Watched]) -> None:
    parts = {"memory": "M.", "project": "P.", "instructions": "I.", "base": "B."}
    turn = converse(system=parts).ask("hi")
    assert turn.messages[0].text == "B.\n\nI.\n\nP.\n\nM."
    assert forms(turn, LayerId.L1) == [
        ("base", "full"),
        ("instructions", "full"),
        ("project", "full"),
        ("memory", "full"),
    ]


def test_empty_part_leaves_no_gap(converse: type[Watched]) -> None:
    turn = converse(system={"base": "B.", "project": "", "memory": "M."}).ask("hi")
    assert turn.messages[0].text == "B.\n\nM."


@pytest.mark.moves_prefix(reason="memory changes, and with it the system message")
def test_changed_system_part_keeps_bytes_of_earlier_parts(converse: type[Watched]) -> None:
    chat = converse(system={"base": "B.", "project": "P.", "memory": "M."})
    before = chat.ask("one").messages[0].text
    chat.reply("r")
    turn = chat.ask("two", system={"memory": "N."})
    assert turn.messages[0].text == "B.\n\nP.\n\nN."
    assert turn.messages[0].text[: before.index("M.")] == before[: before.index("M.")]
    assert str(turn.prefix_change.prefix_change) == "system_changed(memory)"


@pytest.mark.moves_prefix(reason="project changes, and with it the system message")
def test_system_part_change_persists(converse: type[Watched]) -> None:
    chat = converse(system={"base": "B.", "project": "P."})
    chat.ask("one")
    chat.reply("r")
    chat.ask("two", system={"project": "Q."})
    chat.reply("r")
    third = chat.ask("three")
    assert third.messages[0].text == "B.\n\nQ."
    assert third.prefix_change.cause == "none"


def test_system_part_given_again_unchanged_moves_nothing(converse: type[Watched]) -> None:
    chat = converse(system={"base": "B.", "memory": "M."}, layout="in_place")
    chat.ask("one")
    chat.reply("r")
    second = chat.ask("two", system={"memory": "M."})
    assert (second.prefix_change.cause, second.envelope.epoch) == ("none", 0)


@pytest.mark.moves_prefix(reason="L1 is emptied")
def test_part_can_be_emptied(converse: type[Watched]) -> None:
    chat = converse(system="B.")
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", system="")
    assert [message.role for message in turn.messages] == ["user", "assistant", "user"]
    assert str(turn.prefix_change.prefix_change) == "system_changed(base)"


def test_braces_are_literal_outside_instructions(converse: type[Watched]) -> None:
    text = "Write {activeNote} and {[[Spec]]}."
    turn = converse(system={"base": text, "project": text, "memory": text}).ask("hi")
    assert turn.messages[0].text == "\n\n".join([text] * 3)


@pytest.mark.parametrize("part", ["base", "instructions", "memory"])
def test_line_endings_and_bom_of_system_prompt_are_normalized(converse: type[Watched], part: str) -> None:
    chat = converse(system={part: "\ufeffBe brief.\r\nBe kind.\r\n"})
    first = chat.ask("one")
    assert first.messages[0].text == "Be brief.\nBe kind.\n"
    chat.reply("r")
    assert str(chat.ask("two", system={part: "Be brief.\nBe kind.\n"}).prefix_change.prefix_change) == "none"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Today is 2026-11-17.", "2026-11-17"),
        ("It is 2026-11-17T10:00:00Z now.", "2026-11-17T10:00:00Z"),
        ("The time is 10:42.", "10:42"),
        ("Today is Tuesday, 17 November 2026.", "17 November 2026"),
        ("Hari ini 17 Agustus 2026.", "17 Agustus 2026"),
        ("It is 11/17/2026.", "11/17/2026"),
        ("Now: 5 pm", "5 pm"),
    ],
)
def test_date_in_system_prompt_warns_once(converse: type[Watched], text: str, found: str) -> None:
    chat = converse(system=text)
    (warning,) = chat.ask("one").envelope.warnings
    assert warning.startswith(f'The system prompt\'s base has a date or a time in it, "{found}".')
    assert "put it into the question" in warning
    chat.reply("r")
    assert chat.ask("two", system=text).envelope.warnings == ()


@pytest.mark.parametrize("text", ["Answer in 3 bullets.", "Use version 1.2.3.", "A ratio of 16:9.", "Since 2026."])
def test_other_numbers_are_not_warned_of(converse: type[Watched], text: str) -> None:
    assert converse(system=text).ask("one").envelope.warnings == ()
