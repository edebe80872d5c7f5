"""Privacy: what Lamella makes for itself is its owner's alone, also through links."""

import stat
from pathlib import Path

from lamella.files import make_private_file, make_private_folder, restrict_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_and_a_file_that_others_could_read_are_closed_and_get_no_more_than_they_had(tmp_path: Path) -> None:
    folder, file = tmp_path / "own", tmp_path / "file"
    folder.mkdir(mode=0o755)
    file.touch()
    file.chmod(0o444)
    make_private_folder(folder)
    restrict_file(file)
    assert (mode(folder), mode(file)) == (0o700, 0o400)


def test_a_file_is_made_private_also_behind_a_link_and_one_that_is_there_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    make_private_file(link)
    assert mode(target) == 0o600
    target.write_text("kept", encoding="utf-8")
    target.chmod(0o640)
    make_private_file(link)
    assert (target.read_text(encoding="utf-8"), mode(target)) == ("kept", 0o640)


def test_nothing_is_made_where_there_is_no_folder(tmp_path: Path) -> None:
    make_private_file(tmp_path / "none" / "file")
    restrict_file(tmp_path / "none" / "file")
    assert not (tmp_path / "none").exists()
