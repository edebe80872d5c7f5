"""Tokens: a query cut into words, names, numbers and signs, each with where it stands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lamella.adapters.sources.dataview.language.allowance import QueryRefusal
from lamella.adapters.sources.dataview.language.spans import DAY_WORDS

LONGEST_QUERY = 10_000
MOST_TOKENS = 2_000
_WORDS = "|".join(sorted((*DAY_WORDS, "now"), key=len, reverse=True))


class TokenKind(StrEnum):
    """What a token is. A date and a span of time are one token each with the call that they stand in."""

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
    """A piece of a query, what is inside of it, and where it begins and ends."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, in any case."""
        return self.kind is TokenKind.NAME and self.text.lower() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind is TokenKind.SIGN and self.text in signs


# No pattern can match in two ways: time grows with the text and no faster. A name may hold a minus, as fields do.
_PATTERNS: tuple[tuple[TokenKind, str], ...] = (
    (TokenKind.BLANK, r"\s+|(?m:^)//[^\n]*"),
    (TokenKind.DATE, rf"(?i:date)\s*\(\s*(\d{{4}}-\d\d[-\dTZ:.+]*|(?i:{_WORDS}))\s*\)"),
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


def cut_query(text: str) -> list[QueryToken]:
    """The tokens of a query, with one that marks its end; a refusal where something is none."""
    if len(text) > LONGEST_QUERY:
        raise QueryRefusal(f"it has {len(text):,} characters, over {LONGEST_QUERY:,}")
    tokens = [*_walk(text), QueryToken(kind=TokenKind.END, text="", start=len(text), end=len(text))]
    if len(tokens) > MOST_TOKENS:
        raise QueryRefusal(f"it has {len(tokens):,} words and signs, over {MOST_TOKENS:,}")
    return tokens


def _walk(text: str) -> Iterator[QueryToken]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise refuse_at(text, position, f"{text[position]!r} is no part of a query")
        kind = TokenKind(str(found.lastgroup))
        if kind is not TokenKind.BLANK:
            # The group inside of a kind's own is what the token says.
            inside = found.group(_TOKEN.groupindex[kind] + 1)
            said = _ESCAPED.sub(r"\1", inside) if kind is TokenKind.TEXT else inside
            yield QueryToken(kind=kind, text=said, start=position, end=found.end())
        position = found.end()


def refuse_at(text: str, position: int, why: str) -> QueryRefusal:
    """A refusal that says where in the query its reason stands."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return QueryRefusal(f"{why} (line {line}, column {column})")
