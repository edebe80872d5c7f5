"""The commands of ``lamella``, and what ``--help`` says of them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

import lamella
from lamella.faces.cli.access import COMPLETING
from lamella.faces.cli.terminal.telling import tell

_EXAMPLES = """
The context engine for LLM chat.

Talk with a model, and see what each answer cost and why. A conversation is kept under its name:

    lamella chat garden --vault examples/vault

    lamella ask "What is decided here?" --attach examples/vault/decisions/one-index.md

    lamella ledger garden

Make room in a conversation, and find again what left its prompt:

    lamella compact garden --plan --to 0.01

    lamella recall garden "words of it"

Find passages of notes, offline:

    lamella search "what is decided" --vault examples/vault

Choose files of a repository for a question, within a budget of tokens:

    lamella code select . --question "Where are retries decided?"

Write a paper in stages, or anything else that a workflow describes:

    lamella paper new

Describe a conversation in a file, and see byte for byte what a model would be sent on each turn:

    lamella replay examples/walkthrough.json

    lamella replay examples/walkthrough.json --messages

Compare where the library stands, or fail a build when the prefix moves:

    lamella replay examples/walkthrough.json --layout in_place

    lamella replay examples/walkthrough.json --check --max-prefix-breaks 4
"""

_TALK, _KEPT, _FILES = "Talk", "Conversations that are kept", "Conversations in a file"
_NOTES = "Notes"
_CODE = "Code"
_WORK = "Work in stages"
_SETTINGS = "Settings"
_SERVER = "The server"

# Each command by name: the module it is in, what it is called there, and under which heading help shows it. A module is
# imported when its command is run; only help and completion need all of them.
COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "chat": ("lamella.faces.cli.chat.command", "chat", _TALK),
    "ask": ("lamella.faces.cli.ask", "ask", _TALK),
    "runners": ("lamella.faces.cli.runners", "runners", _TALK),
    "search": ("lamella.faces.cli.notes.search", "search", _NOTES),
    "index": ("lamella.faces.cli.notes.search", "index", _NOTES),
    "tools": ("lamella.faces.cli.notes.tools", "tools", _NOTES),
    "restore": ("lamella.faces.cli.notes.tools", "restore", _NOTES),
    "code": ("lamella.faces.cli.code.command", "code_app", _CODE),
    "workflow": ("lamella.faces.cli.workflow.command", "workflow_app", _WORK),
    "paper": ("lamella.faces.cli.workflow.command", "paper_app", _WORK),
    "attach": ("lamella.faces.cli.library.attach", "attach", _KEPT),
    "detach": ("lamella.faces.cli.library.leaving", "detach", _KEPT),
    "drop": ("lamella.faces.cli.library.leaving", "drop", _KEPT),
    "pin": ("lamella.faces.cli.library.pins", "pin", _KEPT),
    "unpin": ("lamella.faces.cli.library.pins", "unpin", _KEPT),
    "rules": ("lamella.faces.cli.library.rules", "rules", _KEPT),
    "refresh": ("lamella.faces.cli.library.attach", "refresh", _KEPT),
    "show": ("lamella.faces.cli.library.show", "show", _KEPT),
    "ledger": ("lamella.faces.cli.ledger", "ledger", _KEPT),
    "compact": ("lamella.faces.cli.compact", "compact", _KEPT),
    "recall": ("lamella.faces.cli.recall", "recall", _KEPT),
    "why": ("lamella.faces.cli.ledger", "why", _KEPT),
    "chats": ("lamella.faces.cli.chats", "chats", _KEPT),
    "store": ("lamella.faces.cli.store", "store_app", _KEPT),
    "memory": ("lamella.faces.cli.memory.command", "memory_app", _KEPT),
    "replay": ("lamella.faces.cli.replay", "replay", _FILES),
    "request": ("lamella.faces.cli.request", "request", _FILES),
    "config": ("lamella.faces.cli.settings.config", "config_app", _SETTINGS),
    "completion": ("lamella.faces.cli.settings.completion", "completion", _SETTINGS),
    "mcp": ("lamella.faces.cli.settings.mcp", "mcp_app", _SETTINGS),
    "serve": ("lamella.faces.cli.serving.serve", "serve", _SERVER),
    "tokens": ("lamella.faces.cli.serving.tokens", "tokens_app", _SERVER),
    "trust": ("lamella.faces.cli.settings.trust", "trust_app", _SETTINGS),
}


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The application with these commands, by default with all of them."""
    app = typer.Typer(name="lamella", help=_EXAMPLES, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(options)
    for name in names:
        command, panel = _load(name), COMMANDS[name][2]
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(command)
    return app


def find_run(words: Sequence[str]) -> Callable[[], object]:
    """What does the work that words ask for, or what answers a shell that asks what they may become."""
    if COMPLETING in os.environ:
        return _complete
    plain = _find_plain(words)
    if plain is not None:
        return plain
    command = make_command(words[0])
    return lambda: command.main(list(words), prog_name="lamella", standalone_mode=False)


def _complete() -> object:
    """Tell a shell what the words may become; their command alone is imported, once they name one."""
    from typer._completion_classes import completion_init  # only shells need it

    completion_init()
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = typed.split()[1:]
    named = words[0] if len(words) > 1 or (words and typed[-1:].isspace()) else None
    return make_command(named).main([], prog_name="lamella", standalone_mode=False)


def _find_plain(words: Sequence[str]) -> Callable[[], object] | None:
    """A command of a group that is named and given nothing, where its defaults will do.

    Typer's parser brings pydantic along, which takes as long as five bare Pythons (2026-11-17).
    """
    group = _load(words[0]) if len(words) == len(("group", "command")) and words[0] in COMMANDS else None
    if not isinstance(group, typer.Typer) or group.registered_callback is not None:
        return None
    named = (one.callback for one in group.registered_commands if one.callback and _name(one) == words[1])
    command = next(named, None)
    if command is None or any(one.default is one.empty for one in signature(command).parameters.values()):
        return None
    return command


def _name(command: CommandInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))


def _load(name: str) -> Any:  # noqa: ANN401 - a function, or a group of them
    module, attribute, _ = COMMANDS[name]
    return getattr(import_module(module), attribute)


def make_command(word: str | None = None) -> TyperGroup:
    """What runs the command of that name, else any command. A flag takes no value, and its help shows none."""
    command = typer.main.get_command(make_app([word] if word is not None and word in COMMANDS else COMMANDS))
    assert isinstance(command, TyperGroup)
    waiting: list[Any] = [command]
    while waiting:
        one = waiting.pop()
        waiting += getattr(one, "commands", {}).values()
        for option in (*one.params, one.get_help_option(typer.Context(one))):
            if getattr(option, "is_flag", False):
                option.metavar = ""
    return command


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the shape typer calls
    if wanted:
        tell(f"lamella {lamella.__version__}")
        raise typer.Exit


def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and what is logged.")] = False,
) -> None:
    """Options of every command. ``run_words`` looks for ``--debug`` itself, since an error ends the command."""
