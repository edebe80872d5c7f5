"""The command ``lamella``: its commands, and what happens when one fails."""

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort, TyperException

import lamella
from lamella.errors import LamellaError, UsageError
from lamella.faces.cli import INTERRUPTED
from lamella.faces.cli.ask import ask
from lamella.faces.cli.chat.command import chat
from lamella.faces.cli.chats import chats
from lamella.faces.cli.compact import compact
from lamella.faces.cli.config import config_app
from lamella.faces.cli.ledger import ledger
from lamella.faces.cli.recall import recall
from lamella.faces.cli.replay import replay
from lamella.faces.cli.request import request
from lamella.faces.cli.store import store_app
from lamella.faces.cli.terminal.failures import exit_code, print_failure
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.streams import discard_stdout, finish_stdout, speak_utf8
from lamella.wiring import find_misspelt

_EXAMPLES = """
The context engine for LLM chat.

Talk with a model, and see what each answer cost and why. A conversation is kept under its name:

    lamella chat garden --vault examples/vault

    lamella ask "What is decided here?" --attach examples/vault/decisions/one-index.md

    lamella ledger garden

Make room in a conversation, and find again what left its prompt:

    lamella compact garden --plan --to 0.01

    lamella recall garden "words of it"

Describe a conversation in a file, and see byte for byte what a model would be sent on each turn:

    lamella replay examples/walkthrough.json

    lamella replay examples/walkthrough.json --messages

Compare where the library stands, or fail a build when the prefix moves:

    lamella replay examples/walkthrough.json --layout in_place

    lamella replay examples/walkthrough.json --check --max-prefix-breaks 4
"""

_KEPT = "Conversations that are kept"

app = typer.Typer(name="lamella", help=_EXAMPLES, add_completion=False, pretty_exceptions_enable=False)
app.command(rich_help_panel="Talk")(chat)
app.command(rich_help_panel="Talk")(ask)
app.command(rich_help_panel=_KEPT)(ledger)
app.command(rich_help_panel=_KEPT)(compact)
app.command(rich_help_panel=_KEPT)(recall)
app.add_typer(chats, rich_help_panel=_KEPT)
app.add_typer(store_app, rich_help_panel=_KEPT)
app.command(rich_help_panel="Conversations in a file")(replay)
app.command(rich_help_panel="Conversations in a file")(request)
app.add_typer(config_app, rich_help_panel="Settings")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the shape typer calls
    if wanted:
        typer.echo(f"lamella {lamella.__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options of every command. ``main`` looks for ``--debug`` itself, since an error ends the command."""


def run_words(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what goes wrong is told."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"] or ["--help"]
    speak_utf8()
    _tell_misspelt()
    try:
        return _run(words)
    except (BrokenPipeError, SystemExit):
        # The reader has seen enough; rich leaves a closed pipe with SystemExit. A check cut short has not passed.
        discard_stdout()
        return 1 if "--check" in words else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last door: a sentence, never a traceback
        if debug:
            traceback.print_exc()
        failure = _explain(error)
        print_failure(failure, as_json="--json" in words)
        finish_stdout()
        return INTERRUPTED if _is_interruption(error) else exit_code(failure)


def make_command() -> TyperGroup:
    """All commands. A flag takes no value, and its help shows none."""
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    waiting: list[Any] = [command]
    while waiting:
        one = waiting.pop()
        waiting += getattr(one, "commands", {}).values()
        for option in (*one.params, one.get_help_option(typer.Context(one))):
            if getattr(option, "is_flag", False):
                option.metavar = ""
    return command


def _run(words: Sequence[str]) -> int:
    if sys.stdout is None:
        raise LamellaError("There is no stdout to write to.", hint="Redirect it to a file, or to /dev/null.")
    result = make_command().main(list(words), prog_name="lamella", standalone_mode=False)
    if result == INTERRUPTED:
        # What typer makes of Ctrl-C, without a word.
        raise KeyboardInterrupt
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _is_interruption(error: BaseException) -> bool:
    """Whether it was Ctrl-C; a question that got no answer is given up in the same way."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)


def _tell_misspelt() -> None:
    """A variable that means nothing is ignored, and that should not go unnoticed."""
    with suppress(OSError):
        for name, near in find_misspelt().items():
            typer.echo(f"warning: {show_line(name)} is no setting and is ignored. Did you mean {near}?", err=True)


def _explain(error: BaseException) -> LamellaError:
    match error:
        case LamellaError():
            return error
        case Abort() | KeyboardInterrupt():
            return LamellaError("Stopped.", hint="Run the command again to start over.")
        case TyperException():
            told = getattr(error, "format_message", error.__str__)()
            return UsageError(told, hint="See: lamella --help, or lamella COMMAND --help.")
        case MemoryError() | RecursionError():
            return LamellaError("There is not enough memory for this.", hint="Use a smaller input.")
        case OSError():
            return LamellaError(
                f"The system refused: {error.strerror or error}.", hint="Check free space and permissions."
            )
    return LamellaError(
        f"Something unexpected went wrong: {type(error).__name__}: {error}",
        hint="This is a bug in Lamella. Run again with --debug and report what it shows.",
    )
