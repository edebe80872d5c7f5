"""Files of text, read as artifacts."""

from pathlib import Path

import pytest

from lamella.adapters.sources.files import FileReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.model import Kind, Policy
from lamella.core.prompt.asked import Wanted


@pytest.fixture
def reader(tmp_path: Path) -> FileReader:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api-docs.md").write_text("API #public", encoding="utf-8")
    (tmp_path / "Bob's & co, [x].md").write_text("B", encoding="utf-8")
    (tmp_path / "w.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo  \r\n")
    return FileReader(Vault(tmp_path))


def test_a_file_is_read_as_an_artifact_of_the_kind_asked_for(reader: FileReader) -> None:
    wanted = Wanted(kind=Kind.ACTIVE_NOTE, name="docs/api-docs.md", policy=Policy.PIN, via="folder:docs")
    note = reader.read(wanted)
    assert (note.id, note.kind, note.title, note.text) == (
        "docs/api-docs.md",
        Kind.ACTIVE_NOTE,
        "api-docs",
        "API #public",
    )
    assert (note.policy, note.source.via) == (Policy.PIN, "folder:docs")


def test_a_title_that_is_given_stands_in_place_of_the_name(reader: FileReader) -> None:
    assert reader.read(Wanted(kind=Kind.NOTE, name="docs/api-docs.md", title="Mine")).title == "Mine"


def test_a_name_with_strange_characters_is_read_and_is_its_id(reader: FileReader) -> None:
    assert reader.read(Wanted(kind=Kind.NOTE, name="Bob's & co, [x].md")).id == "Bob's & co, [x].md"


def test_a_path_with_a_detour_is_the_same_note(reader: FileReader) -> None:
    assert reader.read(Wanted(kind=Kind.NOTE, name="docs/../w.md")).id == "w.md"


def test_windows_line_ends_and_a_byte_order_mark_are_normalised(reader: FileReader) -> None:
    assert reader.read(Wanted(kind=Kind.NOTE, name="w.md")).text == "one\ntwo  \n"
