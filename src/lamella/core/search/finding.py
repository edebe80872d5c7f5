"""Finding: full-text search over originals, so that what was left out of the prompt can be found and read again.

What a search takes grows with what it finds: common words of a question that has rare ones only weigh what those found.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lamella.core.log.ids import Voice
from lamella.core.search.excerpts import cut_excerpt
from lamella.core.search.index import TITLE, Index, IndexedPassage, Passage, flatten
from lamella.core.search.query import MOST_CHARS, SearchQuery, SearchSpan, find_clues, read_query
from lamella.core.search.small_words import is_common
from lamella.core.text.scripts import WORD_ENDS, WORD_STARTS

# Parameters of BM25: how soon a repeated word stops counting, and how much a long stretch is held against it. Less than
# usual: what is asked for often stands in a note, beside messages of a line.
_SATURATION = 1.2
_LENGTH = 0.5
_DIGITS = 6
# How much more the user's own words count than the same in a reply: those are what is asked for (2026-11-17).
_SAID_BY_USER = 1.2
# How many passages are looked at for the rarest words of a question, if it has more than one; and how many words count.
_MANY = 1_000
_MOST_WORDS = 64
# What a passage must have of a question to be held out unasked: a share of its words by their rarity, and a word that
# only so many passages have, or such a share of them.
_MOST_OF_IT = 0.6
_FEW, _SELDOM = 3, 0.05

# How often each word of a question stands in one stretch of a text, by its number; another form of it counts less.
_Stretch = dict[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A passage that a search found; the excerpt shows where in a long text. ``at`` is when it was said, if known."""

    passage: Passage
    score: float
    excerpt: str
    at: str | None = None


class _Word(NamedTuple):
    """A word of a question: its forms in the index with what each counts, how many passages have it, how rare it is.

    ``named`` is the number of the message that it is the id of.
    """

    forms: Mapping[str, float]
    passages: int
    rarity: float
    named: int | None


def search(index: Index, query: str, *, limit: int = 5, excluded: Collection[str] = ()) -> tuple[Found, ...]:
    """The passages that fit best, best first; of equals the user's words before others, then the earlier.

    Those that hold the query as it stands come before those that hold its words. A span in quotation marks is demanded.
    """
    wanted = read_query(query)
    if not wanted.spans:
        return ()
    words = _weigh(index, wanted.words)
    holders = _find_holders(index, wanted)
    stretches = _count_in(index, words, holders) if holders is not None else _count_rare(index, words)
    total = sum(word.rarity for word in words)
    scored = [
        (_score(one, stretches[number], wanted, words=words, total=total, average=index.average), number, one.passage)
        for number in stretches
        if (one := index.passages[number]).passage.id not in excluded
    ]
    best = sorted((one for one in scored if one[0] > 0), key=_by_fit)[: max(limit, 0)]
    spans, forms = [span.typed for span in wanted.spans], {form for word in words for form in word.forms}
    return tuple(
        Found(passage=passage, score=score, excerpt=cut_excerpt(passage.text, spans, forms))
        for score, _, passage in best
    )


def find_helpful(index: Index, question: str, *, limit: int, excluded: Collection[str] = ()) -> tuple[Found, ...]:
    """What is found for a question that nobody meant as a query, as far as it speaks of the same.

    It has most of the words of the question that were ever said, two of them at least, and one that few others have.
    """
    found = search(index, question, limit=limit, excluded=excluded)
    asked = [word for word in read_query(question).words if not is_common(word)]
    words = [word for word in _weigh(index, asked) if word.passages]
    few = max(_FEW, int(_SELDOM * len(index)))
    helpful = _count_rare(index, words)
    return tuple(
        one
        for one in found
        if (number := index.find_named(one.passage.id)) is not None
        and any(_speaks_of(stretch, words, few=few) for stretch in _join_halves(helpful.get(number, {})))
    )


def _speaks_of(stretch: _Stretch, words: Sequence[_Word], *, few: int) -> bool:
    share = sum(words[place].rarity for place in stretch) / sum(word.rarity for word in words) if stretch else 0.0
    return share >= _MOST_OF_IT and len(stretch) > 1 and any(words[place].passages <= few for place in stretch)


def _by_fit(one: tuple[float, int, Passage]) -> tuple[float, bool, int]:
    score, number, passage = one
    return -score, passage.role != Voice.USER, number


def _weigh(index: Index, words: Iterable[str]) -> list[_Word]:
    """The words of a question, the rarest first: the fewer passages have one, the more it says."""
    weighed = [_weigh_word(index, word) for word in words]
    weighed.sort(key=lambda word: (not word.passages, word.passages))
    return weighed[:_MOST_WORDS]


def _weigh_word(index: Index, word: str) -> _Word:
    forms, named = index.find_forms(word), index.find_named(word)
    having = index.count_passages(forms) + (named is not None)
    return _Word(forms, having, math.log(1 + (len(index) - having + 0.5) / (having + 0.5)), named)


def _find_holders(index: Index, wanted: SearchQuery) -> Collection[int] | None:
    """The passages that may hold the quoted spans, or of a question without a word all; none if its words decide."""
    if wanted.exact:
        held = [_find_span(index, span.compared) for span in wanted.spans[:_MOST_WORDS]]
        return min((one for one in held if one is not None), key=len, default=range(len(index)))
    return None if wanted.words else range(len(index))


def _find_span(index: Index, span: str) -> Collection[int] | None:
    """The passages that may hold a span; none where nothing in it leads there."""
    named = index.find_named(span)
    if named is not None:
        return (named,)
    clues = find_clues(span)
    if not clues:
        return None
    part = clues[0]
    if not part.word:
        return index.list_holders(index.find_words(part.part, core=part.core))
    words = [one.word for one in clues]
    if not all(map(index.has_word, words)):
        return ()
    return index.list_holders([min(words, key=lambda word: index.count_passages((word,)))])


def _count_rare(index: Index, words: Sequence[_Word]) -> dict[int, dict[int, _Stretch]]:
    """Every passage that has one of the rarest words, with where it has any of them."""
    found: dict[int, dict[int, _Stretch]] = {}
    looked = 0
    for place, word in enumerate(words):
        if looked and looked + word.passages > _MANY:
            _add_within(index, words, found, since=place)
            break
        looked += word.passages
        if word.named is not None:
            found.setdefault(word.named, {}).setdefault(TITLE, {})[place] = 1.0
        for form, weight in word.forms.items():
            for number, half in index.walk(form):
                stretch = found.setdefault(number, {}).setdefault(half, {})
                stretch[place] = stretch.get(place, 0.0) + weight
    return found


def _count_in(index: Index, words: Sequence[_Word], numbers: Iterable[int]) -> dict[int, dict[int, _Stretch]]:
    """Where these passages have any of the words."""
    found: dict[int, dict[int, _Stretch]] = {number: {} for number in numbers}
    _add_within(index, words, found, since=0)
    return found


def _add_within(index: Index, words: Sequence[_Word], found: dict[int, dict[int, _Stretch]], *, since: int) -> None:
    for place, word in enumerate(words[since:], start=since):
        if word.named in found:
            found[word.named].setdefault(TITLE, {})[place] = 1.0
        for form, weight in word.forms.items():
            for number, halves in found.items():
                for half in index.walk_within(form, number):
                    stretch = halves.setdefault(half, {})
                    stretch[place] = stretch.get(place, 0.0) + weight


def _join_halves(halves: Mapping[int, _Stretch]) -> list[_Stretch]:
    """The stretches of a text, each two halves long, title included."""
    title = halves.get(TITLE, {})
    text = [_add(title, halves[at], halves.get(at + 1, {})) for at in halves if at != TITLE]
    return text or [title]


def _add(*parts: _Stretch) -> _Stretch:
    whole: _Stretch = {}
    for part in parts:
        for place, number in part.items():
            whole[place] = whole.get(place, 0.0) + number
    return whole


def _score(
    one: IndexedPassage,
    halves: Mapping[int, _Stretch],
    wanted: SearchQuery,
    *,
    words: Sequence[_Word],
    total: float,
    average: float,
) -> float:
    stands = all(_stands_in(one, span, wanted) for span in wanted.spans)
    if wanted.exact and not stands:
        return 0.0
    spread = 1 - _LENGTH + _LENGTH * one.length / average if average else 1.0
    said = _SAID_BY_USER if one.passage.role == Voice.USER else 1.0
    score = said * max(_score_stretch(stretch, words, total, spread=spread) for stretch in _join_halves(halves))
    # More than all its words together can have, so that the query as it stands always comes first.
    bonus = 1 + _SAID_BY_USER * (_SATURATION + 1) * total if stands else 0.0
    return round(score + bonus, _DIGITS)


def _score_stretch(stretch: _Stretch, words: Sequence[_Word], total: float, *, spread: float) -> float:
    """What its words are worth, by how much of the query they are: one rare word alone is little of a question."""
    worth = sum(
        words[place].rarity * number * (_SATURATION + 1) / (number + _SATURATION * spread)
        for place, number in stretch.items()
    )
    return worth * sum(words[place].rarity for place in stretch) / total if total else 0.0


def _stands_in(one: IndexedPassage, span: SearchSpan, wanted: SearchQuery) -> bool:
    """Whether a span stands in a passage; unless it was quoted, not as a part of longer words."""
    has = _has_span if wanted.exact else _has_words
    if span.compared and has(one.compared, span.compared):
        return True
    if wanted.words and not wanted.exact:
        return False
    # Only beyond ASCII can a part of a text be spelled otherwise than in the whole.
    passage = one.passage
    plain = passage.text.isascii() and passage.title.isascii()
    return not plain and has(flatten(f"{passage.title}\n{passage.text}"), span.typed)


def _has_span(text: str, span: str) -> bool:
    return span in text


def _has_words(text: str, span: str) -> bool:
    # A plain search first: most passages do not hold the span at all.
    if span not in text or len(span) > MOST_CHARS:
        return span in text
    starts = WORD_STARTS if re.match(r"\w", span) else ""
    ends = WORD_ENDS if re.search(r"\w\Z", span) else ""
    return re.search(f"{starts}{re.escape(span)}{ends}", text) is not None
