"""The house in numbers: how many values, how large rooms, what a turn passes through. None of them may rise.

``at_most`` is what holds now, ``aim`` what it is to come down to.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.contracts.places import ROOT, SRC, python_files, shown, tree
from tests.contracts.walks import Walk, follow, measure, room_of, walk_in_new_process

from lamella.core.text.content import hash_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A number of the house. It may fall, and then ``at_most`` falls with it."""

    at_most: int
    aim: int


VALUES_OF_CORE = Bound(at_most=75, aim=75)
FILES_OF_A_ROOM = Bound(at_most=15, aim=15)
LONE_PARTICIPLES = Bound(at_most=6, aim=6)
NAMES_USED_TWICE = Bound(at_most=0, aim=0)
NAMES_THAT_ONLY_TESTS_USE = Bound(at_most=0, aim=0)
WALKS = {
    ("send", "files"): Bound(at_most=68, aim=55),
    ("send", "calls"): Bound(at_most=500, aim=400),
    ("send", "changes"): Bound(at_most=135, aim=120),
    ("plan", "calls"): Bound(at_most=500, aim=500),
    # Every step of the chain, down to a goal that none of them reaches.
    ("plan_all", "calls"): Bound(at_most=625, aim=500),
    ("ask_after_undo", "calls"): Bound(at_most=700, aim=700),
}
# One word that ends like a participle or a gerund, and why it may.
PARTICIPLES = {
    "Opening": "the beginning of earlier messages, as in chess: a noun",
    "Standing": "what stands in a request for one artifact: a noun",
    "Timing": "how long something took: a noun",
    "Unknown": "public: an attachment of a kind that nobody knows",
    "Wanted": "an attachment that is not read yet, as on a list of what is wanted",
    "Written": "what is written down together",
}
# Words that end like one and are nouns all the same.
NOUNS = {"Embed", "Feed", "Heading", "Meaning", "Need", "Seed", "Setting", "String", "Thing", "Token"}
ENDINGS = re.compile(r"[A-Z][a-z]+(?:ed|ing|en|own|aid|old|ept)")


def classes(*folders: str) -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in python_files(*folders):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def is_value(node: ast.ClassDef) -> bool:
    """Whether a class holds fields and nothing else: a struct, or a dataclass."""
    made_of = [*node.bases, *node.decorator_list]
    return any(re.search(r"\b(Struct|dataclass)\b", ast.unparse(one)) for one in made_of)


def sounds_like_a_participle(name: str) -> bool:
    return ENDINGS.fullmatch(name) is not None and name not in NOUNS


def test_the_core_has_no_more_values_than_before_events_apart() -> None:
    values = [
        node.name for path, node in classes("src/lamella/core") if is_value(node) and "events" not in path.as_posix()
    ]
    assert len(values) <= VALUES_OF_CORE.at_most, sorted(values)


def test_no_room_has_more_files_than_it_may() -> None:
    sizes = Counter(path.parent for path in python_files("src") if path.name != "__init__.py")
    assert {shown(room): size for room, size in sizes.items() if size > FILES_OF_A_ROOM.at_most} == {}


def test_a_class_has_its_name_for_itself() -> None:
    homes: dict[str, list[str]] = {}
    for path, node in classes("src"):
        homes.setdefault(node.name, []).append(shown(path))
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert len(shared) <= NAMES_USED_TWICE.at_most, shared


def test_a_class_is_named_by_a_noun() -> None:
    found = {node.name for _, node in classes("src") if sounds_like_a_participle(node.name)}
    assert found == set(PARTICIPLES)
    assert len(PARTICIPLES) <= LONE_PARTICIPLES.at_most


def test_names_that_stay_although_they_sound_otherwise_are_defended_in_a_line() -> None:
    told = (ROOT / "docs" / "decisions" / "names.md").read_text(encoding="utf-8")
    stay = set(re.findall(r"^\| `([\w/.]+)` \| [A-Z].+ \|$", told, re.MULTILINE))
    assert set(PARTICIPLES) - stay == set()
    # Whatever is defended is there.
    there = {node.name for _, node in classes("src")} | {"settings/meaning.py", "shelf", "_sent_last"}
    assert stay - there == set()


def test_what_the_core_defines_is_used_by_more_than_tests() -> None:
    used = {name for path in python_files("src") for name in find_used(tree(path))}
    unused = [
        f"{shown(path)}: {name}"
        for path in python_files("src/lamella/core")
        for name in find_defined(tree(path)) - used
    ]
    assert len(unused) <= NAMES_THAT_ONLY_TESTS_USE.at_most, unused


def find_defined(module: ast.Module) -> set[str]:
    """Functions, methods and classes by name; what Python calls by itself is left out."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(module) if isinstance(node, kinds) and not node.name.startswith("__")}


def find_used(module: ast.Module) -> Iterator[str]:
    """Whatever a source names without defining it there."""
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (one.name for one in names)


def test_no_face_imports_the_core() -> None:
    importing = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("src/lamella/faces")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom) and any(_is_core(name) for name in _imported(node))
    ]
    assert importing == []


def _imported(node: ast.Import | ast.ImportFrom) -> Iterable[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


def _is_core(name: str) -> bool:
    return f"{name}.".startswith("lamella.core.")


@pytest.mark.parametrize(("deed", "what"), WALKS, ids=str)
def test_a_turn_goes_no_longer_way_than_before(deed: str, what: str) -> None:
    assert 0 < getattr(walk_in_new_process()[deed], what) <= WALKS[deed, what].at_most


def test_no_bound_is_below_its_aim() -> None:
    bounds = [
        VALUES_OF_CORE,
        FILES_OF_A_ROOM,
        LONE_PARTICIPLES,
        NAMES_USED_TWICE,
        NAMES_THAT_ONLY_TESTS_USE,
        *WALKS.values(),
    ]
    assert [bound for bound in bounds if bound.at_most < bound.aim] == []


def test_values_participles_and_imports_of_the_core_are_recognised() -> None:
    struct, data, plain = ast.parse(
        "class A(Struct, frozen=True): ...\n@dataclass(frozen=True)\nclass B: ...\nclass C(Protocol): ..."
    ).body
    assert [is_value(node) for node in (struct, data, plain) if isinstance(node, ast.ClassDef)] == [True, True, False]
    assert [name for name in ("Asked", "Opening", "Token", "ToolRound", "Known") if sounds_like_a_participle(name)] == [
        "Asked",
        "Opening",
        "Known",
    ]
    called = ast.parse("class A:\n    def walk(self): return run()\ndef run(): ...\ndef idle(): ...\nA().walk()")
    assert find_defined(called) - set(find_used(called)) == {"idle"}
    assert _is_core("lamella.core")
    assert not _is_core("lamella.core_of_all")


def test_a_way_is_counted_in_calls_files_and_changes_of_room() -> None:
    with follow() as passed:
        hash_text("once")
        hash_text("twice")
    assert {path.as_posix() for path in passed} == {"core/text/content.py"}
    home, away = Path("core/text/content.py"), Path("engine/chat.py")
    assert measure([home, home, away, home]) == Walk(
        calls=4, files=2, changes=2, passed=(home.as_posix(), away.as_posix())
    )
    assert [room_of(Path(name)) for name in ("core/values.py", "core/prompt/laws/law.py", "errors.py")] == [
        "core",
        "core/prompt",
        "errors",
    ]
    assert (SRC / home).is_file()
