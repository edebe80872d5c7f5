"""The table of ``lamella``'s commands, and the application that runs them and prints their help."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

import lamella
from lamella.cli import COMPLETION_VARIABLE
from lamella.cli.output import print_text
from lamella.cli.overview import FIRST_COMMANDS, PROGRAM_SUMMARY

_HELP_TEXT = f"{PROGRAM_SUMMARY}\n\nRun lamella COMMAND --help for the options and examples of a command."

_FIRST_GROUP = "Commands"
_ATTACHMENT_GROUP = "Attachments"
_MEMORY_GROUP = "Rules, memory, recall"
_INSPECT_GROUP = "Inspect"
_NOTES_GROUP = "Notes"
_CODE_GROUP = "Code"
_WORKFLOW_GROUP = "Workflows"
_ACCESS_GROUP = "Access"
_SETUP_GROUP = "Data and setup"

# Each command by name: its module, its attribute there, and its group in `lamella --help`, in the order of that help.
# A module is imported when its command runs; only help and completion import all of them.
COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "chat": ("lamella.cli.chat.command", "chat", _FIRST_GROUP),
    "ask": ("lamella.cli.ask", "ask", _FIRST_GROUP),
    "search": ("lamella.cli.notes", "search", _FIRST_GROUP),
    "show": ("lamella.cli.library", "show", _FIRST_GROUP),
    "chats": ("lamella.cli.conversations", "chats", _FIRST_GROUP),
    "ledger": ("lamella.cli.ledger", "ledger", _FIRST_GROUP),
    "why": ("lamella.cli.ledger", "why", _FIRST_GROUP),
    "compact": ("lamella.cli.compact", "compact", _FIRST_GROUP),
    "serve": ("lamella.cli.serve", "serve", _FIRST_GROUP),
    "config": ("lamella.cli.config", "config_app", _FIRST_GROUP),
    "attach": ("lamella.cli.library", "attach", _ATTACHMENT_GROUP),
    "detach": ("lamella.cli.library", "detach", _ATTACHMENT_GROUP),
    "drop": ("lamella.cli.library", "drop", _ATTACHMENT_GROUP),
    "pin": ("lamella.cli.library", "pin", _ATTACHMENT_GROUP),
    "unpin": ("lamella.cli.library", "unpin", _ATTACHMENT_GROUP),
    "refresh": ("lamella.cli.library", "refresh", _ATTACHMENT_GROUP),
    "rules": ("lamella.cli.library", "rules", _MEMORY_GROUP),
    "memory": ("lamella.cli.memory", "memory_app", _MEMORY_GROUP),
    "recall": ("lamella.cli.recall", "recall", _MEMORY_GROUP),
    "doctor": ("lamella.cli.doctor", "doctor", _INSPECT_GROUP),
    "replay": ("lamella.cli.replay", "replay", _INSPECT_GROUP),
    "request": ("lamella.cli.request", "request", _INSPECT_GROUP),
    "index": ("lamella.cli.notes", "index", _NOTES_GROUP),
    "tools": ("lamella.cli.notes", "tools", _NOTES_GROUP),
    "restore": ("lamella.cli.notes", "restore", _NOTES_GROUP),
    "code": ("lamella.cli.code", "code_app", _CODE_GROUP),
    "workflow": ("lamella.cli.workflow", "workflow_app", _WORKFLOW_GROUP),
    "paper": ("lamella.cli.workflow", "paper_app", _WORKFLOW_GROUP),
    "trust": ("lamella.cli.trust", "trust_app", _ACCESS_GROUP),
    "tokens": ("lamella.cli.tokens", "tokens_app", _ACCESS_GROUP),
    "acp": ("lamella.cli.acp", "acp", _ACCESS_GROUP),
    "mcp": ("lamella.cli.mcp", "mcp_app", _ACCESS_GROUP),
    "skill": ("lamella.cli.skill", "skill_app", _ACCESS_GROUP),
    "store": ("lamella.cli.store", "store_app", _SETUP_GROUP),
    "runners": ("lamella.cli.runners", "runners", _SETUP_GROUP),
    "plugins": ("lamella.cli.plugins", "plugins", _SETUP_GROUP),
    "completion": ("lamella.cli.completion", "completion", _SETUP_GROUP),
}
# Commands that work but are not listed: `paper` is short for `workflow paper`.
_HIDDEN_COMMANDS = ("paper",)


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Build the Typer application with these commands, by default with all."""
    app = typer.Typer(name="lamella", help=_HELP_TEXT, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(global_options)
    for name in names:
        command, group = _load_command(name), COMMANDS[name][2]
        summary, is_hidden = FIRST_COMMANDS.get(name), name in _HIDDEN_COMMANDS
        if isinstance(command, typer.Typer):
            app.add_typer(command, short_help=summary, rich_help_panel=group, hidden=is_hidden)
        else:
            app.command(name, short_help=summary, rich_help_panel=group, hidden=is_hidden)(command)
    return app


def resolve_command(words: Sequence[str]) -> Callable[[], object]:
    """Return a function that runs the command in ``words``, or that answers a shell's completion request."""
    if COMPLETION_VARIABLE in os.environ:
        return _answer_completion_request
    plain = _find_command_without_arguments(words)
    if plain is not None:
        return plain
    command = build_click_command(words[0])
    return lambda: command.main(list(words), prog_name="lamella", standalone_mode=False)


def _answer_completion_request() -> object:
    """Answer a shell's completion request; once the typed words name a command, only that command is imported."""
    from typer._completion_classes import completion_init  # only completion needs it

    completion_init()
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = typed.split()[1:]
    named = words[0] if len(words) > 1 or (words and typed[-1:].isspace()) else None
    return build_click_command(named).main([], prog_name="lamella", standalone_mode=False)


def _find_command_without_arguments(words: Sequence[str]) -> Callable[[], object] | None:
    """Return a group's command that was typed without arguments, if all its parameters have defaults.

    It is called directly. Typer's parser imports pydantic, which takes as long as starting Python five times
    (2026-11-17). Groups with a callback need the parser, because the callback may take arguments of its own
    (``workflow NAME``).
    """
    group = _load_command(words[0]) if len(words) == len(("group", "command")) and words[0] in COMMANDS else None
    # A group with a callback needs the parser: the callback takes arguments of its own.
    if not isinstance(group, typer.Typer) or group.registered_callback is not None:
        return None
    named = (one.callback for one in group.registered_commands if one.callback and _command_name(one) == words[1])
    command = next(named, None)
    if command is None or any(one.default is one.empty for one in signature(command).parameters.values()):
        return None
    return command


def _command_name(command: CommandInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))


def _load_command(name: str) -> Any:  # noqa: ANN401 - a command function or a Typer group
    module, attribute, _ = COMMANDS[name]
    return getattr(import_module(module), attribute)


def build_click_command(name: str | None = None) -> TyperGroup:
    """Return the click command for one command name, or for all commands if the name is unknown or None.

    The metavar of every flag is cleared, so that help shows no value for it.
    """
    command = typer.main.get_command(build_app([name] if name is not None and name in COMMANDS else COMMANDS))
    assert isinstance(command, TyperGroup)
    # Typer lists groups after all other commands; help shows the order of the table.
    command.commands = {one: command.commands[one] for one in COMMANDS if one in command.commands}
    waiting: list[Any] = [command]
    while waiting:
        one = waiting.pop()
        waiting += getattr(one, "commands", {}).values()
        for option in (*one.params, one.get_help_option(typer.Context(one))):
            if getattr(option, "is_flag", False):
                option.metavar = ""
    return command


def _print_version(is_requested: bool) -> None:  # noqa: FBT001 - typer requires this signature
    if is_requested:
        print_text(f"lamella {lamella.__version__}")
        raise typer.Exit


def global_options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log messages.")] = False,
) -> None:
    """Options of every command; ``run_command_line`` handles ``--debug`` itself, because an error ends the command."""
