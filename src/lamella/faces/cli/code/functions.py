"""``lamella code explain`` and the other functions, and ``analyse``: a wish about code, answered as by ``ask``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lamella.attach import Attachment, Unknown
from lamella.commands import quote_word
from lamella.engine.checks import check_text
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption, StoreOption
from lamella.faces.cli.ask import ask_once, for_one_question, read_piped
from lamella.faces.cli.chat.commands.setting import read_given
from lamella.faces.cli.chat.opening import ChatOptions
from lamella.faces.cli.chat.options import (
    AnswerOption,
    KeptOption,
    ModelOption,
    PreviewOption,
    SettingOption,
    SystemOption,
    VaultOption,
)
from lamella.faces.cli.code.touched import find_touched
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell
from lamella.runners.kinds.asking import KindTurn, make_turn
from lamella.runners.kinds.blocks import FUNCTIONS, ChatKind
from lamella.runners.kinds.state import read_state
from lamella.wiring import BUDGET, MOST_TOKENS, attach_code, open_files, select_code

_DOES = {
    ChatKind.EXPLAIN: "Explain code: what it is for, how it works, and what is easy to get wrong.",
    ChatKind.PROBLEMS: "Find the problems in code, the worst first, each with the change that mends it.",
    ChatKind.TESTS: "Write tests for code.",
    ChatKind.OPTIMISE: "Optimise code, and tell what cost most.",
    ChatKind.COMMENT: "Give code back with comments, and no other change.",
    ChatKind.COMPLETE: "Complete code from where it stops.",
    ChatKind.FIX: "Fix an error from a terminal, which is piped in: `make 2>&1 | lamella code fix`.",
}
_FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE[:LINES]", help="Files, or lines of them as in main.py:10-20; what is piped in comes with them."
    ),
]
_SayOption = Annotated[
    str, typer.Option("--say", metavar="TEXT", help="What else is to be said of it.", show_default=False)
]


def add_functions(app: typer.Typer) -> None:
    """Every function as a command of its name."""
    for kind in FUNCTIONS:
        app.command(kind.value, help=_DOES[kind])(_make_command(kind))


def _make_command(kind: ChatKind) -> Callable[..., None]:
    def run(
        *,
        files: _FilesArgument = None,
        say: _SayOption = "",
        vault: VaultOption = None,
        model: ModelOption = None,
        chat: KeptOption = None,
        system: SystemOption = None,
        settings: SettingOption = None,
        preview: PreviewOption = False,
        max_tokens: AnswerOption = None,
        as_json: JsonOption = False,
        store: StoreOption = None,
    ) -> None:
        given = read_given(system, settings)
        options = for_one_question(
            ChatOptions(
                store=store, chat=chat, model=model, vault=vault, answer=max_tokens, sends=not preview, settings=given
            )
        )
        about = _find_code(kind, files or (), vault, said=say)
        _ask(make_turn(kind, *about, text=say), options, as_json=as_json)

    return run


def analyse(
    *,
    path: Annotated[Path, typer.Argument(help="The folder that the code is in.")],
    question: Annotated[str, typer.Option("--question", metavar="TEXT", help="What is asked about it.")],
    budget: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="How many tokens the files may have.")] = BUDGET,
    model: ModelOption = None,
    chat: KeptOption = None,
    system: SystemOption = None,
    settings: SettingOption = None,
    preview: PreviewOption = False,
    max_tokens: AnswerOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Ask about a codebase: files are chosen for the question, as `code select` does, and sent with it.

    lamella code analyse . --question "Where are retries decided?"
    """
    given = read_given(system, settings)
    options = for_one_question(
        ChatOptions(store=store, chat=chat, model=model, answer=max_tokens, sends=not preview, settings=given)
    )
    asked = check_text(question, "question")
    if not asked.strip():
        raise UsageError("There is no question.", hint='Give words, as in --question "Where is it?".')
    touched = find_touched(chat, path, store=store)
    with told_if_slow(f"Reading {path}") as waiting:
        chosen = select_code(path, asked, budget=budget, touched=touched, model=model, tell=waiting.count)
    for one in chosen.told:
        tell(show_line(one), err=True)
    _ask(make_turn(ChatKind.CODEBASE, *attach_code(chosen), text=asked), options, as_json=as_json)


def _ask(turn: KindTurn, options: ChatOptions, *, as_json: bool) -> None:
    brought = tuple(one.attachment() for one in turn.attach)
    # Braces in what is said of code are braces.
    ask_once(Ask(text=turn.text, attach=brought, verbatim=True), options, as_json=as_json, view=_view_state)


def _view_state(chat: StoredChat) -> dict[str, object]:
    return {"chatState": read_state(chat.preview(Ask(text="")).envelope.prompt).to_dict()}


def _find_code(kind: ChatKind, names: Sequence[str], vault: Path | None, *, said: str) -> list[Attachment]:
    """What a function is about: files by their names, and what was piped in; an error may be said in words."""
    files, piped = open_files(vault), read_piped()
    for name in names:
        if not name.strip():
            raise UsageError("A file's name is blank.", hint=f"Name a file, as in lamella code {kind} main.py:10-20.")
        if Path(vault or "", name).is_dir():
            raise UsageError(
                f"{name} is a folder.", hint=f"Name files, or ask: lamella code analyse {quote_word(name)} --question …"
            )
    found = [one for name in names for one in files.find(name)]
    if piped.strip():
        found.append(Unknown(text=piped, title="terminal" if kind is ChatKind.FIX else "stdin"))
    if kind is ChatKind.FIX:
        if not piped.strip() and not said.strip():
            raise UsageError("No error was piped in.", hint="Pipe it in, as in: make 2>&1 | lamella code fix")
    elif not found:
        raise UsageError("There is no code.", hint=f"Name a file, as in lamella code {kind} main.py:10-20.")
    return found
