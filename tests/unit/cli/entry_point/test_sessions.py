"""Whole sessions of commands print exactly what is recorded for them.

If the output changes for a good reason, run ``python -m tests.unit.cli.entry_point.sessions`` and read the difference.
"""

from pathlib import Path

import pytest
from tests.unit.cli.entry_point.sessions import PROMPT, SESSIONS, read_commands, run_session

from lamella.cli.app import COMMANDS
from lamella.cli.entry_point import run_command_line


def test_sessions_cover_each_command() -> None:
    words = {word for session in SESSIONS for command in read_commands(session) for word in command.split()[:1]}
    assert set(COMMANDS) - words == {"serve"}


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.stem)
def test_session_prints_the_recorded_output(session: Path) -> None:
    commands = read_commands(session)
    recorded = [PROMPT + one.strip("\n") for one in session.read_text(encoding="utf-8").split(PROMPT) if one]
    assert len(commands) == len(recorded) > 10 or session.stem == "chat"
    for printed, expected in zip(run_session(commands), recorded, strict=True):
        assert printed.strip("\n") == expected


def test_version_is_printed_without_a_parser(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out.startswith("lamella ")
