"""Queries: what is shown, where its rows come from, and what is done to them, clause by clause in the order written."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from lamella.adapters.sources.dataview.language.expressions import Expression
from lamella.adapters.sources.dataview.language.origins import Everywhere, NoteOrigin, parse_origin
from lamella.adapters.sources.dataview.language.parsing import CLAUSES, ExpressionParser, TokenReader
from lamella.adapters.sources.dataview.language.tokens import QueryToken, TokenKind

_KINDS = "a query begins with LIST, TABLE or TASK"


class QueryKind(StrEnum):
    """What rows are shown as."""

    LIST = "list"
    TABLE = "table"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class Column:
    """What a list says of each row, or a column of a table with its name."""

    shown: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Where:
    """Keep rows that satisfy a condition."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class SortBy:
    """Put rows in an order: by these, the first before the others, each upwards or down."""

    keys: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """Keep the first rows."""

    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query as it was read. ``has_id``: each row begins with its note; ``is_dated``: it asked what day it is."""

    kind: QueryKind
    has_id: bool
    columns: tuple[Column, ...]
    origin: NoteOrigin
    clauses: tuple[Where | SortBy | Limit, ...]
    is_dated: bool


def parse_query(text: str, today: date | None) -> Query:
    """What a query says; a refusal where it says anything that is not read here."""
    reader = TokenReader(text)
    expressions = ExpressionParser(reader, today)
    kind = _kind(reader)
    has_id = not _take_without_id(reader, kind)
    columns = _columns(reader, expressions, kind)
    origin = parse_origin(reader) if reader.take_word("from") else Everywhere()
    clauses: list[Where | SortBy | Limit] = []
    while reader.next.kind is not TokenKind.END:
        clauses.append(_clause(reader, expressions))
    return Query(
        kind=kind,
        has_id=has_id,
        columns=columns,
        origin=origin,
        clauses=tuple(clauses),
        is_dated=expressions.is_dated,
    )


def _kind(reader: TokenReader) -> QueryKind:
    token = reader.take()
    if token.kind is TokenKind.END:
        raise reader.refuse(f"it is empty: {_KINDS}", token)
    if token.is_word("calendar"):
        raise reader.refuse("CALENDAR is drawn and not told", token)
    if not token.is_word(*QueryKind):
        raise reader.refuse(_KINDS, token)
    return QueryKind(token.text.lower())


def _take_without_id(reader: TokenReader, kind: QueryKind) -> bool:
    if kind is QueryKind.TASK or not reader.take_word("without"):
        return False
    if not reader.take_word("id"):
        raise reader.refuse("WITHOUT is followed by ID")
    return True


def _columns(reader: TokenReader, expressions: ExpressionParser, kind: QueryKind) -> tuple[Column, ...]:
    if kind is QueryKind.TASK or _ends_here(reader.next):
        return ()
    columns = [_column(reader, expressions)]
    while kind is QueryKind.TABLE and reader.take_sign(","):
        columns.append(_column(reader, expressions))
    return tuple(columns)


def _ends_here(token: QueryToken) -> bool:
    return token.kind is TokenKind.END or token.is_word(*CLAUSES)


def _column(reader: TokenReader, expressions: ExpressionParser) -> Column:
    start = reader.next.start
    shown = expressions.parse()
    name = " ".join(reader.text[start : reader.last.end].split())
    if reader.take_word("as"):
        token = reader.take()
        if token.kind not in (TokenKind.TEXT, TokenKind.NAME):
            raise reader.refuse("AS is followed by a name", token)
        name = token.text
    return Column(shown, name)


def _clause(reader: TokenReader, expressions: ExpressionParser) -> Where | SortBy | Limit:
    token = reader.take()
    match token.text.lower() if token.kind is TokenKind.NAME else "":
        case "where":
            return Where(expressions.parse())
        case "sort":
            return _sort(reader, expressions)
        case "limit":
            return _limit(reader)
        case "from":
            raise reader.refuse("FROM stands once, before all other clauses", token)
        case "group" | "flatten" as word:
            raise reader.refuse(f"{'GROUP BY' if word == 'group' else 'FLATTEN'} is not read here", token)
        case _:
            raise reader.refuse(f"WHERE, SORT or LIMIT is wanted; there is {token.text[:30]!r}", token)


def _sort(reader: TokenReader, expressions: ExpressionParser) -> SortBy:
    keys: list[tuple[Expression, bool]] = []
    while not keys or reader.take_sign(","):
        expression = expressions.parse()
        is_down = reader.take_word("desc", "descending")
        if not is_down:
            reader.take_word("asc", "ascending")
        keys.append((expression, is_down))
    return SortBy(tuple(keys))


def _limit(reader: TokenReader) -> Limit:
    token = reader.take()
    if token.kind is not TokenKind.NUMBER or "." in token.text:
        raise reader.refuse("LIMIT takes a whole number", token)
    return Limit(int(token.text))
