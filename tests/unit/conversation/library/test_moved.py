"""A file that was moved is found by its text, keeps its name, and is not sent again."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.rendered import attached, library, sent

from lamella import Note
from lamella.conversation.library import MovedFileFinder
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.errors import SourceNotFoundError

PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
BOTH = pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])
TIDE = "Low tide is at 14:10.\n"
MOVED = "{} was moved to {}. It keeps its name here, and its text is not sent again."


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.md").write_text(TIDE, encoding="utf-8")
    (tmp_path / "b.md").write_text("Beans.\n", encoding="utf-8")
    return tmp_path


def move(vault: Path, name: str = "new/tide.md") -> None:
    (vault / name).parent.mkdir(exist_ok=True)
    shutil.move(vault / "old" / "a.md", vault / name)


@BOTH
def test_moved_note_is_found_by_text_and_followed(converse: type[Watched], layout: str, vault: Path) -> None:
    chat = converse(layout=layout, attachments="sticky", vault=vault)
    chat.ask("one", attach=[Note(path="old/a.md"), Note(path="b.md")])
    chat.reply("r")
    chat.ask("two")
    chat.reply("r")
    move(vault)
    turn = chat.ask("three")
    assert attached(turn) == [("old/a.md", "reference")]
    assert turn.envelope.warnings == (MOVED.format("old/a.md", "new/tide.md"),)
    assert sent(turn).count("14:10") == 1
    chat.reply("r")
    turn = chat.ask("four")
    assert (attached(turn), turn.envelope.warnings) == ([], ())
    chat.reply("r")
    (vault / "new" / "tide.md").write_text("Low tide is at 15:20.\n", encoding="utf-8")
    turn = chat.ask("five")
    assert attached(turn) == [("old/a.md", "update")]
    assert "15:20" in turn.messages[-1].text
    assert library(turn) == ["old/a.md", "b.md"]


@BOTH
@pytest.mark.parametrize("name", ["new/tide.md", "old/a.md"])
def test_reattached_moved_note_is_known_by_either_path(
    converse: type[Watched], layout: str, vault: Path, name: str
) -> None:
    chat = converse(layout=layout, vault=vault)
    chat.ask("one", attach=[Note(path="old/a.md")])
    chat.reply("r")
    move(vault)
    turn = chat.ask("two", attach=[Note(path=name)])
    assert attached(turn) == [("old/a.md", "reference")]
    assert turn.envelope.warnings == (MOVED.format("old/a.md", "new/tide.md"),)
    chat.reply("r")
    (vault / "new" / "tide.md").write_text("Low tide is at 15:20.\n", encoding="utf-8")
    turn = chat.ask("three", attach=[Note(path=name)])
    assert attached(turn) == [("old/a.md", "update")]
    assert turn.envelope.warnings == ()


@pytest.mark.layout("library")
@PROMOTES
def test_note_moved_back_is_at_original_path(converse: type[Watched], vault: Path) -> None:
    chat = converse(attachments="sticky", vault=vault)
    chat.ask("one", attach=[Note(path="old/a.md")])
    chat.reply("r")
    move(vault)
    chat.ask("two")
    chat.reply("r")
    shutil.move(vault / "new" / "tide.md", vault / "old" / "a.md")
    turn = chat.ask("three")
    assert attached(turn) == [("old/a.md", "reference")]
    assert turn.envelope.warnings == ()
    chat.reply("r")
    assert attached(chat.ask("four")) == []


@pytest.mark.layout("library")
@PROMOTES
@pytest.mark.parametrize("copies", [("new/x.md", "new/y.md"), ()])
def test_ambiguous_move_is_not_guessed(converse: type[Watched], vault: Path, copies: tuple[str, ...]) -> None:
    chat = converse(attachments="sticky", vault=vault)
    chat.ask("one", attach=[Note(path="old/a.md")])
    chat.reply("r")
    (vault / "new").mkdir()
    for copy in copies:
        shutil.copy(vault / "old" / "a.md", vault / copy)
    (vault / "old" / "a.md").unlink()
    turn = chat.ask("two")
    assert attached(turn) == []
    assert turn.envelope.warnings[0].startswith("old/a.md stays as it was sent last: There is no file old/a.md")


@pytest.mark.layout("library")
@PROMOTES
def test_copy_beside_existing_note_is_other_note(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    chat.ask("one", attach=[Note(path="old/a.md")])
    chat.reply("r")
    shutil.copy(vault / "old" / "a.md", vault / "c.md")
    assert attached(chat.ask("two", attach=[Note(path="c.md")])) == [("c.md", "full")]


def test_artifact_not_from_file_is_not_searched() -> None:
    given = make_artifact(ArtifactKind.NOTE, text=TIDE, source=ArtifactSource(path="old/a.md"))
    moved = MovedFileFinder([given], None)
    assert moved.find_moved("old/a.md") is None
    assert moved.rename_if_moved(given) is given


def test_unknown_note_is_missing_despite_same_text(converse: type[Watched], vault: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        converse(vault=vault).ask("one", attach=[Note(path="old/gone.md")])
