"""Repositories of tests: files written to a folder, with git or without."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lamella.ports import SecretScanner
from lamella.providers.secret_scanner import ANCHORS, SecretFinder

WATCH = SecretScanner(anchors=ANCHORS, find_secrets=SecretFinder().scan, is_local_model=lambda _model: False)
_NOBODY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "tests@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder with these files."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def git(root: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(
        ["git", *words], cwd=root, env={**os.environ, **_NOBODY}, capture_output=True, text=True, check=True
    )
    return done.stdout


def commit(root: Path, subject: str) -> None:
    """Commit all that is there, in a repository that begins with the first of them."""
    if not (root / ".git").exists():
        git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", subject)


def count(text: str) -> int:
    """A count that anybody can follow: four characters make a token."""
    return -(-len(text) // 4)
