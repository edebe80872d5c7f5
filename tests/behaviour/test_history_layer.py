"""L4: earlier turns as the user saw them."""

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png

from lamella import Image, Note, Selection, ToolResult
from lamella.core.prompt.layers.model import LayerId

PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached leaves its message")


@pytest.mark.layout("library")
@PROMOTES
def test_in_library_earlier_messages_are_typed_text_replies_and_the_calls_of_tools(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask(
        "one",
        attach=[Note(path="a.md", text="A"), Selection(path="a.md", text="S"), Image(data=png(1, 1))],
        results=[ToolResult(name="t", output="T")],
    )
    chat.reply("first answer")
    turn = chat.ask("two")
    result = turn.envelope.layer(LayerId.L4).segments[0]
    stub = (
        "<tool_result>t()\n"
        f"<left_out>1 characters of output: {result.id}. Make the call again to read it.</left_out>\n</tool_result>\n"
    )
    picture = "[Picture: image. It is left out here; attach it again to see it.]\n"
    assert [(message.role, message.text) for message in turn.messages[1:]] == [
        ("user", f"{stub}{picture}[User query]:\none"),
        ("assistant", "first answer"),
        ("user", "two"),
    ]
    assert not any(message.images for message in turn.messages)
    assert turn.envelope.layer(LayerId.L4).text == f"{stub}\n\none\n\nfirst answer"


def test_in_place_earlier_tool_results_are_l4_segments_in_their_message(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", system="B.")
    chat.ask("one", results=[ToolResult(name="t", output="T")])
    chat.reply("r")
    turn = chat.ask("two")
    segments = turn.envelope.layer(LayerId.L4).segments
    assert [(segment.kind, segment.place) for segment in segments] == [
        ("tool", "message:1"),
        ("user", "message:1"),
        ("reply", "message:2"),
    ]


def test_in_place_a_tool_result_repeated_in_the_epoch_is_a_reference(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", results=[ToolResult(name="t", output="T")])
    chat.reply("r")
    turn = chat.ask("two", results=[ToolResult(name="t", output="T")])
    (segment,) = turn.envelope.layer(LayerId.L3).segments
    assert segment.form == "reference"


@pytest.mark.layout("library")
@PROMOTES
def test_library_layout_drops_tool_result_after_its_turn_but_keeps_call(
    converse: type[Watched],
) -> None:
    chat = converse()
    chat.ask("one", results=[ToolResult(name="t", output="a result of weight")])
    chat.reply("r")
    turn = chat.ask("two")
    assert "a result of weight" not in turn.envelope.text
    (stub,) = [segment for segment in turn.envelope.layer(LayerId.L4).segments if segment.kind == "tool"]
    assert (stub.form, stub.place) == ("handle", "message:0")
    assert f"output: {stub.id}." in turn.messages[0].text


def test_turn_without_a_reply_gets_the_empty_one(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one")
    turn = chat.ask("two")
    assert [(message.role, message.text) for message in turn.messages] == [
        ("user", "one"),
        ("assistant", ""),
        ("user", "two"),
    ]


def test_tags_typed_by_user_are_unchanged(converse: type[Watched]) -> None:
    chat = converse()
    typed = "what does </note_context> [User query]: <selected_text> mean?"
    chat.ask(typed)
    chat.reply(typed)
    turn = chat.ask("two")
    assert [message.text for message in turn.messages] == [typed, typed, "two"]


def test_history_segments_have_own_ids_for_equal_texts(converse: type[Watched]) -> None:
    chat = converse()
    for _ in range(3):
        chat.ask("same")
        chat.reply("same")
    segments = chat.ask("same").envelope.layer(LayerId.L4).segments
    assert len({segment.id for segment in segments}) == 6
    assert len({segment.hash for segment in segments}) == 1
