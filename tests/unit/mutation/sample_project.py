"""A small project to mutate: one package with one file, and tests that notice half of what it does."""

from pathlib import Path
from textwrap import dedent

from mutation.packages import Project

BOUNDS = '''
"""A module."""

from collections.abc import Sequence


class Box(dict, metaclass=type):
    """A box."""


def is_over(total: int, limit: int = 10) -> bool:
    """Whether it is too much."""
    return total > limit


def greet(name: str) -> str:
    """A greeting, which no test of the package reads."""
    if not name:
        raise ValueError("The name is empty.")
    return name + "!"


def count_down(number: int) -> int:
    """Returns zero, unless there is a fault in it."""
    while number > 0:
        number -= 1
    return number
'''

OWN_TESTS = """
from sample.packages.one.bounds import count_down, is_over

def test_is_over_excludes_the_limit():
    assert not is_over(10)
    assert is_over(11)

def test_count_down_returns_zero():
    assert count_down(3) == 0
"""

OTHER_TESTS = """
from sample.packages.one.bounds import greet

def test_greet_adds_exclamation_mark():
    assert greet("you") == "you!"
"""

SINGLE_TESTS = """
from sample.packages.single import LIMIT

def test_limit_is_true():
    assert LIMIT is True
"""


def build_sample_project(root: Path) -> Project:
    """The project, written below a folder."""
    files = {
        "src/sample/__init__.py": "",
        "src/sample/packages/__init__.py": "",
        "src/sample/packages/one/__init__.py": "",
        "src/sample/packages/one/bounds.py": BOUNDS,
        "src/sample/packages/empty/__init__.py": "",
        "src/sample/packages/single.py": "LIMIT = 3 > 2\n",
        "src/sample/packages/untested.py": "LIMIT = 3 > 2\n",
        "src/sample/packages/no_code/notes.txt": "",
        "src/sample/packages/excluded/__init__.py": "LIMIT = 3 > 2\n",
        "tests/one/test_bounds.py": OWN_TESTS,
        "tests/single/test_limit.py": SINGLE_TESTS,
        "tests/others/test_greeting.py": OTHER_TESTS,
        "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    source = root / "src"
    return Project(
        root=root,
        source=source,
        packages=source / "sample" / "packages",
        own_tests=("tests/{package}",),
        other_tests=("tests/others", "tests/absent"),
        excluded=("excluded",),
    )
