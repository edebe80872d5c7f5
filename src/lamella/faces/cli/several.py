"""Several at once: what goes wrong with one of them is told, and ends nothing but itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import typer

from lamella.errors import LamellaError
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.faces.cli.terminal.failures import exit_code, print_failure, word_failure
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.outcomes import view_several

_Item = TypeVar("_Item")
# What came of one item: as data, and as lines.
Done = tuple[Mapping[str, object], Sequence[str]]


def do_each(
    items: Mapping[str, _Item], do: Callable[[_Item], Done], *, what: str, store: str | None, as_json: bool
) -> None:
    """Do the same with each item, and print the lines that come of it: the first to stdout, the others to stderr.

    If some fail, the rest is done all the same; the exit code is then that of what is worst. With ``as_json`` stdout
    has one object at the end instead: what was done, and what failed.
    """
    bodies: list[Mapping[str, object]] = []
    failed: dict[str, LamellaError] = {}
    with told_if_slow(what) as waiting:
        for done, (name, item) in enumerate(items.items()):
            waiting.count(done, len(items))
            try:
                body, lines = do(item)
            except LamellaError as error:
                if len(items) == 1:
                    raise
                failed[name] = error
                with waiting.hidden():
                    print_failure(error, ShellDoor(store), as_json=False)
                continue
            bodies.append(body)
            with waiting.hidden():
                for number, line in enumerate(lines):
                    if number or not as_json:
                        tell(line, err=number > 0)
    if as_json:
        told = {name: word_failure(error, ShellDoor(store)) for name, error in failed.items()}
        tell_json(view_several(bodies, [{"item": name, **view} for name, view in told.items()]))
    if failed:
        tell(f"{what}: {len(failed):,} of {len(items):,} failed; the others are done.", err=True)
        raise typer.Exit(max(map(exit_code, failed.values())))
