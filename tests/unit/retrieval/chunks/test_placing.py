"""The index file: one for each vault, outside of it, for any vault name."""

from pathlib import Path

import pytest

from lamella.errors import SettingError
from lamella.retrieval.chunks import get_index_path


def test_vault_by_two_names_has_one_index_and_two_vaults_have_two(tmp_path: Path) -> None:
    for name in ("one/notes", "two/notes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "one" / "notes")
    folder = str(tmp_path / "indexes")
    one, linked, two = (get_index_path(tmp_path / name, folder) for name in ("one/notes", "link", "two/notes"))
    assert one == linked != two
    assert one.name.startswith("notes-")
    assert one.parent == tmp_path / "indexes"


def test_any_name_of_a_vault_makes_a_name_of_a_file(tmp_path: Path) -> None:
    for name in ("ノート", "a b:c*", "." * 3 + "x", "n" * 200):
        (tmp_path / name).mkdir()
        found = get_index_path(tmp_path / name, str(tmp_path))
        assert found.name.isascii()
        assert len(found.name) < 80


def test_default_index_is_in_user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert get_index_path(tmp_path).is_relative_to(tmp_path / "lamella" / "indexes")


def test_unknown_home_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        get_index_path(tmp_path, "~nobody-at-all/indexes")
