"""The console that people read: plain when it is not a terminal, and never clever about what it prints."""

import os
import sys
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from lamella.faces.cli.terminal.lines import show_lines

# Wider than any line that is printed into a file.
_WIDE = 100_000
# How far the rest of a line is moved in, and how many columns it takes to be readable.
_HANGING, _LEAST = 4, 40


def make_console() -> Console:
    """A console on stdout that prints text as it is, wrapped between words on a terminal and not at all elsewhere."""
    at_terminal = sys.stdout.isatty()
    # Rich believes these rather than the terminal; what is drawn for another width wraps, and is then drawn twice.
    known = {name: value for name, value in os.environ.items() if not (at_terminal and name in ("COLUMNS", "LINES"))}
    console = Console(
        file=sys.stdout, highlight=False, soft_wrap=not at_terminal, emoji=False, markup=False, _environ=known
    )
    console.push_render_hook(_HarmlessPrinting())
    return console


def print_table(table: Table) -> None:
    """Print a table: its first column is never cut, since people name things by it, and only a terminal folds it."""
    console = make_console()
    names = table.columns[0]
    names.overflow = "fold"
    if console.is_terminal:
        # The others give way first: a name in three pieces can be read, and copied, by nobody.
        longest = max((cell_len(str(one)) for one in names.cells), default=0)
        names.min_width = min(longest, console.width // 3)
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table, options=console.options.update(width=_WIDE)).maximum)
    console.print(table)


def print_hanging(console: Console, line: Text, *, under: int = _HANGING) -> None:
    """Print a line; where a terminal is too narrow for it, the rest stands below, so many columns from its edge.

    Where so few are left that words would stand in a pillar, it is moved in a little only.
    """
    line.rstrip()
    first, *rest = line.wrap(console, console.width) if console.is_terminal else (line,)
    console.print(first if rest else line)
    if rest:
        under = under if console.width - under >= _LEAST else _HANGING
        left = line[len(first.plain) :]
        left = left[len(left.plain) - len(left.plain.lstrip()) :]
        for more in left.wrap(console, console.width - under):
            console.print(Text(" " * under).append_text(more))


class _HarmlessPrinting(RenderHook):
    """Whatever is printed passes here; escape codes of the console's own come after it."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Harmless(one) for one in renderables]


class _Harmless:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._inner, options):
            yield Segment(text if control else show_lines(text), style, control)
