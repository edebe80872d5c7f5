"""Answer queries over the notes of a vault: rows as text, or the reason why a query is not answered.

``DataviewEngine`` answers the queries over one snapshot of a vault, with a ``DataviewCache`` that lasts from one turn
to the next. ``select_rows`` selects rows; the default order, also among ties, is path and line. ``render_rows``
renders them within limits; rows that do not fit are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import chain

from lamella.errors import BadInputError
from lamella.sources.dataview.expressions import EvaluationScope, Expression
from lamella.sources.dataview.notes import LruCache, NoteFiles, ParsedNoteCache, TaskRecord, VaultNotes
from lamella.sources.dataview.queries import LimitClause, Query, QueryKind, SortClause, WhereClause, parse_query
from lamella.sources.dataview.values import (
    FieldRecord,
    QueryBudget,
    QueryError,
    Value,
    format_value,
    is_truthy,
    make_truncated_order_key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """The state of one query: the notes, the note it is written in, its remaining budget, and the notes it searched."""

    notes: VaultNotes
    path: str
    budget: QueryBudget
    searched: set[str] = field(default_factory=set)

    def evaluate(self, expression: Expression, row: FieldRecord) -> Value:
        """Return the value of an expression for a row."""
        return expression.evaluate(
            EvaluationScope(row=row, this=self.notes.find_note(self.path), resolve=self._resolve, budget=self.budget)
        )

    def _resolve(self, target: str) -> str:
        return self.notes.resolve_link(target, note_path=self.path)

    def all_notes(self) -> frozenset[str]:
        return self._record_searched(frozenset(self.notes.states))

    def notes_with_tag(self, tag: str) -> frozenset[str]:
        return self._record_searched(self.notes.select_tagged(tag), self.notes.states)

    def notes_below(self, name: str) -> frozenset[str]:
        return self._record_searched(self.notes.select_below(name))

    def notes_linking_to(self, target: str) -> frozenset[str]:
        return self._record_searched(self.notes.select_linking_to(self._resolve(target)), self.notes.states)

    def outgoing_links_of(self, target: str) -> frozenset[str]:
        path = self._resolve(target)
        return self._record_searched(self.notes.select_linked_from(path), (path,))

    def _record_searched(self, found: frozenset[str], searched: Iterable[str] = ()) -> frozenset[str]:
        """Charge the budget for looking at all notes, and record the notes whose texts were needed."""
        self.budget.spend(len(self.notes.states))
        self.searched.update(found, searched)
        return found

    def list_read_errors(self) -> list[str]:
        """Return why searched notes could not be read; if all notes were searched, unreadable folders as well."""
        notes = (self.notes.find_note(path) for path in sorted(self.searched))
        unread = [note.content.read_error for note in notes if note is not None and note.content.read_error]
        return [*unread, *(self.notes.unreadable if self.searched >= self.notes.states.keys() else ())]


def select_rows(query: Query, run: QueryRun) -> Sequence[FieldRecord]:
    """Return the rows of a query, which are notes or tasks."""
    notes = [note for path in sorted(query.origin.select(run)) if (note := run.notes.find_note(path)) is not None]
    rows: list[FieldRecord] = list(notes)
    if query.kind is QueryKind.TASK:
        rows = [task for note in notes for task in note.tasks]
    for clause in query.clauses:
        match clause:
            case WhereClause():
                rows = [row for row in rows if is_truthy(run.evaluate(clause.condition, row))]
            case SortClause():
                rows = _sort_rows(rows, clause, run)
            case LimitClause():
                rows = rows[: clause.max_rows]
    return rows


def _sort_rows(rows: Sequence[FieldRecord], by: SortClause, run: QueryRun) -> list[FieldRecord]:
    """Sort by the last key first. The sort is stable, so ties keep their order, ascending and descending."""
    found = list(rows)
    for expression, is_down in reversed(by.keys):
        run.budget.spend(len(found) * max(1, len(found).bit_length()))
        keyed = [(make_truncated_order_key(run.evaluate(expression, row)), row) for row in found]
        # Compare only the keys, because rows have no order of their own.
        keyed.sort(key=lambda pair: pair[0], reverse=is_down)
        found = [row for _, row in keyed]
    return found


# Rendering.

MOST_ROWS = 500
MAX_RESULT_CHARS = 30_000
MAX_CELL_CHARS = 500

EvaluateColumn = Callable[[FieldRecord, int], Value]


def render_rows(query: Query, rows: Sequence[FieldRecord], evaluate: EvaluateColumn) -> str:
    """Return the rows as a list, a table or tasks; ``evaluate`` returns a column of a row."""
    head, lines = _render_rows(query, rows[:MOST_ROWS], evaluate)
    shown: list[str] = []
    length = sum(map(len, head))
    for line in lines:
        length += len(line) + 1
        if length > MAX_RESULT_CHARS:
            break
        shown.append(line)
    left = len(rows) - len(shown)
    more = [f"… and {left:,} more row{'' if left == 1 else 's'}, left out here"] if left else []
    return "\n".join((*head, *shown, *more))


def _render_rows(
    query: Query, rows: Sequence[FieldRecord], evaluate: EvaluateColumn
) -> tuple[list[str], Iterator[str]]:
    if query.kind is QueryKind.TASK:
        return [], _render_tasks(rows)
    if query.kind is QueryKind.LIST:
        return [], (_render_item(query, row, evaluate) for row in rows)
    names = [*(["File"] if query.has_link_column else []), *(column.name for column in query.columns)]
    head = [_render_table_row(names), _render_table_row("---" for _ in names)] if rows and names else []
    return head, (_render_table_row(_list_cells(query, row, evaluate)) for row in rows)


def _render_item(query: Query, row: FieldRecord, evaluate: EvaluateColumn) -> str:
    return "- " + ": ".join(_list_cells(query, row, evaluate))


def _list_cells(query: Query, row: FieldRecord, evaluate: EvaluateColumn) -> Iterator[str]:
    cells = (format_value(evaluate(row, column)) for column in range(len(query.columns)))
    has_id = query.has_link_column or not query.columns
    return (_truncate_cell(cell) for cell in chain([row.display_text()] if has_id else [], cells))


def _render_table_row(cells: Iterator[str] | Sequence[str]) -> str:
    return "| " + " | ".join(_truncate_cell(cell).replace("|", "\\|") for cell in cells) + " |"


def _render_tasks(rows: Sequence[FieldRecord]) -> Iterator[str]:
    """Yield tasks under the link of their note; the link is repeated when another note came between."""
    path = None
    for row in rows:
        if isinstance(row, TaskRecord):
            task = f"- [{row.task.status}] {_truncate_cell(row.display_text())}"
            yield task if path == row.note.state.path else f"{row.note.display_text()}\n{task}"
            path = row.note.state.path


def _truncate_cell(cell: str) -> str:
    cell = " ".join(cell.split())
    return cell if len(cell) <= MAX_CELL_CHARS else f"{cell[:MAX_CELL_CHARS]}…"


# Answers.

_MAX_CACHED_NOTES = 20_000
_MAX_CACHED_ANSWERS = 500
_MAX_NAMED_FILES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """The answer of a query, or in ``error`` the reason why there is none."""

    text: str = ""
    error: str = ""


# The key of a cached answer: the query, the path of its note, a digest of the states of all files, and the day.
_AnswerKey = tuple[str, str, str, date | None]


class DataviewCache:
    """Caches that last from one turn to the next: parsed notes, and answers."""

    def __init__(self) -> None:
        self.parsed_notes: ParsedNoteCache = LruCache(_MAX_CACHED_NOTES)
        self.answers: LruCache[_AnswerKey, QueryAnswer] = LruCache(_MAX_CACHED_ANSWERS)


class DataviewEngine:
    """Answers queries over one snapshot of a vault. ``get_today`` returns the day that queries see."""

    def __init__(self, files: NoteFiles, cache: DataviewCache, get_today: Callable[[], date] | None = None) -> None:
        self._cache = cache
        self._notes = VaultNotes(files, cache.parsed_notes)
        self._get_today = get_today

    @cached_property
    def _today(self) -> date | None:
        return self._get_today() if self._get_today is not None else None

    def answer(self, text: str, *, path: str) -> QueryAnswer:
        """Return the answer of a query written in the note at ``path``, which need not exist.

        Errors in the query or the notes are reported in ``error``.
        """
        try:
            key = (text, path, self._notes.digest, self._today)
        except BadInputError as error:
            return QueryAnswer(error=error.message)
        return self._cache.answers.get_or_make(
            key, lambda: self._answer_uncached(text, path), uses_cache=self._notes.is_settled
        )

    def _answer_uncached(self, text: str, path: str) -> QueryAnswer:
        try:
            return QueryAnswer(text=self._run_query(parse_query(text, self._today), path))
        except QueryError as refusal:
            return QueryAnswer(error=f"{refusal}.")
        except RecursionError:
            return QueryAnswer(error="it is nested too deep for this program.")

    def _run_query(self, query: Query, path: str) -> str:
        run = QueryRun(notes=self._notes, path=path, budget=QueryBudget())
        rows = select_rows(query, run)

        def evaluate(row: FieldRecord, column: int) -> Value:
            return run.evaluate(query.columns[column].expression, row)

        rendered = render_rows(query, rows, evaluate)
        day = f", asked on {self._today}" if query.depends_on_today else ""
        head = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}{day}"
        return "\n".join(line for line in (head, rendered, _format_unread_files(run.list_read_errors())) if line)


def _format_unread_files(errors: Sequence[str]) -> str:
    more = f" And {len(errors) - _MAX_NAMED_FILES:,} more." if len(errors) > _MAX_NAMED_FILES else ""
    return f"Not searched: {' '.join(errors[:_MAX_NAMED_FILES])}{more}" if errors else ""
