"""The recipe for a command, followed in a copy of the source: it runs, and touches the files that the recipe names."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contracts.places import ROOT

VIEW = '''"""How often each word stands in a text."""

from collections import Counter


def view_tally(text: str) -> dict[str, object]:
    """Words with their number."""
    return {"lamella": 1, "words": dict(Counter(text.split()))}
'''
COMMAND = '''"""``lamella tally``: count words."""

import json
from typing import Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption
from lamella.views.tally import view_tally


def tally(*, text: Annotated[str, typer.Argument(help="A text.")], as_json: JsonOption = False) -> None:
    """Count the words of a text."""
    if not text.strip():
        raise UsageError("There are no words.", hint="Give some.")
    body = view_tally(text)
    typer.echo(json.dumps(body) if as_json else "\\n".join(f"{word} {n}" for word, n in body["words"].items()))
'''


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the source to which the command was added by the recipe."""
    source = tmp_path / "src" / "lamella"
    shutil.copytree(ROOT / "src" / "lamella", source)
    (source / "views" / "tally.py").write_text(VIEW, encoding="utf-8")
    (source / "faces" / "cli" / "tally.py").write_text(COMMAND, encoding="utf-8")
    app = source / "faces" / "cli" / "app.py"
    app.write_text(register(app.read_text(encoding="utf-8"), "tally", beside="recall"), encoding="utf-8")
    return source


def register(app: str, name: str, *, beside: str) -> str:
    """The commands with one more, which stands wherever another one does; examples in the help are left alone."""
    lines: list[str] = []
    for line in app.splitlines(keepends=True):
        lines.append(line)
        if beside in line and not line.strip().startswith("lamella "):
            lines.append(line.replace(beside, name))
    return "".join(lines)


def lamella(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from lamella.faces.cli import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(source.parent), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def differing(one: Path, other: Path) -> set[str]:
    """The files that are in one folder and not just so in the other."""
    paths = {path.relative_to(base) for base in (one, other) for path in base.rglob("*.py")}
    return {
        path.as_posix()
        for path in paths
        if not ((one / path).is_file() and (other / path).is_file())
        or not filecmp.cmp(one / path, other / path, shallow=False)
    }


def test_a_command_added_by_the_recipe_runs_prints_json_and_fails_as_all_do(copied: Path) -> None:
    said = lamella(copied, "tally", "to be or to be")
    assert (said.returncode, said.stdout, said.stderr) == (0, "to 2\nbe 2\nor 1\n", "")
    assert json.loads(lamella(copied, "tally", "so so", "--json").stdout) == {"lamella": 1, "words": {"so": 2}}
    failed = lamella(copied, "tally", " ", "--json")
    assert (failed.returncode, failed.stderr) == (2, "error: There are no words.\nhint: Give some.\n")
    assert json.loads(failed.stdout)["error"]["code"] == "bad_usage"
    assert re.search(r"tally +Count the words of a text\.", lamella(copied, "--help").stdout)


def test_a_command_touches_the_files_that_the_recipe_names_and_no_more_than_three(copied: Path) -> None:
    touched = differing(ROOT / "src" / "lamella", copied)
    assert touched == {"faces/cli/app.py", "faces/cli/tally.py", "views/tally.py"}
    (recipe,) = re.findall(r"^\*\*A command\.\*\* .+?\n\n", _contributing(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:faces/cli|views)/[\w.]*)`", recipe)
    assert {f"{path}tally.py" if path.endswith("/") else path for path in named} == touched


def _contributing() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
