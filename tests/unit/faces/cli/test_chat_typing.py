from pathlib import Path

import pytest

from lamella.faces.cli.chat_attaching import Desktop
from lamella.faces.cli.chat_typing import complete, find_mentions

COMMANDS = ("/attach", "/drop", "/ledger")


@pytest.fixture
def desktop(tmp_path: Path) -> Desktop:
    for name in ("plan.md", "my list.md"):
        (tmp_path / name).write_text("# Note\nline\n", encoding="utf-8")
    return Desktop(tmp_path)


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
def test_files_are_named_with_an_at_sign(desktop: Desktop, text: str, found: list[str]) -> None:
    assert find_mentions(text, desktop) == found


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
    desktop: Desktop, before: str, becomes: list[tuple[str, int]]
) -> None:
    assert complete(before, commands=COMMANDS, desktop=desktop) == becomes


def test_a_vault_that_went_away_completes_to_nothing(tmp_path: Path) -> None:
    assert complete("Read @pl", commands=COMMANDS, desktop=Desktop(tmp_path / "gone")) == []
