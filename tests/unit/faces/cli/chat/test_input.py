from pathlib import Path

import pytest

from lamella.faces.cli.chat.attaching import NamedFiles
from lamella.faces.cli.chat.input import complete, find_mentions, find_missing

COMMANDS = ("/attach", "/drop", "/ledger")


@pytest.fixture
def files(tmp_path: Path) -> NamedFiles:
    for name in ("plan.md", "my list.md"):
        (tmp_path / name).write_text("# Note\nline\n", encoding="utf-8")
    return NamedFiles(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Read @plan.md now", ["plan.md"]),
        ("@plan.md, @plan.md and @plan.md:1-2.", ["plan.md", "plan.md:1-2"]),
        ('What is in @"my list.md"?', ["my list.md"]),
        ("(see @plan.md)", ["plan.md"]),
        ("me@plan.md is an address, @nobody a name, and a lone @ nothing", []),
        ("@gone.md", []),
    ],
)
def test_files_are_named_with_an_at_sign(files: NamedFiles, text: str, found: list[str]) -> None:
    assert find_mentions(text, files) == found


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Read @plna.md, please.", ["plna.md"]),
        ("@gone/far.md:3-4 and @gone/far.md:3-4", ["gone/far.md:3-4"]),
        ('@"my lsit.md" or @"whatever"', ["my lsit.md", "whatever"]),
        ("(see @main.py)", ["main.py"]),
        ("@folder/anything", ["folder/anything"]),
        ("@plan.md and @plan.md:1-2 are there", []),
        ("me@plna.md, @alice, @jo.smith, @example.com, @types/node, @v1.2, @.md and a lone @", []),
    ],
)
def test_a_path_that_is_not_there_is_told_from_names_and_addresses(
    files: NamedFiles, tmp_path: Path, text: str, missing: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    assert find_missing(text, files) == missing


def test_names_that_are_near_to_a_missing_one_are_found(files: NamedFiles, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "budget.md").write_text("# Budget\n", encoding="utf-8")
    assert files.find_near("plna.md") == ["plan.md"]
    assert files.find_near("plna.md:2-3") == ["plan.md"]
    assert files.find_near("other/bugdet.md") == ["folder/budget.md"]
    assert files.find_near("nothing-like-it.py") == []
    assert NamedFiles(tmp_path / "gone").find_near("plna.md") == []


def test_without_a_vault_near_names_are_those_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan.md").write_text("# Plan\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert NamedFiles(None).find_near("plna.md") == ["plan.md"]
    assert NamedFiles(None).find_near(f"{tmp_path}/plna.md") == [f"{tmp_path}/plan.md"]
    assert NamedFiles(None).find_near("gone/plna.md") == []


def names(command: str) -> list[str]:
    """What is there for a command."""
    return ["plan.md", "my map.png", "nul\0.md"] if command == "/drop" else []


@pytest.mark.parametrize(
    ("before", "becomes"),
    [
        ("/", [("/attach", 1), ("/drop", 1), ("/ledger", 1)]),
        ("/le", [("/ledger", 3)]),
        ("/attach pl", [("plan.md", 2)]),
        ("Read @pl", [("plan.md", 2)]),
        ("Read @my", [('"my list.md"', 2)]),
        ('Read @"my', [('"my list.md"', 3)]),
        ("Read pl", []),
        ("me@pl", []),
        ("a line\n/le", []),
        ("/drop ", [("plan.md", 0), ("my map.png", 0)]),
        ("/drop my m", [("my map.png", 4)]),
        ("/drop MAP", [("my map.png", 3)]),
        ("/ledger pl", []),
        ("/ledger @pl", [("plan.md", 2)]),
    ],
)
def test_commands_and_paths_are_completed_where_they_can_stand(
    files: NamedFiles, before: str, becomes: list[tuple[str, int]]
) -> None:
    assert complete(before, commands=COMMANDS, files=files, names=names) == becomes


def test_a_vault_that_went_away_completes_to_nothing(tmp_path: Path) -> None:
    assert complete("Read @pl", commands=COMMANDS, files=NamedFiles(tmp_path / "gone"), names=names) == []


def test_a_name_that_no_line_can_hold_is_not_offered(files: NamedFiles) -> None:
    assert complete("/drop ", commands=COMMANDS, files=files, names=lambda _: ["a\nb.md"]) == []
