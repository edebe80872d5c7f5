"""Search the originals of a conversation, so that text that left the prompt can be found again.

``parse_query`` splits a query into words (any may match) and phrases that must match. ``search`` returns the
best passages of an index, ``search_for_question`` those that help with a question, and ``rank_paths`` orders texts for
a question. ``make_excerpt`` returns the part of a long text that shows a match.

The cost of a search grows with the number of matches. If a query has rare words, only the passages with those are
scored, and common words only adjust their scores.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from lamella.core.log.turn import MessageAuthor
from lamella.core.search.index import TITLE_HALF, IndexedPassage, Passage, PassageIndex, collapse_whitespace
from lamella.core.search.language import (
    is_content_word,
    is_stop_word,
    is_unspaced_script,
    iter_terms,
    long_number_terms,
    normalize_text,
    split_token_into_words,
    split_tokens,
)
from lamella.core.text.content import UNSPACED_SCRIPTS, WORD_ENDS, WORD_STARTS
from lamella.core.text.notation import normalize_characters
from lamella.core.text.outline import iter_headings

# Text in quotation marks.
QUOTED_PHRASE = re.compile('"([^"]+)"|“([^“”]+)”')
# No user types more than this. Of a longer text only the beginning is split into words.
MAX_QUERY_CHARS = 4_000

# Queries, and excerpts of texts that match.

_WORD = re.compile(r"[^\W_]+")
_SPACED_SCRIPT_RUN = re.compile(rf"[^\W_{UNSPACED_SCRIPTS}]+")
_UNSPACED_SCRIPT_RUN = re.compile(rf"[{UNSPACED_SCRIPTS}]+")


class QuotedPhrase(NamedTuple):
    """A phrase as typed, and normalized for comparison, with one space for any white space."""

    typed: str
    normalized: str


class SearchQuery(NamedTuple):
    """A parsed query. If ``must_match_phrases``, its phrases were quoted and a passage must contain all of them.

    ``groups`` has the words of each name that was split into several.
    """

    words: tuple[str, ...]
    phrases: tuple[QuotedPhrase, ...]
    must_match_phrases: bool
    groups: tuple[tuple[str, ...], ...] = ()


class PhraseHint(NamedTuple):
    """A part that every text with a phrase must contain: a whole word, or a word that contains a part of the phrase.

    ``core`` is the part without characters at the ends of the phrase that may differ inside a longer word.
    """

    word: str = ""
    part: str = ""
    core: str = ""


def parse_query(text: str) -> SearchQuery:
    """Parse a query."""
    phrases = list(dict.fromkeys(collapse_whitespace(match[1] or match[2]) for match in QUOTED_PHRASE.finditer(text)))
    phrases = [phrase for phrase in phrases if phrase]
    spans = phrases or [span for span in [collapse_whitespace(text)] if span]
    normalized = normalize_characters(text[:MAX_QUERY_CHARS])
    tokens = list(dict.fromkeys(split_tokens(normalized)))
    split = [split_token_into_words(token) for token in tokens]
    words = [word for parts in split for word in parts]
    return SearchQuery(
        words=tuple(dict.fromkeys([*words, *long_number_terms(normalized)])),
        phrases=tuple(QuotedPhrase(span, collapse_whitespace(normalize_text(span))) for span in spans),
        must_match_phrases=bool(phrases),
        groups=tuple(
            [
                parts
                for token, parts in zip(tokens, split, strict=True)
                if len(parts) > 1 and not is_unspaced_script(token)
            ]
        ),
    )


def phrase_hints(phrase: str) -> list[PhraseHint]:
    """Return what to look up in the index for a normalized phrase; empty if it has no usable words.

    Words inside the phrase are whole. At its ends they may be parts of longer words, and the character at the end may
    differ in a text: it may have an accent that the phrase leaves out.
    """
    phrase = phrase[:MAX_QUERY_CHARS]
    # The first and the last word may continue in the text; so may the last word of a phrase that was cut off.
    whole = [word for piece in phrase.split(" ")[1:-1] if piece.isascii() for word in _WORD.findall(piece)]
    if whole:
        return [PhraseHint(word=word) for word in dict.fromkeys(whole)]
    runs = [(match.start(), match[0]) for match in _SPACED_SCRIPT_RUN.finditer(phrase)]
    if not runs:
        return [PhraseHint(word=pair) for pair in _iter_character_pairs(phrase)]
    start, run = max(runs, key=lambda one: len(one[1]))
    core = run[:-1] if start + len(run) == len(phrase) else run
    core = core[1:] if start == 0 and not run.isascii() else core
    return [PhraseHint(part=run, core=core)] if core else []


def _iter_character_pairs(phrase: str) -> Iterator[str]:
    """Iterate over pairs of characters in scripts without spaces, except for characters at the phrase's ends."""
    for match in _UNSPACED_SCRIPT_RUN.finditer(phrase):
        first, last = int(match.start() == 0), int(match.end() == len(phrase))
        yield from map("".join, pairwise(match[0][first : len(match[0]) - last]))


EXCERPT_CHARS = 240
_LEAD_CHARS = 60
_MAX_WORD_SEARCH_CHARS = 20
_MAX_PHRASES = 8

_EXCERPT_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\W_{UNSPACED_SCRIPTS}]+")


def make_excerpt(text: str, phrases: Iterable[str], words: Collection[str]) -> str:
    """Return a short text as it is, or the part of a long one with a phrase or the most query words."""
    if len(text) <= EXCERPT_CHARS:
        return text
    start = max(_find_best_excerpt_start(text, phrases, words) - _LEAD_CHARS, 0)
    start = min(_find_next_word_start(text, start), len(text) - 1)
    end = min(start + EXCERPT_CHARS, len(text))
    shown = text[start:end].strip()
    return f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"


def cut_densest_part(text: str, phrases: Iterable[str], words: Collection[str], *, size: int) -> str:
    """Return the part of a long text, ``size`` characters long, around a phrase or the most query words."""
    start = max(_find_best_excerpt_start(text, phrases, words) - size // 2, 0)
    return text[start : start + size]


def _find_best_excerpt_start(text: str, phrases: Iterable[str], words: Collection[str]) -> int:
    for span in islice(phrases, _MAX_PHRASES):
        # Match only as much of the phrase as an excerpt can show, with any white space between its words.
        pieces = map(re.escape, span[:EXCERPT_CHARS].split(" "))
        match = re.search(r"\s+".join(pieces), text, re.IGNORECASE)
        if match:
            return match.start()
    target_words = frozenset(words)
    found = [
        (match.start(), word)
        for match in _EXCERPT_WORD.finditer(text)
        if (word := normalize_text(match[0])) in target_words
    ]
    return _find_densest_stretch_start(found)


def _find_densest_stretch_start(words: Sequence[tuple[int, str]]) -> int:
    """Return the start of the first stretch of excerpt length with the most different words."""
    best, best_start, first = 0, 0, 0
    within: Counter[str] = Counter()
    for start, word in words:
        within[word] += 1
        while words[first][0] < start - EXCERPT_CHARS + 2 * _LEAD_CHARS:
            within[words[first][1]] -= 1
            first += 1
        different = sum(number > 0 for number in within.values())
        if different > best:
            best, best_start = different, words[first][0]
    return best_start


def _find_next_word_start(text: str, start: int) -> int:
    """Return the start of the next word, if one begins soon; otherwise ``start``."""
    if not start:
        return 0
    space = text.find(" ", start, start + _MAX_WORD_SEARCH_CHARS)
    return space + 1 if space >= 0 else start


# Search and scoring.

# Parameters of BM25: how soon a repeated word stops counting, and how much length counts against a passage. The second
# is lower than usual, because the answer is often in a long note beside messages of one line.
_BM25_SATURATION = 1.2
_BM25_LENGTH_PENALTY = 0.5
_SCORE_DIGITS = 6
# The user's words count this much more than the same words in a reply: they are what people look for (2026-11-17).
_USER_WEIGHT = 1.2
# Words that nearly every text has decide only between sentences that are equal otherwise.
_STOP_WORD_WEIGHT = 0.01
# How many passages are examined for the rarest words of a query with several words, and how many words are used.
_MAX_CANDIDATES = 1_000
_MAX_QUERY_WORDS = 64
# A passage needs this to be a hit at all: half of the query's words by rarity, stop words not counted. A quarter is
# enough if one of them is in at most this many passages, or at most this share of them, or if the conversation has all
# words of the query. Measured on questions whose answer
# was said and on questions about something else (2026-11-18): of 147 answers 142 are kept, of 200 hits for the others 17.
_MIN_HIT_SHARE, _MIN_HIT_SHARE_WITH_RARE_WORD = 0.5, 0.25
# Of a longer query only so many words count for this, those that the conversation has first.
_MAX_JUDGED_WORDS = 8
# A passage needs this to be offered without a search by the user: this share of the question's words, by rarity, and a
# word that at most this many passages have, or at most this share of them.
_MIN_WORD_SHARE = 0.6
_MAX_PASSAGES_OF_RARE_WORD, _MAX_SHARE_OF_RARE_WORD = 3, 0.05

# Occurrences of each query word in one stretch of a text, by word number; other forms of the word count less.
_WordCounts = dict[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A passage found by a search, with an excerpt; ``at`` is when it was written, if known."""

    passage: Passage
    score: float
    excerpt: str
    at: str | None = None


class _QueryWord(NamedTuple):
    """A query word, as parsed: its forms in the index with their weights, how many passages have it, and its rarity.

    ``named_passage`` is the number of the passage whose id the word is, or None. ``is_content`` is false for words that
    nearly every text has.
    """

    word: str
    forms: Mapping[str, float]
    passage_count: int
    rarity: float
    named_passage: int | None
    is_content: bool


def search(index: PassageIndex, query: str, *, limit: int = 5, excluded: Collection[str] = ()) -> tuple[SearchHit, ...]:
    """Return the best passages, best first; on equal scores the user's words first, then the earlier one.

    Passages with the whole query as a phrase come before those with its words. Phrases in quotation marks must match.
    A passage with too little of the query is no hit, so a search for something that was never said finds nothing.
    """
    parsed = parse_query(query)
    if not parsed.phrases:
        return ()
    words = _score_words(index, parsed.words)
    holders = _list_candidate_passages(index, parsed)
    stretches = (
        _count_words_in(index, words, holders) if holders is not None else _count_words_in_rare_passages(index, words)
    )
    total = sum(word.rarity for word in words)
    fits = _RelevanceCheck(parsed, words, passage_count=len(index))
    scored = [
        (
            _score_passage(
                one, stretches[number], parsed, words=words, total=total, average=index.average_length, fits=fits
            ),
            number,
            one.passage,
        )
        for number in stretches
        if (one := index.passages[number]).passage.id not in excluded
    ]
    best = sorted((one for one in scored if one[0] > 0), key=_get_rank_key)[: max(limit, 0)]
    spans, forms = [span.typed for span in parsed.phrases], {form for word in words for form in word.forms}
    return tuple(
        SearchHit(passage=passage, score=score, excerpt=make_excerpt(passage.text, spans, forms))
        for score, _, passage in best
    )


def search_for_question(
    index: PassageIndex, question: str, *, limit: int, excluded: Collection[str] = ()
) -> tuple[SearchHit, ...]:
    """Return passages that help with a question which is not a search query, if any fit well enough.

    A passage needs most of the question's words that occur in the conversation, at least two, one of them rare.
    """
    found = search(index, question, limit=limit, excluded=excluded)
    asked = [word for word in parse_query(question).words if not is_stop_word(word)]
    words = [word for word in _score_words(index, asked) if word.passage_count]
    few = max(_MAX_PASSAGES_OF_RARE_WORD, int(_MAX_SHARE_OF_RARE_WORD * len(index)))
    helpful = _count_words_in_rare_passages(index, words)
    return tuple(
        one
        for one in found
        if (number := index.find_passage_number(one.passage.id)) is not None
        and any(_is_relevant(stretch, words, max_passages=few) for stretch in _join_halves(helpful.get(number, {})))
    )


def _is_relevant(stretch: _WordCounts, words: Sequence[_QueryWord], *, max_passages: int) -> bool:
    share = sum(words[index].rarity for index in stretch) / sum(word.rarity for word in words) if stretch else 0.0
    return (
        share >= _MIN_WORD_SHARE
        and len(stretch) > 1
        and any(words[index].passage_count <= max_passages for index in stretch)
    )


class _RelevanceCheck:
    """Checks whether a stretch of a text has enough of a query to be a hit.

    The parts of a name such as ``gateway.toml`` count once. Every word counts for a little more than its rarity, since
    in a short conversation no word is rare.
    """

    def __init__(self, query: SearchQuery, words: Sequence[_QueryWord], *, passage_count: int) -> None:
        self._words = words
        group_by_word = {word: number for number, group in enumerate(query.groups) for word in group}
        self._group_by_index = {
            at: group_by_word.get(word.word, -1 - at) for at, word in enumerate(words) if word.is_content
        }
        self._weights: dict[int, float] = {}
        for at, group in self._group_by_index.items():
            self._weights[group] = max(self._weights.get(group, 0.0), 1 + words[at].rarity)
        # Words that the conversation has come first, so a long question is judged by these.
        self._total = sum(islice(self._weights.values(), _MAX_JUDGED_WORDS))
        self._few = max(_MAX_PASSAGES_OF_RARE_WORD, int(_MAX_SHARE_OF_RARE_WORD * passage_count))
        self._has_all = all(words[at].passage_count for at in self._group_by_index)

    def __call__(self, stretch: _WordCounts) -> bool:
        """Return whether the stretch fits. A query of nothing but stop words fits every text with one of them."""
        if not self._weights:
            return bool(stretch)
        found = [at for at in stretch if at in self._group_by_index]
        if not found:
            return False
        share = sum(self._weights[group] for group in {self._group_by_index[at] for at in found}) / self._total
        return share >= _MIN_HIT_SHARE or (
            share >= _MIN_HIT_SHARE_WITH_RARE_WORD
            and (self._has_all or min(self._words[at].passage_count for at in found) <= self._few)
        )


def score_query_forms(index: PassageIndex, words: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Return the forms of query words in the index, each with the number of its word and its score in a text."""
    found: dict[str, tuple[int, float]] = {}
    for number, word in enumerate(_score_words(index, words)):
        for form, weight in word.forms.items():
            score = weight * word.rarity * (1.0 if word.is_content else _STOP_WORD_WEIGHT)
            if score > found.get(form, (number, 0.0))[1]:
                found[form] = (number, score)
    return found


def _get_rank_key(scored: tuple[float, int, Passage]) -> tuple[float, bool, int]:
    score, number, passage = scored
    return -score, passage.role != MessageAuthor.USER, number


def _score_words(index: PassageIndex, words: Iterable[str]) -> list[_QueryWord]:
    """Return the query words, the rarest first, up to a maximum."""
    scores = [_score_word(index, word) for word in words]
    scores.sort(key=lambda word: (not word.passage_count, word.passage_count))
    return scores[:_MAX_QUERY_WORDS]


def _score_word(index: PassageIndex, word: str) -> _QueryWord:
    forms, named = index.word_forms(word), index.find_passage_number(word)
    if not forms and named is None:
        forms = index.repaired_forms(word)
    having = index.max_passage_count(forms) + (named is not None)
    rarity = math.log(1 + (len(index) - having + 0.5) / (having + 0.5))
    return _QueryWord(word, forms, having, rarity, named, is_content=named is not None or is_content_word(word))


def _list_candidate_passages(index: PassageIndex, query: SearchQuery) -> Collection[int] | None:
    """Return the passages that may contain the quoted phrases; None if the words decide.

    A query without words, such as punctuation alone, is searched in all passages.
    """
    if query.must_match_phrases:
        passages = [_passages_with_phrase(index, span.normalized) for span in query.phrases[:_MAX_QUERY_WORDS]]
        return min((one for one in passages if one is not None), key=len, default=range(len(index)))
    return None if query.words else range(len(index))


def _passages_with_phrase(index: PassageIndex, phrase: str) -> Collection[int] | None:
    """Return the passages that may contain a phrase; None if the index cannot narrow them down."""
    named = index.find_passage_number(phrase)
    if named is not None:
        return (named,)
    clues = phrase_hints(phrase)
    if not clues:
        return None
    part = clues[0]
    if not part.word:
        return index.passages_with_any(index.words_containing(part.part, core=part.core))
    words = [one.word for one in clues]
    if not all(map(index.has_word, words)):
        return ()
    return index.passages_with_any([min(words, key=lambda word: index.max_passage_count((word,)))])


def _count_words_in_rare_passages(
    index: PassageIndex, words: Sequence[_QueryWord]
) -> dict[int, dict[int, _WordCounts]]:
    """Return all passages with one of the rarest words, and where they have any of the words."""
    found: dict[int, dict[int, _WordCounts]] = {}
    passage_count = 0
    for at, word in enumerate(words):
        if passage_count and passage_count + word.passage_count > _MAX_CANDIDATES:
            _add_words_to_found_passages(index, words, found, start=at)
            break
        passage_count += word.passage_count
        if word.named_passage is not None:
            found.setdefault(word.named_passage, {}).setdefault(TITLE_HALF, {})[at] = 1.0
        for form, weight in word.forms.items():
            for number, half in index.iter_positions(form):
                stretch = found.setdefault(number, {}).setdefault(half, {})
                stretch[at] = stretch.get(at, 0.0) + weight
    return found


def _count_words_in(
    index: PassageIndex, words: Sequence[_QueryWord], numbers: Iterable[int]
) -> dict[int, dict[int, _WordCounts]]:
    """Return where these passages have any of the words."""
    found: dict[int, dict[int, _WordCounts]] = {number: {} for number in numbers}
    _add_words_to_found_passages(index, words, found, start=0)
    return found


def _add_words_to_found_passages(
    index: PassageIndex, words: Sequence[_QueryWord], found: dict[int, dict[int, _WordCounts]], *, start: int
) -> None:
    """Add the words from index ``start`` on to passages already found, without adding passages."""
    for at, word in enumerate(words[start:], start=start):
        if word.named_passage in found:
            found[word.named_passage].setdefault(TITLE_HALF, {})[at] = 1.0
        for form, weight in word.forms.items():
            for number, halves in found.items():
                for half in index.iter_halves(form, number):
                    stretch = halves.setdefault(half, {})
                    stretch[at] = stretch.get(at, 0.0) + weight


def _join_halves(halves: Mapping[int, _WordCounts]) -> list[_WordCounts]:
    """Return the stretches of a text: two adjacent halves each, with the title counted in."""
    title = halves.get(TITLE_HALF, {})
    text = [_sum_word_counts(title, halves[at], halves.get(at + 1, {})) for at in halves if at != TITLE_HALF]
    return text or [title]


def _sum_word_counts(*parts: _WordCounts) -> _WordCounts:
    whole: _WordCounts = {}
    for part in parts:
        for index, number in part.items():
            whole[index] = whole.get(index, 0.0) + number
    return whole


def _score_passage(
    indexed: IndexedPassage,
    halves: Mapping[int, _WordCounts],
    query: SearchQuery,
    *,
    words: Sequence[_QueryWord],
    total: float,
    average: float,
    fits: "_RelevanceCheck",
) -> float:
    has_phrases = all(_occurs_in(indexed, span, query) for span in query.phrases)
    stretches = _join_halves(halves)
    if (query.must_match_phrases and not has_phrases) or not (has_phrases or any(map(fits, stretches))):
        return 0.0
    spread = 1 - _BM25_LENGTH_PENALTY + _BM25_LENGTH_PENALTY * indexed.length / average if average else 1.0
    author_weight = _USER_WEIGHT if indexed.passage.role == MessageAuthor.USER else 1.0
    score = author_weight * max(_score_stretch(stretch, words, total, spread=spread) for stretch in stretches)
    # The bonus is larger than any score from words, so a match of the whole query always comes first.
    bonus = 1 + _USER_WEIGHT * (_BM25_SATURATION + 1) * total if has_phrases else 0.0
    return round(score + bonus, _SCORE_DIGITS)


def _score_stretch(stretch: _WordCounts, words: Sequence[_QueryWord], total: float, *, spread: float) -> float:
    """Score a stretch by its words and by the share of the query they are.

    The share matters because one rare word alone is little of a question.
    """
    worth = sum(
        words[index].rarity * number * (_BM25_SATURATION + 1) / (number + _BM25_SATURATION * spread)
        for index, number in stretch.items()
    )
    return worth * sum(words[index].rarity for index in stretch) / total if total else 0.0


def _occurs_in(indexed: IndexedPassage, phrase: QuotedPhrase, query: SearchQuery) -> bool:
    """Return whether a phrase occurs in a passage; if it was not quoted, only at word boundaries."""
    has = _contains_phrase if query.must_match_phrases else _contains_phrase_at_word_boundaries
    if phrase.normalized and has(indexed.normalized_text, phrase.normalized):
        return True
    if query.words and not query.must_match_phrases:
        return False
    # Beyond ASCII, a part of a text may normalize differently from the same part inside the whole text.
    passage = indexed.passage
    plain = passage.text.isascii() and passage.title.isascii()
    return not plain and has(collapse_whitespace(f"{passage.title}\n{passage.text}"), phrase.typed)


def _contains_phrase(text: str, phrase: str) -> bool:
    return phrase in text


def _contains_phrase_at_word_boundaries(text: str, phrase: str) -> bool:
    # A plain search first, which is cheap: most passages do not contain the phrase.
    if phrase not in text or len(phrase) > MAX_QUERY_CHARS:
        return phrase in text
    starts = WORD_STARTS if re.match(r"\w", phrase) else ""
    ends = WORD_ENDS if re.search(r"\w\Z", phrase) else ""
    return re.search(f"{starts}{re.escape(phrase)}{ends}", text) is not None


# Ranking of texts for a question, by its words and by how rare these are among the texts.

# How much more a word counts in the name or in a heading of a note than in its text.
_NAME_WEIGHT = 4.0
_HEADING_WEIGHT = 2.0


def rank_paths(question: str, texts: Sequence[tuple[str, str]], *, normalize: Callable[[str], str]) -> Sequence[str]:
    """Return the paths of these texts, best match for the question first; without any match in their order.

    ``key`` normalizes texts for comparison. A word counts by how few of the texts have it, once for each field: name,
    headings, body.
    """
    asked = frozenset(iter_terms(normalize(question)))
    if not asked:
        return [path for path, _ in texts]
    found = [(path, _matched_words_by_field(asked, path, text, key=normalize)) for path, text in texts]
    text_counts = Counter(
        term for _, word_positions in found for term in {term for _, terms in word_positions for term in terms}
    )
    rarity = {term: math.log(1 + len(texts) / times) for term, times in text_counts.items()}
    scores = {
        path: sum(weight * rarity[term] for weight, terms in word_positions for term in terms)
        for path, word_positions in found
    }
    # The sort is stable: texts with equal scores stay in their order.
    return sorted(scores, key=lambda path: -scores[path])


def _matched_words_by_field(
    question_words: frozenset[str], path: str, text: str, *, key: Callable[[str], str]
) -> list[tuple[float, frozenset[str]]]:
    """Return the question's words in each field of a note, with the weight of the field."""
    headings = "\n".join(words for _, _, words in iter_headings(text))
    return [
        (_NAME_WEIGHT, _list_common_words(question_words, iter_terms(key(path)))),
        (_HEADING_WEIGHT, _list_common_words(question_words, iter_terms(key(headings)))),
        (1.0, _list_common_words(question_words, iter_terms(key(text)))),
    ]


def _list_common_words(question_words: frozenset[str], terms: Iterable[str]) -> frozenset[str]:
    return question_words.intersection(terms)
