"""Hints fit the door: whoever reads one is told of nothing that only others can do.

What is said below the faces is read at every door, so it names no option, no command and no call. What differs from
door to door is said by a `Door`, and what only one of them can meet stands where only that one comes.
"""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest
from tests.contracts.places import SRC, python_files, tree
from tests.contracts.words import PYTHONIC, SHELL

from lamella.doors import PYTHON, Door
from lamella.errors import AnswerAsideError, CallError, LamellaError
from lamella.faces.cli.terminal.door import ChatDoor, ShellDoor
from lamella.faces.server.door import HTTP

# What is said to nobody, and what is true at every door: a command of another program, a word that both have.
ELSEWHERE = {
    "adapters/archive/markdown/legacy/blocks.py: <module>": "a pattern",
    "adapters/archive/transcript.py: _refuse_numbers": "a datetime is a word for a time, too",
    "adapters/providers/local/weights.py: WeightsPackage.install": "what pip is called with",
    "adapters/providers/local/weights.py: _check_packaged": "what pip is called with",
    "adapters/stores/commits/joined.py: <module>": "a statement for a database",
    "adapters/stores/postgresql.py: PostgresDatabase._connect": "a statement for a database",
    "adapters/sources/code/repository/git.py: GitFolder.read_log": "what git is called with",
    "adapters/sources/code/skeletons/skeleton.py: <module>": "a pattern",
    "adapters/sources/obsidian/embeds.py: EmbedExpansion._embed": "an attribute of a frame",
    "commands.py: _list_options": "an option with its value",
    "core/values.py: describe": "what a program prints of its own values",
    "engine/dialogue/summaries.py: _ask": "a type",
    "engine/dialogue/log_line.py: log_turn": "a line of the log",
    "engine/dialogue/turn.py: TurnView.__repr__": "what a program prints of its own values",
    "runners/kinds/blocks.py: <module>": "what a model is told of errors from a terminal",
    "wiring/code.py: LateCodeReader.choose": "a type",
    "wiring/services.py: Services": "a type",
    "wiring/stores.py: _make_configure": "a type",
}
# Where only programs come, and what no other door has: a check of what they hand over.
PROGRAMS_ONLY = {
    "adapters/providers/dialects.py: _finish": "answers of an SDK",
    "engine/chat.py: Chat._find_pool": "a chat without an engine",
    "engine/checks.py: <module>": "values of any type",
    "engine/checks.py: check_text": "values of any type",
    "engine/checks.py: check_each": "values of any type",
    "engine/checks.py: check_fields": "values of any type",
    "engine/checks.py: check_parts": "values of any type",
    "engine/checks.py: check_time": "times",
    "engine/checks.py: check_zone": "times",
    "engine/checks.py: check_provider": "a provider of one's own",
    "engine/dialogue/rounds.py: check_outputs": "results that are handed back",
    "engine/engine.py: _there": "an engine that was put together by hand",
    "engine/log_line.py: _join": "a line of a log, for programs to read",
    "engine/sending/deltas.py: read_answer": "a provider of one's own",
    "engine/sending/tools.py: _describe": "functions as tools",
    "engine/sending/tools.py: _make_model": "functions as tools",
    "wiring/python.py: Conversation.__init__": "a summariser of one's own",
}
DOORS: list[Door] = [PYTHON, ShellDoor(), ShellDoor("sqlite:///my chats.db"), ChatDoor("sqlite:///chats.db"), HTTP]


def sayings(node: ast.AST, where: str = "<module>") -> Iterator[tuple[str, str]]:
    """Every text with words in it, and the function it stands in; docstrings and comments say nothing."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.JoinedStr(values=parts):
            yield where, "".join(_text(part) for part in parts)
            inner: list[ast.AST] = [part for part in parts if not isinstance(part, ast.Constant)]
        case ast.Constant(value=str(text)) if " " in text:
            yield where, text
            inner = []
        case _:
            inner = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        where = node.name if where == "<module>" else f"{where}.{node.name}"
    for child in inner:
        yield from sayings(child, where)


def _text(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{…}"


def found(pattern: re.Pattern[str], *, faces: bool) -> dict[str, list[str]]:
    """Where something is said that only one door understands."""
    told: dict[str, list[str]] = {}
    for path in python_files("src"):
        name = path.relative_to(SRC).as_posix()
        if name == "doors.py" or name.startswith("faces/") is not faces:
            continue
        for where, text in sayings(tree(path)):
            if pattern.search(text) and f"{name}: {where}" not in ELSEWHERE:
                told.setdefault(f"{name}: {where}", []).append(text)
    return told


def test_nothing_below_the_faces_speaks_of_the_command_line() -> None:
    assert found(SHELL, faces=False) == {}


def test_nothing_below_the_faces_speaks_of_python_but_where_only_programs_come() -> None:
    told = found(PYTHONIC, faces=False)
    assert {where: texts for where, texts in told.items() if where not in PROGRAMS_ONLY} == {}
    assert sorted(set(PROGRAMS_ONLY) - set(told)) == []


def test_no_face_speaks_of_python() -> None:
    assert found(PYTHONIC, faces=True) == {}


def test_no_error_is_told_again_with_a_hint_that_was_worded_for_one_door() -> None:
    worded = [
        f"{path.relative_to(SRC).as_posix()}:{call.lineno}"
        for path in python_files("src")
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "hint" and ast.unparse(keyword.value) == "error.hint"
    ]
    # The fault of a parser that is not ours has a hint of its own.
    assert [place for place in worded if not place.startswith("adapters/archive/strict_json.py")] == []


def _steps(door: Door) -> dict[str, str]:
    """Every step in the words of a door."""
    given = {
        "name": "my chat",
        "head": "57cc4455bb9c2671",
        "tools": ["add"],
        "max_tokens": 100,
        "field": "model",
        "given": "x:y#z",
        "place": "x:y",
    }
    steps = [name for name, _ in inspect.getmembers(Door, inspect.isfunction) if not name.startswith("_")]
    assert len(steps) > 5
    told = {}
    for step in steps:
        takes = inspect.signature(getattr(door, step)).parameters
        told[step] = getattr(door, step)(**{name: given[name] for name in takes})
    return {**told, "option": door.option("max_tokens")}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: type(door).__name__)
def test_every_door_has_its_own_words_for_every_step(door: Door) -> None:
    strange = SHELL if door is PYTHON else PYTHONIC
    assert {step: words for step, words in _steps(door).items() if not words or strange.search(words)} == {}


def test_a_hint_is_worded_by_the_door_that_tells_it() -> None:
    error = AnswerAsideError(conversation="my chat", answer="57cc")
    assert error.hint == '`chat.turns("57cc")` shows it; `chat.switch("57cc")` goes on there.'
    assert error.__notes__ == [f"hint: {error.hint}"]
    assert error.hint_at(ShellDoor("sqlite:///a b.db")) == (
        "`lamella chats show 'my chat' --branch 57cc --store 'sqlite:///a b.db'` shows it; "
        "`lamella chats fork 'my chat' 57cc --store 'sqlite:///a b.db'` goes on there."
    )
    assert error.hint_at(ChatDoor()).endswith("`/switch 57cc` goes on there.")
    error.hint = "The same everywhere."
    assert {error.hint_at(door) for door in DOORS} == {"The same everywhere."}


def test_words_of_the_wrong_door_are_recognised() -> None:
    shell = ["Add --undo.", "See `lamella chats list`.", "Or /switch 57cc in a chat.", "At a terminal type it."]
    pythonic = ["Name one with model=…", "Call ask() first.", "As chat.turns(…) shows.", "Give it a str."]
    assert [text for text in shell if not SHELL.search(text) or PYTHONIC.search(text)] == []
    assert [text for text in pythonic if not PYTHONIC.search(text) or SHELL.search(text)] == []
    neutral = ["Check the address.", "As in ?schema=chats.", "Set LAMELLA_MODEL to it.", "Give it a `path`.", "a -- b"]
    assert [text for text in neutral if SHELL.search(text) or PYTHONIC.search(text)] == []


def test_a_text_is_found_wherever_it_stands_and_docstrings_are_not() -> None:
    module = ast.parse(
        '"""Not this one."""\nKNOWN = "one here"\n\ndef run(name):\n    """Nor this."""\n'
        '    raise ValueError(f"two {name} here", hint=lambda door: f"three {door.it()} here")\n'
    )
    assert list(sayings(module)) == [("<module>", "one here"), ("run", "two {…} here"), ("run", "three {…} here")]


def test_errors_take_both_kinds_of_hints() -> None:
    for error in (CallError("No.", hint="Yes."), LamellaError("No.", hint=lambda door: f"Yes, {door.list_chats()}.")):
        assert error.hint.startswith("Yes")
