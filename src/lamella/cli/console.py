"""The rich console for people: plain when stdout is no terminal, without markup, emoji or highlighting."""

import os
import sys
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from lamella.cli.output import escape_lines

# Wider than any line that is printed into a file.
_UNLIMITED_WIDTH = 100_000
# The usual indentation of a wrapped line, and the fewest columns in which text is readable.
_DEFAULT_INDENT, _MIN_TEXT_WIDTH = 4, 40


def make_console() -> Console:
    """Return a console on stdout that wraps between words on a terminal and does not wrap elsewhere."""
    at_terminal = sys.stdout.isatty()
    # Rich prefers COLUMNS and LINES to the terminal's real size; a line drawn for another width wraps and shows twice.
    known = {name: value for name, value in os.environ.items() if not (at_terminal and name in ("COLUMNS", "LINES"))}
    console = Console(
        file=sys.stdout, highlight=False, soft_wrap=not at_terminal, emoji=False, markup=False, _environ=known
    )
    console.push_render_hook(_EscapingRenderHook())
    return console


def print_table(table: Table) -> None:
    """Print a table without truncating its first column, because users copy names from it."""
    console = make_console()
    names = table.columns[0]
    names.overflow = "fold"
    if console.is_terminal:
        # Let the other columns shrink first: a name that is folded into three pieces cannot be read or copied.
        longest = max((cell_len(str(one)) for one in names.cells), default=0)
        names.min_width = min(longest, console.width // 3)
    if not console.is_terminal:
        console.width = max(
            console.width, console.measure(table, options=console.options.update(width=_UNLIMITED_WIDTH)).maximum
        )
    console.print(table)


def print_with_hanging_indent(console: Console, line: Text, *, indent: int = _DEFAULT_INDENT) -> None:
    """Print a line; on a narrow terminal its rest is indented by ``indent`` columns.

    If that would leave too few columns to read, the rest is indented only a little.
    """
    line.rstrip()
    first, *rest = line.wrap(console, console.width) if console.is_terminal else (line,)
    console.print(first if rest else line)
    if rest:
        indent = indent if console.width - indent >= _MIN_TEXT_WIDTH else _DEFAULT_INDENT
        left = line[len(first.plain) :]
        left = left[len(left.plain) - len(left.plain.lstrip()) :]
        for more in left.wrap(console, console.width - indent):
            console.print(Text(" " * indent).append_text(more))


class _EscapingRenderHook(RenderHook):
    """Escapes control characters in everything that is printed; rich's own control codes pass unchanged."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_EscapedRenderable(one) for one in renderables]


class _EscapedRenderable:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._inner, options):
            yield Segment(text if control else escape_lines(text), style, control)
