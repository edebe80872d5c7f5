"""Shells: what a person's shell makes of a command that was printed."""

import os
import subprocess
from pathlib import Path


def read_words(command: str, *, folder: Path | None = None) -> list[str]:
    """The words that a shell gives to `lamella` when the command is pasted."""
    program = f"lamella() {{ printf '%s\\0' \"$@\"; }}; {command}"
    locale = {**os.environ, "LC_ALL": "C.UTF-8"}
    told = subprocess.run(["bash", "-c", program], capture_output=True, check=True, env=locale, cwd=folder)
    return os.fsdecode(told.stdout).split("\0")[:-1]
