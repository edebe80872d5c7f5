"""Whole sessions of commands print exactly what is recorded for them.

If the output changes for a good reason, run ``python -m tests.unit.cli.entry_point.sessions`` and
``python -m tests.unit.cli.entry_point.terminal_sessions``, and read the difference.
"""

from pathlib import Path

import pytest
from tests.unit.cli.entry_point import terminal_sessions
from tests.unit.cli.entry_point.sessions import SESSIONS, read_commands, read_session, run_session, split_command

from lamella.cli.app import COMMANDS
from lamella.cli.entry_point import run_command_line


def test_sessions_cover_each_command() -> None:
    commands = [command for session in SESSIONS for command in read_commands(session)]
    words = {word for command in commands for word in split_command(command)[1].split()[:1]}
    assert set(COMMANDS) <= words


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.stem)
def test_session_prints_the_recorded_output(session: Path) -> None:
    recorded = read_session(session)
    assert recorded
    for printed, (command, output) in zip(run_session(read_commands(session)), recorded, strict=True):
        assert printed.strip("\n") == f"$ {command}{output}".rstrip("\n")


@pytest.mark.parametrize("name", terminal_sessions.SESSIONS)
def test_terminal_shows_the_recorded_screens(name: str) -> None:
    recorded = terminal_sessions.FOLDER / f"{name}.txt"
    assert terminal_sessions.run_terminal_session(name) == recorded.read_text(encoding="utf-8")


def test_version_is_printed_without_a_parser(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out.startswith("lamella ")
