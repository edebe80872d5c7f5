"""Parsing expressions: by recursive descent over tokens, as deep as people write and no deeper."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import TypeVar

from lamella.adapters.sources.dataview.language.allowance import QueryRefusal
from lamella.adapters.sources.dataview.language.expressions import (
    Chain,
    Constant,
    Expression,
    FieldName,
    FieldPath,
    FunctionCall,
    Inversion,
    LinkConstant,
    ListOf,
    Minus,
)
from lamella.adapters.sources.dataview.language.functions import FUNCTIONS
from lamella.adapters.sources.dataview.language.operators import as_number
from lamella.adapters.sources.dataview.language.spans import name_day, parse_moment, parse_span
from lamella.adapters.sources.dataview.language.tokens import QueryToken, TokenKind, cut_query, refuse_at
from lamella.adapters.sources.dataview.language.values import Value

DEEPEST = 30
_Read = TypeVar("_Read")
# What begins the next clause; a field of such a name is asked for as row.name.
CLAUSES = ("from", "where", "sort", "limit", "group", "flatten")
# What can be asked of a file. The rest of Obsidian's list is refused: a missing field would be a wrong answer.
FILE_FIELDS = (
    "name", "path", "folder", "ext", "link", "size", "mtime", "mday", "day", "tags", "etags", "aliases", "inlinks",
    "outlinks", "tasks",
)  # fmt: skip
# From what binds least to what binds most. "and" and "or" bind alike, from the left, as they do in Obsidian.
_LEVELS: tuple[dict[str, str], ...] = (
    {"and": "and", "&": "and", "or": "or", "|": "or"},
    {sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
    {sign: sign for sign in ("+", "-")},
    {sign: sign for sign in ("*", "/", "%")},
)


class TokenReader:
    """Tokens of a query one after the other, and how deep their reader is in them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens: Sequence[QueryToken] = cut_query(text)
        self._position = 0
        self._depth = 0

    @property
    def next(self) -> QueryToken:
        return self._tokens[self._position]

    @property
    def last(self) -> QueryToken:
        """The token that was taken last."""
        return self._tokens[self._position - 1]

    def take(self) -> QueryToken:
        token = self.next
        self._position += token.kind is not TokenKind.END
        return token

    def take_word(self, *words: str) -> bool:
        """Take one of these words, if it comes next."""
        found = self.next.is_word(*words)
        self._position += found
        return found

    def take_sign(self, *signs: str) -> bool:
        """Take one of these signs, if it comes next."""
        found = self.next.is_sign(*signs)
        self._position += found
        return found

    def need_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            raise self.refuse(f"{sign!r} is missing")

    def refuse(self, why: str, at: QueryToken | None = None) -> QueryRefusal:
        """A refusal of what comes next, or of a token that was there."""
        token = at or self.next
        found = f"; there is {token.text[:30]!r}" if token.text and at is None else ""
        return refuse_at(self.text, token.start, why + found)

    def nested(self, read: Callable[[], _Read]) -> _Read:
        """What is read one level deeper."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.refuse(f"it is nested more than {DEEPEST} deep", self.next)
        found = read()
        self._depth -= 1
        return found


class ExpressionParser:
    """Reads expressions. ``today`` is what ``date(today)`` means, if anybody says; ``is_dated``: whether one asked."""

    def __init__(self, reader: TokenReader, today: date | None) -> None:
        self._reader = reader
        self._today = today
        self.is_dated = False

    def parse(self) -> Expression:
        return self._reader.nested(lambda: self._chain(0))

    def _chain(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._signed()
        first = self._chain(level + 1)
        rest: list[tuple[str, Expression]] = []
        while sign := self._take_operator(_LEVELS[level]):
            rest.append((sign, self._chain(level + 1)))
        return Chain(first, tuple(rest)) if rest else first

    def _take_operator(self, signs: dict[str, str]) -> str | None:
        token = self._reader.next
        sign = signs.get(token.text.lower()) if token.kind in (TokenKind.SIGN, TokenKind.NAME) else None
        if sign is not None:
            self._reader.take()
        return sign

    def _signed(self) -> Expression:
        if self._reader.take_sign("!") or self._reader.take_word("not"):
            return Inversion(self._reader.nested(self._signed))
        if self._reader.take_sign("-"):
            return Minus(self._reader.nested(self._signed))
        return self._path()

    def _path(self) -> Expression:
        of = self._atom()
        steps: list[Expression] = []
        begin = self._reader.last
        while True:
            if self._reader.take_sign("."):
                steps.append(Constant(self._member(begin if of == FieldName("file") and not steps else None)))
            elif self._reader.take_sign("["):
                steps.append(self.parse())
                self._reader.need_sign("]")
            else:
                return FieldPath(of, tuple(steps)) if steps else of

    def _member(self, file: QueryToken | None) -> str:
        token = self._reader.next
        if token.kind is not TokenKind.NAME:
            raise self._reader.refuse("a field's name is missing")
        if file is not None and token.text.lower() not in FILE_FIELDS:
            raise self._reader.refuse(f"file.{token.text[:30]} is not known here", token)
        return self._reader.take().text

    def _atom(self) -> Expression:
        token = self._reader.take()
        match token.kind:
            case TokenKind.NUMBER:
                return Constant(as_number(float(token.text) if "." in token.text else int(token.text)))
            case TokenKind.TEXT:
                return Constant(token.text)
            case TokenKind.TAG:
                return Constant(f"#{token.text}")
            case TokenKind.LINK:
                return LinkConstant(*split_link(token.text))
            case TokenKind.DATE | TokenKind.SPAN:
                return Constant(self._moment(token))
            case TokenKind.NAME:
                return self._named(token)
            case _:
                return self._bracketed(token)

    def _moment(self, token: QueryToken) -> Value:
        if token.kind is TokenKind.SPAN:
            found: Value = parse_span(token.text)
        elif token.text[0].isdigit():
            found = parse_moment(token.text)
        else:
            return self._day(token)
        if found is None:
            raise self._reader.refuse(f"{token.text.strip()[:30]!r} is no date and no span of time", token)
        return found

    def _day(self, token: QueryToken) -> datetime:
        # A moment that is another with each look would change what is sent with every turn, and nobody had changed it.
        if token.text.lower() == "now":
            raise self._reader.refuse("the time of day is not told to queries: date(today) may be", token)
        if self._today is None:
            raise self._reader.refuse(f"no day is known that date({token.text}) could mean; write one out", token)
        self.is_dated = True
        return name_day(token.text.lower(), self._today)

    def _named(self, token: QueryToken) -> Expression:
        word = token.text.lower()
        if self._reader.next.is_sign("("):
            return self._call(token)
        if word in ("true", "false", "null"):
            return Constant({"true": True, "false": False, "null": None}[word])
        if word in CLAUSES:
            raise self._reader.refuse(f"a value is missing before {token.text}", token)
        return FieldName(token.text)

    def _call(self, token: QueryToken) -> Expression:
        function = FUNCTIONS.get(token.text.lower())
        if function is None:
            raise self._reader.refuse(f"the function {token.text[:30]} is not known here", token)
        self._reader.need_sign("(")
        arguments = self._items(")")
        if not function.least <= len(arguments) <= function.most:
            wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
            raise self._reader.refuse(f"{token.text} takes {wanted} arguments and has {len(arguments)}", token)
        return FunctionCall(function, arguments)

    def _bracketed(self, token: QueryToken) -> Expression:
        if token.is_sign("("):
            found = self.parse()
            if self._reader.next.is_sign(",") or self._reader.next.is_sign("=>"):
                raise self._reader.refuse("functions that a query makes itself are not read here", token)
            self._reader.need_sign(")")
            return found
        if token.is_sign("["):
            return ListOf(self._items("]"))
        if token.is_sign("{"):
            raise self._reader.refuse("objects are not read here", token)
        raise self._reader.refuse(
            f"a value is missing before {token.text[:30]!r}" if token.text else "a value is missing", token
        )

    def _items(self, end: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while not self._reader.take_sign(end):
            if items:
                self._reader.need_sign(",")
            items.append(self.parse())
            if self._reader.next.is_sign("=>"):
                raise self._reader.refuse("functions that a query makes itself are not read here", self._reader.next)
        return tuple(items)


def split_link(inside: str) -> tuple[str, str, str]:
    """The note, the part of it and the words of a link, from what stands between its brackets."""
    target, _, shown = inside.replace("\\|", "|").partition("|")
    path, mark, part = target.strip().partition("#")
    return path.strip(), mark + part, shown.strip()
