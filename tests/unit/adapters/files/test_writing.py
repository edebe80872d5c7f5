"""Writing files: whole or not at all, under a name that was free, and private."""

import os
import stat
from pathlib import Path

import pytest

from lamella.adapters.files.writing import make_folder, replace_file, write_new


def test_a_new_file_is_whole_and_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_new(file, b"one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_new(file, b"two")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"one")]


def test_a_replaced_file_keeps_its_permissions_and_leaves_no_other(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_new(file, b"one")
    file.chmod(0o640)
    replace_file(file, b"two")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"two")]


def test_what_a_killed_process_left_long_ago_is_swept_away(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".lamella-a.tmp", ".lamella-b.tmp", "mine.tmp"))
    for file in (old, new, other):
        file.touch()
    for file in (old, other):
        os.utime(file, (1, 1))
    make_folder(tmp_path)
    assert not old.exists()
    assert new.exists()
    assert other.exists()
