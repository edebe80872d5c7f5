from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests.unit.pictures import png

from lamella import Code, Folder, Note, Picture, Selection
from lamella.errors import ArtifactError, NotAvailableError, SourceMissingError, UsageError
from lamella.faces.cli.chat.attaching import NamedFiles

PNG = png(2, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The current folder, with notes below it."""
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "plan.md").write_text("# Plan\none\ntwo\n", encoding="utf-8")
    (tmp_path / "notes" / "deep" / "old plan.md").write_text("# Old\n", encoding="utf-8")
    (tmp_path / "notes" / "run.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "notes" / "dot.png").write_bytes(PNG)
    with chdir(tmp_path):
        yield tmp_path


def test_a_file_in_a_vault_is_left_to_be_read_with_each_turn(folder: Path) -> None:
    files = NamedFiles(folder / "notes")
    assert files.find("plan.md") == [Note(path="plan.md")]
    assert files.find("run.py") == [Code(path="run.py")]
    assert files.find("dot.png") == [Picture(path="dot.png")]
    assert files.find("deep") == [Folder(path="deep")]


@pytest.mark.parametrize("name", ["notes/plan.md", "./notes/plan.md", "notes/deep/../plan.md"])
def test_a_path_that_a_shell_completed_means_the_file_in_the_vault(folder: Path, name: str) -> None:
    assert NamedFiles(Path("notes")).find(name) == [Note(path="plan.md")]
    assert NamedFiles(Path("notes")).find(str(folder / "notes" / "plan.md")) == [Note(path="plan.md")]


def test_without_a_vault_files_are_read_at_once_under_the_path_that_was_typed(folder: Path) -> None:
    files = NamedFiles(None)
    assert files.find("notes/plan.md") == [Note(path="notes/plan.md", text="# Plan\none\ntwo\n")]
    assert files.find(f"{folder}/notes/run.py") == [Code(path=f"{folder}/notes/run.py", text="print(1)\n")]
    assert files.find("notes/dot.png") == [Picture(data=PNG, media_type="image/png", path="notes/dot.png")]
    assert [note.path for note in files.find("notes") if isinstance(note, Note)] == [
        "notes/deep/old plan.md",
        "notes/plan.md",
    ]


@pytest.mark.parametrize("vault", [None, Path("notes")])
def test_lines_of_a_file_are_a_selection(folder: Path, vault: Path | None) -> None:
    path = "notes/plan.md" if vault is None else "plan.md"
    files = NamedFiles(vault)
    assert files.select(f"{path}:2-3") == Selection(path=path, lines=(2, 3), text="one\ntwo")
    assert files.find(f"{path}:1") == [Selection(path=path, lines=(1, 1), text="# Plan")]


def test_a_file_whose_name_looks_like_lines_is_that_file(folder: Path) -> None:
    (folder / "log:10-20").write_text("# Log\n", encoding="utf-8")
    assert NamedFiles(None).find("log:10-20") == [Note(path="log:10-20", text="# Log\n")]


@pytest.mark.parametrize("lines", ["0-1", "3-2", "1-9", "9"])
def test_lines_that_are_not_there_are_refused(folder: Path, lines: str) -> None:
    with pytest.raises(ArtifactError, match=r"plan\.md has 3 lines"):
        NamedFiles(None).select(f"notes/plan.md:{lines}")


def test_a_selection_without_lines_is_refused() -> None:
    with pytest.raises(UsageError, match="names no lines"):
        NamedFiles(None).select("notes/plan.md")


@pytest.mark.parametrize("vault", [None, Path("notes")])
def test_what_is_not_there_is_refused(folder: Path, vault: Path | None) -> None:
    with pytest.raises(SourceMissingError, match=r"There is no file gone\.md"):
        NamedFiles(vault).find("gone.md")
    with pytest.raises(SourceMissingError, match=r"There is no file gone\.md"):
        NamedFiles(vault).select("gone.md:1")


def test_a_kind_that_cannot_be_read_yet_says_so(folder: Path) -> None:
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(NotAvailableError):
        NamedFiles(None).find("paper.pdf")


@pytest.mark.parametrize("name", ["", "a" * 5_000, "nul\0byte", "gone.md", "gone.md:1-2"])
def test_a_word_that_names_no_file_is_just_a_word(folder: Path, name: str) -> None:
    assert not NamedFiles(None).names_file(name)
    assert not NamedFiles(folder / "notes").names_file(name)


def test_paths_are_completed_from_the_vault_by_any_part_and_from_the_folder_by_their_beginning(folder: Path) -> None:
    assert NamedFiles(folder / "notes").complete("PLAN") == ["deep/old plan.md", "plan.md"]
    assert NamedFiles(None).complete("no") == ["notes/"]
    assert NamedFiles(None).complete("notes/") == ["notes/deep/", "notes/dot.png", "notes/plan.md", "notes/run.py"]
    assert NamedFiles(None).complete("gone/") == []
    assert NamedFiles(None).complete(f"{folder}/no") == [f"{folder}/notes/"]
