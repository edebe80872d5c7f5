"""Passages that a search in a vault found, the best first."""

import sys
from collections.abc import Iterator, Sequence

from rich.text import Text

from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import count_columns, is_terminal, wrap_line
from lamella.holdings import NoteHit

_INDENT = " " * 4


def print_hits(hits: Sequence[NoteHit]) -> None:
    """Each with its place, the part of it that has the words, and why it was found."""
    console = make_console()
    columns = count_columns() - len(_INDENT) if is_terminal(sys.stdout) else None
    for number, hit in enumerate(hits, start=1):
        if number > 1:
            console.print()
        place = Text(f"{number:>2}. ", style="dim").append(show_line(hit.path), style="bold")
        console.print(place.append(f"  {show_line(hit.heading)}" if hit.heading else "", style="cyan"))
        for line in _list_lines(hit.excerpt, columns):
            console.print(Text(_INDENT + line))
        console.print(Text(f"{_INDENT}score {hit.score:.2f} · {show_line(hit.why)}", style="dim"))


def _list_lines(text: str, columns: int | None) -> Iterator[str]:
    for line in filter(str.strip, text.splitlines()):
        shown = show_line(line)
        yield from (shown if columns is None else wrap_line(shown, columns)).split("\n")
