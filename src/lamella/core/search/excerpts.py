"""Excerpts: where in a long text something was found."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from lamella.core.search.spelling import spell
from lamella.core.text.scripts import WIDE

EXCERPT_CHARS = 240
_LEAD_CHARS = 60
_STEP_CHARS = 20
_MOST_SPANS = 8

_WORD = re.compile(rf"[{WIDE}]|[^\W_{WIDE}]+")


def cut_excerpt(text: str, spans: Iterable[str], words: Collection[str]) -> str:
    """A short text whole; of a long one the part with a span or, without one, with the most different words."""
    if len(text) <= EXCERPT_CHARS:
        return text
    start = max(_find_place(text, spans, words) - _LEAD_CHARS, 0)
    start = min(_next_word(text, start), len(text) - 1)
    end = min(start + EXCERPT_CHARS, len(text))
    shown = text[start:end].strip()
    return f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"


def _find_place(text: str, spans: Iterable[str], words: Collection[str]) -> int:
    for span in islice(spans, _MOST_SPANS):
        # As much of it as is shown, with any white space between its words.
        pieces = map(re.escape, span[:EXCERPT_CHARS].split(" "))
        match = re.search(r"\s+".join(pieces), text, re.IGNORECASE)
        if match:
            return match.start()
    wanted = frozenset(words)
    found = [(match.start(), word) for match in _WORD.finditer(text) if (word := spell(match[0])) in wanted]
    return _densest(found)


def _densest(words: Sequence[tuple[int, str]]) -> int:
    """Where the stretch of an excerpt's length begins that has the most different words; of equals the first."""
    best, place, first = 0, 0, 0
    within: Counter[str] = Counter()
    for start, word in words:
        within[word] += 1
        while words[first][0] < start - EXCERPT_CHARS + 2 * _LEAD_CHARS:
            within[words[first][1]] -= 1
            first += 1
        different = sum(number > 0 for number in within.values())
        if different > best:
            best, place = different, words[first][0]
    return place


def _next_word(text: str, start: int) -> int:
    """The beginning of the next word, if one begins soon."""
    if not start:
        return 0
    space = text.find(" ", start, start + _STEP_CHARS)
    return space + 1 if space >= 0 else start
