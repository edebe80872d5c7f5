"""Writing files: whole or not at all, under a name that was free, and private."""

import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamella.files import make_data_folder, replace_file, write_new_file


def test_new_file_is_written_atomically_and_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_new_file(file, b"one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_new_file(file, b"two")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"one")]


def test_replaced_file_keeps_permissions_and_leaves_no_temporary(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_new_file(file, b"one")
    file.chmod(0o640)
    replace_file(file, b"two")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"two")]


def test_leftovers_of_killed_process_are_removed_and_active_ones_kept(tmp_path: Path) -> None:
    old, begun, left, held, other = (tmp_path / f"{name}.tmp" for name in (*(f".lamella-{i}" for i in "abcd"), "mine"))
    for file in (left, held):
        file.write_text("half")
    for file in (old, begun, other):
        file.touch()
    for file in (old, other):
        os.utime(file, (1, 1))
    with held.open() as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        make_data_folder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([begun, held, other])


def test_replacing_file_removes_leftovers_in_folder(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    write_new_file(file, b"one")
    (tmp_path / ".lamella-a.tmp").write_text("half")
    replace_file(file, b"two")
    assert list(tmp_path.iterdir()) == [file]


def test_temporary_file_is_locked_while_written(tmp_path: Path) -> None:
    """What has a name for a moment is known to be somebody's: many writers sweep one folder, and all succeed."""
    files = [tmp_path / f"{number}.md" for number in range(4)]
    for file in files:
        write_new_file(file, b"begun")

    def write(file: Path) -> None:
        for number in range(100):
            replace_file(file, b"%d" % number)

    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(write, files))
    assert sorted(tmp_path.iterdir()) == files
    assert {file.read_bytes() for file in files} == {b"99"}
