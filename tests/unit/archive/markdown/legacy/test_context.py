"""Context lines of other programs: the notes they name, read as they are now."""

from pathlib import Path

import pytest

from lamella.archive.markdown.legacy import ContextLineReader
from lamella.archive.markdown.recovery import FileLookup
from lamella.core.artifacts.model import ArtifactKind
from lamella.sources.open_sources import make_source_opener


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for path, text in {"a.md": "A #x", "b, c.md": "B", "main.py": "print()", "d/board.canvas": "{}"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def read(vault: Path | None, line: str) -> tuple[list[tuple[str, ArtifactKind]], list[str]]:
    warnings: list[str] = []
    reader = ContextLineReader(FileLookup(make_source_opener(vault)() if vault else None), warnings)
    return [(artifact.id, artifact.kind) for artifact in reader.read(line, number=1)], warnings


def test_text_files_become_notes_and_documents_keep_their_kind(vault: Path) -> None:
    found, warnings = read(vault, "[Context: Notes: a.md, main.py, d/board.canvas]")
    assert found == [
        ("a.md", ArtifactKind.NOTE),
        ("main.py", ArtifactKind.NOTE),
        ("d/board.canvas", ArtifactKind.CANVAS),
    ]
    assert warnings == []


def test_comma_belongs_to_name_of_existing_file(vault: Path) -> None:
    assert read(vault, "[Context: Notes: a.md, b, c.md]")[0] == [
        ("a.md", ArtifactKind.NOTE),
        ("b, c.md", ArtifactKind.NOTE),
    ]


def test_folders_and_tags_are_their_notes(vault: Path) -> None:
    assert read(vault, "[Context: Folders: d | Tags: #x]") == ([("a.md", ArtifactKind.NOTE)], [])


def test_missing_context_is_reported(vault: Path) -> None:
    line = "[Context: Notes: gone.md, a.pdf | URLs: https://e.org | Web Tabs: T | Folders: gone | Moods: good]"
    found, warnings = read(vault, line)
    assert found == []
    assert warnings == [
        "Message 1: gone.md is left out: it is not there.",
        "Message 1: a.pdf is left out: Nothing here reads pdf: a.pdf.",
        "Message 1: the text of https://e.org is not in the file, and nothing is fetched.",
        "Message 1: the text of T is not in the file, and nothing is fetched.",
        "Message 1: the folder gone is left out: There is no folder gone in the vault.",
        "Message 1: its context Moods is not known: good.",
    ]


def test_folder_without_vault_is_omitted() -> None:
    assert read(None, "[Context: Folders: d]")[1] == [
        "Message 1: the folder d is left out: no vault was given to read it from."
    ]


def test_excessive_names_are_omitted_with_count() -> None:
    found, warnings = read(None, f"[Context: Notes: {', '.join(map(str, range(10_003)))}]")
    assert found == []
    assert warnings[0] == ("Message 1: 3 names are left out; more than 10,000 are not looked up for one file.")
    assert len(warnings) == 10_001


def test_repeated_folder_is_read_once_and_limited(
    tmp_path: Path,
) -> None:
    for number in range(50):
        (tmp_path / f"{number}.md").write_text("text", encoding="utf-8")
    warnings: list[str] = []
    reader = ContextLineReader(FileLookup(make_source_opener(tmp_path)()), warnings)
    found = [list(reader.read("[Context: Folders: ., .]", number=number)) for number in range(1, 402)]
    assert [len(one) for one in found] == [50] * 400 + [0]
    assert found[0][0] is found[1][0]
    assert warnings == ["Message 401: more than 20,000 attachments are named up to here; the others are left out."]
