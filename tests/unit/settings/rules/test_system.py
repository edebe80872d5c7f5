"""The system prompt that settings mean."""

from pathlib import Path

import pytest

from lamella.errors import SettingError
from lamella.settings.loading import read_settings_sources
from lamella.settings.rules import load_system_parts


def parts(**given: object) -> dict[str, str]:
    return load_system_parts(read_settings_sources().resolve(given))


def test_text_is_the_base_and_a_table_has_parts() -> None:
    assert parts() == {}
    assert parts(system="You are terse.") == {"base": "You are terse."}
    assert parts(system={"project": "Harbour."}, instructions="Be brief.") == {
        "project": "Harbour.",
        "instructions": "Be brief.",
    }


def test_instructions_of_a_file_are_normalised(tmp_path: Path) -> None:
    file = tmp_path / "how.md"
    file.write_bytes("\ufeffBe brief.\r\nBe kind.\n".encode())
    assert parts(instructions_file=str(file)) == {"instructions": "Be brief.\nBe kind.\n"}


def test_nearer_of_text_and_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "how.md"
    file.write_text("From the file.", encoding="utf-8")
    monkeypatch.setenv("LAMELLA_INSTRUCTIONS", "From the environment.")
    assert parts(instructions_file=str(file)) == {"instructions": "From the file."}
    assert parts(instructions_file="") == {"instructions": ""}
    assert parts() == {"instructions": "From the environment."}
    monkeypatch.setenv("LAMELLA_INSTRUCTIONS_FILE", str(file))
    assert parts(instructions="") == {"instructions": ""}
    assert parts() == {"instructions": "From the environment."}


def test_path_is_relative_to_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "how.md").write_text("Be brief.", encoding="utf-8")
    (tmp_path / "lamella.toml").write_text('instructions_file = "how.md"\n', encoding="utf-8")
    monkeypatch.setenv("LAMELLA_CONFIG", str(tmp_path / "lamella.toml"))
    assert parts() == {"instructions": "Be brief."}


@pytest.mark.parametrize("named", ["../secret.md", "linked.md", "SECRET"])
def test_project_cannot_name_file_outside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    secret, project = tmp_path / "secret.md", tmp_path / "project"
    project.mkdir()
    secret.write_text("A key.", encoding="utf-8")
    (project / "linked.md").symlink_to(secret)
    (project / "how.md").write_text("Be brief.", encoding="utf-8")
    monkeypatch.chdir(project)
    given = str(secret) if named == "SECRET" else named
    (project / "lamella.toml").write_text(f'instructions_file = "{given}"\n', encoding="utf-8")
    with pytest.raises(SettingError, match="outside its folder"):
        parts()
    assert parts(instructions_file=str(secret)) == {"instructions": "A key."}
    (project / "lamella.toml").write_text('instructions_file = "how.md"\n', encoding="utf-8")
    assert parts() == {"instructions": "Be brief."}


@pytest.mark.parametrize(
    ("content", "told"), [(None, "No such file"), (b"\xff", "it is not UTF-8")], ids=["missing", "bytes"]
)
def test_unreadable_instructions_file_is_reported(content: bytes | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "how.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingError, match=told) as refused:
        parts(instructions_file=str(file))
    assert str(file) in refused.value.message


def test_unknown_system_part_is_reported() -> None:
    with pytest.raises(SettingError, match="no part mood"):
        parts(system={"mood": "glad"})
