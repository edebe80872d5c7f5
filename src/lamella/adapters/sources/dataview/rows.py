"""Rows: what a query selects, in the order it asks for. Without one they stand by path and line, and so do ties."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lamella.adapters.sources.dataview.language.allowance import Allowance
from lamella.adapters.sources.dataview.language.expressions import Expression, Scope
from lamella.adapters.sources.dataview.language.queries import Limit, Query, QueryKind, SortBy, Where
from lamella.adapters.sources.dataview.language.values import FieldRecord, Value, is_true, sort_key
from lamella.adapters.sources.dataview.notes.shelf import NoteShelf


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """A query on its way: the notes, the one it stands in, what it may still spend, and where it looked for rows."""

    shelf: NoteShelf
    path: str
    allowance: Allowance
    searched: set[str] = field(default_factory=set)

    def value(self, expression: Expression, row: FieldRecord) -> Value:
        """What an expression comes to for a row."""
        return expression.value(
            Scope(row=row, this=self.shelf.note(self.path), resolve=self._resolve, allowance=self.allowance)
        )

    def _resolve(self, target: str) -> str:
        return self.shelf.resolve(target, beside=self.path)

    def every(self) -> frozenset[str]:
        return self._note(frozenset(self.shelf.states))

    def tagged(self, tag: str) -> frozenset[str]:
        return self._note(self.shelf.select_tagged(tag), self.shelf.states)

    def below(self, name: str) -> frozenset[str]:
        return self._note(self.shelf.select_below(name))

    def linking_to(self, target: str) -> frozenset[str]:
        return self._note(self.shelf.select_linking_to(self._resolve(target)), self.shelf.states)

    def linked_from(self, target: str) -> frozenset[str]:
        path = self._resolve(target)
        return self._note(self.shelf.select_linked_from(path), (path,))

    def _note(self, found: frozenset[str], searched: Iterable[str] = ()) -> frozenset[str]:
        """Each part of an origin may look at all notes; whose texts it needs is told where they cannot be read."""
        self.allowance.spend(len(self.shelf.states))
        self.searched.update(found, searched)
        return found

    def unread(self) -> list[str]:
        """Why notes that rows were looked for in could not be read, and folders where everything was searched."""
        notes = (self.shelf.note(path) for path in sorted(self.searched))
        unread = [note.text.unread for note in notes if note is not None and note.text.unread]
        return [*unread, *(self.shelf.left_out if self.searched >= self.shelf.states.keys() else ())]


def select_rows(query: Query, run: QueryRun) -> Sequence[FieldRecord]:
    """The rows of a query: notes, or their tasks."""
    notes = [note for path in sorted(query.origin.select(run)) if (note := run.shelf.note(path)) is not None]
    rows: list[FieldRecord] = list(notes)
    if query.kind is QueryKind.TASK:
        rows = [task for note in notes for task in note.tasks]
    for clause in query.clauses:
        match clause:
            case Where():
                rows = [row for row in rows if is_true(run.value(clause.condition, row))]
            case SortBy():
                rows = _sort(rows, clause, run)
            case Limit():
                rows = rows[: clause.most]
    return rows


def _sort(rows: Sequence[FieldRecord], by: SortBy, run: QueryRun) -> list[FieldRecord]:
    """From the last key to the first: an order that stands is kept among equals, upwards and downwards."""
    found = list(rows)
    for expression, is_down in reversed(by.keys):
        run.allowance.spend(len(found) * max(1, len(found).bit_length()))
        keyed = [(sort_key(run.value(expression, row)), row) for row in found]
        # By the key alone: rows themselves have no order.
        keyed.sort(key=lambda pair: pair[0], reverse=is_down)
        found = [row for _, row in keyed]
    return found
