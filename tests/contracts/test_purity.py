"""Core and schemas stay pure; modules have docstrings and meaningful names."""

import ast
import re
from collections.abc import Iterator, Set
from pathlib import Path

from tests.contracts.repository import ROOT, python_files, shown, tree

from lamella.core.log.turn import LayoutMode

BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common_utils", "misc"}
# What the core may import: of the standard library, to make values, and to reduce words to their stems. Each is a pure
# function of its arguments, and of the tables that come with it.
PURE_MODULES = {
    "Stemmer", "array", "base64", "bisect", "collections", "dataclasses", "datetime", "decimal", "enum", "functools",
    "hashlib", "itertools", "json", "math", "msgspec", "operator", "re", "types", "typing", "unicodedata", "zlib",
}  # fmt: skip
IMPURE_CALLS = {
    "open", "print", "input", "exec", "eval", "compile", "__import__", "globals", "breakpoint",
    # Both differ between two runs of the same program.
    "hash", "id",
}  # fmt: skip
# What a file may call all the same. The laws ask whether two values are one object, and nothing else comes of it.
EXCUSED = {"src/lamella/core/prompt/invariants.py": {"id"}}
# Folds in progress: they add one event after another, and are structs to be written as snapshots.
FOLDS = {"FoldedLog", "CompactionLog"}
CLOCK_CALLS = {"now", "utcnow", "today", "fromtimestamp"}


def test_every_module_has_a_docstring() -> None:
    assert [shown(path) for path in python_files("src", "bench", "mutation") if not ast.get_docstring(tree(path))] == []


def test_no_module_has_a_meaningless_name() -> None:
    assert [shown(path) for path in python_files("src", "bench", "mutation", "tests") if _is_meaningless(path)] == []


def _is_meaningless(path: Path) -> bool:
    words = [part.removesuffix(".py") for part in path.relative_to(ROOT).parts]
    return any(word in BANNED_NAMES or word.rstrip("0123456789").endswith("_v") for word in words)


def test_meaningless_module_names_are_recognized() -> None:
    assert _is_meaningless(ROOT / "src/lamella/core/utils.py")
    assert _is_meaningless(ROOT / "src/lamella/helpers/text.py")
    assert _is_meaningless(ROOT / "src/lamella/core/prompt/envelope_v2.py")
    assert not _is_meaningless(ROOT / "src/lamella/core/prompt/envelope.py")


def test_core_never_uses_any() -> None:
    assert [where for path in python_files("src/lamella/core") for where in find_any(tree(path), shown(path))] == []


def find_any(module: ast.Module, where: str) -> Iterator[str]:
    for node in ast.walk(module):
        if (isinstance(node, ast.Name) and node.id == "Any") or (
            isinstance(node, ast.Attribute) and node.attr == "Any"
        ):
            yield f"{where}:{node.lineno} names Any"


def test_core_has_no_side_effects() -> None:
    found = [where for path in python_files("src/lamella/core") for where in find_side_effects(tree(path), shown(path))]
    assert found == []


def test_schemas_have_no_side_effects() -> None:
    files = python_files("src/lamella/schemas")
    found = [where for path in files for where in find_side_effects(tree(path), shown(path))]
    # Bodies are built from the values that ports define.
    assert [where for where in found if not where.endswith("imports lamella.ports")] == []


def find_side_effects(module: ast.Module, where: str) -> Iterator[str]:
    """Imports, calls and statements that reach out of a pure function."""
    for node in _walk_without_hashing(module):
        match node:
            case ast.Import(names=names):
                yield from (f"{where}:{node.lineno} imports {n.name}" for n in names if not _is_pure(n.name))
            case ast.ImportFrom(module=str(name)) if not _is_pure(name):
                yield f"{where}:{node.lineno} imports {name}"
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS - EXCUSED.get(where, set()):
                yield f"{where}:{node.lineno} calls {name}"
            case ast.Attribute(attr=name) if name in CLOCK_CALLS:
                yield f"{where}:{node.lineno} asks the clock: {name}"
            case ast.Global() | ast.AsyncFunctionDef() | ast.Await():
                yield f"{where}:{node.lineno} has a {type(node).__name__}"


def _walk_without_hashing(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those of ``__hash__``, which dictionaries of one process ask for, and imports for types alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        is_hash = isinstance(child, ast.FunctionDef) and child.name == "__hash__"
        is_for_types = (
            isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
        )
        if not (is_hash or is_for_types):
            yield from _walk_without_hashing(child)


def _is_pure(module: str) -> bool:
    return module.partition(".")[0] in PURE_MODULES or module.startswith(
        ("lamella.core.", "lamella.errors", "lamella.schemas.")
    )


def test_side_effects_are_recognized() -> None:
    reaching = """
import os
from pathlib import Path
from lamella.ports import PriceTable
text = open("note.md").read()
moment = datetime.now()
seed = hash(text)
class Key:
    def __hash__(self): return hash(self.name)
async def walk(): ...
"""
    found = [what.partition(" ")[2] for what in find_side_effects(ast.parse(reaching), "here")]
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


def test_core_values_are_frozen() -> None:
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


def test_no_code_compares_layout_names() -> None:
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
        return node.value.id == "LayoutMode"
    return isinstance(node, ast.Constant) and node.value in {one.value for one in LayoutMode}


def test_layout_name_is_recognized() -> None:
    given = {"LayoutMode.AUTO": True, "'in_place'": True, "layout": False, "before.layout": False, "'full'": False}
    assert {one: _names_layout(ast.parse(one, mode="eval").body) for one in given} == given


def find_class_names(module: ast.Module, names: Set[str]) -> Iterator[str]:
    """Texts in which one of these names is a word; a text that is nothing else is a name to import by."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        # Docstrings and quoted annotations are not shown to people.
        if id(node) in docstrings or (isinstance(node, ast.Constant) and re.search(r"\w\[| \| ", str(node.value))):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in names:
            yield from (node.value for word in re.findall(r"\w+", node.value) if word in names)


def test_cli_and_server_texts_contain_no_class_names() -> None:
    defined = {
        node.name for path in python_files("src") for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)
    }
    names = {name for name in defined if re.match(r"[A-Z]\w*[a-z][A-Z]", name)}
    assert [
        told
        for path in python_files("src/lamella/cli", "src/lamella/server")
        for told in find_class_names(tree(path), names)
    ] == []
    slip = ast.parse('print(f"ActiveCompactions as {receipt}.")')
    assert list(find_class_names(slip, names)) == ["ActiveCompactions as "]
