"""Queries: what is looked for, as words of which any will do and as spans that must stand."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from lamella.core.search.index import flatten
from lamella.core.search.spelling import spell
from lamella.core.search.terms import find_tokens, split_token
from lamella.core.text.notation import settle
from lamella.core.text.scripts import WIDE

# What stands in quotation marks.
PHRASE = re.compile('"([^"]+)"|“([^“”]+)”')
# What nobody types is cut: of a text that is longer the beginning is looked for by its words.
MOST_CHARS = 4_000

_WORD = re.compile(r"[^\W_]+")
_RUN = re.compile(rf"[^\W_{WIDE}]+")
_WIDE_RUN = re.compile(rf"[{WIDE}]+")


class SearchSpan(NamedTuple):
    """What must stand: as it was typed and as it is compared, with one space for any white space."""

    typed: str
    compared: str


class SearchQuery(NamedTuple):
    """What is looked for. ``exact`` says that its spans were quoted: what does not hold them all is not found."""

    words: tuple[str, ...]
    spans: tuple[SearchSpan, ...]
    exact: bool


class SpanClue(NamedTuple):
    """What every text has that holds a span: a whole word, or else one that holds a part of it.

    ``core`` is the part without the characters that may look otherwise where the text goes on.
    """

    word: str = ""
    part: str = ""
    core: str = ""


def read_query(text: str) -> SearchQuery:
    """A query as it is searched for."""
    phrases = list(dict.fromkeys(flatten(match[1] or match[2]) for match in PHRASE.finditer(text)))
    phrases = [phrase for phrase in phrases if phrase]
    spans = phrases or [span for span in [flatten(text)] if span]
    tokens = find_tokens(settle(text[:MOST_CHARS]))
    return SearchQuery(
        words=tuple(dict.fromkeys(word for token in tokens for word in split_token(token))),
        spans=tuple(SearchSpan(span, flatten(spell(span))) for span in spans),
        exact=bool(phrases),
    )


def find_clues(span: str) -> list[SpanClue]:
    """What to look for in place of a compared span; nothing where it has no words to go by.

    Inside of it words are whole. Where it begins and ends they may be parts of longer ones, and the character beside
    the end may be another one with what follows: an accent that was left out of the span.
    """
    span = span[:MOST_CHARS]
    # The outer pieces, and the last one of a span that was cut, may go on.
    whole = [word for piece in span.split(" ")[1:-1] if piece.isascii() for word in _WORD.findall(piece)]
    if whole:
        return [SpanClue(word=word) for word in dict.fromkeys(whole)]
    runs = [(match.start(), match[0]) for match in _RUN.finditer(span)]
    if not runs:
        return [SpanClue(word=pair) for pair in _list_pairs(span)]
    start, run = max(runs, key=lambda one: len(one[1]))
    core = run[:-1] if start + len(run) == len(span) else run
    core = core[1:] if start == 0 and not run.isascii() else core
    return [SpanClue(part=run, core=core)] if core else []


def _list_pairs(span: str) -> Iterator[str]:
    """Two characters each of scripts without spaces, but for those at both ends."""
    for match in _WIDE_RUN.finditer(span):
        first, last = int(match.start() == 0), int(match.end() == len(span))
        yield from map("".join, pairwise(match[0][first : len(match[0]) - last]))
