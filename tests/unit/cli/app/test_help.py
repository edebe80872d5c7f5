"""The help of every command is what the reference shows; it is rendered in a process without rich."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lamella.cli.app import COMMANDS

ROOT = Path(__file__).parents[4]
PAGES = {"cli": "cli.md", "chat_commands": "chat-commands.md"}


def generate(function: str) -> str:
    program = f"import sys; sys.path.insert(0, 'docs'); import generate; sys.stdout.write(generate.{function}())"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("function", PAGES)
def test_help_is_as_in_the_reference(function: str) -> None:
    page = (ROOT / "docs" / "reference" / PAGES[function]).read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- \[\[\[cog .*?\]\]\] -->\n(.*?)<!-- \[\[\[end\]\]\] -->", page, re.DOTALL)
    assert generate(function) == block.strip()


def test_reference_has_a_section_for_each_command() -> None:
    page = (ROOT / "docs" / "reference" / PAGES["cli"]).read_text(encoding="utf-8")
    sections = set(re.findall(r"^## lamella (\S+)$", page, re.MULTILINE))
    assert sections == set(COMMANDS)
