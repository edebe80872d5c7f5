"""A project's folder as it is at one moment."""

import os
from pathlib import Path

from lamella.sources.open_sources import MAX_PROJECT_FILE_BYTES, read_project


def test_project_sources_follow_vault_rules_without_images(tmp_path: Path) -> None:
    (tmp_path / "beds").mkdir()
    for name in ("plan.md", "beds/list.csv", "map.PNG", ".hidden.md", "secret.md", "paper.pdf"):
        (tmp_path / name).write_text("x")
    (tmp_path / ".lamellaignore").write_text("secret.md\n")
    found = read_project(tmp_path)
    assert list(found.source_mtimes) == ["beds/list.csv", "paper.pdf", "plan.md"]
    assert set(found.folders) == {".", "beds"}
    assert found.name == tmp_path.name
    assert (found.instructions, found.memory, found.warnings) == ("", "", ())


def test_old_file_moved_into_project_counts_as_changed(tmp_path: Path) -> None:
    note = tmp_path / "old.md"
    note.write_text("x")
    os.utime(note, (1_000, 1_000))
    assert read_project(tmp_path).source_mtimes["old.md"] > 1_000


def test_invalid_bytes_and_folder_at_file_path_are_reported(tmp_path: Path) -> None:
    own = tmp_path / ".lamella"
    (own / "memory.md").mkdir(parents=True)
    (own / "instructions.md").write_bytes(b"\xff\xfe")
    found = read_project(tmp_path)
    assert (found.instructions, found.memory) == ("", "")
    assert len(found.warnings) == 2
    assert all(".lamella/" in told for told in found.warnings)


def test_file_may_be_as_large_as_is_allowed(tmp_path: Path) -> None:
    (tmp_path / ".lamella").mkdir()
    (tmp_path / ".lamella/memory.md").write_text("x" * MAX_PROJECT_FILE_BYTES)
    assert len(read_project(tmp_path).memory) == MAX_PROJECT_FILE_BYTES
