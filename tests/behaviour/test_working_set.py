"""The working set: how long what is attached stays attached, what changed at its source, and what leaves it."""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png
from tests.unit.rendered import attached, forms, library, sent

from lamella import Conversation, Image, Note, Selection
from lamella.core.prompt.layers.model import LayerId
from lamella.errors import SettingError

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"sentence {n} " * 60 for n in range(12))
PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
DROPS = pytest.mark.moves_prefix(reason="what is dropped leaves the prompt")
BOTH = pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])
CHANGED = "{} changed since it was last sent; its new text is sent now."


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("Low tide is at 14:10.\n")
    (tmp_path / "b.md").write_text("The beans were sown in May.\n")
    return tmp_path


def test_attachment_is_retained_for_two_turns_by_default(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    assert list(chat.working_set) == ["a.md"]
    chat.reply("r")
    for text in ("two", "three"):
        assert list(chat.working_set) == ["a.md"]
        chat.ask(text)
        chat.reply("r")
    assert list(chat.working_set) == []


def test_sticky_attachment_stays_until_detached_without_reference(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    for text in ("two", "three", "four", "five"):
        turn = chat.ask(text)
        assert attached(turn) == []
        assert turn.messages[-1].text == text
        chat.reply("r")
    assert list(chat.working_set) == ["a.md", "b.md"]
    turn = chat.ask("six", detach=["a.md"])
    assert list(chat.working_set) == ["b.md"]
    assert library(turn) == ["a.md", "b.md"]


def test_detach_applies_before_attach_in_same_turn(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="A")], detach=["a.md"])
    assert attached(turn) == [("a.md", "reference")]
    assert list(chat.working_set) == ["a.md"]


@BOTH
def test_note_that_changed_on_disk_is_noticed_and_sent(converse: type[Watched], layout: str, vault: Path) -> None:
    chat = converse(layout=layout, attachments="sticky", vault=vault)
    chat.ask("one", attach=[Note(path="a.md"), Note(path="b.md")])
    chat.reply("r")
    assert attached(chat.ask("two")) == []
    chat.reply("r")
    (vault / "a.md").write_text("Low tide is at 15:20.\n")
    turn = chat.ask("three")
    assert attached(turn) == [("a.md", "update")]
    assert "15:20" in turn.messages[-1].text
    assert turn.envelope.warnings == (CHANGED.format("a.md"),)
    chat.reply("r")
    turn = chat.ask("four")
    assert attached(turn) == []
    assert turn.envelope.warnings == ()


def test_detached_note_is_not_read(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", attachments="sticky", vault=vault)
    notes = [Note(path="a.md", policy="snapshot"), Note(path="b.md"), Note(path="c.md", text="given")]
    (vault / "c.md").write_text("on disk")
    chat.ask("one", attach=notes)
    chat.reply("r")
    for name in ("a.md", "b.md", "c.md"):
        (vault / name).write_text("something else")
    turn = chat.ask("two", detach=["b.md"])
    assert attached(turn) == []
    assert turn.envelope.warnings == ()


def test_unattached_note_is_not_read_by_default(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", vault=vault)
    chat.ask("one", attach=[Note(path="a.md")])
    chat.reply("r")
    (vault / "a.md").write_text("something else")
    turn = chat.ask("two")
    assert (attached(turn), turn.envelope.warnings) == ([], ())


def test_deleted_note_stays_as_sent_with_warning(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", attachments="sticky", vault=vault)
    chat.ask("one", attach=[Note(path="a.md")])
    chat.reply("r")
    (vault / "a.md").unlink()
    turn = chat.ask("two")
    assert turn.envelope.warnings == ("a.md stays as it was sent last: There is no file a.md in the vault.",)
    assert "14:10" in sent(turn)


def test_changed_selected_lines_stay_as_sent_with_warning(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", attachments="sticky", vault=vault)
    (vault / "a.md").write_text("one\ntwo\nthree\n")
    chat.ask("one", attach=[Selection(path="a.md", lines=(2, 3), text="two\nthree")])
    chat.reply("r")
    (vault / "a.md").write_text("new\nzero\none\ntwo\nthree\n")
    assert chat.ask("only moved?").envelope.warnings == ()
    chat.reply("r")
    (vault / "a.md").write_text("one\ntwo\nfour\n")
    said = ("a.md:2-3 changed on disk since it was selected, and stays as it was sent; attach it again to send that.",)
    for _ in range(2):
        turn = chat.ask("changed?")
        assert (attached(turn), turn.envelope.warnings) == ([], said)
        chat.reply("r")
    assert chat.ask("new", attach=[Selection(path="a.md", lines=(2, 3), text="two\nfour")]).envelope.warnings == ()
    chat.reply("r")
    assert chat.ask("as on disk").envelope.warnings == ()
    chat.reply("r")
    (vault / "a.md").unlink()
    assert chat.ask("gone").envelope.warnings == ()


def test_selection_within_line_is_searched_in_that_line(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", attachments="sticky", vault=vault)
    (vault / "a.py").write_text("Low tide is at noon.\n")
    chat.ask("one", attach=[Selection(path="a.py", lines=(1, 1), text="tide is")])
    chat.reply("r")
    assert chat.ask("two").envelope.warnings == ()
    chat.reply("r")
    (vault / "a.py").write_text("High water is at noon.\n")
    assert len(chat.ask("three").envelope.warnings) == 1
    chat.reply("r")
    assert chat.ask("four", detach=[next(iter(chat.working_set))]).envelope.warnings == ()


@pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
def test_only_detached_notes_are_carried_forward_as_outline(converse: type[Watched]) -> None:
    chat = converse(layout="library", attachments="sticky", carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    assert forms(chat.ask("two"), LayerId.L2) == [("a.md", "full")]
    chat.reply("r")
    assert forms(chat.ask("three", detach=["a.md"]), LayerId.L2) == [("a.md", "preview")]


@PROMOTES
def test_sticky_image_is_sent_again_if_no_message_has_it(converse: type[Watched]) -> None:
    chat = converse(layout="library", attachments="sticky")
    chat.ask("one", attach=[Image(data=png(4, 3), path="map.png"), Note(path="a.md", text="A")])
    chat.reply("r")
    again = chat.ask("two")
    assert len(again.messages[-1].images) == 1
    assert again.messages[-1].text == "two"
    chat.reply("r")
    gone = chat.ask("three", detach=["map.png"])
    assert gone.messages[-1].images == ()
    assert list(chat.working_set) == ["a.md"]


def test_image_in_a_message_is_not_sent_again(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Image(data=png(4, 3), path="map.png")])
    chat.reply("r")
    turn = chat.ask("two")
    assert sum(len(message.images) for message in turn.messages) == 1
    assert turn.messages[-1].images == ()
    assert len(chat.working_set) == 1


@pytest.mark.moves_prefix(reason="a fold is asked for")
def test_fold_moves_image_to_current_question(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Image(data=png(4, 3), path="map.png")])
    chat.reply("r")
    turn = chat.ask("two", fold=True)
    assert len(turn.messages[-1].images) == 1
    chat.reply("r")
    assert chat.ask("three").messages[-1].images == ()


@DROPS
def test_image_is_dropped_by_name(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Image(data=png(4, 3), path="shots/map.png")])
    chat.reply("r")
    turn = chat.ask("two", drop=["shots/map.png"])
    assert not any(message.images for message in turn.messages)
    assert turn.envelope.warnings == ()


@pytest.mark.parametrize("policy", [None, "pin"])
def test_dropping_unknown_or_pinned_name_moves_nothing(converse: type[Watched], policy: str | None) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A", policy="pin"), Selection(path="s.md", text="S")])
    chat.reply("r")
    name = "a.md" if policy else "nothing.md"
    turn = chat.ask("two", drop=[name])
    (said,) = turn.envelope.warnings
    assert name in said
    assert turn.envelope.epoch == 0


def test_detaching_unknown_name_warns(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", detach=["b.md"])
    assert turn.envelope.warnings == ("Nothing to detach: b.md is not in the working set.",)


@pytest.mark.moves_prefix(reason="a compaction moves the prompt")
def test_working_set_note_is_outlined_only_by_receipt_with_warning(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    for text in ("two", "three", "four", "five"):
        chat.ask(text)
        chat.reply("r")
    receipt = chat.compact(0.001)
    assert receipt is not None
    assert {step.name.value: step.removed for step in receipt.steps}["preview"] == ("a.md",)
    assert "handle" not in [step.name for step in receipt.steps]
    turn = chat.ask("six")
    said = "a.md stands as its outline, to make room; attach it again to have it whole."
    assert turn.envelope.warnings == (said,)
    chat.reply("r")
    turn = chat.ask("seven", attach=[Note(path="a.md", text=LONG)])
    assert turn.envelope.warnings == ()
    assert attached(turn) == [("a.md", "full")]


@pytest.mark.parametrize(
    ("given", "said"),
    [({"attachments": "always"}, "There is no attachments 'always'."), ({"linger": -1}, "Invalid linger: -1")],
)
def test_invalid_working_set_settings_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError) as caught:
        Conversation(**given)  # type: ignore[arg-type]
    assert caught.value.message == said
