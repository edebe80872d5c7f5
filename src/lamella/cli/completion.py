"""``lamella completion``: print or install Tab completion of commands, options and conversation names."""

from enum import StrEnum
from typing import Annotated

import typer

from lamella.cli import COMPLETION_VARIABLE
from lamella.cli.access import JsonOption
from lamella.cli.output import escape_to_short_line, print_result
from lamella.errors import UsageError
from lamella.schemas.catalog import CompletionJson

_PROGRAM = "lamella"


class Shell(StrEnum):
    """The shells that Lamella can complete in."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(
    *,
    shell: Annotated[Shell, typer.Argument(help="Shell to complete in.")],
    install: Annotated[
        bool, typer.Option("--install", help="Install the script for this shell instead of printing it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print or install Tab completion for a shell.

    lamella completion bash --install
    """
    # Imported here: only this command needs them.
    from typer._completion_shared import get_completion_script
    from typer._completion_shared import install as install_script

    if not install:
        script = get_completion_script(prog_name=_PROGRAM, complete_var=COMPLETION_VARIABLE, shell=shell.value)
        print_result(script, CompletionJson(shell=shell.value, script=script), as_json=as_json)
        return
    if shell is Shell.POWERSHELL:
        # Typer's installer for PowerShell also changes the execution policy, so that every script may run.
        raise UsageError(
            "--install does not support PowerShell.", hint="Run: lamella completion powershell >> $PROFILE"
        )
    _, path = install_script(shell=shell.value, prog_name=_PROGRAM, complete_var=COMPLETION_VARIABLE)
    text = f"Installed: {escape_to_short_line(str(path))}. Open a new shell to use it."
    print_result(text, CompletionJson(shell=shell.value, installed=str(path)), as_json=as_json)
