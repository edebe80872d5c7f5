"""Selecting code from Python: argument checks, and files opened by settings."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.codebase.repositories import write

from lamella.code import CodeForm, select_code, select_files, selection_to_attachments
from lamella.errors import InvalidOperationError, LamellaError, SourceNotFoundError
from lamella.wiring.code import MAX_CODE_BUDGET

FILES = {"src/beds.py": "def water_beds(): ...\n", "src/tools.py": "SPADE = 1\n"}


@pytest.fixture(autouse=True)
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "indexes"))
    return tmp_path / "indexes"


def test_code_is_selected_and_index_is_in_configured_folder(tmp_path: Path, indexes: Path) -> None:
    selection = select_code(write(tmp_path / "repo", FILES), "water the beds")
    assert selection.files[0].path == "src/beds.py"
    assert selection.root == (tmp_path / "repo").as_posix()
    assert [path.name.endswith("-code.db") for path in indexes.glob("*.db")] == [True]


def test_vault_rules_apply_to_code(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", {**FILES, ".lamellaignore": "src/tools.py\n"})
    assert ("src/tools.py", ".lamellaignore leaves it out") in select_code(root, "spade").left_out


def test_files_are_given_with_their_contents() -> None:
    selection = select_files(FILES, "water the beds", recent_paths=["src/tools.py"])
    assert {one.path: one.form for one in selection.files} == dict.fromkeys(FILES, CodeForm.FULL)
    assert "touched" in {name for one in selection.files for name in one.score_parts}


def test_selection_can_be_attached() -> None:
    overview, *code = [one.to_artifact() for one in selection_to_attachments(select_files(FILES, "water the beds"))]
    assert str(getattr(overview, "id", "")) == "codebase:."
    assert sorted(str(getattr(one, "id", "")) for one in code) == sorted(FILES)


@pytest.mark.parametrize(
    "given",
    [
        {"question": ""}, {"question": " "}, {"question": 1}, {"question": "\ud800"}, {"budget": 0}, {"budget": True},
        {"budget": MAX_CODE_BUDGET + 1}, {"budget": 1.5}, {"recent_paths": "a.py"}, {"files": ["a.py"]}, {"files": {"a": 1}},
    ],
)  # fmt: skip
def test_invalid_selection_request_is_refused_with_hint(given: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"files": FILES, "question": "beds", **given}
    with pytest.raises(LamellaError) as raised:
        select_files(asked.pop("files"), asked.pop("question"), **asked)
    assert raised.value.hint


def test_missing_or_invalid_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOperationError):
        select_code(None, "beds")  # type: ignore[arg-type]
    with pytest.raises(SourceNotFoundError):
        select_code(tmp_path / "none", "beds")
