"""A selection from a codebase for people: a row for each file, and why the others are not in it."""

from collections.abc import Iterable

from rich.table import Table

from lamella.faces.cli.terminal.console import print_table
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import tell
from lamella.holdings import CodeFile, CodeSelection

_FORMS = {"full": "full", "skeleton": "skeleton", "name": "by name"}


def print_selection(selection: CodeSelection, *, explain: bool) -> None:
    """The files that were chosen, the best first, and what all of it comes to."""
    table = Table(*("file", "form", "tokens", "score", *(["because of"] if explain else [])), box=None, pad_edge=False)
    for one in selection.files:
        told = (show_line(one.path), _FORMS[one.form], f"{one.tokens:,}", f"{one.score:.2f}")
        table.add_row(*told, *([_tell_parts(one)] if explain else []))
    print_table(table)
    tell(
        f"{tell_count(len(selection.files), 'file')}, {selection.tokens:,} of {selection.budget:,} tokens; "
        f"{len(selection.left_out):,} left out."
    )


def print_left_out(selection: CodeSelection) -> None:
    """Why each of the others is not in it."""
    for path, why in selection.left_out:
        tell(f"left out: {show_line(path)}: {show_line(why)}")


def _tell_parts(one: CodeFile) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in _sort(one.parts.items()))


def _sort(parts: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(parts, key=lambda part: (-part[1], part[0]))
