"""Paths of this repository, and functions that read its files."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "lamella"
CORE = SRC / "core"
DOCS = ROOT / "docs"


def python_files(*folders: str) -> list[Path]:
    """Every Python file below the folders, in a fixed order; an empty answer would make a contract say nothing."""
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert files, f"no Python files below {folders}"
    return files


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def doc(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def markdown_files() -> Iterator[Path]:
    """The pages people read: those at the top, and those below docs/."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted(DOCS.rglob("*.md"))
