"""The Chromium in which the tests of the page run: find one on this machine, or install one.

``python -m tests.browser.chromium`` is a step of ``make test``. It takes the program that ``LAMELLA_CHROMIUM`` names, one on the
path, or one that Playwright downloaded. Otherwise it installs Debian's package, as root, or has Playwright download one.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HINT = "run `make chromium`, or name a Chromium or Chrome: LAMELLA_CHROMIUM=/path/to/chrome"


class ChromiumNotFoundError(Exception):
    """There is no Chromium on this machine."""

    def __init__(self) -> None:
        super().__init__(f"There is no Chromium for the tests of the page.\nhint: {HINT}")


def get_chromium() -> Path:
    """Return the program; raises ``ChromiumNotFoundError``, which says how to install one."""
    found = find_chromium()
    if found is None:
        raise ChromiumNotFoundError
    return found


def find_chromium() -> Path | None:
    """Return a Chromium or Chrome of this machine, or None."""
    named = os.environ.get("LAMELLA_CHROMIUM")
    if named:
        return Path(named) if os.access(named, os.X_OK) else None
    on_path = next((path for path in map(shutil.which, _NAMES) if path), None)
    return Path(on_path) if on_path else _find_downloaded()


def _find_downloaded() -> Path | None:
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    found = sorted(folder.glob("chromium-*/chrome-linux*/chrome"))
    return found[-1] if found else None


def install_chromium() -> Path | None:
    """Install Debian's package if this is root on Debian, otherwise Playwright's download; None if neither works."""
    if os.environ.get("LAMELLA_CHROMIUM"):
        return None
    if shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        packages = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        for words in (["apt-get", "update", "-qq"], packages):
            subprocess.run(words, env=quiet, check=False, stdout=subprocess.DEVNULL)
    if find_chromium() is None:
        words = [sys.executable, "-m", "playwright", "install", "chromium"]
        subprocess.run(words, check=False, stdout=subprocess.DEVNULL)
    return find_chromium()


def main() -> int:
    """Find or install a Chromium, and return the exit code."""
    found = find_chromium()
    if found is None:
        print("Installing Chromium for the tests of the page ...", flush=True)
        found = install_chromium()
    if found is None:
        print(f"error: there is no Chromium, and none could be installed\nhint: {HINT}", file=sys.stderr)
        return 1
    print(f"The tests of the page run in {found}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
