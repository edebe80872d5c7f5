"""Tests can fail: none is skipped, none patches what it tests, and each name says what is true."""

import ast
from collections.abc import Iterator

from tests.contracts.places import python_files, shown, tree

SKIPS = {"skip", "skipif", "xfail", "importorskip"}
PATCHES = {"mock", "mocker", "patch", "setattr"}
FEWEST_WORDS = 3


def find_excuses(module: ast.Module) -> Iterator[str]:
    """Whatever keeps a test from running, or replaces what it should run."""
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="pytest") | ast.Attribute(attr="mark"), attr=name) if name in SKIPS:
                yield f"{node.lineno}: {name}"
            case ast.Attribute(value=ast.Name(id="monkeypatch"), attr="setattr"):
                yield f"{node.lineno}: setattr"
            case ast.Import(names=names):
                yield from (f"{node.lineno}: {name.name}" for name in names if "mock" in name.name)
            case ast.ImportFrom(module=str(name)) if "mock" in name:
                yield f"{node.lineno}: {name}"
            case ast.arg(arg="mocker"):
                yield f"{node.lineno}: mocker"


def test_no_test_is_skipped_or_patches_what_it_tests() -> None:
    assert [f"{shown(path)}:{excuse}" for path in python_files("tests") for excuse in find_excuses(tree(path))] == []


def test_excuses_are_recognised() -> None:
    excuses = """
import unittest.mock
from unittest.mock import patch

@pytest.mark.skip
def test_one(mocker): ...

@pytest.mark.xfail(reason="later")
def test_two(monkeypatch):
    monkeypatch.setattr(os, "name", "x")
    pytest.skip("no")
"""
    assert len(list(find_excuses(ast.parse(excuses)))) == 7
    assert list(find_excuses(ast.parse("@pytest.mark.parametrize('a', [1])\ndef test_x(): ..."))) == []


def test_the_name_of_every_test_is_a_sentence() -> None:
    short = [
        f"{shown(path)}: {node.name}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name.count("_") < FEWEST_WORDS
    ]
    assert short == []
