"""``lamella completion``: Tab in a shell completes commands, options and the names of conversations."""

from enum import StrEnum
from typing import Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import COMPLETING, JsonOption
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell_done

_PROGRAM = "lamella"


class Shell(StrEnum):
    """The shells that can ask."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(
    *,
    shell: Annotated[Shell, typer.Argument(help="Which shell.")],
    install: Annotated[
        bool, typer.Option("--install", help="Write it where the shell reads it when it starts, not to stdout.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what makes a shell complete commands, options and names of conversations, or install it.

    lamella completion bash --install
    """
    # All of this is only for those who ask.
    from typer._completion_shared import get_completion_script
    from typer._completion_shared import install as install_script

    if not install:
        script = get_completion_script(prog_name=_PROGRAM, complete_var=COMPLETING, shell=shell.value)
        tell_done(script, {"shell": shell.value, "script": script}, as_json=as_json)
        return
    if shell is Shell.POWERSHELL:
        # Installing it there would also let every script run.
        raise UsageError(
            "PowerShell's profile is left to you.", hint="Append it: lamella completion powershell >> $PROFILE"
        )
    _, path = install_script(shell=shell.value, prog_name=_PROGRAM, complete_var=COMPLETING)
    told = f"Installed: {show_line(str(path))}. Shells that start from now on complete."
    tell_done(told, {"shell": shell.value, "installed": str(path)}, as_json=as_json)
