from pathlib import Path
from typing import cast

import pytest

from lamella.cli.chat.input import ArgumentCompleter, complete_input, complete_path, match_name_or_description
from lamella.cli.chat.session import ChatSession
from lamella.cli.chat.slash import get_argument_completers
from lamella.wiring import AttachmentResolver

KNOWN = {"m-1": "When is high tide?", "m-2": "And low tide?"}


def nothing(_begun: str) -> dict[str, str]:
    return {}


def broken(_begun: str) -> dict[str, str]:
    raise OSError("gone")


COMMANDS: dict[str, ArgumentCompleter] = {
    "/attach": nothing,
    "/drop": broken,
    "/edit": lambda begun: match_name_or_description(KNOWN, begun),
    "/ledger": nothing,
}


@pytest.fixture
def files(tmp_path: Path) -> AttachmentResolver:
    for name in ("plan.md", "my list.md"):
        (tmp_path / name).write_text("# Note\nline #garden\n", encoding="utf-8")
    return AttachmentResolver(tmp_path)


@pytest.mark.parametrize(
    ("before", "becomes"),
    [
        ("/", [("/attach", 1, ""), ("/drop", 1, ""), ("/edit", 1, ""), ("/ledger", 1, "")]),
        ("/le", [("/ledger", 3, "")]),
        ("/attach pl", [("plan.md", 2, "")]),
        ("/drop pl", []),
        ("/edit ", [("m-1", 0, "When is high tide?"), ("m-2", 0, "And low tide?")]),
        ("/edit m-2", [("m-2", 3, "And low tide?")]),
        ("/edit and", [("m-2", 3, "And low tide?")]),
        ("/edit m-2 What of @pl", [("plan.md", 2, "")]),
        ("/gone m", []),
        ("Read @pl", [("plan.md", 2, "")]),
        ("Read @my", [('"my list.md"', 2, "")]),
        ('Read @"my', [('"my list.md"', 3, "")]),
        ("Read [[pl", [("plan]]", 2, "")]),
        ("Read @[[MY", [("my list]]", 2, "")]),
        ("Read [[plan]] pl", []),
        ("Read @#ga", [("garden", 2, "")]),
        ("Read @#zz", []),
        ("Read pl", []),
        ("me@pl", []),
        ("a line\n/le", []),
        ("/ledger pl", []),
        ("/ledger @pl", [("plan.md", 2, "")]),
    ],
)
def test_commands_and_paths_are_completed_where_valid(
    files: AttachmentResolver, before: str, becomes: list[tuple[str, int, str]]
) -> None:
    commands = {**COMMANDS, "/attach": lambda begun: complete_path(files, begun)}
    assert complete_input(before, commands=commands, files=files) == becomes


def test_missing_vault_completes_to_nothing(tmp_path: Path) -> None:
    assert complete_input("Read @pl", commands=COMMANDS, files=AttachmentResolver(tmp_path / "gone")) == []


class Talk:
    """What is there for a command, as a talk tells it."""

    def list_argument_candidates(self, command: str) -> list[str]:
        return ["plan.md", "my map.png", "nul\0.md", "a\nb.md"] if command == "/drop" else []


@pytest.mark.parametrize(
    ("begun", "found"), [("", ["plan.md", "my map.png"]), ("my m", ["my map.png"]), ("MAP", ["my map.png"])]
)
def test_attached_names_are_completed_by_any_part(begun: str, found: list[str]) -> None:
    session = cast("ChatSession", Talk())
    assert list(get_argument_completers(session)["/drop"](begun)) == found
    assert not get_argument_completers(session)["/detach"](begun)
