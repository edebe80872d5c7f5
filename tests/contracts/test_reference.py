"""The generated parts of docs/reference are up to date, and do not depend on the machine."""

import os
import subprocess
import sys
from pathlib import Path

from tests.contracts.repository import DOCS, ROOT

PAGES = sorted((DOCS / "reference").rglob("*.md"))


def test_reference_pages_are_up_to_date(tmp_path: Path) -> None:
    # A narrow terminal, another home folder and other settings must not change a page.
    environment = {
        **os.environ,
        "COLUMNS": "40",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "LAMELLA_CONFIG": os.devnull,
        "LAMELLA_MODEL": "local",
        "LAMELLA_WINDOW": "2000",
    }
    command = [sys.executable, "-m", "cogapp", "--check", "--diff", "-I", "docs", "-p", "import generate"]
    ran = subprocess.run(
        [*command, *map(str, PAGES)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"run `make docs`:\n{ran.stdout}\n{ran.stderr}"


def test_every_reference_page_begins_with_a_heading_and_a_sentence() -> None:
    for path in PAGES:
        heading, blank, sentence = path.read_text(encoding="utf-8").split("\n")[:3]
        assert heading.startswith("# "), path
        assert not blank, path
        assert sentence, path
        assert not sentence.startswith(("<", "|", "#")), path
