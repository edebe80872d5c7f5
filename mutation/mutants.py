"""Mutants: what one small fault makes of a file, and a sample of them that stays the same while the code does."""

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.mutators import mutation_operators

# Annotations and the arguments of a class or a decorator say how code is read, not what it does; and whoever hands
# something else to these two functions gets an error on the spot.
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
    """A node of a file's tree, and another to put in its place."""

    rank: str
    path: str
    tree: cst.Module
    old: cst.CSTNode
    new: cst.CSTNode


def sample_mutants(source: Path, room: Path, *, size: int, seed: int) -> list[Mutant]:
    """So many mutants of a room, in an order that depends on the seed and on each fault alone.

    A smaller sample is the beginning of a larger one, and a change to one file leaves the rest of the sample as it was.
    """
    faults = [
        fault
        for path in sorted(room.rglob("*.py"))
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
        told = (scope, wrapper.module.code_for_node(old), wrapper.module.code_for_node(new))
        seen[told] += 1
        rank = sha256(repr((seed, path, *told, seen[told])).encode()).hexdigest()
        yield _Fault(rank=rank, path=path, tree=wrapper.module, old=old, new=new)


def _apply(fault: _Fault) -> Iterator[Mutant]:
    """The mutant of a fault; none where it changes nothing, or where the file could not be compiled any more."""
    before = fault.tree.code
    changed = fault.tree.deep_replace(fault.old, fault.new)
    after = changed.code if isinstance(changed, cst.Module) else before
    if after == before or not _compiles(after):
        return
    line, change = _tell(before.splitlines(), after.splitlines())
    yield Mutant(path=fault.path, line=line, change=change, source=after)


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _tell(before: list[str], after: list[str]) -> tuple[int, str]:
    """The first line that differs, and how it reads before and after."""
    opcodes = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
    _, i, j, k, m = next(code for code in opcodes if code[0] != "equal")
    old, new = (" ".join(line.strip() for line in lines) for lines in (before[i:j], after[k:m]))
    return i + 1, f"{old} -> {new}"


class _Finder(cst.CSTVisitor):
    """Walks a file and asks the operators of mutmut what each node may become."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, cst.CSTNode, cst.CSTNode]] = []
        self._scope: list[str] = []
        self._raised = 0
        self._class_arguments: set[int] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note what the node may become, and go on with what stands in it."""
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
        # The words of an error are for people; that it is raised, with a hint, is for tests.
        if self._raised and isinstance(node, cst.SimpleString):
            return True
        return isinstance(node, _SKIPPED) or id(node) in self._class_arguments
