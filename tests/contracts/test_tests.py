"""Tests can fail: none is skipped or patched, names are sentences, and a unit test drives what it mirrors."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.contracts.repository import ROOT, SRC, python_files, shown, tree

# Left to the long run. It is the mark of a case, never of a whole test: a quicker case always stays.
LONG = "pytest.mark.long"
SKIPS = {"skip", "skipif", "xfail", "importorskip"}
PATCHES = {"mock", "mocker", "patch", "setattr"}
FEWEST_WORDS = 3

# Unit tests that drive something else than the module they are named after, or are named after none. The list only
# shrinks: a test of a whole conversation belongs in tests/behaviour, any other beside what it tests.
STRAYS = {
    "archive/markdown/legacy/test_file.py",
    "archive/markdown/page/test_edits.py",
    "archive/markdown/test_compactions.py",
    "archive/markdown/archive/test_files.py",
    "archive/markdown/test_page.py",
    "providers/local/test_conversations.py",
    "providers/test_sdks.py",
    "test_moves_prefix.py",
}


def find_excuses(module: ast.Module) -> Iterator[str]:
    """Whatever keeps a test from running, or replaces what it should run."""
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="pytest") | ast.Attribute(attr="mark"), attr=name) if name in SKIPS:
                yield f"{node.lineno}: {name}"
            case ast.FunctionDef(decorator_list=marks) if any(ast.unparse(mark) == LONG for mark in marks):
                yield f"{node.lineno}: long"
            case ast.Attribute(value=ast.Name(id="monkeypatch"), attr="setattr"):
                yield f"{node.lineno}: setattr"
            case ast.Import(names=names):
                yield from (f"{node.lineno}: {name.name}" for name in names if "mock" in name.name)
            case ast.ImportFrom(module=str(name)) if "mock" in name:
                yield f"{node.lineno}: {name}"
            case ast.arg(arg="mocker"):
                yield f"{node.lineno}: mocker"


def test_tests_are_not_skipped_and_use_no_patches() -> None:
    assert [f"{shown(path)}:{excuse}" for path in python_files("tests") for excuse in find_excuses(tree(path))] == []


def test_excuses_are_recognized() -> None:
    excuses = """
import unittest.mock
from unittest.mock import patch

@pytest.mark.skip
def test_one(mocker): ...

@pytest.mark.xfail(reason="later")
def test_two(monkeypatch):
    monkeypatch.setattr(os, "name", "x")
    pytest.skip("no")

@pytest.mark.long
def test_three(): ...
"""
    assert len(list(find_excuses(ast.parse(excuses)))) == 8
    assert list(find_excuses(ast.parse("@pytest.mark.parametrize('a', [1])\ndef test_x(): ..."))) == []


def test_only_long_marker_deselects_tests() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        options: list[str] = tomllib.load(file)["tool"]["pytest"]["ini_options"]["addopts"]
    assert options[options.index("-m") :] == ["-m", "not long"]
    assert not any(option.startswith(("-k", "--ignore", "--deselect")) for option in options)
    recipes = dict(re.findall(r"^([\w-]+): .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    (plain,) = [line for line in recipes["test"].splitlines() if "pytest" in line]
    assert not re.search(r" -[mk] |--ignore|--deselect|tests/", plain.partition("pytest")[2])
    assert any(line.endswith("-m long") for line in recipes["test-long"].splitlines())


def test_every_test_name_has_three_words() -> None:
    short = [
        f"{shown(path)}: {node.name}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name.count("_") < FEWEST_WORDS
    ]
    assert short == []


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(module=str(name), names=names):
                yield from (name, *(f"{name}.{one.name}" for one in names))
            case ast.Import(names=names):
                yield from (one.name for one in names)


def _mirrored(path: Path) -> str:
    """The module that a unit test is named after; the tools beside the package are mirrored below their own names.

    A module with several test files has a folder of its own: ``core/budget/test_limits.py`` tests ``core/budget.py``.
    """
    *rooms, name = path.relative_to(ROOT / "tests" / "unit").with_suffix("").parts
    package = () if rooms[:1] in (["bench"], ["mutation"]) else ("lamella",)
    return ".".join((*package, *rooms, name.removeprefix("test_")))


def find_strays() -> list[str]:
    """Unit tests that do not import what they are named after."""
    strays = []
    for path in python_files("tests/unit"):
        mirrored, imported = _mirrored(path), list(_imported(tree(path)))
        folder = mirrored.rpartition(".")[0]
        module = folder if (SRC.parent / folder.replace(".", "/")).with_suffix(".py").is_file() else mirrored
        if path.stem.startswith("test_") and not any(f"{name}.".startswith(f"{module}.") for name in imported):
            strays.append(shown(path).removeprefix("tests/unit/"))
    return strays


def test_unit_test_imports_module_it_mirrors() -> None:
    assert sorted(set(find_strays()) - STRAYS) == []


def test_list_of_exceptions_has_no_extra_entries() -> None:
    assert sorted(STRAYS - set(find_strays())) == []
