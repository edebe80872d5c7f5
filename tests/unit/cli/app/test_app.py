"""The commands: each is in the table, and one without arguments needs no parser."""

import pytest

from lamella.cli.app import COMMANDS, build_click_command, resolve_command
from lamella.cli.conversations import list_chats
from lamella.cli.store import verify


def test_every_command_is_registered_by_name() -> None:
    assert set(build_click_command().commands) == set(COMMANDS)
    for name in COMMANDS:
        assert list(build_click_command(name).commands) == [name]


def test_unknown_name_registers_all_commands() -> None:
    assert set(build_click_command("cats").commands) == set(COMMANDS)


def test_subcommand_without_arguments_is_called_directly() -> None:
    assert resolve_command(["chats", "list"]) is list_chats
    assert resolve_command(["store", "verify"]) is verify


@pytest.mark.parametrize(
    "words",
    [
        "chats",
        "chats list --json",
        "chats --help",
        "chats show",
        "chats nothing",
        "config show",
        "ask list",
        "nothing list",
    ],
)
def test_other_arguments_are_parsed(words: str) -> None:
    run = resolve_command(words.split())
    assert getattr(run, "__name__", "") == "<lambda>"


@pytest.mark.parametrize("typed", ["lamella chats ", "lamella chats sea"])
def test_completion_request_lists_the_subcommands_of_the_typed_command(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_LAMELLA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit) as ended:
        resolve_command([])()
    assert ended.value.code == 0
    assert "search" in capsys.readouterr().out.split()
