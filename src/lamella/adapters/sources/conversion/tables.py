"""Tables: rows of cells as markdown."""

from collections.abc import Sequence

from lamella.adapters.sources.conversion.plain import clean


def render_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table whose first row is its head; each has as many cells as the longest."""
    width = max((len(row) for row in rows), default=0)
    lines = [_render_row([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], _render_row(["---"] * width), *lines[1:]]) if lines else ""


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_render_cell(cell) for cell in cells)} |"


def _render_cell(text: str) -> str:
    return " ".join(clean(text).replace("\\", "\\\\").replace("|", "\\|").split())
