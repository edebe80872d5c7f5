"""Warnings about attachments: dropped, left out or refused, and where the request has them."""

from pathlib import Path

import pytest
from tests.unit.pictures import png

import lamella
from lamella import ContextBudgetExceededError, Conversation, Folder, Image, Note, Selection, Tag
from lamella.errors import ArtifactError

PICTURED = "# Plan\n![](plan.png)\n"


def test_drop_warns_about_unknown_name_once() -> None:
    chat = Conversation(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="alpha")])
    turn = chat.ask("two", drop=["a.md", "a.md", "b.md"])
    assert turn.envelope.prompt.dropped == ("a.md",)
    assert turn.envelope.warnings == ("Nothing to drop: b.md is not in the library.",)


def test_note_with_image_outside_library_can_be_dropped() -> None:
    chat = Conversation(layout="in_place")
    chat.ask("one", attach=[Note(path="plan.md", text=PICTURED)])
    turn = chat.ask("two", drop=["plan.md"])
    assert turn.envelope.prompt.dropped == ("plan.md",)
    assert not turn.envelope.warnings
    assert "plan.png" not in "".join(message.text for message in turn.messages)


def test_dropping_note_of_instructions_warns_that_it_stays(tmp_path: Path) -> None:
    (tmp_path / "style.md").write_text("Write plainly.", encoding="utf-8")
    chat = Conversation(vault=tmp_path, system={"instructions": "{[[style]]}"})
    turn = chat.ask("one", drop=["style.md"])
    assert turn.envelope.warnings == ("style.md stays in the system prompt: its instructions draw it in.",)
    assert "Write plainly." in turn.messages[0].text


def test_note_that_gains_image_warns_that_its_text_leaves_library() -> None:
    chat = Conversation(image_notes="handle")
    chat.ask("one", attach=[Note(path="plan.md", text="# Plan\n")])
    turn = chat.ask("two", attach=[Note(path="plan.md", text=PICTURED)])
    assert turn.envelope.warnings == (
        "plan.md embeds a picture now: it is sent with this turn, and the library has a handle of it after it.",
    )


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_id_cannot_name_selection_and_note(layout: str) -> None:
    chat = Conversation(layout=layout)
    first = chat.ask("one", attach=[Selection(path="a.md", lines=(1, 2), text="kept words")])
    name = first.envelope.layers[2].segments[0].id
    with pytest.raises(ArtifactError, match="selected_text"):
        chat.ask("two", attach=[Note(path=name, text="other words")])
    turn = chat.ask("two")
    assert "kept words" in "".join(message.text for message in turn.messages)


@pytest.mark.layout("library")
def test_reference_says_above_also_for_note_in_instructions(tmp_path: Path) -> None:
    (tmp_path / "style.md").write_text("Write plainly.", encoding="utf-8")
    chat = Conversation(vault=tmp_path, system={"instructions": "{[[style]]}"})
    turn = chat.ask("one", attach=[Note(path="style.md")])
    assert turn.messages[-1].text.startswith("Attached to this message; the text stands above:\n- style.md\n")
    assert "Context Library" not in "".join(message.text for message in turn.messages)


def test_repeated_image_is_referenced_by_title() -> None:
    chat = Conversation(layout="in_place")
    chat.ask("one", attach=[Image(data=png(2, 2), title="The plan")])
    turn = chat.ask("two", attach=[Image(data=png(2, 2), title="The plan")])
    assert "- The plan (picture)\n" in turn.messages[-1].text


def test_empty_folder_template_is_literal(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    turn = Conversation(vault=tmp_path).ask("Read {empty}")
    assert turn.messages[-1].text == "Read {empty}"
    assert turn.envelope.warnings == ("{empty} was left as typed: the folder holds no notes.",)


def test_oversized_request_is_explained_in_plain_words() -> None:
    chat = Conversation(window=600, reserve=0)
    with pytest.raises(ContextBudgetExceededError, match="needs") as caught:
        chat.ask("word " * 700)
    assert caught.value.protected == ("what was typed now (701 tokens)", "what marks off messages (7 tokens)")


def test_turn_repr_is_one_line() -> None:
    chat = Conversation()
    for number in range(20):
        turn = chat.ask("again", attach=[Note(path=f"{number}.md", text="text " * 800)])
    assert len(repr(turn)) < 2_000


@pytest.mark.parametrize("path", ["tool:t:1cf1b3a18318", "unparsed:" + "0" * 64, "sha256:" + "0" * 64])
def test_path_that_resembles_content_id_is_refused(path: str) -> None:
    with pytest.raises(ArtifactError, match="named by its content"):
        Conversation(layout="in_place").ask("one", attach=[Note(path=path, text="x")])


def test_tag_without_notes_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("#here", encoding="utf-8")
    turn = Conversation(vault=tmp_path).ask("Read {#here, #nowhere}")
    assert turn.envelope.warnings == ("No note carries #nowhere; nothing was attached for it.",)
    assert [segment.id for segment in turn.envelope.layers[2].segments] == ["a.md"]


def test_text_of_many_embed_openings_embeds_nothing() -> None:
    text = "![[" * 20_000 + "![](" * 20_000
    turn = Conversation(window=10**9).ask("one", attach=[Note(path="a.md", text=text)])
    assert turn.envelope.layers[2].segments[0].id == "a.md"
    assert not turn.envelope.warnings


@pytest.mark.parametrize("ledger", [True, False])
def test_edit_names_cause_with_and_without_ledger(*, ledger: bool) -> None:
    with lamella.open("memory:", keep_ledger=ledger) as engine:
        conversation = engine.chat("c", layout="in_place")
        first = conversation.ask("one")
        conversation.reply("x")
        conversation.ask("two")
        assert conversation.edit(first.envelope.message_id, "one, again").prefix_change.cause == "history_edited"


def test_skipped_files_of_folder_are_named(tmp_path: Path) -> None:
    vault, outside = tmp_path / "vault", tmp_path / "outside.md"
    vault.mkdir()
    (vault / "a.md").write_text("#here", encoding="utf-8")
    outside.write_text("#here", encoding="utf-8")
    (vault / "b.md").symlink_to(outside)
    told = ("b.md is left out: links out of the vault or to a folder are not followed.",)
    for attachment in (Folder(path="."), Tag(tag="#here")):
        turn = Conversation(vault=vault).ask("Read", attach=[attachment])
        assert [segment.id for segment in turn.envelope.layers[2].segments] == ["a.md"]
        assert turn.envelope.warnings == told
    assert Conversation(vault=vault).ask("Read {#here}").envelope.warnings == told
