"""``lamella code fix``: named files are attached, and the change in the answer is shown, applied and undone."""

import json
import os
import pty
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, Ran, spawn_in
from tests.journeys.terminal import ENTER, Terminal
from tests.unit.codebase.repositories import commit, write

BEDS = 'def water(bed):\n    return bed["wet"] + 1\n\n\nprint(water({}))\n'
FIXED = BEDS.replace('bed["wet"]', 'bed.get("wet", 0)')
ANSWER = """The key is missing.

src/beds.py
<<<<<<< SEARCH
    return bed["wet"] + 1
=======
    return bed.get("wet", 0) + 1
>>>>>>> REPLACE
"""
CHECK = f"{sys.executable} src/beds.py"
ERROR = 'Traceback:\n  File "src/beds.py", line 2, in water\nKeyError: wet\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write(tmp_path / "repo", {"src/beds.py": BEDS, "README.md": "# Beds\n", ".env": "KEY=1\n"})
    commit(root, "Begin")
    return root


@pytest.fixture
def environment(home: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**os.environ, **home, "LAMELLA_NOTE_BACKUPS": str(tmp_path / "backups")}


@pytest.fixture
def fix(root: Path, environment: dict[str, str], script: Callable[..., str]) -> Callable[..., Ran]:
    def run(*words: str, stdin: str = ERROR, answer: object = ANSWER) -> Ran:
        model = script(answer)
        return spawn_in(environment, "code", "fix", "--model", model, *words, stdin=stdin.encode(), folder=root)

    return run


def test_named_file_is_attached_and_change_is_applied_and_undone(
    fix: Callable[..., Ran], root: Path, environment: dict[str, str]
) -> None:
    ran = fix("--yes")
    assert (ran.exit, ran.out) == (0, ANSWER)
    assert "attached: src/beds.py" in ran.err
    assert '-    return bed["wet"] + 1\n+    return bed.get("wet", 0) + 1\n' in ran.err
    assert "Applied: src/beds.py. To undo: lamella restore" in ran.err
    assert (root / "src/beds.py").read_text() == FIXED
    undone = spawn_in(environment, "restore", folder=root / "src")
    assert (undone.exit, undone.out) == (0, "Restored: src/beds.py\n")
    assert (root / "src/beds.py").read_text() == BEDS
    again = spawn_in(environment, "restore", folder=root)
    assert (again.exit, "There is no change to undo." in again.err) == (2, True)


def test_without_terminal_and_without_yes_change_is_only_shown(fix: Callable[..., Ran], root: Path) -> None:
    ran = fix()
    assert (ran.exit, "Add --yes" in ran.err, "+    return bed.get" in ran.err) == (0, True, True)
    assert (root / "src/beds.py").read_text() == BEDS


@pytest.mark.parametrize(("typed", "text"), [("y", FIXED), ("n", BEDS), ("", BEDS)])
def test_at_terminal_only_yes_applies_change(
    typed: str, text: str, root: Path, environment: dict[str, str], script: Callable[..., str]
) -> None:
    words = ["code", "fix", "--check", CHECK, "--model", script(ANSWER)]
    with Terminal(words, environment, folder=root) as terminal:
        terminal.wait_for("Apply this change to src/beds.py? [y/N]:")
        terminal.press_now(typed, ENTER)
        assert terminal.wait_for_end() == 0
        assert ("check: passed; before the change: failed (exit code 1)" in terminal.shown) == (text == FIXED)
    assert (root / "src/beds.py").read_text() == text


def test_if_error_is_piped_answer_is_read_from_terminal(
    root: Path, environment: dict[str, str], script: Callable[..., str]
) -> None:
    model, shown = script(ANSWER), b""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(root)
        pipe = f"printf '%s' 'src/beds.py:2: error' | '{COMMAND[0]}' -c '{COMMAND[2]}' code fix --model '{model}'"
        os.execvpe("/bin/sh", ["sh", "-c", pipe], environment)
    while b"[y/N]:" not in shown:
        shown += os.read(terminal, 10_000)
    os.write(terminal, b"y\n")
    assert os.waitpid(process, 0)[1] == 0
    os.close(terminal)
    assert (root / "src/beds.py").read_text() == FIXED


def test_output_of_failing_check_is_error(fix: Callable[..., Ran], root: Path) -> None:
    ran = fix("--check", CHECK, "--yes", stdin="")
    assert (ran.exit, "attached: src/beds.py" in ran.err) == (0, True)
    assert "check: passed; before the change: failed (exit code 1)" in ran.err


def test_if_check_still_fails_output_is_shown_and_exit_code_is_one(fix: Callable[..., Ran]) -> None:
    ran = fix("--check", CHECK, "--yes", stdin="", answer=ANSWER.replace('bed.get("wet", 0) + 1\n>', "bed.dry\n>"))
    assert (ran.exit, "AttributeError" in ran.err) == (1, True)


def test_passing_check_without_error_is_refused(fix: Callable[..., Ran]) -> None:
    ran = fix("--check", "true", stdin="")
    assert (ran.exit, "The check passes, so there is no error to fix." in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ANSWER.replace("src/beds.py", "../beds.py"), "is not a path in the repository"),
        (ANSWER.replace("src/beds.py", "/etc/hosts"), "is outside the repository"),
        (ANSWER.replace("src/beds.py", ".env"), "files of this name hold secrets"),
        (ANSWER.replace('    return bed["wet"] + 1\n=', "    return bed.dry\n="), "are not in src/beds.py"),
    ],
)
def test_change_that_is_not_allowed_or_does_not_apply_is_refused_with_reason(
    answer: str, reason: str, fix: Callable[..., Ran], root: Path
) -> None:
    ran = fix("--yes", answer=answer)
    assert (ran.exit, reason in ran.err, "hint: " in ran.err) == (2, True, True), ran.err
    assert (root / "src/beds.py").read_text() == BEDS


def test_json_has_change_and_check(fix: Callable[..., Ran]) -> None:
    ran = fix("--check", CHECK, "--yes", "--json")
    change = json.loads(ran.out)["change"]
    assert (change["applied"], change["refused"]) == (True, None)
    assert [(one["path"], one["created"]) for one in change["files"]] == [("src/beds.py", False)]
    assert change["check"] == {"command": CHECK, "before": 1, "after": 0}
    refused = fix("--yes", "--json", answer=ANSWER.replace("src/", "../"))
    assert (refused.exit, "is not a path" in json.loads(refused.out)["change"]["refused"]) == (1, True)


def test_files_that_may_not_be_read_are_named_with_reason(fix: Callable[..., Ran]) -> None:
    assert "note: .env is not attached: files of this name hold secrets." in fix(stdin="see .env").err


@pytest.mark.parametrize("task", ["explain", "tests", "optimise"])
def test_other_tasks_read_files_that_question_names(
    task: str, root: Path, environment: dict[str, str], script: Callable[..., str]
) -> None:
    words = ("code", task, "--say", "What does src/beds.py do?", "--model", script("It waters."))
    ran = spawn_in(environment, *words, folder=root)
    assert (ran.exit, "attached: src/beds.py" in ran.err) == (0, True), ran.err
