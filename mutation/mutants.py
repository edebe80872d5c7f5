"""Mutants: files with one small fault each, and samples of them that stay the same while the code does."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.mutators import mutation_operators

# Annotations and the arguments of a class or a decorator do not change what code does, and these two functions raise at
# once when they get anything else.
_SKIPPED = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)
_SKIPPED_CALLS = {"len", "isinstance"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One file with one fault in it. ``path`` is relative to the folder that packages are imported from."""

    path: str
    line: int
    change: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """A node of a syntax tree, and its replacement."""

    rank: str
    path: str
    tree: cst.Module
    old: cst.CSTNode
    new: cst.CSTNode


def sample_mutants(source: Path, files: Iterable[Path], *, size: int, seed: int) -> list[Mutant]:
    """At most ``size`` mutants of these files, in an order that depends only on the seed and on each fault.

    A smaller sample is the beginning of a larger one, and a change to one file does not reorder the others.
    """
    faults = [
        fault
        for path in files
        for fault in _find_faults(path.relative_to(source).as_posix(), path.read_text(encoding="utf-8"), seed)
    ]
    mutants: list[Mutant] = []
    for fault in sorted(faults, key=lambda fault: fault.rank):
        if len(mutants) >= size:
            break
        mutants.extend(_apply(fault))
    return mutants


def _find_faults(path: str, source: str, seed: int) -> Iterator[_Fault]:
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Finder()
    wrapper.visit(visitor)
    seen: Counter[tuple[str, str, str]] = Counter()
    for scope, old, new in visitor.found:
        change = (scope, wrapper.module.code_for_node(old), wrapper.module.code_for_node(new))
        seen[change] += 1
        rank = sha256(repr((seed, path, *change, seen[change])).encode()).hexdigest()
        yield _Fault(rank=rank, path=path, tree=wrapper.module, old=old, new=new)


def _apply(fault: _Fault) -> Iterator[Mutant]:
    """The mutant of a fault; none if the fault changes nothing or the file no longer compiles."""
    before = fault.tree.code
    changed = fault.tree.deep_replace(fault.old, fault.new)
    after = changed.code if isinstance(changed, cst.Module) else before
    if after == before or not _compiles(after):
        return
    line, change = _describe_change(before.splitlines(), after.splitlines())
    yield Mutant(path=fault.path, line=line, change=change, source=after)


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _describe_change(before: list[str], after: list[str]) -> tuple[int, str]:
    """The number of the first line that differs, and its text before and after."""
    opcodes = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
    _, i, j, k, m = next(code for code in opcodes if code[0] != "equal")
    old, new = (" ".join(line.strip() for line in lines) for lines in (before[i:j], after[k:m]))
    return i + 1, f"{old} -> {new}"


class _Finder(cst.CSTVisitor):
    """Visits a file and collects what the operators of mutmut make of each node."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, cst.CSTNode, cst.CSTNode]] = []
        self._scope: list[str] = []
        self._raised = 0
        self._class_arguments: set[int] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note the possible replacements of the node, then visit its children."""
        if self._is_skipped(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._scope.append(node.name.value)
        self._raised += isinstance(node, cst.Raise)
        if isinstance(node, cst.ClassDef):
            self._class_arguments.update(id(argument) for argument in (*node.bases, *node.keywords))
        scope = ".".join(self._scope)
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                self.found.extend((scope, node, new) for new in operator(node))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Leave the function or class that was entered."""
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._scope.pop()
        self._raised -= isinstance(original_node, cst.Raise)

    def _is_skipped(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            return node.func.value in _SKIPPED_CALLS
        # The wording of an error is not tested here; that it is raised, with a hint, is.
        if self._raised and isinstance(node, cst.SimpleString):
            return True
        return isinstance(node, _SKIPPED) or id(node) in self._class_arguments
