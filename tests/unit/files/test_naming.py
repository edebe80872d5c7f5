"""Paths: a file has one name, however written; an invalid path is reported."""

from pathlib import Path

import pytest

from lamella.errors import LamellaError
from lamella.files import resolve_path


def test_equivalent_paths_resolve_equally(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert resolve_path(f"{tmp_path}/link/a/../b") == resolve_path(tmp_path / "b")


@pytest.mark.parametrize("name", ["ring", "a\0b", "~nobody-has-this-name/b"])
def test_unresolvable_path_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    with pytest.raises(LamellaError) as caught:
        resolve_path(name if name.startswith("~") else f"{tmp_path}/{name}")
    assert (caught.value.code, caught.value.hint) == ("bad_setting", "Write the whole path.")
