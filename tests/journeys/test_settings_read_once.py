"""Settings are read once: a command opens each settings file one time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journeys.running import SECONDS

# Runs the command and writes what files it opened, one a line, to the file named first.
WATCHED = """
import sys
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
from lamella.cli import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("\\n".join(opened))
sys.exit(code)
"""


def watch(folder: Path, *words: str, stdin: str = "") -> list[str]:
    """The names of the settings files that a command opened, in their order."""
    report = folder / "opened.txt"
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(report), *words],
        cwd=folder,
        env={"HOME": str(folder), "LAMELLA_CONFIG": str(folder / "user.toml")},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    names = [Path(line).name for line in report.read_text(encoding="utf-8").splitlines()]
    return [name for name in names if name in ("user.toml", "lamella.toml", "facts.toml")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with settings of a user and of a project, facts about models, and a model that answers by script."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["Hello.", "Again."]), encoding="utf-8")
    (tmp_path / "user.toml").write_text(f'model = "scripted:{script}"\n', encoding="utf-8")
    (tmp_path / "lamella.toml").write_text('model_facts = "facts.toml"\nwindow = 9000\n', encoding="utf-8")
    facts = '[[model]]\nmatch = "house"\nas_of = 2026-11-16\nminimum = 7\n'
    (tmp_path / "facts.toml").write_text(facts, encoding="utf-8")
    transcript = {"lamella": 1, "model": "claude-opus-5-5", "turns": [{"user": "Hello?"}]}
    (tmp_path / "chat.json").write_text(json.dumps(transcript), encoding="utf-8")
    return tmp_path


def test_chat_reads_settings_and_facts_once(project: Path) -> None:
    once = ["user.toml", "lamella.toml", "facts.toml"]
    assert watch(project, "chat", "garden", stdin="Hello?\nAnd again?\n") == once
    assert watch(project, "chat", "garden", stdin="Hello?\n") == once


def test_question_reads_settings_and_facts_once(project: Path) -> None:
    assert watch(project, "ask", "Hello?") == ["user.toml", "lamella.toml", "facts.toml"]


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "chat.json"),
        ("request", "chat.json", "--provider", "anthropic"),
        ("config", "show"),
        ("chats", "list"),
    ],
    ids=" ".join,
)
def test_other_commands_open_no_file_of_settings_twice(project: Path, words: tuple[str, ...]) -> None:
    opened = watch(project, *words)
    assert opened[:2] == ["user.toml", "lamella.toml"]
    assert len(set(opened[2:])) == len(opened[2:])
