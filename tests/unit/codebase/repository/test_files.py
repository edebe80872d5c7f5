"""The files that can be chosen, and why each of the others cannot."""

import os
from pathlib import Path
from time import time_ns

import pytest
from tests.unit.codebase.repositories import commit, write

from lamella.codebase.repository import MAX_FILE_BYTES, FolderFiles, InlineFiles, try_read_code_bytes
from lamella.errors import SourceNotFoundError


def left_out(root: Path) -> dict[str, str]:
    return dict(FolderFiles(root).list_files(now=time_ns()).left_out)


@pytest.mark.parametrize("kept_by_git", [True, False])
def test_ignored_linked_large_and_odd_files_are_excluded_with_reason(tmp_path: Path, *, kept_by_git: bool) -> None:
    root = write(tmp_path, {"a.py": "x", ".gitignore": "*.log\n", "b.log": "", "large.py": b"x" * (MAX_FILE_BYTES + 1)})
    (root / "link.py").symlink_to("/etc/passwd")
    (root / "ring").symlink_to("ring")
    os.mkfifo(root / "pipe")
    if kept_by_git:
        commit(root, "Begin")
    listing = FolderFiles(root).list_files(now=time_ns())
    assert sorted(listing.states) == [".gitignore", "a.py"]
    told = dict(listing.left_out)
    assert told["b.log"] == "git's rules ignore it"
    assert told["link.py"] == told["ring"] == "it is a link, and links are not followed"
    assert told["large.py"] == f"it has {MAX_FILE_BYTES + 1:,} bytes; files of up to {MAX_FILE_BYTES:,} are looked at"
    # Git lists no pipes.
    assert kept_by_git or told["pipe"] == "it is not a plain file"


def test_file_in_folder_replaced_by_link_is_not_read(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", {"sub/a.py": "x"})
    commit(root, "Begin")
    outside = write(tmp_path / "outside", {"a.py": "secret"})
    (root / "sub" / "a.py").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    listing = FolderFiles(root).list_files(now=time_ns())
    assert "sub/a.py" not in listing.states
    assert dict(listing.left_out)["sub/a.py"] == "it is a link, and links are not followed"


def test_unusual_names_are_handled(tmp_path: Path) -> None:
    root = write(tmp_path, {"a\nb.py": "x", "c</path>.py": "x"})
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.py")).write_text("x")
    listing = FolderFiles(root).list_files(now=time_ns())
    assert sorted(listing.states) == ["a\nb.py", "c</path>.py"]
    assert listing.left_out == (("\\xff.py", "its name is not UTF-8"),)


def test_deleted_uncommitted_file_is_excluded(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "x", "b.py": "x"})
    commit(root, "Begin")
    (root / "b.py").unlink()
    assert "cannot be looked at" in left_out(root)["b.py"]


def test_file_hidden_by_lamellaignore_is_excluded(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "x", "private/b.py": "x"})
    files = FolderFiles(root, is_hidden=lambda path: path.startswith("private/"))
    assert files.list_files(now=time_ns()).left_out == (("private/b.py", ".lamellaignore leaves it out"),)


@pytest.mark.parametrize("name", ["none", "file.py", "bad\0name"])
def test_path_that_is_not_folder_is_error_with_hint(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"file.py": ""})
    with pytest.raises(SourceNotFoundError) as raised:
        FolderFiles(tmp_path / name)
    assert raised.value.hint


def test_unreadable_file_gives_reason(tmp_path: Path) -> None:
    files = FolderFiles(write(tmp_path, {"a.py": "x"}))
    assert try_read_code_bytes(files, "a.py") == (b"x", None)
    assert try_read_code_bytes(files, "gone.py") == (b"", "it cannot be read (No such file or directory)")


def test_given_files_are_judged_by_name_and_size() -> None:
    given = InlineFiles({"a.py": "x", ".env": "K=1", "b.py": "x" * (MAX_FILE_BYTES + 1), "c.py": "\ud800"})
    listing = given.list_files(now=0)
    assert list(listing.states) == ["a.py"]
    assert [path for path, _ in listing.left_out] == [".env", "b.py", "c.py"]
    assert given.read("a.py") == b"x"
