"""Recall: full-text search over originals, so that what was left out of the prompt can be found and read again."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lamella.core.search.excerpts import cut_excerpt
from lamella.core.search.terms import find_terms
from lamella.core.text.scripts import WORD_ENDS, WORD_STARTS

# Parameters of BM25: how soon a repeated word stops counting, and how much a long stretch is held against it. Less than
# usual: what is asked for often stands in a note, beside messages of a line.
_SATURATION = 1.2
_LENGTH = 0.5
_DIGITS = 6
# In terms. A long text is as good as its best stretch of twice this: as a whole, its length would bury what it says.
_HALF = 50
# Where a term stands, in one number: which passage, and in which half of a stretch. The title comes before the first.
_TITLE = 0
_HALVES = 1 << 32

# What stands in quotation marks.
PHRASE = re.compile('"([^"]+)"|“([^“”]+)”')

_Key = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An original: where it stands, who wrote it, what it is called, and its whole text."""

    id: str
    place: str
    role: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A passage that a search found; the excerpt shows where in a long text."""

    passage: Passage
    score: float
    excerpt: str


class _Query(NamedTuple):
    """What is looked for: terms, any of which will do, and spans as typed and as compared, each of which must stand."""

    terms: tuple[str, ...]
    spans: tuple[tuple[str, str], ...]
    exact: bool


class _Indexed(NamedTuple):
    """A passage in the spellings in which spans are looked for, and how much it counts as long."""

    passage: Passage
    flat: str
    compared: str
    length: int


class Index(NamedTuple):
    """Passages made ready for any number of searches, and where each of their terms stands."""

    passages: tuple[_Indexed, ...]
    places: Mapping[str, Sequence[int]]
    key: _Key


def build_index(passages: Sequence[Passage], *, key: _Key) -> Index:
    """An index of these passages, in their order.

    ``key`` gives the spelling in which texts are compared: compatible characters as one, upper and lower case as one.
    """
    places: dict[str, array[int]] = {}
    indexed = tuple(_enter(passage, number * _HALVES, places, key=key) for number, passage in enumerate(passages))
    return Index(passages=indexed, places=places, key=key)


def search(index: Index, query: str, *, limit: int = 5, excluded: Collection[str] = ()) -> tuple[Found, ...]:
    """The passages that fit best, best first, of equals the earlier.

    Those that hold the query as it stands come before those that hold its words. A span in quotation marks is demanded.
    """
    wanted = _read_query(query, index.key)
    if not wanted.spans:
        return ()
    looked = {number: one for number, one in enumerate(index.passages) if one.passage.id not in excluded}
    stretches = _find_stretches(index, wanted.terms, looked)
    rarity = _weigh_terms(wanted.terms, stretches.values(), len(looked))
    average = sum(one.length for one in looked.values()) / len(looked) if looked else 0.0
    scored = [
        (_score(one, stretches.get(number, ()), wanted, rarity=rarity, average=average), one.passage)
        for number, one in looked.items()
    ]
    best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])[: max(limit, 0)]
    spans = [typed for typed, _ in wanted.spans]
    return tuple(
        Found(passage=passage, score=score, excerpt=cut_excerpt(passage.text, spans, wanted.terms, key=index.key))
        for score, passage in best
    )


def _read_query(query: str, key: _Key) -> _Query:
    phrases = [_flatten(match[1] or match[2]) for match in PHRASE.finditer(query)]
    phrases = [phrase for phrase in phrases if phrase]
    spans = phrases or [span for span in [_flatten(query)] if span]
    return _Query(
        terms=tuple(dict.fromkeys(find_terms(key(query)))),
        spans=tuple((span, _flatten(key(span))) for span in spans),
        exact=bool(phrases),
    )


def _enter(passage: Passage, first: int, places: dict[str, "array[int]"], *, key: _Key) -> _Indexed:
    """A passage as it is searched; its terms are entered under the numbers from ``first`` on."""
    for term in find_terms(key(passage.title)):
        places.setdefault(term, array("Q")).append(first + _TITLE)
    length = 0
    for term in find_terms(key(passage.text)):
        places.setdefault(term, array("Q")).append(first + _TITLE + 1 + length // _HALF)
        length += 1
    whole = f"{passage.title}\n{passage.text}"
    flat, compared = _flatten(whole), _flatten(key(whole))
    # Most text is spelled as it is compared; one copy of it is enough.
    return _Indexed(
        passage=passage, flat=flat, compared=flat if compared == flat else compared, length=min(length, 2 * _HALF)
    )


def _find_stretches(index: Index, terms: Sequence[str], looked: Collection[int]) -> dict[int, tuple[Counter[str], ...]]:
    """For each passage that has some of the terms, how often they stand in each of its stretches, title included."""
    halves: dict[int, dict[int, Counter[str]]] = {}
    for term in terms:
        for place in index.places.get(term, ()):
            number, half = divmod(place, _HALVES)
            if number in looked:
                halves.setdefault(number, {}).setdefault(half, Counter())[term] += 1
    return {number: _join_halves(found) for number, found in halves.items()}


def _join_halves(halves: Mapping[int, Counter[str]]) -> tuple[Counter[str], ...]:
    title = halves.get(_TITLE, Counter())
    text = (title + halves[at] + halves.get(at + 1, Counter()) for at in halves if at != _TITLE)
    return tuple(text) or (title,)


def _weigh_terms(
    terms: Sequence[str], stretches: Collection[tuple[Counter[str], ...]], passages: int
) -> dict[str, float]:
    """How rare each term is: the fewer passages have it, the more it says."""
    having = {term: sum(any(term in one for one in found) for found in stretches) for term in terms}
    return {term: math.log(1 + (passages - n + 0.5) / (n + 0.5)) for term, n in having.items()}


def _score(
    one: _Indexed, stretches: Sequence[Counter[str]], wanted: _Query, *, rarity: dict[str, float], average: float
) -> float:
    stands = all(_stands_in(one, typed, compared, exact=wanted.exact) for typed, compared in wanted.spans)
    if wanted.exact and not stands:
        return 0.0
    spread = 1 - _LENGTH + _LENGTH * one.length / average if average else 1.0
    score = max((_score_stretch(stretch, rarity, spread) for stretch in stretches), default=0.0)
    # More than all its words together can have, so that the query as it stands always comes first.
    bonus = 1 + (_SATURATION + 1) * sum(rarity.values()) if stands else 0.0
    return round(score + bonus, _DIGITS)


def _score_stretch(terms: Counter[str], rarity: dict[str, float], spread: float) -> float:
    """What its words are worth, by how much of the query they are: one rare word alone is little of a question."""
    worth = sum(
        rarity[term] * number * (_SATURATION + 1) / (number + _SATURATION * spread) for term, number in terms.items()
    )
    return worth * sum(rarity[term] for term in terms) / sum(rarity.values())


def _stands_in(one: _Indexed, typed: str, compared: str, *, exact: bool) -> bool:
    """Whether a span stands in a passage; unless it was quoted, not as a part of longer words."""
    if exact:
        return typed in one.flat or compared in one.compared
    return _has_words(one.flat, typed) or _has_words(one.compared, compared)


def _has_words(text: str, span: str) -> bool:
    # A plain search first: most passages do not hold the span at all.
    starts = WORD_STARTS if re.match(r"\w", span) else ""
    ends = WORD_ENDS if re.search(r"\w\Z", span) else ""
    return span in text and re.search(f"{starts}{re.escape(span)}{ends}", text) is not None


def _flatten(text: str) -> str:
    return " ".join(text.split())
