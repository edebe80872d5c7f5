"""Test beds: copies of the source, each of which takes one mutant at a time and runs tests against it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mutation.mutants import Mutant

HERE = Path(__file__).resolve().parents[1]
_NO_TESTS = 5


class Fate(StrEnum):
    """What became of a mutant."""

    OWN = "killed by its own tests"
    OTHERS = "killed by others"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests to run, and for how many seconds they may work."""

    tests: tuple[str, ...]
    seconds: int = 600


class BrokenSuiteError(Exception):
    """Tests that fail without any mutant: nothing could be learnt from them."""


class TestBed:
    """A copy of the source, in a folder that somebody else makes and removes."""

    __test__ = False

    def __init__(self, *, source: Path, copy: Path, project: Path, modules: Sequence[str] = ()) -> None:
        self._source, self._copy, self._project = source, copy, project
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled once and checked by content: a mutant may have the size and the second of what it replaces.
        command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(copy)]
        subprocess.run(command, check=True)
        self._trials = self._start(modules)

    def __enter__(self) -> "TestBed":
        return self

    def __exit__(self, *_: object) -> None:
        self._trials.kill()
        self._trials.communicate()

    def measure(self, tests: Sequence[str]) -> Suite | None:
        """The tests with a bound on their work, from what they need without a mutant; none if there are none."""
        there = self.list_there(tests)
        code, worked = self._run(Suite(tests=there)) if there else (_NO_TESTS, 0.0)
        if code == _NO_TESTS:
            return None
        if code:
            raise BrokenSuiteError(f"{' '.join(there)} fails without a mutant (pytest ends with {code})")
        return Suite(tests=there, seconds=10 + round(4 * worked))

    def list_there(self, tests: Sequence[str]) -> tuple[str, ...]:
        """Of tests those that the project has."""
        return tuple(test for test in tests if (self._project / test).exists())

    def try_mutant(self, mutant: Mutant, *, own: Suite | None, others: Callable[[], Suite | None]) -> Fate:
        """Put a mutant in, run its room's tests and then the others, and put back what stood there.

        The others are asked for only where they are needed: to measure them takes longer than most trials.
        """
        place = self._copy / mutant.path
        place.write_text(mutant.source, encoding="utf-8")
        try:
            if own is not None and self._run(self._nearest_first(own, place))[0]:
                return Fate.OWN
            if (rest := others()) is not None and self._run(rest)[0] not in (0, _NO_TESTS):
                return Fate.OTHERS
            return Fate.SURVIVED
        finally:
            shutil.copyfile(self._source / mutant.path, place)

    def _nearest_first(self, suite: Suite, place: Path) -> Suite:
        """The same tests, those of the file with the fault before the others: most mutants need no more than them."""
        folders = (self._project / test for test in suite.tests if not test.startswith("-"))
        near = sorted(found for folder in folders for found in folder.rglob(f"test_{place.stem}.py"))
        names = tuple(found.relative_to(self._project).as_posix() for found in near)
        return Suite(tests=(*names, *suite.tests), seconds=suite.seconds)

    def _run(self, suite: Suite) -> tuple[int, float]:
        """How the tests end, 0 if all pass, and how many seconds they worked. Out of time or memory is a failure."""
        if self._trials.stdin is None or self._trials.stdout is None:
            raise BrokenSuiteError("trials have no way in or out")
        self._trials.stdin.write(json.dumps([suite.seconds, suite.tests]) + "\n")
        self._trials.stdin.flush()
        answer = self._trials.stdout.readline()
        if not answer:
            raise BrokenSuiteError("trials ended before their time")
        code, worked = json.loads(answer)
        return code, worked

    def _start(self, modules: Sequence[str]) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(self._copy), str(HERE))),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Plugins cost more than most tests do: that of hypothesis has it compiled each time.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        command = [sys.executable, "-m", "mutation.trial", *modules]
        return subprocess.Popen(
            command, cwd=self._project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
