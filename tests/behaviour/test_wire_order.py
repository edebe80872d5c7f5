"""Wire order: system, earlier messages, then one user message."""

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png

from lamella import Image, Note, Selection, ToolResult, Url

PROMOTES = pytest.mark.moves_prefix(reason="the note goes into the library")


@pytest.mark.layout("library")
@PROMOTES
def test_system_message_is_l1_then_the_heading_then_the_library(converse: type[Watched]) -> None:
    chat = converse(system={"base": "Base.", "memory": "Memory."})
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    system = chat.ask("two").messages[0]
    assert system.role == "system"
    assert system.text == (
        "Base.\n\nMemory.\n\n## Context Library\n\n"
        "<note_context>\n<title>a</title>\n<path>a.md</path>\n<content>\nA\n</content>\n</note_context>\n"
    )


@pytest.mark.layout("library")
@PROMOTES
def test_empty_l1_still_sends_the_library(converse: type[Watched]) -> None:
    chat = converse()
    assert [message.role for message in chat.ask("one", attach=[Note(path="a.md", text="A")]).messages] == ["user"]
    chat.reply("r")
    second = chat.ask("two")
    assert second.messages[0].role == "system"
    assert second.messages[0].text.startswith("## Context Library\n\n<note_context>\n")
    assert second.envelope.layers[1].segments[0].place == "system"


def test_no_system_message_without_l1_and_library(converse: type[Watched]) -> None:
    assert [message.role for message in converse().ask("hello").messages] == ["user"]


@pytest.mark.parametrize("text", ["hello", " leading and trailing \n", "", "[User query]:\n", "<note_context>"])
def test_user_message_without_attachments_is_typed_text(converse: type[Watched], text: str) -> None:
    chat = converse(system="Base.")
    assert chat.ask(text).messages[-1].text == text


@pytest.mark.layout("library")
@PROMOTES
def test_user_message_is_tool_results_references_new_artifacts_label_question(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Url(url="https://e.org", text="E")])
    chat.reply("r")
    turn = chat.ask(
        "two",
        attach=[Note(path="b.md", text="B"), Note(path="a.md", text="A"), Selection(path="a.md", text="S")],
        results=[ToolResult(name="t", output="T")],
    )
    text = turn.messages[-1].text
    marks = ["<tool_result>", "- a.md\n", "<title>b</title>", "<selected_text>", "[User query]:\ntwo"]
    assert [text.index(mark) for mark in marks] == sorted(text.index(mark) for mark in marks)
    assert text.endswith("[User query]:\ntwo")
    assert "https://e.org" not in text


def test_image_alone_adds_a_part_and_no_text(converse: type[Watched]) -> None:
    message = converse().ask("what is this?", attach=[Image(data=png(2, 2))]).messages[-1]
    assert message.text == "what is this?"
    assert [image.media_type for image in message.images] == ["image/png"]


def test_roles_alternate_from_the_first_turn_to_the_last(converse: type[Watched]) -> None:
    chat = converse(system="Base.")
    for number in range(3):
        turn = chat.ask(f"question {number}")
        chat.reply(f"answer {number}")
    assert [message.role for message in turn.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
