"""The rule of every test: each request extends the previous one, or the test gives the reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from lamella import Note


def moving(converse):
    chat = converse(layout="library")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    chat.ask("two")


def still(converse):
    chat = converse()
    chat.ask("one")
    chat.reply("r")
    chat.ask("two")


def test_moving_unmarked(converse):
    moving(converse)


@pytest.mark.moves_prefix(reason="it must")
def test_moving_marked(converse):
    moving(converse)


@pytest.mark.moves_prefix(reason="it does not")
def test_still_marked(converse):
    still(converse)


def test_still_unmarked(converse):
    still(converse)


@pytest.mark.moves_prefix
def test_without_a_reason(converse):
    moving(converse)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of these tests under the rule."""
    folder = tmp_path_factory.mktemp("ruled")
    (folder / "conftest.py").write_text("from tests.conftest import converse, movements\n", encoding="utf-8")
    (folder / "test_ruled.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = moves_prefix(reason)\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(folder)]
    wide = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=False).stdout


def errors(told: str) -> dict[str, str]:
    """The tests that the rule failed when they were over, and what it said."""
    lines = (line.partition(" - Failed: ") for line in told.splitlines() if line.startswith("ERROR "))
    return {name.rpartition("::")[2]: reason for name, _, reason in lines}


def test_only_tests_that_violate_marker_rule_fail(told: str) -> None:
    assert set(errors(told)) == {"test_moving_unmarked", "test_still_marked", "test_without_a_reason"}


def test_unmarked_prefix_change_is_reported(told: str) -> None:
    assert errors(told)["test_moving_unmarked"].startswith("the prefix moved: artifact_added(a.md)")


def test_marker_without_prefix_change_is_reported(told: str) -> None:
    assert errors(told)["test_still_marked"].startswith("the test is marked moves_prefix")


def test_marker_needs_reason(told: str) -> None:
    assert errors(told)["test_without_a_reason"] == "moves_prefix needs a reason"
