"""Finding files again: by path, else by a name that only one note has."""

from pathlib import Path

import pytest

from lamella.archive.markdown.recovery import FileLookup
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.text.content import hash_text
from lamella.sources.open_sources import make_source_opener


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for path, text in {"a.md": "A", "new/b.md": "B", "one/c.md": "C", "two/c.md": "C2", "new/x.py": "X"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def lookup(vault: Path) -> FileLookup:
    return FileLookup(make_source_opener(vault)())


def test_file_is_found_at_its_path(lookup: FileLookup) -> None:
    found = lookup.read_or_find_moved("a.md", ArtifactKind.NOTE)
    assert found.artifact is not None
    assert (found.artifact.text, found.moved_to) == ("A", None)
    assert lookup.exists("a.md", ArtifactKind.NOTE)


def test_note_that_moved_is_found_by_a_name_that_no_other_has(lookup: FileLookup) -> None:
    found = lookup.read_or_find_moved("old/b.md", ArtifactKind.NOTE)
    assert found.artifact is not None
    assert (found.artifact.text, found.moved_to) == ("B", "new/b.md")
    assert not lookup.exists("old/b.md", ArtifactKind.NOTE)


def test_note_of_same_name_is_found_by_text_and_never_guessed(lookup: FileLookup) -> None:
    assert lookup.read_or_find_moved("c.md", ArtifactKind.NOTE, expected_hash=hash_text("C2")).moved_to == "two/c.md"
    found = lookup.read_or_find_moved("c.md", ArtifactKind.NOTE, expected_hash=hash_text("C3"))
    assert (found.artifact, found.why) == (None, "it is not there, and 2 notes have its name: one/c.md, two/c.md")


def test_only_notes_are_looked_for_elsewhere(lookup: FileLookup) -> None:
    assert lookup.read_or_find_moved("x.py", ArtifactKind.CODE).why == "it is not there"


def test_file_is_read_once(vault: Path, lookup: FileLookup) -> None:
    before = lookup.read_or_find_moved("a.md", ArtifactKind.NOTE)
    (vault / "a.md").unlink()
    assert lookup.read_or_find_moved("a.md", ArtifactKind.NOTE) is before


def test_lookup_without_vault_finds_nothing() -> None:
    assert FileLookup(None).read_or_find_moved("a.md", ArtifactKind.NOTE).why == "no vault was given to read it from"
