"""Privacy: what Lamella makes for itself is its owner's alone, also through links."""

import stat
from pathlib import Path

from lamella.files import make_private_file, make_private_folder, remove_access_of_other_users


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_shared_folder_and_file_are_made_private_without_adding_permissions(tmp_path: Path) -> None:
    folder, file = tmp_path / "own", tmp_path / "file"
    folder.mkdir(mode=0o755)
    file.touch()
    file.chmod(0o444)
    make_private_folder(folder)
    remove_access_of_other_users(file)
    assert (mode(folder), mode(file)) == (0o700, 0o400)


def test_new_file_is_private_through_link_and_existing_one_unchanged(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    make_private_file(link)
    assert mode(target) == 0o600
    target.write_text("kept", encoding="utf-8")
    target.chmod(0o640)
    make_private_file(link)
    assert (target.read_text(encoding="utf-8"), mode(target)) == ("kept", 0o640)


def test_missing_folder_is_not_created(tmp_path: Path) -> None:
    make_private_file(tmp_path / "none" / "file")
    remove_access_of_other_users(tmp_path / "none" / "file")
    assert not (tmp_path / "none").exists()
