"""Several at once: what goes wrong with one of them is told, and ends nothing but itself."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from lamella.errors import LamellaError
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.faces.cli.terminal.failures import exit_code, print_failure
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell

_Item = TypeVar("_Item")


def do_each(items: Sequence[_Item], do: Callable[[_Item], Sequence[str]], *, what: str, store: str | None) -> None:
    """Do the same with each item, and print the lines that come of it: the first to stdout, the others to stderr.

    If some fail, the rest is done all the same; the exit code is then that of what is worst.
    """
    failed: list[LamellaError] = []
    with told_if_slow(what) as waiting:
        for done, item in enumerate(items):
            waiting.count(done, len(items))
            try:
                lines = do(item)
            except LamellaError as error:
                if len(items) == 1:
                    raise
                failed.append(error)
                with waiting.hidden():
                    print_failure(error, ShellDoor(store), as_json=False)
                continue
            with waiting.hidden():
                for number, line in enumerate(lines):
                    tell(line, err=number > 0)
    if failed:
        tell(f"{what}: {len(failed):,} of {len(items):,} failed; the others are done.", err=True)
        raise typer.Exit(max(map(exit_code, failed)))
