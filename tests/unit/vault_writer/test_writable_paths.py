"""Writable paths: inside the vault, not behind a link, and not in hidden places."""

from pathlib import Path

import pytest

from lamella.errors import BadInputError
from lamella.vault_writer import resolve_writable_path


@pytest.mark.parametrize("path", ["a.md", "garden/beans.md", "Ideen über Möhren.md", "map.canvas", "A.MD"])
def test_plain_note_path_is_writable(tmp_path: Path, path: str) -> None:
    assert resolve_writable_path(tmp_path, path) == tmp_path / path


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../a.md", "source_outside"),
        ("garden/../../a.md", "source_outside"),
        ("/etc/a.md", "source_outside"),
        ("~/a.md", "source_outside"),
        ("", "write_refused"),
        (".obsidian/a.md", "write_refused"),
        ("garden/.hidden.md", "write_refused"),
        (".lamellaignore", "write_refused"),
        ("a.txt", "write_refused"),
        ("run.sh", "write_refused"),
        ("a\n.md", "write_refused"),
        ("a\x00.md", "write_refused"),
        ("a\u202egnp.md", "write_refused"),
        ("C:\\a.md", "write_refused"),
        ("x" * 300 + ".md", "write_refused"),
        ("a/" * 600 + "b.md", "write_refused"),
        (" a.md", "write_refused"),
    ],
)
def test_other_paths_are_refused(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / "garden").mkdir()
    with pytest.raises(BadInputError) as caught:
        resolve_writable_path(tmp_path, path)
    assert caught.value.code == code
    assert caught.value.hint


def test_path_through_link_is_refused(tmp_path: Path) -> None:
    vault, outside = tmp_path / "vault", tmp_path / "outside"
    for folder in (vault / "inner", outside):
        folder.mkdir(parents=True)
    (outside / "a.md").write_text("mine", encoding="utf-8")
    (vault / "note.md").symlink_to(outside / "a.md")
    (vault / "folder").symlink_to(outside)
    (vault / "near").symlink_to(vault / "inner")
    (vault / "nowhere.md").symlink_to(outside / "new.md")
    for path in ("note.md", "folder/a.md", "folder/new.md", "near/a.md", "nowhere.md"):
        with pytest.raises(BadInputError, match="leads through a link"):
            resolve_writable_path(vault, path)


def test_special_and_hidden_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "file.md").touch()
    (tmp_path / ".lamellaignore").write_text("private/\n", encoding="utf-8")
    for path in ("folder.md", "file.md/b.md"):
        with pytest.raises(BadInputError, match="in the way"):
            resolve_writable_path(tmp_path, path)
    with pytest.raises(BadInputError, match="left out of this vault"):
        resolve_writable_path(tmp_path, "private/new.md")
