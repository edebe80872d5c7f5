"""Several at once: what goes wrong with one of them is told, and ends nothing but itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import typer

from lamella.errors import LamellaError, StoreDamagedError
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.faces.cli.terminal.failures import exit_code, print_failure, word_failure
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.outcomes import view_several

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")
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


class Findings(list[_Found]):
    """What was found in all conversations. What is wrong with one of them hides nothing of the others."""

    def __init__(self, store: str | None) -> None:
        super().__init__()
        self._door = ShellDoor(store)
        self._damage: StoreDamagedError | None = None

    def gather(self, found: Iterator[_Found]) -> Iterator[_Found]:
        """Each as it comes, kept once it was told. Damage ends it, and is told at the end."""
        try:
            for one in found:
                yield one
                self.append(one)
        except StoreDamagedError as error:
            self._damage = error

    def tell_end(self, view: Mapping[str, object], *, none: str, as_json: bool) -> int:
        """As JSON one object, with the damage beside what was found; else what people have not read yet."""
        if as_json:
            tell_json({**view, **({} if self._damage is None else word_failure(self._damage, self._door))})
        elif not self and self._damage is None:
            tell(none, err=True)
        if self._damage is not None:
            print_failure(self._damage, self._door, as_json=False)
        return 0 if self and self._damage is None else 1
