"""The order in which messages leave the digest: long ones first, then those that say least for their length.

The weights were set by hand, and the bound of 120 tokens was chosen on some conversations and checked on others; see
docs/explanation/compaction.md for the measurements.
"""

import math
import re
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from lamella.core.prompt.layers.digest import DigestMessage
from lamella.core.text.content import UNSPACED_SCRIPTS
from lamella.core.text.word_lists import WordLists

# Longer messages leave first, the longest of them first.
LONG_MESSAGE_TOKENS = 120
# A shorter message does not score higher than one with this many tokens.
_MIN_SCORED_TOKENS = 50
_MIN_INFORMATION = 0.1
_SCORE_DIGITS = 9

_NUMBER = re.compile(r"\d[\d.,:/\u2019'-]*")
_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]+|[^\W\d_{UNSPACED_SCRIPTS}][\w'\u2019-]*")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED_SCRIPTS}]")
_KATAKANA_NAME = re.compile(r"[\u30a1-\u30fa\u30fc]{3,}")
_SENTENCE = re.compile(r"[^.!?\n\u3002\uff01\uff1f]+[.!?\u3002\uff01\uff1f]*")
_QUESTION_END = re.compile(r"[?\uff1f][\s\"'\u201d\u2019)*_]*$")


class _MessageContent(NamedTuple):
    """What a message contains that later turns may need."""

    numbers: int
    names: int
    first_person: int
    words: frozenset[str]
    has_only_questions: bool
    is_opened_by_acknowledgement: bool


def rank_messages_for_removal(messages: Sequence[DigestMessage], words: WordLists) -> list[DigestMessage]:
    """Return the messages in the order in which they leave; ``messages`` are in the order in which they were said."""
    seen: set[str] = set()
    scores: dict[str, float] = {}
    own = frozenset(words.first_person)
    for message in messages:
        content = _analyze_content(message.text, own, words.acknowledgement_openings)
        scores[message.id] = _score_information(content, new_words=len(content.words - seen), tokens=message.tokens)
        seen |= content.words
    return sorted(
        messages,
        key=lambda message: (
            (0, -message.tokens, message.number)
            if message.tokens > LONG_MESSAGE_TOKENS
            else (1, scores[message.id], message.number)
        ),
    )


def _score_information(content: _MessageContent, *, new_words: int, tokens: int) -> float:
    information = (
        1
        + 0.5 * min(content.numbers, 4)
        + 0.25 * min(content.names, 6)
        + 0.1 * min(new_words, 15)
        + 0.3 * min(content.first_person, 3)
        - 0.5 * content.has_only_questions
        - 0.7 * content.is_opened_by_acknowledgement
    )
    score = math.log(1 + max(information, _MIN_INFORMATION)) / max(tokens, _MIN_SCORED_TOKENS)
    # Equal sums of different terms can differ in their last bits.
    return round(score, _SCORE_DIGITS)


@lru_cache(maxsize=1 << 13)
def _analyze_content(text: str, own: frozenset[str], openings: tuple[str, ...]) -> _MessageContent:
    sentences = [match[0].strip() for match in _SENTENCE.finditer(text)]
    sentences = [sentence for sentence in sentences if sentence]
    stated = [sentence for sentence in sentences if not _QUESTION_END.search(sentence)]
    numbers = names = first_person = 0
    for sentence in stated:
        numbers += len(_NUMBER.findall(sentence))
        spoken = _WORD.findall(sentence)
        # A capital at the start of a sentence is no name, and neither is the English "I".
        names += sum(word[0].isupper() and word.casefold() not in own for word in spoken[1:])
        names += len(_KATAKANA_NAME.findall(sentence))
        first_person += _count_first_person(sentence, spoken, own)
    return _MessageContent(
        numbers=numbers,
        names=names,
        first_person=first_person,
        words=frozenset(_list_words(text)),
        has_only_questions=bool(sentences) and not stated,
        is_opened_by_acknowledgement=_starts_with_any(text, openings),
    )


def _count_first_person(sentence: str, spoken: Sequence[str], own: Set[str]) -> int:
    found = sum(word.casefold().partition("'")[0].partition("\u2019")[0] in own for word in spoken)
    return found + sum(sentence.count(word) for word in own if _UNSPACED_RUN.match(word))


def _list_words(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, all pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if _UNSPACED_RUN.match(word):
            found += [word[at : at + 2] for at in range(max(len(word) - 1, 1))]
        else:
            found.append(word.casefold())
    return found


def _starts_with_any(text: str, openings: Sequence[str]) -> bool:
    start = " ".join(text[:60].casefold().split())
    return any(
        start.startswith(opening)
        and (bool(_UNSPACED_RUN.match(opening)) or not start[len(opening) : len(opening) + 1].isalnum())
        for opening in openings
    )
