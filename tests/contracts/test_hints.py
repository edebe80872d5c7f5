"""Hints fit the interface: a reader sees only steps that the interface in use can perform.

Errors below ``cli`` and ``server`` are read in every interface, so they name no option, command or Python call. Wording
that differs by interface comes from a ``Hints`` object.
"""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest
from tests.contracts.interface_terms import PYTHONIC, SHELL
from tests.contracts.repository import SRC, python_files, tree

from lamella.cli.errors import CliHints, SlashCommandHints
from lamella.errors import InvalidOperationError, LamellaError, ReplyOnOtherBranchError
from lamella.hints import PYTHON_HINTS, Hints
from lamella.server.errors import HTTP_HINTS

# The wording of each interface.
# Suites for plugins speak to those who write them, in Python.
WORDINGS = ("hints.py", "plugin_checks.py")
# Modules that write markup, whose attributes look like code.
MARKUP = ("doctor/html_report.py",)
# Texts that are not errors, and words that are correct in every interface.
EXCEPTIONS = {
    "documents/export.py: <module>": "a program for a process of its own",
    "server/routes/workflows.py: download": "a header",
    "archive/markdown/legacy.py: <module>": "a pattern",
    "archive/transcript.py: _reject_numeric_time": "a datetime is also a plain word for a time",
    "cli/doctor_tables.py: print_annotations": "GitHub's format",
    "codebase/repository.py: GitFolder.read_log": "arguments of git",
    "codebase/skeletons.py: <module>": "a pattern",
    "conversation/cache_ledger.py: _format_log_fields": "a log line",
    "conversation/summaries.py: _summarize_into_queue": "a type",
    "conversation/turn.py: BuiltTurn.__repr__": "a repr",
    "core/text/code_edits.py: _parse_hunk": "a line of a diff",
    "core/values.py: repr_without": "a repr",
    "runners/code_questions.py: <module>": "a prompt about errors from a terminal",
    "server/sessions.py: session_cookie_headers": "a header",
    "sources/obsidian.py: EmbedExpander._render_embed": "an attribute of a tag",
    "stores/commit_queue.py: <module>": "SQL",
    "stores/postgresql.py: PostgresDatabase._connect": "SQL",
    "tokenizers/weights.py: WeightsPackage.install_command": "a pip command",
    "tokenizers/weights.py: _verify_packaged_weights": "a pip command",
    "wiring/code.py: LazyCodeReader.select_files": "a type",
    "wiring/services.py: ServiceContainer": "a type",
    "wiring/stores.py: _make_settings_resolver": "a type",
}
# Checks of values that only a Python program can pass.
PYTHON_ONLY = {
    "conversation/conversation.py: Conversation._provider_pool": "a conversation without an engine",
    "conversation/engine.py: _require_configured_part": "an engine built by hand",
    "conversation/past_turns.py: check_tool_outputs": "tool results from a program",
    "conversation/stream.py: stream_checked_deltas": "a custom provider",
    "conversation/tool_executor.py: _define_tool": "functions as tools",
    "conversation/tool_executor.py: _build_arguments_model": "functions as tools",
    "conversation/validation.py: <module>": "values of any type",
    "conversation/validation.py: check_text": "values of any type",
    "conversation/validation.py: check_items": "values of any type",
    "conversation/validation.py: check_fields": "values of any type",
    "conversation/validation.py: normalize_system_parts": "values of any type",
    "conversation/validation.py: check_time": "times",
    "conversation/validation.py: check_time_zone": "times",
    "conversation/validation.py: check_provider": "a custom provider",
    "providers/sdk_objects.py: _read_sdk_stream_to_end": "answers of an SDK",
    "wiring/stores.py: open_in_memory_backend": "a custom summarizer",
}
INTERFACES: list[Hints] = [
    PYTHON_HINTS,
    CliHints(),
    CliHints("sqlite:///my chats.db"),
    SlashCommandHints("sqlite:///chats.db"),
    HTTP_HINTS,
]


def sayings(node: ast.AST, where: str = "<module>") -> Iterator[tuple[str, str]]:
    """Yield every text with spaces and the function that contains it, without docstrings."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        # The reference of errors prints remedies; no interface shows them.
        case ast.AnnAssign(target=ast.Name(id="remedy")) | ast.Assign(targets=[ast.Name(id="remedy")]):
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


def found(pattern: re.Pattern[str], *, in_interface: bool) -> dict[str, list[str]]:
    """Return the texts that match, by module and function."""
    told: dict[str, list[str]] = {}
    for path in python_files("src"):
        name = path.relative_to(SRC).as_posix()
        if name in WORDINGS + MARKUP or name.startswith(("cli/", "server/")) is not in_interface:
            continue
        for where, text in sayings(tree(path)):
            if pattern.search(text) and f"{name}: {where}" not in EXCEPTIONS:
                told.setdefault(f"{name}: {where}", []).append(text)
    return told


def test_errors_below_the_interfaces_name_no_cli_option() -> None:
    assert found(SHELL, in_interface=False) == {}


def test_errors_below_the_interfaces_name_no_python_call() -> None:
    told = found(PYTHONIC, in_interface=False)
    assert {where: texts for where, texts in told.items() if where not in PYTHON_ONLY} == {}
    assert sorted(set(PYTHON_ONLY) - set(told)) == []


def test_cli_and_server_errors_name_no_python_call() -> None:
    assert found(PYTHONIC, in_interface=True) == {}


def test_hint_worded_for_one_interface_is_not_reused() -> None:
    worded = [
        f"{path.relative_to(SRC).as_posix()}:{call.lineno}"
        for path in python_files("src")
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "hint" and ast.unparse(keyword.value) == "error.hint"
    ]
    # The error of another parser has its own hint.
    assert [place for place in worded if not place.startswith("archive/transcript.py")] == []


def _steps(door: Hints) -> dict[str, str]:
    """Return every step in the words of an interface."""
    given = {
        "name": "my chat",
        "head": "57cc4455bb9c2671",
        "tools": ["add"],
        "max_tokens": 100,
        "field": "model",
        "location": "x:y",
    }
    steps = [name for name, _ in inspect.getmembers(Hints, inspect.isfunction) if not name.startswith("_")]
    assert len(steps) > 5
    told = {}
    for step in steps:
        takes = inspect.signature(getattr(door, step)).parameters
        told[step] = getattr(door, step)(**{name: given[name] for name in takes})
    return {**told, "option": door.option_hint("max_tokens")}


@pytest.mark.parametrize("door", INTERFACES, ids=lambda door: type(door).__name__)
def test_each_interface_words_every_step(door: Hints) -> None:
    strange = SHELL if door is PYTHON_HINTS else PYTHONIC
    assert {step: words for step, words in _steps(door).items() if not words or strange.search(words)} == {}


def test_hint_is_worded_by_the_interface_that_prints_it() -> None:
    error = ReplyOnOtherBranchError(conversation_key="my chat", reply_id="57cc")
    assert error.hint == '`chat.turns("57cc")` shows it; `chat.switch("57cc")` goes on there.'
    assert error.__notes__ == [f"hint: {error.hint}"]
    assert error.hint_for(CliHints("sqlite:///a b.db")) == (
        "`lamella chats show 'my chat' --branch 57cc --store 'sqlite:///a b.db'` shows it; "
        "`lamella chats fork 'my chat' 57cc --store 'sqlite:///a b.db'` goes on there."
    )
    assert error.hint_for(SlashCommandHints()).endswith("`/switch 57cc` goes on there.")
    error.hint = "The same everywhere."
    assert {error.hint_for(hints) for hints in INTERFACES} == {"The same everywhere."}


def test_patterns_recognise_words_of_another_interface() -> None:
    shell = ["Add --undo.", "See `lamella chats list`.", "Or /switch 57cc in a chat.", "At a terminal type it."]
    pythonic = ["Name one with model=…", "Call ask() first.", "As chat.turns(…) shows.", "Give it a str."]
    assert [text for text in shell if not SHELL.search(text) or PYTHONIC.search(text)] == []
    assert [text for text in pythonic if not PYTHONIC.search(text) or SHELL.search(text)] == []
    neutral = ["Check the address.", "As in ?schema=chats.", "Set LAMELLA_MODEL to it.", "Give it a `path`.", "a -- b"]
    assert [text for text in neutral if SHELL.search(text) or PYTHONIC.search(text)] == []


def test_sayings_finds_texts_and_skips_docstrings() -> None:
    module = ast.parse(
        '"""Not this one."""\nKNOWN = "one here"\n\ndef run(name):\n    """Nor this."""\n'
        '    raise ValueError(f"two {name} here", hint=lambda door: f"three {door.it()} here")\n'
    )
    assert list(sayings(module)) == [("<module>", "one here"), ("run", "two {…} here"), ("run", "three {…} here")]


def test_errors_accept_texts_and_functions_as_hints() -> None:
    for error in (
        InvalidOperationError("No.", hint="Yes."),
        LamellaError("No.", hint=lambda door: f"Yes, {door.list_chats_hint()}."),
    ):
        assert error.hint.startswith("Yes")
