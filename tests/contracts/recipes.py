"""Recipes of CONTRIBUTING, followed in a copy of ``src``: what they say, what they touch, and whether it works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.contracts.places import ROOT, SRC

# Run in front of each script: a copy that is not the one imported would show nothing.
_GUARD = "import sys, lamella; assert lamella.__file__.startswith(sys.argv[1]), lamella.__file__\n"


class SourceCopy:
    """A copy of ``src/lamella`` that a recipe is followed in. Paths are relative to ``src/lamella``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._package = folder / "src" / "lamella"
        shutil.copytree(SRC, self._package)

    def put(self, path: str, text: str, *, before: str) -> None:
        """Put lines in front of the one line that begins with ``before``."""
        file = self._package / path
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.startswith(before)]
        assert len(places) == 1, f"{path} has {len(places)} lines that begin with {before!r}"
        lines[places[0] : places[0]] = [text]
        file.write_text("".join(lines), encoding="utf-8")

    def add(self, path: str, text: str) -> None:
        """A new file, in a room of its own if need be."""
        file = self._package / path
        assert not file.exists(), f"{path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def changed(self) -> list[str]:
        """The files that differ from those of the repository, or are not among them."""
        here = {path.relative_to(self._package) for path in self._package.rglob("*") if path.suffix != ".pyc"}
        files = sorted(path for path in here if (self._package / path).is_file())
        return [
            path.as_posix()
            for path in files
            if not (SRC / path).exists() or (SRC / path).read_bytes() != (self._package / path).read_bytes()
        ]

    def run(self, script: str) -> str:
        """What a program prints that imports the copy; it stands in an empty folder with settings of nobody."""
        place = self.folder / "work"
        place.mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", _GUARD + script, str(self._package.parent)],
            cwd=place,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(place),
                "LAMELLA_CONFIG": os.devnull,
                "PYTHONPATH": str(self._package.parent),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def named_files(recipe: str) -> list[str]:
    """The files of ``src`` that the recipe of this name in CONTRIBUTING tells people to touch, sorted."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^\*\*{re.escape(recipe)}\.\*\*(.*?)(?=^$|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"CONTRIBUTING has no recipe {recipe!r}"
    names: list[str] = re.findall(r"`([\w/]+\.py)`", found[1])
    return sorted(set(names))
