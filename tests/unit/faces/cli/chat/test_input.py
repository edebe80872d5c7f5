from pathlib import Path

import pytest

from lamella.faces.cli.chat.input import complete
from lamella.wiring import NamedFiles

COMMANDS = ("/attach", "/drop", "/ledger")


@pytest.fixture
def files(tmp_path: Path) -> NamedFiles:
    for name in ("plan.md", "my list.md"):
        (tmp_path / name).write_text("# Note\nline\n", encoding="utf-8")
    return NamedFiles(tmp_path)


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
    ],
)
def test_commands_and_paths_are_completed_where_they_can_stand(
    files: NamedFiles, before: str, becomes: list[tuple[str, int]]
) -> None:
    assert complete(before, commands=COMMANDS, files=files) == becomes


def test_a_vault_that_went_away_completes_to_nothing(tmp_path: Path) -> None:
    assert complete("Read @pl", commands=COMMANDS, files=NamedFiles(tmp_path / "gone")) == []
