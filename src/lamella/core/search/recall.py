"""What a recall returns: the texts that fit a query best, in a budget of tokens, with the messages around them.

``recall_passages`` searches an index and fills the budget. A text of up to ``WHOLE_TOKENS`` tokens is returned whole, a
longer one as the sentences that fit the query best. A text that the query names by its id is returned from its
beginning, as far as the budget reaches.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lamella.core.log.turn import MessageAuthor
from lamella.core.search.index import Passage, PassageIndex, collapse_whitespace
from lamella.core.search.language import split_token_into_words, split_tokens
from lamella.core.search.search import SearchHit, cut_densest_part, make_excerpt, parse_query, score_query_forms, search
from lamella.core.text.notation import normalize_characters

# The tokens that one recall returns, and how long a text may be that is returned whole.
RECALL_TOKENS, WHOLE_TOKENS = 2_000, 200
# How many sentences are returned of a longer text.
MAX_SENTENCES = 3
# At most so many hits are returned, unless the caller says otherwise.
DEFAULT_LIMIT = 20
# About what the line with the position of a text adds to it.
_HEADER_TOKENS = 20
# No text with more characters than this has only ``WHOLE_TOKENS`` tokens, and of no text are more characters searched
# for sentences.
_MAX_WHOLE_CHARS, _MAX_SEARCHED_CHARS = 20 * WHOLE_TOKENS, 40_000
# A sentence may be a line of data, or a text without any punctuation. Of a longer one an excerpt is returned.
_MAX_SENTENCE_TOKENS = 120
_MAX_SENTENCE_CHARS = 20 * _MAX_SENTENCE_TOKENS
# Sentences, or lines of text. The white space between them belongs to none.
_SENTENCE = re.compile(
    r"\S(?:[^\n.!?\u3002\uff01\uff1f]|[.!?]+(?![\s.!?]))*[.!?\u3002\uff01\uff1f]*[\"'\u201d\u2019)]*"
)
_GAP = " … "
_MESSAGE_ROLES = (MessageAuthor.USER.value, MessageAuthor.REPLY.value)

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMessage:
    """A message next to a hit, with the text that the budget has room for."""

    passage: Passage
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit(SearchHit):
    """A hit with the text that a recall returns of it, and the messages before and after it.

    ``before`` and ``after`` are None at the ends of the conversation, if the budget has no room for them, and if the
    same recall returns them in another place.
    """

    text: str
    before: RecalledMessage | None = None
    after: RecalledMessage | None = None

    @property
    def is_whole(self) -> bool:
        """Whether ``text`` is the whole original."""
        return self.text == self.passage.text


def recall_passages(
    index: PassageIndex,
    query: str,
    *,
    count: CountTokens,
    limit: int | None = None,
    max_tokens: int = RECALL_TOKENS,
    excluded: Collection[str] = (),
    conversation_of: Callable[[Passage], str] = lambda _: "",
) -> tuple[RecallHit, ...]:
    """Return the passages that fit a query best, up to ``max_tokens`` tokens.

    The best hit is returned in any case, cut if it has to be. ``conversation_of`` tells conversations in one index
    apart, since the messages next to a hit are of the same one. If the query is the id of something that is in
    ``excluded``, only other versions of the same are returned, and never a text that merely mentions it.
    """
    same = _passages_with_id(index, query)
    if not same.isdisjoint(excluded):
        excluded = {one.passage.id for one in index.passages if one.passage.id not in same}.union(excluded)
    hits = search(index, query, limit=DEFAULT_LIMIT if limit is None else limit, excluded=excluded)
    return fit_hits_and_neighbours_to_budget(
        index, hits, query, count=count, max_tokens=max_tokens, conversation_of=conversation_of
    )


def fit_hits_and_neighbours_to_budget(
    index: PassageIndex,
    hits: Sequence[SearchHit],
    query: str,
    *,
    count: CountTokens,
    max_tokens: int = RECALL_TOKENS,
    named: Collection[str] = (),
    conversation_of: Callable[[Passage], str] = lambda _: "",
) -> tuple[RecallHit, ...]:
    """Return as many of these hits as fit the budget, best first, and with the rest of it the messages next to them.

    Texts of the passages ``named`` by the query are returned whole, as far as the budget reaches.
    """
    shortener = _Shortener(index, query, count)
    left = max_tokens
    taken: dict[str, RecallHit] = {}
    for hit in hits:
        by_name = hit.passage.id in named or _is_query_the_name(hit.passage, query)
        text = shortener.cut_to(hit.passage.text, left) if by_name else shortener.shorten(hit.passage.text)
        cost = count(text) + _HEADER_TOKENS
        if cost > left and not taken:
            text = shortener.cut_to(text, left)
            cost = left
        if cost > left:
            continue
        left -= cost
        taken[hit.passage.id] = _to_recall_hit(hit, text)
    return tuple(_add_neighbours(index, taken, shortener, left, conversation_of))


def _to_recall_hit(hit: SearchHit, text: str) -> RecallHit:
    return RecallHit(passage=hit.passage, score=hit.score, excerpt=hit.excerpt, at=hit.at, text=text)


def _add_neighbours(
    index: PassageIndex,
    taken: Mapping[str, RecallHit],
    shortener: "_Shortener",
    left: int,
    conversation_of: Callable[[Passage], str],
) -> Iterator[RecallHit]:
    """Yield the hits with the messages next to them while the budget lasts; none is returned twice."""
    shown = set(taken)
    for hit in taken.values():
        beside: list[RecalledMessage | None] = []
        for neighbour in find_neighbours(index, hit.passage, conversation_of=conversation_of):
            found = None
            if neighbour is not None and neighbour.id not in shown:
                text = shortener.shorten(neighbour.text)
                cost = shortener.count(text) + _HEADER_TOKENS
                if cost <= left:
                    left -= cost
                    shown.add(neighbour.id)
                    found = RecalledMessage(passage=neighbour, text=text)
            beside.append(found)
        yield replace(hit, before=beside[0], after=beside[1])


def find_neighbours(
    index: PassageIndex, passage: Passage, *, conversation_of: Callable[[Passage], str] = lambda _: ""
) -> tuple[Passage | None, Passage | None]:
    """Return the messages before and after a passage in its conversation."""
    number = index.find_passage_number(passage.id)
    if number is None:
        return None, None
    before = range(number - 1, -1, -1)
    after = range(number + 1, len(index))
    return (
        _find_first_message(index, before, passage, conversation_of),
        _find_first_message(index, after, passage, conversation_of),
    )


def _find_first_message(
    index: PassageIndex, numbers: range, passage: Passage, conversation_of: Callable[[Passage], str]
) -> Passage | None:
    for number in numbers:
        one = index.passages[number].passage
        if conversation_of(one) != conversation_of(passage):
            return None
        # A rule of the user has the same role, and no message of its own.
        if one.role in _MESSAGE_ROLES and one.title == one.message:
            return one
    return None


def _passages_with_id(index: PassageIndex, query: str) -> set[str]:
    """Return the passages whose id the query is, which may be all versions of an artifact; a word is no id."""
    asked = _strip_quotes(query)
    if asked in index:
        return {asked}
    if asked.isalnum():
        return set()
    return {one.passage.id for one in index.passages if one.passage.id.rpartition("@")[0] == asked}


def _strip_quotes(query: str) -> str:
    return query.strip().strip('"')


def _is_query_the_name(passage: Passage, query: str) -> bool:
    """Return whether the query is the id or the name of a passage, and not words of its text."""
    asked = _strip_quotes(query)
    return bool(asked) and (
        passage.id == asked or passage.title.partition(" ")[0] == asked or passage.id.rpartition("@")[0] == asked
    )


class _Shortener:
    """Shortens texts to what fits a query."""

    def __init__(self, index: PassageIndex, query: str, count: CountTokens) -> None:
        parsed = parse_query(query)
        self.count = count
        self._scores = score_query_forms(index, parsed.words)
        self._phrases = [phrase.typed for phrase in parsed.phrases]
        self._normalized_phrases = [phrase.normalized for phrase in parsed.phrases]

    def shorten(self, text: str) -> str:
        """Return a text of up to ``WHOLE_TOKENS`` tokens whole, a longer one as its best sentences, in their order."""
        if len(text) <= _MAX_WHOLE_CHARS and self.count(text) <= WHOLE_TOKENS:
            return text
        searched = text
        if len(text) > _MAX_SEARCHED_CHARS:
            searched = cut_densest_part(text, self._phrases, self._scores, size=_MAX_SEARCHED_CHARS)
        spans = [(match.start(), match.end()) for match in _SENTENCE.finditer(searched)]
        ranked = sorted(spans, key=lambda span: (-self._score_sentence(searched[span[0] : span[1]]), span))
        best = sorted(ranked[:MAX_SENTENCES])
        joined = self._truncate_long_sentence(searched[slice(*best[0])]) if best else ""
        for earlier, span in pairwise(best):
            between = searched[earlier[1] : span[0]]
            joined += (between if not between.strip() else _GAP) + self._truncate_long_sentence(searched[slice(*span)])
        return joined

    def cut_to(self, text: str, max_tokens: int) -> str:
        """Return the beginning of a text that has at most ``max_tokens`` tokens with its header."""
        room = max(max_tokens - _HEADER_TOKENS, 1)
        chars = len(text)
        # No counter gives more than one token for each of so many characters, so most of a long text is not counted.
        text, whole = text[: 20 * room], chars <= 20 * room
        while (tokens := self.count(text)) > room:
            text = text[: min(int(len(text) * room / tokens), len(text) - 1)]
            whole = False
        return text if whole else text.rstrip()

    def _score_sentence(self, sentence: str) -> float:
        """Score a sentence by the query words in it, each once; a whole phrase outweighs any words."""
        normalized = normalize_characters(sentence[:_MAX_SENTENCE_CHARS])
        best: dict[int, float] = {}
        for word in (word for token in split_tokens(normalized) for word in split_token_into_words(token)):
            number, score = self._scores.get(word, (-1, 0.0))
            best[number] = max(best.get(number, 0.0), score)
        words = sum(best.values())
        compared = collapse_whitespace(normalized.casefold())
        bonus = sum(one in compared for one in self._normalized_phrases if one)
        return round(words + bonus * (1 + sum(score for _, score in self._scores.values())), 6)

    def _truncate_long_sentence(self, sentence: str) -> str:
        if len(sentence) <= _MAX_SENTENCE_CHARS and self.count(sentence) <= _MAX_SENTENCE_TOKENS:
            return sentence
        return make_excerpt(sentence, self._phrases, self._scores)
