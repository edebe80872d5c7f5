"""Copies of the source, each of which takes one mutant at a time and runs tests against it."""

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

ROOT = Path(__file__).resolve().parents[1]
_NO_TESTS = 5


class Outcome(StrEnum):
    """Which tests noticed a mutant, if any."""

    KILLED_BY_OWN_TESTS = "killed by its own tests"
    KILLED_BY_OTHER_TESTS = "killed by others"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests to run, and how many seconds of processor time they may use."""

    tests: tuple[str, ...]
    seconds: int = 600


class BrokenSuiteError(Exception):
    """Tests that fail without any mutant, so that they cannot show anything about one."""


class SourceCopy:
    """A copy of the source, in a folder that the caller creates and removes."""

    def __init__(self, *, source: Path, copy: Path, project: Path, modules: Sequence[str] = ()) -> None:
        self._source, self._copy, self._project = source, copy, project
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled once and checked by content: a mutant may have the size and the second of what it replaces.
        command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(copy)]
        subprocess.run(command, check=True)
        self._test_process = self._start(modules)

    def __enter__(self) -> "SourceCopy":
        return self

    def __exit__(self, *_: object) -> None:
        self._test_process.kill()
        self._test_process.communicate()

    def measure(self, tests: Sequence[str]) -> Suite | None:
        """The tests with a time limit, derived from the time they need without a mutant; None if there are none."""
        existing = self.find_existing(tests)
        code, seconds, output = self._run(Suite(tests=existing)) if existing else (_NO_TESTS, 0.0, "")
        if code == _NO_TESTS:
            return None
        if code:
            raise BrokenSuiteError(f"{' '.join(existing)} fails without a mutant (pytest ends with {code}):\n{output}")
        return Suite(tests=existing, seconds=10 + round(4 * seconds))

    def find_existing(self, tests: Sequence[str]) -> tuple[str, ...]:
        """The paths of tests that exist in the project."""
        return tuple(test for test in tests if (self._project / test).exists())

    def test_mutant(self, mutant: Mutant, *, own: Suite | None, others: Callable[[], Suite | None]) -> Outcome:
        """Put a mutant in, run its package's tests and then the others, and restore the file.

        ``others`` is called only if it is needed, because timing the other tests takes longer than testing a mutant.
        """
        file = self._copy / mutant.path
        file.write_text(mutant.source, encoding="utf-8")
        try:
            if own is not None and self._run(self._nearest_first(own, file))[0]:
                return Outcome.KILLED_BY_OWN_TESTS
            if (other_suite := others()) is not None and self._run(other_suite)[0] not in (0, _NO_TESTS):
                return Outcome.KILLED_BY_OTHER_TESTS
            return Outcome.SURVIVED
        finally:
            shutil.copyfile(self._source / mutant.path, file)

    def _nearest_first(self, suite: Suite, file: Path) -> Suite:
        """The same tests, those of the changed file before the others, since most mutants need no more."""
        folders = [self._project / test for test in suite.tests if not test.startswith("-")]
        found = {path for folder in folders for path in folder.rglob(f"test_{file.stem}.py")}
        found.update(path for folder in folders for path in folder.rglob(file.stem) if path.is_dir())
        names = tuple(path.relative_to(self._project).as_posix() for path in sorted(found))
        return Suite(tests=(*names, *suite.tests), seconds=suite.seconds)

    def _run(self, suite: Suite) -> tuple[int, float, str]:
        """The exit code, 0 if all tests pass, the processor time and the output. Out of time or memory is a failure."""
        if self._test_process.stdin is None or self._test_process.stdout is None:
            raise BrokenSuiteError("the process that runs tests has no pipes")
        self._test_process.stdin.write(json.dumps([suite.seconds, suite.tests]) + "\n")
        self._test_process.stdin.flush()
        answer = self._test_process.stdout.readline()
        if not answer:
            raise BrokenSuiteError("the process that runs tests ended too early")
        code, seconds, output = json.loads(answer)
        return code, seconds, output

    def _start(self, modules: Sequence[str]) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(self._copy), str(ROOT))),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Loading plugins takes longer than most tests: that of hypothesis compiles it each time.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        command = [sys.executable, "-m", "mutation.forked_tests", *modules]
        return subprocess.Popen(
            command, cwd=self._project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
