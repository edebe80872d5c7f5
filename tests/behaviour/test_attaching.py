"""Attachments of a turn: each artifact once, with the last policy given."""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png
from tests.unit.rendered import attached, library

from lamella import ActiveNote, Image, Note

PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")


@pytest.mark.layout("library")
@PROMOTES
def test_explicit_policy_wins_over_second_attachment_in_turn(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A", policy="pin"), Note(path="a.md", text="A")])
    chat.reply("r")
    assert library(chat.ask("two", drop=["a.md"])) == ["a.md"]


@PROMOTES
def test_last_of_two_policies_in_one_turn_applies(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A", policy="pin"), Note(path="a.md", text="A", policy="follow")])
    chat.reply("r")
    assert library(chat.ask("two", drop=["a.md"])) == []


@pytest.mark.layout("library")
@PROMOTES
def test_active_note_snapshot_is_active_only_in_its_turn(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    text = "first " * 2_000
    chat.ask("one", attach=[Note(path="a.md", text=text, policy="snapshot")])
    chat.reply("r")
    active = chat.ask("two", attach=[ActiveNote(path="a.md", text="second")])
    chat.reply("r")
    plain = chat.ask("three", attach=[Note(path="a.md", text="third")])
    assert active.messages[-1].text.startswith("<active_note>\n")
    assert plain.messages[-1].text.startswith("<note_context>\n")
    assert all(text in turn.messages[-1].text for turn in (active, plain))


def test_image_attached_and_embedded_is_sent_once(converse: type[Watched], tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(png(5, 5))
    note = ActiveNote(path="a.md", text="![[plan.png]] ![[plan.png|50]]")
    turn = converse(vault=tmp_path).ask("q", attach=[note, Image(path="plan.png")])
    assert len(turn.messages[-1].images) == 1
    assert len(attached(turn)) == 2


def test_two_images_are_sent_in_order_of_attachment(converse: type[Watched]) -> None:
    turn = converse().ask("q", attach=[Image(data=png(2, 1)), Image(data=png(3, 1))])
    assert [image.width for image in turn.messages[-1].images] == [2, 3]
