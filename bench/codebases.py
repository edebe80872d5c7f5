"""Repositories to choose files from: this project as it was after some of its commits, and packages that it installs.

Questions come from what people wrote: the subject of a commit, with the files that it touched; the first sentence of a
docstring, with the file that it was in, where all docstrings are taken out of the text first.
"""

import ast
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

HERE = Path(__file__).parents[1]
PACKAGES = ("hypothesis", "libcst", "mypy", "openai", "pip", "pydantic", "rich", "textual")
_SNAPSHOTS, _STEP = 8, 60
_MOST_TOUCHED = 5
_FEWEST_WORDS = 4
_OF_A_PACKAGE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and the files any of which answers it."""

    text: str
    needed: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebase:
    """A folder with questions about it."""

    name: str
    root: Path
    questions: Sequence[Question]


def make_codebases(folder: Path) -> Iterator[Codebase]:
    """All of them, below a folder."""
    yield from _make_snapshots(folder)
    for package in PACKAGES:
        yield _make_package(package, folder / package)


def split_questions(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """One half to choose weights by, and the other, which is reported."""
    mixed = list(questions)
    Random(12).shuffle(mixed)
    return mixed[::2], mixed[1::2]


def _make_snapshots(folder: Path) -> Iterator[Codebase]:
    """The project as it was, each time with the commits that came next: nothing of an answer is there yet."""
    log = _git(HERE, "log", "--no-merges", "--reverse", "--no-renames", "--name-only", "--format=%x01%H%n%s")
    commits = [one.split("\n") for one in log.split("\x01")[1:]]
    # Counted from the first commit, so that the questions stay what they are when others come.
    last = (len(commits) - 1) // _STEP - 1
    for number in range(max(1, last - _SNAPSHOTS + 1), last + 1):
        at = number * _STEP
        root = folder / f"project-{number:03}"
        _git(HERE, "clone", "-q", "--shared", "--no-checkout", str(HERE), str(root))
        _git(root, "checkout", "-q", commits[at][0])
        there = frozenset(_git(root, "ls-files", "-z").split("\0"))
        asked = [_ask_commit(subject, touched, there) for _, subject, *touched in commits[at + 1 : at + 1 + _STEP]]
        yield Codebase(name="project", root=root, questions=[one for one in asked if one is not None])


def _ask_commit(subject: str, touched: Sequence[str], there: frozenset[str]) -> Question | None:
    source = {path for path in touched if path.endswith((".py", ".toml", ".sql"))}
    needed = source & there
    if not needed or len(source) > _MOST_TOUCHED or len(subject.split()) < _FEWEST_WORDS:
        return None
    return Question(text=subject, needed=frozenset(needed))


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def _make_package(name: str, root: Path) -> Codebase:
    home = Path(sysconfig.get_path("purelib")) / name
    sentences: dict[str, set[str]] = {}
    for file in sorted(home.rglob("*.py")):
        path = file.relative_to(home).as_posix()
        bare, found = take_docstrings(file.read_text("utf-8"))
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(bare, "utf-8")
        if "vendor" not in path:
            for sentence in found:
                sentences.setdefault(sentence, set()).add(path)
    own = [Question(text=one, needed=frozenset(paths)) for one, paths in sorted(sentences.items()) if len(paths) == 1]
    return Codebase(name="packages", root=root, questions=Random(name).sample(own, min(_OF_A_PACKAGE, len(own))))


def take_docstrings(text: str) -> tuple[str, list[str]]:
    """A Python file without its docstrings, and the first sentence of each that has a few words."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text, []
    lines = text.split("\n")
    found: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        said = ast.get_docstring(node)
        if not said:
            continue
        place = node.body[0]
        # A body needs something in it, and whoever counts lines finds them where they were.
        for at in range(place.lineno - 1, place.end_lineno or place.lineno):
            lines[at] = ""
        if not isinstance(node, ast.Module):
            lines[place.lineno - 1] = " " * place.col_offset + "pass"
        sentence = " ".join(said.split("\n\n")[0].split()).split(". ")[0]
        if len(sentence.split()) >= _FEWEST_WORDS:
            found.append(sentence)
    return "\n".join(lines), found
