"""Parse the expressions of a query.

``tokenize_query`` splits a query into words, numbers and signs with their positions. ``ExpressionParser`` parses
expressions by recursive descent over a ``TokenReader``, up to a fixed nesting depth.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import TypeVar

from lamella.sources.dataview.expressions import (
    QUERY_FUNCTIONS,
    Constant,
    Expression,
    FieldPath,
    FieldReference,
    FunctionCall,
    LinkConstant,
    ListExpression,
    NegateExpression,
    NotExpression,
    OperatorChain,
    normalize_number,
)
from lamella.sources.dataview.values import DAY_WORDS, QueryError, Value, parse_day_word, parse_span, parse_time

MAX_QUERY_LENGTH = 10_000
MAX_QUERY_TOKENS = 2_000
_DAY_WORD_PATTERN = "|".join(sorted((*DAY_WORDS, "now"), key=len, reverse=True))


class TokenKind(StrEnum):
    """The type of a token. ``date(...)`` and ``dur(...)`` with a literal are one token each."""

    BLANK = "blank"
    DATE = "date"
    SPAN = "span"
    LINK = "link"
    TEXT = "text"
    TAG = "tag"
    NUMBER = "number"
    NAME = "name"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryToken:
    """A token with its content and position."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Return whether the token is one of these words, in any case."""
        return self.kind is TokenKind.NAME and self.text.lower() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind is TokenKind.SIGN and self.text in signs


# No pattern can match a text in two ways, so the time is linear. A name may contain a minus, as field names do.
_PATTERNS: tuple[tuple[TokenKind, str], ...] = (
    (TokenKind.BLANK, r"\s+|(?m:^)//[^\n]*"),
    (TokenKind.DATE, rf"(?i:date)\s*\(\s*(\d{{4}}-\d\d[-\dTZ:.+]*|(?i:{_DAY_WORD_PATTERN}))\s*\)"),
    (TokenKind.SPAN, r"(?i:dur)\s*\(\s*(-?\d[^()\"\n]*)\)"),
    (TokenKind.LINK, r"\[\[([^\[\]\n]*)\]\]"),
    (TokenKind.TEXT, r'"((?:[^"\\]|\\.)*)"'),
    (TokenKind.TAG, r"#([^\s!-,.:-@\[-^`{-\x7f]+)"),
    (TokenKind.NUMBER, r"(\d{1,30}(?:\.\d{1,30})?)"),
    (TokenKind.NAME, r"((?:[^\W\d]|[^\x00-\x7f\s])(?:[\w-]|[^\x00-\x7f\s])*)"),
    (TokenKind.SIGN, r"(=>|<=|>=|!=|[-+*/%=<>!&|(),.\[\]{}:])"),
)
_TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS), re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')


def tokenize_query(text: str) -> list[QueryToken]:
    """Return the tokens of a query, followed by an end token.

    Raises:
        QueryError: The query is too long, or contains something that is not a token.
    """
    if len(text) > MAX_QUERY_LENGTH:
        raise QueryError(f"it has {len(text):,} characters, over {MAX_QUERY_LENGTH:,}")
    tokens = [*_iter_tokens(text), QueryToken(kind=TokenKind.END, text="", start=len(text), end=len(text))]
    if len(tokens) > MAX_QUERY_TOKENS:
        raise QueryError(f"it has {len(tokens):,} words and signs, over {MAX_QUERY_TOKENS:,}")
    return tokens


def _iter_tokens(text: str) -> Iterator[QueryToken]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise syntax_error_at(text, position, f"{text[position]!r} is no part of a query")
        kind = TokenKind(str(found.lastgroup))
        if kind is not TokenKind.BLANK:
            # The first group inside the named group is the token's content.
            inside = found.group(_TOKEN.groupindex[kind] + 1)
            value = _ESCAPED.sub(r"\1", inside) if kind is TokenKind.TEXT else inside
            yield QueryToken(kind=kind, text=value, start=position, end=found.end())
        position = found.end()


def syntax_error_at(text: str, position: int, why: str) -> QueryError:
    """Return an error with the line and column of a position in the query."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return QueryError(f"{why} (line {line}, column {column})")


# Expressions.

MAX_NESTING_DEPTH = 30
_Result = TypeVar("_Result")
# Words that begin a clause. A field with such a name is written as row.name.
CLAUSE_WORDS = ("from", "where", "sort", "limit", "group", "flatten")
# The supported fields of a file. Obsidian's other fields are refused, because treating them as missing would give wrong
# answers.
FILE_FIELDS = (
    "name", "path", "folder", "ext", "link", "size", "mtime", "mday", "day", "tags", "etags", "aliases", "inlinks",
    "outlinks", "tasks",
)  # fmt: skip
# Operators by precedence, lowest first. "and" and "or" have the same precedence, as in Obsidian's Dataview.
_OPERATOR_LEVELS: tuple[dict[str, str], ...] = (
    {"and": "and", "&": "and", "or": "or", "|": "or"},
    {sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
    {sign: sign for sign in ("+", "-")},
    {sign: sign for sign in ("*", "/", "%")},
)


class TokenReader:
    """Reads the tokens of a query one after the other, and tracks the nesting depth."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens: Sequence[QueryToken] = tokenize_query(text)
        self._position = 0
        self._depth = 0

    @property
    def lookahead(self) -> QueryToken:
        return self._tokens[self._position]

    @property
    def last_token(self) -> QueryToken:
        """The token that was read last."""
        return self._tokens[self._position - 1]

    def consume(self) -> QueryToken:
        token = self.lookahead
        self._position += token.kind is not TokenKind.END
        return token

    def accept_word(self, *words: str) -> bool:
        """Consume the next token if it is one of these words, and return whether it was."""
        found = self.lookahead.is_word(*words)
        self._position += found
        return found

    def accept_sign(self, *signs: str) -> bool:
        """Consume the next token if it is one of these signs, and return whether it was."""
        found = self.lookahead.is_sign(*signs)
        self._position += found
        return found

    def expect_sign(self, sign: str) -> None:
        if not self.accept_sign(sign):
            raise self.syntax_error(f"{sign!r} is missing")

    def syntax_error(self, why: str, at: QueryToken | None = None) -> QueryError:
        """Return a syntax error at the next token, or at the given earlier one."""
        token = at or self.lookahead
        found = f"; there is {token.text[:30]!r}" if token.text and at is None else ""
        return syntax_error_at(self.text, token.start, why + found)

    def read_nested(self, read: Callable[[], _Result]) -> _Result:
        """Call ``read`` one nesting level deeper and return its result."""
        self._depth += 1
        if self._depth > MAX_NESTING_DEPTH:
            raise self.syntax_error(f"it is nested more than {MAX_NESTING_DEPTH} deep", self.lookahead)
        found = read()
        self._depth -= 1
        return found


class ExpressionParser:
    """Parses expressions.

    ``today`` is the day for ``date(today)``, or None if it is unknown. ``depends_on_today`` says afterwards whether an
    expression used it.
    """

    def __init__(self, reader: TokenReader, today: date | None) -> None:
        self._reader = reader
        self._today = today
        self.depends_on_today = False

    def parse(self) -> Expression:
        return self._reader.read_nested(lambda: self._parse_chain(0))

    def _parse_chain(self, level: int) -> Expression:
        if level == len(_OPERATOR_LEVELS):
            return self._parse_unary()
        first = self._parse_chain(level + 1)
        rest: list[tuple[str, Expression]] = []
        while sign := self._accept_operator(_OPERATOR_LEVELS[level]):
            rest.append((sign, self._parse_chain(level + 1)))
        return OperatorChain(first, tuple(rest)) if rest else first

    def _accept_operator(self, signs: dict[str, str]) -> str | None:
        token = self._reader.lookahead
        sign = signs.get(token.text.lower()) if token.kind in (TokenKind.SIGN, TokenKind.NAME) else None
        if sign is not None:
            self._reader.consume()
        return sign

    def _parse_unary(self) -> Expression:
        if self._reader.accept_sign("!") or self._reader.accept_word("not"):
            return NotExpression(self._reader.read_nested(self._parse_unary))
        if self._reader.accept_sign("-"):
            return NegateExpression(self._reader.read_nested(self._parse_unary))
        return self._parse_path()

    def _parse_path(self) -> Expression:
        of = self._parse_atom()
        steps: list[Expression] = []
        begin = self._reader.last_token
        while True:
            if self._reader.accept_sign("."):
                steps.append(
                    Constant(self._parse_member(begin if of == FieldReference("file") and not steps else None))
                )
            elif self._reader.accept_sign("["):
                steps.append(self.parse())
                self._reader.expect_sign("]")
            else:
                return FieldPath(of, tuple(steps)) if steps else of

    def _parse_member(self, file: QueryToken | None) -> str:
        token = self._reader.lookahead
        if token.kind is not TokenKind.NAME:
            raise self._reader.syntax_error("a field's name is missing")
        if file is not None and token.text.lower() not in FILE_FIELDS:
            raise self._reader.syntax_error(f"file.{token.text[:30]} is not known here", token)
        return self._reader.consume().text

    def _parse_atom(self) -> Expression:
        token = self._reader.consume()
        match token.kind:
            case TokenKind.NUMBER:
                return Constant(normalize_number(float(token.text) if "." in token.text else int(token.text)))
            case TokenKind.TEXT:
                return Constant(token.text)
            case TokenKind.TAG:
                return Constant(f"#{token.text}")
            case TokenKind.LINK:
                return LinkConstant(*split_link(token.text))
            case TokenKind.DATE | TokenKind.SPAN:
                return Constant(self._parse_time_literal(token))
            case TokenKind.NAME:
                return self._parse_name(token)
            case _:
                return self._parse_bracketed(token)

    def _parse_time_literal(self, token: QueryToken) -> Value:
        if token.kind is TokenKind.SPAN:
            found: Value = parse_span(token.text)
        elif token.text[0].isdigit():
            found = parse_time(token.text)
        else:
            return self._parse_day_literal(token)
        if found is None:
            raise self._reader.syntax_error(f"{token.text.strip()[:30]!r} is no date and no span of time", token)
        return found

    def _parse_day_literal(self, token: QueryToken) -> datetime:
        # A current time would change the prompt with every turn although no note has changed.
        if token.text.lower() == "now":
            raise self._reader.syntax_error("the time of day is not told to queries: date(today) may be", token)
        if self._today is None:
            raise self._reader.syntax_error(f"no day is known that date({token.text}) could mean; write one out", token)
        self.depends_on_today = True
        return parse_day_word(token.text.lower(), self._today)

    def _parse_name(self, token: QueryToken) -> Expression:
        word = token.text.lower()
        if self._reader.lookahead.is_sign("("):
            return self._parse_call(token)
        if word in ("true", "false", "null"):
            return Constant({"true": True, "false": False, "null": None}[word])
        if word in CLAUSE_WORDS:
            raise self._reader.syntax_error(f"a value is missing before {token.text}", token)
        return FieldReference(token.text)

    def _parse_call(self, token: QueryToken) -> Expression:
        function = QUERY_FUNCTIONS.get(token.text.lower())
        if function is None:
            raise self._reader.syntax_error(f"the function {token.text[:30]} is not known here", token)
        self._reader.expect_sign("(")
        arguments = self._parse_items(")")
        if not function.min_arguments <= len(arguments) <= function.max_arguments:
            expected_counts = (
                str(function.min_arguments)
                if function.min_arguments == function.max_arguments
                else f"{function.min_arguments} to {function.max_arguments}"
            )
            raise self._reader.syntax_error(
                f"{token.text} takes {expected_counts} arguments and has {len(arguments)}", token
            )
        return FunctionCall(function, arguments)

    def _parse_bracketed(self, token: QueryToken) -> Expression:
        if token.is_sign("("):
            found = self.parse()
            if self._reader.lookahead.is_sign(",") or self._reader.lookahead.is_sign("=>"):
                raise self._reader.syntax_error("functions that a query makes itself are not read here", token)
            self._reader.expect_sign(")")
            return found
        if token.is_sign("["):
            return ListExpression(self._parse_items("]"))
        if token.is_sign("{"):
            raise self._reader.syntax_error("objects are not read here", token)
        raise self._reader.syntax_error(
            f"a value is missing before {token.text[:30]!r}" if token.text else "a value is missing", token
        )

    def _parse_items(self, end: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while not self._reader.accept_sign(end):
            if items:
                self._reader.expect_sign(",")
            items.append(self.parse())
            if self._reader.lookahead.is_sign("=>"):
                raise self._reader.syntax_error(
                    "functions that a query makes itself are not read here", self._reader.lookahead
                )
        return tuple(items)


def split_link(inside: str) -> tuple[str, str, str]:
    """Split the inside of a wiki link into note, subpath and alias."""
    target, _, shown = inside.replace("\\|", "|").partition("|")
    path, mark, part = target.strip().partition("#")
    return path.strip(), mark + part, shown.strip()
