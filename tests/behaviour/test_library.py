"""L2: everything attached in earlier turns, one entry per id, in first-seen order."""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png
from tests.unit.rendered import forms, library, sent

import lamella
from lamella import ActiveNote, Code, Dataview, Image, Note, Pdf, Selection, ToolResult, Unknown, Url, YouTube
from lamella.conversation.turn import BuiltTurn
from lamella.core.prompt.layers.model import LayerId
from lamella.core.text.content import hash_text

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"sentence {n} " * 60 for n in range(12))
PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")


@pytest.mark.layout("library")
@PROMOTES
def test_every_kind_that_may_be_promoted_is_and_the_others_are_not(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask(
        "one",
        attach=[
            Note(path="a.md", text="A"),
            Url(url="https://e.org", text="E"),
            YouTube(url="https://y.org/v", text="Y"),
            Pdf(path="p.pdf", text="P"),
            Code(path="c.py", text="C"),
            Dataview(path="a.md", query="LIST", text="D"),
            Selection(path="a.md", text="S"),
            Selection(url="https://e.org", text="W"),
            Unknown(text="U"),
            Image(data=png(1, 1)),
        ],
        results=[ToolResult(name="t", output="T")],
    )
    chat.reply("r")
    second = chat.ask("two").envelope.layer(LayerId.L2).segments
    kinds = ["note", "url", "youtube", "pdf", "code", "dataview", "selected_text", "web_selection", "unknown"]
    assert [segment.kind for segment in second] == kinds


@pytest.mark.layout("library")
@PROMOTES
def test_promoted_block_keeps_its_bytes(converse: type[Watched]) -> None:
    chat = converse()
    first = chat.ask("one", attach=[Note(path="a.md", text="A </content> B")])
    chat.reply("r")
    block = first.envelope.layer(LayerId.L3).text
    assert chat.ask("two").envelope.layer(LayerId.L2).text == block


@pytest.mark.layout("library")
@PROMOTES
def test_library_turn_without_new_attachments_keeps_all_bytes(converse: type[Watched]) -> None:
    chat = converse(system="B.")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    second = chat.ask("two")
    chat.reply("r")
    third = chat.ask("three")
    assert third.envelope.prefix_hash == second.envelope.prefix_hash
    assert third.prefix_change.cause == "none"


@pytest.mark.layout("library")
@PROMOTES
def test_preview_mode_outlines_long_notes_only(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="long.md", text=LONG), Note(path="short.md", text="short")])
    chat.reply("r")
    turn = chat.ask("two")
    assert forms(turn, LayerId.L2) == [("long.md", "preview"), ("short.md", "full")]
    assert all(f"## Part {n}" in turn.messages[0].text for n in range(12))
    assert LONG not in turn.messages[0].text


@pytest.mark.layout("library")
@PROMOTES
@pytest.mark.parametrize(("length", "form"), [(5_000, "full"), (5_001, "preview")])
def test_outline_begins_above_five_thousand_characters(converse: type[Watched], length: int, form: str) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text="x" * length)])
    chat.reply("r")
    assert forms(chat.ask("two"), LayerId.L2) == [("a.md", form)]


@pytest.mark.layout("library")
@PROMOTES
def test_text_that_cannot_be_refetched_is_never_previewed(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask(
        "one",
        attach=[Selection(path="a.md", text=LONG), Selection(url="https://e.org", text=LONG), Unknown(text=LONG)],
    )
    chat.reply("r")
    turn = chat.ask("two")
    assert [form for _, form in forms(turn, LayerId.L2)] == ["full"] * 3
    assert turn.messages[0].text.count(LONG) == 3


@pytest.mark.layout("library")
@PROMOTES
def test_pinned_note_is_never_previewed(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=LONG, policy="pin")])
    chat.reply("r")
    assert forms(chat.ask("two"), LayerId.L2) == [("a.md", "full")]


@pytest.mark.layout("library")
@PROMOTES
def test_note_pinned_later_is_in_full_again(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    chat.ask("two", attach=[Note(path="a.md", text=LONG, policy="pin")])
    chat.reply("r")
    assert forms(chat.ask("three"), LayerId.L2) == [("a.md", "full")]


@pytest.mark.layout("library")
@PROMOTES
def test_preview_that_is_not_shorter_is_not_made(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    headings = "\n".join(f"# {n} {'h' * 40}" for n in range(200))
    chat.ask("one", attach=[Note(path="a.md", text=headings)])
    chat.reply("r")
    assert forms(chat.ask("two"), LayerId.L2) == [("a.md", "full")]


PICTURED = "Beans grow here. " * 20 + "![[plan.png]]"


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="the note leaves with its turn")
def test_image_notes_setting_handle_leaves_handle(converse: type[Watched]) -> None:
    chat = converse(image_notes="handle")
    chat.ask("one", attach=[Note(path="a.md", text=PICTURED), ActiveNote(path="b.md", text=PICTURED)])
    chat.reply("r")
    turn = chat.ask("two")
    assert forms(turn, LayerId.L2) == [("a.md", "handle"), ("b.md", "handle")]
    assert "plan.png" not in sent(turn)
    chat.reply("r")
    again = chat.ask("three", attach=[Note(path="a.md", text=PICTURED)])
    assert forms(again, LayerId.L3) == [("a.md", "full")]


@pytest.mark.layout("library")
@PROMOTES
def test_pinned_or_short_note_with_images_keeps_text(
    converse: type[Watched],
) -> None:
    chat = converse(image_notes="handle")
    notes = [Note(path="a.md", text=PICTURED, policy="pin"), Note(path="b.md", text="![[plan.png]]")]
    chat.ask("one", attach=notes)
    chat.reply("r")
    assert forms(chat.ask("two"), LayerId.L2) == [("a.md", "full"), ("b.md", "full")]


@pytest.mark.layout("library")
@PROMOTES
def test_promotion_keeps_note_text_without_images(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text=PICTURED)])
    chat.reply("r")
    turn = chat.ask("two")
    assert forms(turn, LayerId.L2) == [("a.md", "full")]
    assert all(not message.images for message in turn.messages)


@pytest.mark.layout("library")
@PROMOTES
def test_pasted_image_is_replaced_by_its_size(converse: type[Watched]) -> None:
    pasted = f"Before ![plan](data:image/png;base64,{'iVBORw0KGgo' * 9_000}) after.\n" + "".join(
        f"Bed {number}.\n" for number in range(150)
    )
    chat = converse()
    turn = chat.ask("one", attach=[Note(path="a.md", text=pasted)])
    assert "Before ![plan](image/png of 99,000 characters, left out) after.\n" in turn.messages[-1].text
    assert turn.envelope.layers[2].segments[0].hash == hash_text(pasted)
    assert turn.tokens.total < 1_000
    chat.reply("r")
    assert "iVBORw0KGgo" not in sent(chat.ask("two"))
    chat.reply("r")
    update = chat.ask("three", attach=[Note(path="a.md", text=pasted.replace("after", "behind"))])
    assert forms(update, LayerId.L3) == [("a.md", "update")]
    assert "+Before ![plan](image/png of 99,000 characters, left out) behind." in sent(update)
    chat.reply("r")
    selected = chat.ask("four", attach=[Selection(path="a.md", text="data:image/png;base64," + "A" * 80)])
    assert "A" * 80 in sent(selected)


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="the note leaves the library when it gets a picture")
def test_note_that_gains_image_leaves_handle_in_library(converse: type[Watched]) -> None:
    chat = converse(image_notes="handle")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text=PICTURED)])
    assert "a.md embeds a picture now" in turn.envelope.warnings[0]
    chat.reply("r")
    assert forms(chat.ask("three"), LayerId.L2) == [("a.md", "handle")]


def test_in_place_note_with_images_is_unchanged_until_epoch_ends(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", image_notes="handle")
    chat.ask("one", attach=[Note(path="a.md", text=PICTURED)])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text=PICTURED)])
    assert forms(turn, LayerId.L2) == [("a.md", "full")]
    assert sent(turn).count("plan.png") == 1
    assert turn.messages[-1].text.endswith("- a.md\n[User query]:\ntwo")


@PROMOTES
def test_layouts_agree_on_ids_and_order_of_the_library(converse: type[Watched]) -> None:
    seen = []
    for layout in ("library", "in_place"):
        chat = converse(layout=layout)
        chat.ask("one", attach=[Note(path="b.md", text="B"), Note(path="a.md", text="A")])
        chat.reply("r")
        chat.ask("two", attach=[Note(path="a.md", text="changed"), Url(url="https://e.org", text="E")])
        chat.reply("r")
        seen.append(library(chat.ask("three")))
    assert seen[0] == seen[1] == ["b.md", "a.md", "https://e.org"]


@pytest.mark.parametrize("again", [1, 2])
def test_note_attached_again_after_its_outline_is_in_the_request_once(tmp_path: Path, again: int) -> None:
    sections = "".join(f"## Part {number}\n\n{'What has to be done soon. ' * 30}\n\n" for number in range(12))
    note = Note(path="plan.md", text=f"# Plan\n\n{sections}")
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url, model="openai:gpt-5") as engine:
        chat = engine.chat("x", layout="library", carry_forward="preview")
        turns = [chat.ask("What is planned?", attach=[note])]
        chat.reply("Much.")
        turns.append(chat.ask("And then?"))
        chat.reply("More.")
        whole = str(note.text).count("has to be done")
        assert texts(turns[-1]).count("has to be done") < whole
        for _ in range(again):
            turns.append(chat.ask("Really?", attach=[note]))
            chat.reply("Yes.")
            turns.append(chat.ask("Sure?"))
            chat.reply("Yes.")
        for turn in turns[2:]:
            assert texts(turn).count("<title>plan</title>") == 1
            assert texts(turn).count("has to be done") == whole
        assert len({turn.messages[0].text for turn in turns[2:]}) == 1
        reopened = engine.chat("x")
        assert [texts(turn) for turn in reopened.replay()] == [texts(turn) for turn in turns]
        assert texts(reopened.ask("Last one?")).startswith(turns[-1].messages[0].text)


def texts(turn: BuiltTurn) -> str:
    return "".join(message.text for message in turn.messages)
