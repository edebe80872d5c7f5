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


def test_by_default_what_is_attached_lingers_for_two_turns(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    assert list(chat.working_set) == ["a.md"]
    chat.reply("r")
    for text in ("two", "three"):
        assert list(chat.working_set) == ["a.md"]
        chat.ask(text)
        chat.reply("r")
    assert list(chat.working_set) == []


def test_sticky_it_stays_until_it_is_detached_and_is_not_referred_to_again(converse: type[Watched]) -> None:
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


def test_detaching_acts_before_what_the_same_turn_attaches(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="A")], detach=["a.md"])
    assert attached(turn) == [("a.md", "reference")]
    assert list(chat.working_set) == ["a.md"]


@BOTH
def test_a_note_that_changed_on_disk_is_noticed_and_sent(converse: type[Watched], layout: str, vault: Path) -> None:
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


def test_what_is_out_of_the_set_is_not_looked_at(converse: type[Watched], vault: Path) -> None:
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


def test_by_default_nothing_is_read_that_the_turn_does_not_attach(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", vault=vault)
    chat.ask("one", attach=[Note(path="a.md")])
    chat.reply("r")
    (vault / "a.md").write_text("something else")
    turn = chat.ask("two")
    assert (attached(turn), turn.envelope.warnings) == ([], ())


def test_a_note_that_is_gone_stays_as_it_was_sent_and_is_said(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", attachments="sticky", vault=vault)
    chat.ask("one", attach=[Note(path="a.md")])
    chat.reply("r")
    (vault / "a.md").unlink()
    turn = chat.ask("two")
    assert turn.envelope.warnings == ("a.md stays as it was sent last: There is no file a.md in the vault.",)
    assert "14:10" in sent(turn)


def test_selected_lines_that_changed_on_disk_stay_as_they_were_sent_and_are_said(
    converse: type[Watched], vault: Path
) -> None:
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


def test_a_selection_within_a_line_is_looked_for_there(converse: type[Watched], vault: Path) -> None:
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
def test_an_outline_is_carried_forward_only_of_what_is_detached(converse: type[Watched]) -> None:
    chat = converse(layout="library", attachments="sticky", carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    assert forms(chat.ask("two"), LayerId.L2) == [("a.md", "full")]
    chat.reply("r")
    assert forms(chat.ask("three", detach=["a.md"]), LayerId.L2) == [("a.md", "preview")]


@PROMOTES
def test_a_picture_rides_again_where_no_message_holds_it_until_it_is_detached(converse: type[Watched]) -> None:
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


def test_a_picture_that_a_message_holds_is_not_sent_again(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Image(data=png(4, 3), path="map.png")])
    chat.reply("r")
    turn = chat.ask("two")
    assert sum(len(message.images) for message in turn.messages) == 1
    assert turn.messages[-1].images == ()
    assert len(chat.working_set) == 1


@pytest.mark.moves_prefix(reason="a fold is asked for")
def test_after_a_fold_a_picture_stands_in_the_question_that_folds(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Image(data=png(4, 3), path="map.png")])
    chat.reply("r")
    turn = chat.ask("two", fold=True)
    assert len(turn.messages[-1].images) == 1
    chat.reply("r")
    assert chat.ask("three").messages[-1].images == ()


@DROPS
def test_a_picture_is_dropped_by_its_name(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Image(data=png(4, 3), path="shots/map.png")])
    chat.reply("r")
    turn = chat.ask("two", drop=["shots/map.png"])
    assert not any(message.images for message in turn.messages)
    assert turn.envelope.warnings == ()


@pytest.mark.parametrize("policy", [None, "pin"])
def test_dropping_what_is_not_there_or_pinned_moves_nothing(converse: type[Watched], policy: str | None) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A", policy="pin"), Selection(path="s.md", text="S")])
    chat.reply("r")
    name = "a.md" if policy else "nothing.md"
    turn = chat.ask("two", drop=[name])
    (said,) = turn.envelope.warnings
    assert name in said
    assert turn.envelope.epoch == 0


def test_detaching_what_is_not_there_is_said(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", attachments="sticky")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", detach=["b.md"])
    assert turn.envelope.warnings == ("Nothing to detach: b.md is not in the working set.",)


@pytest.mark.moves_prefix(reason="a compaction moves the prompt")
def test_what_is_held_becomes_an_outline_only_by_a_receipt_and_that_is_said(converse: type[Watched]) -> None:
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
    [({"attachments": "always"}, "There is no attachments 'always'."), ({"linger": -1}, "linger is -1.")],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError) as caught:
        Conversation(**given)  # type: ignore[arg-type]
    assert caught.value.message == said
