"""Answers: a query and the notes of a vault become rows as text, or the reason why the query stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from lamella.adapters.sources.dataview.language.allowance import Allowance, QueryRefusal
from lamella.adapters.sources.dataview.language.queries import Query, parse_query
from lamella.adapters.sources.dataview.language.values import FieldRecord, Value
from lamella.adapters.sources.dataview.memory import BoundedMemory
from lamella.adapters.sources.dataview.notes.shelf import NoteFiles, NoteShelf, TextMemory
from lamella.adapters.sources.dataview.rendering import render_rows
from lamella.adapters.sources.dataview.rows import QueryRun, select_rows
from lamella.errors import BadInputError

_MOST_NOTES = 20_000
_MOST_ANSWERS = 500
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """What a query answers, or ``refused``: why it does not."""

    text: str = ""
    refused: str = ""


# An answer holds for a query, where it stands, what all files are, and the day it was asked on.
_AnswerKey = tuple[str, str, str, date | None]


class DataviewMemory:
    """What is kept from one turn to the next: notes as they were read, and answers."""

    def __init__(self) -> None:
        self.texts: TextMemory = BoundedMemory(_MOST_NOTES)
        self.answers: BoundedMemory[_AnswerKey, QueryAnswer] = BoundedMemory(_MOST_ANSWERS)


class DataviewAnswers:
    """Answers to queries over the notes of a vault at one moment, on one day if somebody tells which."""

    def __init__(self, files: NoteFiles, memory: DataviewMemory, today: Callable[[], date] | None = None) -> None:
        self._memory = memory
        self._shelf = NoteShelf(files, memory.texts)
        self._tell_day = today

    @cached_property
    def _today(self) -> date | None:
        return self._tell_day() if self._tell_day is not None else None

    def answer(self, text: str, *, path: str) -> QueryAnswer:
        """What a query answers that stands in a note, which need not be there. It never fails."""
        try:
            key = (text, path, self._shelf.digest, self._today)
        except BadInputError as error:
            return QueryAnswer(refused=error.message)
        return self._memory.answers.get(key, lambda: self._answer(text, path), keeps=self._shelf.is_settled)

    def _answer(self, text: str, path: str) -> QueryAnswer:
        try:
            return QueryAnswer(text=self._run(parse_query(text, self._today), path))
        except QueryRefusal as refusal:
            return QueryAnswer(refused=f"{refusal}.")
        except RecursionError:
            return QueryAnswer(refused="it is nested too deep for this program.")

    def _run(self, query: Query, path: str) -> str:
        run = QueryRun(shelf=self._shelf, path=path, allowance=Allowance())
        rows = select_rows(query, run)

        def evaluate(row: FieldRecord, column: int) -> Value:
            return run.value(query.columns[column].shown, row)

        told = render_rows(query, rows, evaluate)
        day = f", asked on {self._today}" if query.is_dated else ""
        head = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}{day}"
        return "\n".join(line for line in (head, told, _tell_unread(run.unread())) if line)


def _tell_unread(unread: Sequence[str]) -> str:
    more = f" And {len(unread) - _NAMED:,} more." if len(unread) > _NAMED else ""
    return f"Not searched: {' '.join(unread[:_NAMED])}{more}" if unread else ""
