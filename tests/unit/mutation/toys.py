"""A project small enough to be tried whole: one room with one file, and tests that notice half of what it does."""

from pathlib import Path
from textwrap import dedent

from mutation.room import Project

ROOM = '''
"""A room."""

from collections.abc import Sequence


class Box(dict, metaclass=type):
    """A box."""


def is_over(total: int, limit: int = 10) -> bool:
    """Whether it is too much."""
    return total > limit


def greet(name: str) -> str:
    """A greeting, which no test of the room reads."""
    if not name:
        raise ValueError("Nobody is there.")
    return name + "!"


def count_down(number: int) -> int:
    """Ends at nought, if nothing is wrong with it."""
    while number > 0:
        number -= 1
    return number
'''

OWN = """
from toy.rooms.one.bounds import count_down, is_over

def test_the_bound_is_where_it_should_be():
    assert not is_over(10)
    assert is_over(11)

def test_counting_down_ends():
    assert count_down(3) == 0
"""

OTHERS = """
from toy.rooms.one.bounds import greet

def test_a_greeting_has_its_mark():
    assert greet("you") == "you!"
"""


def build_toy(root: Path) -> Project:
    """The project, written below a folder."""
    files = {
        "src/toy/__init__.py": "",
        "src/toy/rooms/__init__.py": "",
        "src/toy/rooms/one/__init__.py": "",
        "src/toy/rooms/one/bounds.py": ROOM,
        "src/toy/rooms/empty/__init__.py": "",
        "src/toy/rooms/no_room/notes.txt": "",
        "tests/one/test_bounds.py": OWN,
        "tests/others/test_greeting.py": OTHERS,
        "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    source = root / "src"
    return Project(
        root=root, source=source, rooms=source / "toy" / "rooms", tests="tests", others=("tests/others", "tests/absent")
    )
