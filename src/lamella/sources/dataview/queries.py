"""Parse whole queries, and the FROM clause that selects their notes.

``parse_query`` returns a ``Query``: its kind, its columns, its FROM clause, and further clauses in the order written.
``parse_from_clause`` parses a FROM clause of tags, folders, files and links.
"""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Protocol

from lamella.sources.dataview.expressions import Expression
from lamella.sources.dataview.parser import (
    CLAUSE_WORDS,
    ExpressionParser,
    QueryToken,
    TokenKind,
    TokenReader,
    split_link,
)


class NoteLookup(Protocol):
    """Looks up the paths of notes for a FROM clause."""

    def all_notes(self) -> frozenset[str]: ...

    def notes_with_tag(self, tag: str) -> frozenset[str]:
        """Return the notes with a tag or one nested below it."""
        ...

    def notes_below(self, name: str) -> frozenset[str]:
        """Return the notes in a folder and its subfolders, or the one note at that path."""
        ...

    def notes_linking_to(self, target: str) -> frozenset[str]: ...

    def outgoing_links_of(self, target: str) -> frozenset[str]: ...


class FromExpression(Protocol):
    """A part of a FROM clause that selects notes."""

    def select(self, notes: NoteLookup) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class AllNotes:
    """All notes, as in a query without FROM."""

    def select(self, notes: NoteLookup) -> frozenset[str]:
        return notes.all_notes()


@dataclass(frozen=True, slots=True)
class TagOrigin:
    """Notes with a tag."""

    tag: str

    def select(self, notes: NoteLookup) -> frozenset[str]:
        return notes.notes_with_tag(self.tag)


@dataclass(frozen=True, slots=True)
class FolderOrigin:
    """Notes of a folder, or one note."""

    name: str

    def select(self, notes: NoteLookup) -> frozenset[str]:
        return notes.notes_below(self.name)


@dataclass(frozen=True, slots=True)
class LinkOrigin:
    """Notes that link to a note, or with ``is_outgoing`` the notes that it links to."""

    target: str
    is_outgoing: bool

    def select(self, notes: NoteLookup) -> frozenset[str]:
        return notes.outgoing_links_of(self.target) if self.is_outgoing else notes.notes_linking_to(self.target)


@dataclass(frozen=True, slots=True)
class ExcludedNotes:
    """All notes except those of another origin."""

    excluded: FromExpression

    def select(self, notes: NoteLookup) -> frozenset[str]:
        return notes.all_notes() - self.excluded.select(notes)


@dataclass(frozen=True, slots=True)
class OriginChain:
    """Origins joined by ``and`` (intersection) or ``or`` (union), evaluated from left to right."""

    first: FromExpression
    rest: tuple[tuple[str, FromExpression], ...]

    def select(self, notes: NoteLookup) -> frozenset[str]:
        found = self.first.select(notes)
        for word, other in self.rest:
            found = found & other.select(notes) if word == "and" else found | other.select(notes)
        return found


def parse_from_clause(reader: TokenReader) -> FromExpression:
    """Parse the part of a query after FROM."""
    return reader.read_nested(lambda: _parse_chain(reader))


def _parse_chain(reader: TokenReader) -> FromExpression:
    first = _parse_negation(reader)
    rest: list[tuple[str, FromExpression]] = []
    while True:
        if reader.accept_word("and") or reader.accept_sign("&"):
            rest.append(("and", _parse_negation(reader)))
        elif reader.accept_word("or") or reader.accept_sign("|"):
            rest.append(("or", _parse_negation(reader)))
        else:
            return OriginChain(first, tuple(rest)) if rest else first


def _parse_negation(reader: TokenReader) -> FromExpression:
    if reader.accept_sign("-", "!") or reader.accept_word("not"):
        return ExcludedNotes(reader.read_nested(lambda: _parse_negation(reader)))
    return _parse_atom(reader)


def _parse_atom(reader: TokenReader) -> FromExpression:
    token = reader.consume()
    if token.is_sign("("):
        found = parse_from_clause(reader)
        reader.expect_sign(")")
        return found
    if token.is_word("outgoing") and reader.accept_sign("("):
        inside = reader.consume()
        if inside.kind is not TokenKind.LINK:
            raise reader.syntax_error("outgoing takes a link, as in outgoing([[Note]])", inside)
        reader.expect_sign(")")
        return LinkOrigin(split_link(inside.text)[0], is_outgoing=True)
    match token.kind:
        case TokenKind.TAG:
            return TagOrigin(token.text)
        case TokenKind.TEXT:
            return FolderOrigin(token.text)
        case TokenKind.LINK:
            return LinkOrigin(split_link(token.text)[0], is_outgoing=False)
        case _:
            raise reader.syntax_error('FROM takes #tags, "folders", [[links]] and outgoing([[links]])', token)


# Queries.

_QUERY_START_RULE = "a query begins with LIST, TABLE or TASK"


class QueryKind(StrEnum):
    """The form in which rows are shown."""

    LIST = "list"
    TABLE = "table"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table with its name, or the expression of a list."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class WhereClause:
    """Keep rows that satisfy a condition."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class SortClause:
    """Sort rows by expressions, the first one foremost; true means descending."""

    keys: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class LimitClause:
    """Keep the first rows."""

    max_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query.

    ``has_link_column`` says that each row begins with a link to its note. ``depends_on_today`` says that the query
    depends on the day.
    """

    kind: QueryKind
    has_link_column: bool
    columns: tuple[Column, ...]
    origin: FromExpression
    clauses: tuple[WhereClause | SortClause | LimitClause, ...]
    depends_on_today: bool


def parse_query(text: str, today: date | None) -> Query:
    """Parse a query.

    Raises:
        QueryError: The query has a syntax error or uses something that is not supported.
    """
    reader = TokenReader(text)
    expressions = ExpressionParser(reader, today)
    kind = _parse_kind(reader)
    has_id = not _accept_without_id(reader, kind)
    columns = _parse_columns(reader, expressions, kind)
    origin = parse_from_clause(reader) if reader.accept_word("from") else AllNotes()
    clauses: list[WhereClause | SortClause | LimitClause] = []
    while reader.lookahead.kind is not TokenKind.END:
        clauses.append(_parse_clause(reader, expressions))
    return Query(
        kind=kind,
        has_link_column=has_id,
        columns=columns,
        origin=origin,
        clauses=tuple(clauses),
        depends_on_today=expressions.depends_on_today,
    )


def _parse_kind(reader: TokenReader) -> QueryKind:
    token = reader.consume()
    if token.kind is TokenKind.END:
        raise reader.syntax_error(f"it is empty: {_QUERY_START_RULE}", token)
    if token.is_word("calendar"):
        raise reader.syntax_error("CALENDAR is drawn and not told", token)
    if not token.is_word(*QueryKind):
        raise reader.syntax_error(_QUERY_START_RULE, token)
    return QueryKind(token.text.lower())


def _accept_without_id(reader: TokenReader, kind: QueryKind) -> bool:
    if kind is QueryKind.TASK or not reader.accept_word("without"):
        return False
    if not reader.accept_word("id"):
        raise reader.syntax_error("WITHOUT is followed by ID")
    return True


def _parse_columns(reader: TokenReader, expressions: ExpressionParser, kind: QueryKind) -> tuple[Column, ...]:
    if kind is QueryKind.TASK or _ends_columns(reader.lookahead):
        return ()
    columns = [_parse_column(reader, expressions)]
    while kind is QueryKind.TABLE and reader.accept_sign(","):
        columns.append(_parse_column(reader, expressions))
    return tuple(columns)


def _ends_columns(token: QueryToken) -> bool:
    return token.kind is TokenKind.END or token.is_word(*CLAUSE_WORDS)


def _parse_column(reader: TokenReader, expressions: ExpressionParser) -> Column:
    start = reader.lookahead.start
    shown = expressions.parse()
    name = " ".join(reader.text[start : reader.last_token.end].split())
    if reader.accept_word("as"):
        token = reader.consume()
        if token.kind not in (TokenKind.TEXT, TokenKind.NAME):
            raise reader.syntax_error("AS is followed by a name", token)
        name = token.text
    return Column(shown, name)


def _parse_clause(reader: TokenReader, expressions: ExpressionParser) -> WhereClause | SortClause | LimitClause:
    token = reader.consume()
    match token.text.lower() if token.kind is TokenKind.NAME else "":
        case "where":
            return WhereClause(expressions.parse())
        case "sort":
            return _parse_sort(reader, expressions)
        case "limit":
            return _parse_limit(reader)
        case "from":
            raise reader.syntax_error("FROM stands once, before all other clauses", token)
        case "group" | "flatten" as word:
            raise reader.syntax_error(f"{'GROUP BY' if word == 'group' else 'FLATTEN'} is not read here", token)
        case _:
            raise reader.syntax_error(f"WHERE, SORT or LIMIT is wanted; there is {token.text[:30]!r}", token)


def _parse_sort(reader: TokenReader, expressions: ExpressionParser) -> SortClause:
    keys: list[tuple[Expression, bool]] = []
    while not keys or reader.accept_sign(","):
        expression = expressions.parse()
        is_down = reader.accept_word("desc", "descending")
        if not is_down:
            reader.accept_word("asc", "ascending")
        keys.append((expression, is_down))
    return SortClause(tuple(keys))


def _parse_limit(reader: TokenReader) -> LimitClause:
    token = reader.consume()
    if token.kind is not TokenKind.NUMBER or "." in token.text:
        raise reader.syntax_error("LIMIT takes a whole number", token)
    return LimitClause(int(token.text))
