"""Rendering: rows as markdown that a model can read, within bounds. What does not fit is counted."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from lamella.adapters.sources.dataview.language.queries import Query, QueryKind
from lamella.adapters.sources.dataview.language.values import FieldRecord, Value, tell_value
from lamella.adapters.sources.dataview.notes.records import TaskRecord

MOST_ROWS = 500
MOST_LETTERS = 30_000
MOST_IN_CELL = 500

Evaluate = Callable[[FieldRecord, int], Value]


def render_rows(query: Query, rows: Sequence[FieldRecord], evaluate: Evaluate) -> str:
    """The rows as a list, a table or tasks; ``evaluate`` gives a column of a row."""
    head, lines = _draw(query, rows[:MOST_ROWS], evaluate)
    shown: list[str] = []
    length = sum(map(len, head))
    for line in lines:
        length += len(line) + 1
        if length > MOST_LETTERS:
            break
        shown.append(line)
    left = len(rows) - len(shown)
    more = [f"… and {left:,} more row{'' if left == 1 else 's'}, left out here"] if left else []
    return "\n".join((*head, *shown, *more))


def _draw(query: Query, rows: Sequence[FieldRecord], evaluate: Evaluate) -> tuple[list[str], Iterator[str]]:
    if query.kind is QueryKind.TASK:
        return [], _draw_tasks(rows)
    if query.kind is QueryKind.LIST:
        return [], (_draw_item(query, row, evaluate) for row in rows)
    names = [*(["File"] if query.has_id else []), *(column.name for column in query.columns)]
    head = [_draw_row(names), _draw_row("---" for _ in names)] if rows and names else []
    return head, (_draw_row(_list_cells(query, row, evaluate)) for row in rows)


def _draw_item(query: Query, row: FieldRecord, evaluate: Evaluate) -> str:
    return "- " + ": ".join(_list_cells(query, row, evaluate))


def _list_cells(query: Query, row: FieldRecord, evaluate: Evaluate) -> Iterator[str]:
    cells = (tell_value(evaluate(row, column)) for column in range(len(query.columns)))
    has_id = query.has_id or not query.columns
    return (_cut(cell) for cell in chain([row.told()] if has_id else [], cells))


def _draw_row(cells: Iterator[str] | Sequence[str]) -> str:
    return "| " + " | ".join(_cut(cell).replace("|", "\\|") for cell in cells) + " |"


def _draw_tasks(rows: Sequence[FieldRecord]) -> Iterator[str]:
    """Tasks under the note they stand in; the note is named again where another came between."""
    path = None
    for row in rows:
        if isinstance(row, TaskRecord):
            task = f"- [{row.task.status}] {_cut(row.told())}"
            yield task if path == row.note.state.path else f"{row.note.told()}\n{task}"
            path = row.note.state.path


def _cut(cell: str) -> str:
    cell = " ".join(cell.split())
    return cell if len(cell) <= MOST_IN_CELL else f"{cell[:MOST_IN_CELL]}…"
