"""The recipes of CONTRIBUTING, followed in a copy of ``src``: files named, files changed, and the result."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.contracts.repository import ROOT, SRC, tree
from tests.contracts.test_purity import find_any, find_side_effects

# Run before each script. Without it, a script that imports the installed package would prove nothing.
_GUARD = "import sys, lamella; assert lamella.__file__.startswith(sys.argv[1]), lamella.__file__\n"
# Packages that must stay free of I/O, clocks, randomness and ``Any``.
_PURE = ("core", "schemas")


class SourceCopy:
    """A copy of ``src/lamella`` in which a recipe is followed. Paths are relative to ``src/lamella``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "src" / "lamella"
        shutil.copytree(SRC, self.package)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def insert(self, path: str, text: str, *, before: str) -> None:
        """Insert lines before the only line that begins with ``before``."""
        file = self.package / path
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.startswith(before)]
        assert len(places) == 1, f"{path} has {len(places)} lines that begin with {before!r}"
        lines[places[0] : places[0]] = [text]
        file.write_text("".join(lines), encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace a text that occurs once in a file."""
        file = self.package / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        file.write_text(text.replace(old, new), encoding="utf-8")

    def create(self, path: str, text: str) -> None:
        """Create a file, and its folder if needed."""
        file = self.package / path
        assert not file.exists(), f"{path} exists already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def changed(self) -> list[str]:
        """Return the files that differ from those of the repository, or are not in it."""
        here = {path.relative_to(self.package) for path in self.package.rglob("*") if path.suffix != ".pyc"}
        files = sorted(path for path in here if (self.package / path).is_file())
        return [
            path.as_posix()
            for path in files
            if not (SRC / path).exists() or (SRC / path).read_bytes() != (self.package / path).read_bytes()
        ]

    def run(self, script: str, *arguments: str, **variables: str) -> str:
        """Return what a program prints that imports the copy; it runs in an empty folder without settings."""
        place = self.folder / "work"
        place.mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", _GUARD + script, str(self.package.parent), *arguments],
            cwd=place,
            env={**self._environment(), "HOME": str(place), "LAMELLA_CONFIG": os.devnull, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``lamella`` from the copy."""
        return subprocess.run(
            [sys.executable, "-c", "import sys; from lamella.cli import main; sys.exit(main())", *words],
            cwd=self.folder,
            env={**self._environment(), "HOME": str(self.folder), "LAMELLA_CONFIG": os.devnull, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.package.parent)}

    def check(self, recipe: str, *, name: str = "") -> None:
        """Check that the files changed are those that the recipe names, and that the structure is still sound."""
        assert self.changed() == named_files(recipe, name=name)
        assert self.find_structure_problems() == []

    def find_structure_problems(self) -> list[str]:
        """Return broken import contracts, and impure code that the repository does not have."""
        linter = Path(sys.executable).parent / "lint-imports"
        done = subprocess.run(
            [linter, "--no-cache"],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        broken = re.findall(r"^(.+) BROKEN(?: \(.*\))?$", done.stdout, re.MULTILINE)
        assert broken or done.returncode == 0, done.stdout
        return [*broken, *sorted(find_impure(self.package) - _impure_in_repository())]


def find_impure(package: Path) -> set[str]:
    """Return each import, call and name in the pure packages that is not pure.

    Line numbers are left out, so that a recipe that inserts lines does not turn an old finding into a new one.
    """
    paths = sorted(path for name in _PURE for path in (package / name).rglob("*.py"))
    named = [(tree(path), f"src/lamella/{path.relative_to(package).as_posix()}") for path in paths]
    found = (find(module, where) for module, where in named for find in (find_side_effects, find_any))
    return {re.sub(r":\d+ ", " ", problem) for problems in found for problem in problems}


@cache
def _impure_in_repository() -> set[str]:
    """Other contract tests report these; a recipe must not add to them."""
    return find_impure(SRC)


def named_files(recipe: str, *, name: str = "") -> list[str]:
    """Return the files of ``src/lamella`` that a recipe of CONTRIBUTING tells readers to touch, sorted.

    A recipe writes a new file as ``cli/<name>.py``; ``name`` takes the place of ``<name>``.
    """
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(recipe)}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"CONTRIBUTING has no recipe {recipe!r}"
    paths: list[str] = re.findall(r"`((?!tests/)[\w/<>]+\.py)`", found[1])
    return sorted({path.replace("<name>", name) for path in paths})
