"""Check the page with Node: types of the components, their unit tests, and that the committed files are their build.

``make test`` runs this. Without npm it says so and checks nothing: tests/contracts/test_page_build.py then compares
sources and built files with the hashes of the last build.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent
BUILT = WEB.parent / "src" / "lamella" / "server" / "static"
REBUILT = WEB.parent / "build" / "page"


def main() -> int:
    """Run every check, and return the exit code."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not installed: the page is checked by the hashes of its last build only.")
        return 0
    installed = WEB / "node_modules" / ".package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < (WEB / "package-lock.json").stat().st_mtime:
        _run(npm, "ci", "--no-audit", "--no-fund", "--silent")
    _run(npm, "run", "--silent", "check")
    _run(npm, "run", "--silent", "test")
    shutil.rmtree(REBUILT, ignore_errors=True)
    _run(npm, "run", "--silent", "build", LAMELLA_PAGE_OUT=str(REBUILT))
    differing = compare_folders(BUILT, REBUILT)
    if differing:
        print(f"error: the committed page is not the build of web/: {', '.join(differing)}", file=sys.stderr)
        print("hint: run make web and commit src/lamella/server/static", file=sys.stderr)
        return 1
    return 0


def compare_folders(first: Path, second: Path) -> list[str]:
    """Return the relative paths of files that are not the same in both folders."""
    names = sorted(
        {str(path.relative_to(folder)) for folder in (first, second) for path in folder.rglob("*") if path.is_file()}
    )
    return [name for name in names if not _is_same(first / name, second / name)]


def _is_same(first: Path, second: Path) -> bool:
    return first.is_file() and second.is_file() and filecmp.cmp(first, second, shallow=False)


def _run(*words: str, **environment: str) -> None:
    result = subprocess.run(words, cwd=WEB, env={**os.environ, **environment}, check=False)
    if result.returncode != 0:
        print(f"error: {' '.join(words[1:])} failed in web/", file=sys.stderr)
        print("hint: run it there to see more; make web builds the page", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
