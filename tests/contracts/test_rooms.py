"""Rooms: every folder is one noun, says at its door what may enter, and keeps the core out of the world."""

import ast
import re
from collections.abc import Iterator, Set
from pathlib import Path

from tests.contracts.places import CORE, ROOT, SRC, python_files, shown, tree

from lamella.core.log.terms import Layout

BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common_utils", "misc"}
ROOMS = {
    "core": {
        "artifacts", "budget", "compaction", "ledger", "log", "messages", "planning", "prompt", "search", "text",
        "workflow",
    },
    "adapters": {
        "archive", "clocks", "files", "memory", "providers", "retrieval", "sources", "stores", "tokens", "tools",
        "workflows", "writing",
    },
    "faces": {"cli", "mcp", "server"},
    "engine": {"dialogue", "hosts", "keeping", "runs", "sending", "stages"},
    "runners": {"answering", "kinds", "rounds"},
    "settings": set[str](),
    "views": {"caches", "code", "serving", "work"},
    "wiring": {"running", "serving"},
}  # fmt: skip

# What the core may import: of the standard library, to make values, and to reduce words to their stems. Each is a pure
# function of its arguments, and of the tables that come with it.
PURE_MODULES = {
    "Stemmer", "array", "base64", "bisect", "collections", "dataclasses", "datetime", "decimal", "enum", "functools",
    "hashlib", "itertools", "json", "math", "msgspec", "operator", "re", "types", "typing", "unicodedata", "zlib",
}  # fmt: skip
WORLD_CALLS = {
    "open", "print", "input", "exec", "eval", "compile", "__import__", "globals", "breakpoint",
    # Both differ between two runs of the same program.
    "hash", "id",
}  # fmt: skip
# What a file may call all the same. The laws ask whether two values are one object, and nothing else comes of it.
EXCUSED = {"src/lamella/core/prompt/laws.py": {"id"}}
# Folds in progress: they take in one event after another, and are structs to be written as snapshots.
FOLDS = {"Log", "Compactions"}
CLOCK_CALLS = {"now", "utcnow", "today", "fromtimestamp"}


def test_the_rooms_are_those_of_the_architecture() -> None:
    for parent, rooms in ROOMS.items():
        found = {path.parent.name for path in (SRC / parent).glob("*/__init__.py")}
        assert found == rooms


def test_every_room_says_what_enters_what_leaves_and_what_may_not() -> None:
    silent = [
        f"{shown(path)} does not say {word!r}"
        for path in python_files("src")
        if path.name == "__init__.py" and path.parent != SRC
        for word in ("Enters:", "Leaves:", "May not enter:")
        if word not in (ast.get_docstring(tree(path)) or "")
    ]
    assert silent == []


def test_every_module_opens_with_a_docstring() -> None:
    assert [shown(path) for path in python_files("src", "bench", "mutation") if not ast.get_docstring(tree(path))] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [shown(path) for path in python_files("src", "bench", "mutation", "tests") if _says_nothing(path)] == []


def _says_nothing(path: Path) -> bool:
    words = [part.removesuffix(".py") for part in path.relative_to(ROOT).parts]
    return any(word in BANNED_NAMES or word.rstrip("0123456789").endswith("_v") for word in words)


def test_names_that_say_nothing_are_recognised() -> None:
    assert _says_nothing(ROOT / "src/lamella/core/utils.py")
    assert _says_nothing(ROOT / "src/lamella/helpers/text.py")
    assert _says_nothing(ROOT / "src/lamella/core/prompt/envelope_v2.py")
    assert not _says_nothing(ROOT / "src/lamella/core/prompt/envelope.py")


def test_the_core_names_no_any() -> None:
    assert [where for path in python_files("src/lamella/core") for where in find_any(tree(path), shown(path))] == []


def find_any(module: ast.Module, where: str) -> Iterator[str]:
    for node in ast.walk(module):
        if (isinstance(node, ast.Name) and node.id == "Any") or (
            isinstance(node, ast.Attribute) and node.attr == "Any"
        ):
            yield f"{where}:{node.lineno} names Any"


def test_the_core_does_nothing_to_the_world() -> None:
    found = [where for path in python_files("src/lamella/core") for where in find_world(tree(path), shown(path))]
    assert found == []


def test_the_views_do_nothing_to_the_world_either() -> None:
    found = [where for path in python_files("src/lamella/views") for where in find_world(tree(path), shown(path))]
    assert found == []


def find_world(module: ast.Module, where: str) -> Iterator[str]:
    """Imports, calls and statements that reach out of a pure function."""
    for node in _walk_apart_from_hashing(module):
        match node:
            case ast.Import(names=names):
                yield from (f"{where}:{node.lineno} imports {n.name}" for n in names if not _is_pure(n.name))
            case ast.ImportFrom(module=str(name)) if not _is_pure(name):
                yield f"{where}:{node.lineno} imports {name}"
            case ast.Call(func=ast.Name(id=name)) if name in WORLD_CALLS - EXCUSED.get(where, set()):
                yield f"{where}:{node.lineno} calls {name}"
            case ast.Attribute(attr=name) if name in CLOCK_CALLS:
                yield f"{where}:{node.lineno} asks the clock: {name}"
            case ast.Global() | ast.AsyncFunctionDef() | ast.Await():
                yield f"{where}:{node.lineno} has a {type(node).__name__}"


def _walk_apart_from_hashing(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those of ``__hash__``, which dictionaries of one process ask for and nothing that is kept."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and child.name == "__hash__"):
            yield from _walk_apart_from_hashing(child)


def _is_pure(module: str) -> bool:
    return module.partition(".")[0] in PURE_MODULES or module.startswith(
        ("lamella.core.", "lamella.errors", "lamella.holdings", "lamella.views.")
    )


def test_reaching_for_the_world_is_recognised() -> None:
    reaching = """
import os
from pathlib import Path
from lamella.ports import PriceBook
text = open("note.md").read()
moment = datetime.now()
seed = hash(text)
class Key:
    def __hash__(self): return hash(self.name)
async def walk(): ...
"""
    found = [what.partition(" ")[2] for what in find_world(ast.parse(reaching), "here")]
    assert sorted(found) == [
        "asks the clock: now",
        "calls hash",
        "calls open",
        "has a AsyncFunctionDef",
        "imports lamella.ports",
        "imports os",
        "imports pathlib",
    ]
    assert list(find_any(ast.parse("from typing import Any\nx: Any = 1"), "here")) == ["here:2 names Any"]


def test_the_values_of_the_core_cannot_be_changed() -> None:
    loose = [
        f"{shown(path)}:{node.lineno} {node.name}"
        for path in python_files("src/lamella/core")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and _is_loose(node)
    ]
    assert loose == []


def _is_loose(node: ast.ClassDef) -> bool:
    wanted = {"frozen", "slots", "kw_only"}
    if any(isinstance(base, ast.Name) and base.id == "Struct" for base in node.bases):
        said = {keyword.arg for keyword in node.keywords}
        # What is stored as an array is told by position: there its order is the format.
        return node.name not in FOLDS and not ("frozen" in said and said & {"kw_only", "array_like"})
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id == "dataclass":
            return True
        if (
            isinstance(decorator, ast.Call)
            and isinstance(decorator.func, ast.Name)
            and decorator.func.id == "dataclass"
        ):
            return not wanted <= {keyword.arg for keyword in decorator.keywords}
    return False


def test_nobody_asks_which_layout_it_is() -> None:
    """Its planner is looked up, and what follows from it is said by the placement that this makes."""
    asked = {
        shown(path)
        for path in python_files("src")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Compare) and any(_names_layout(one) for one in (node.left, *node.comparators))
    }
    assert asked == set()


def _names_layout(node: ast.expr) -> bool:
    """Whether an expression is a layout by its name."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == "Layout"
    return isinstance(node, ast.Constant) and node.value in {one.value for one in Layout}


def test_a_layout_by_its_name_is_recognised() -> None:
    given = {"Layout.AUTO": True, "'in_place'": True, "layout": False, "before.layout": False, "'full'": False}
    assert {one: _names_layout(ast.parse(one, mode="eval").body) for one in given} == given


def test_core_has_files_to_check() -> None:
    assert len(python_files("src/lamella/core")) > len(ROOMS["core"])
    assert CORE.is_dir()


def find_class_names(module: ast.Module, names: Set[str]) -> Iterator[str]:
    """Texts in which one of these names is a word; a text that is nothing else is a name to import by."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in names:
            yield from (node.value for word in re.findall(r"\w+", node.value) if word in names)


def test_no_face_tells_people_the_name_of_a_class() -> None:
    defined = {
        node.name for path in python_files("src") for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)
    }
    names = {name for name in defined if re.match(r"[A-Z]\w*[a-z][A-Z]", name)}
    assert [told for path in python_files("src/lamella/faces") for told in find_class_names(tree(path), names)] == []
    slip = ast.parse('print(f"CompactionsInForce as {receipt}.")')
    assert list(find_class_names(slip, names)) == ["CompactionsInForce as "]
