"""Extra search words of a text, beyond the words that SQLite finds in it.

SQLite splits a text into words, removes case and accents, and reduces each word to its English stem. It does that in
C: in Python it takes three times as long (2026-11-17). This module adds what SQLite does not do, for a column of its
own: parts of names such as `PodTemplateSpec`, stems of Indonesian words, scripts without spaces, and letters that only
look accented.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from Stemmer import version as stemmer_version

from lamella.core.search.language import (
    ENGLISH_MARKER_WORDS,
    INDONESIAN_MARKER_WORDS,
    indonesian_roots,
    normalize_word,
    split_identifier,
    stem_english,
    stem_indonesian,
)
from lamella.core.text.content import UNSPACED_SCRIPTS

TOKENIZER = "porter unicode61 remove_diacritics 2"
# Raise this when the same text would get other search words. Existing indexes are then rebuilt.
WORD_RULES_VERSION = f"2 {stemmer_version()}"

_UNSPACED_CHARS = rf"{UNSPACED_SCRIPTS}\uac00-\ud7a3"
_UNSPACED_TEXT = re.compile(rf"[{_UNSPACED_CHARS}]+")
# The shape of a text, with one byte per character. A name has parts if a lowercase letter is followed by a capital, or
# capitals by a lowercase letter. Searching the shape takes a quarter of the time of a pattern on the text.
_SHAPE_TABLE = bytes(
    65 if 65 <= code <= 90 else 97 if chr(code).isalnum() and code < 128 else 32 for code in range(256)
)
_CASE_CHANGES = (b"aA", b"AAa")
_QUERY_WORD = re.compile(rf"[{_UNSPACED_CHARS}]+|[^\W_{_UNSPACED_CHARS}]+(?:[_-][^\W_{_UNSPACED_CHARS}]+)*")
_WORD_JOINERS = re.compile("[_-]")
# Letters that only look accented, full-width letters, and half-width kana.
_SPECIAL_LETTERS = re.compile(r"[ıİøØłŁđĐðÐþÞæÆœŒßẞ\uff00-\uffef]")
_WORD = re.compile(r"\w+")
# Latin words and numbers next to text without spaces, which SQLite treats as part of it.
_WORDS_BESIDE_UNSPACED = re.compile(
    rf"(?<=[{_UNSPACED_CHARS}])[^\W_{_UNSPACED_CHARS}]+|[^\W_{_UNSPACED_CHARS}]+(?=[{_UNSPACED_CHARS}])"
)
_NON_LETTERS_TO_SPACE = {code: " " for code in range(128) if not chr(code).isalpha()}
_MAX_CACHED_WORDS = 100_000
_LANGUAGE_SAMPLE_CHARS = 4_000
_MIN_INDONESIAN_WORDS = 3


class QueryWord(NamedTuple):
    """A word of a query as it was typed, its stem as SQLite stores it, and other terms that mean the same.

    A stem with a star at its end matches all words that begin with it. Each of ``other_terms`` is a word or a phrase.
    """

    text: str
    stem: str
    other_terms: tuple[str, ...] = ()


class _WordCache(dict[str, str]):
    """A cache of results by word. Python calls ``__missing__`` only for new words, so known ones cost no call."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, word: str) -> str:
        if len(self) > _MAX_CACHED_WORDS:
            self.clear()
        made = self[word] = self._make(word)
        return made


def extra_search_words(text: str, *, is_indonesian_text: bool = False) -> str:
    """Return the extra search words of a text, separated by spaces."""
    found = list(map(_name_parts.__getitem__, _iter_compound_words(text)))
    if is_indonesian_text:
        found += filter(
            None,
            map(_indonesian_stems.__getitem__, dict.fromkeys(text.lower().translate(_NON_LETTERS_TO_SPACE).split())),
        )
    if not text.isascii():
        found += _iter_non_ascii_words(text)
    return " ".join(found)


def _iter_non_ascii_words(text: str) -> Iterator[str]:
    if _SPECIAL_LETTERS.search(text):
        yield from (normalize_word(word) for word in _WORD.findall(text) if _SPECIAL_LETTERS.search(word))
    if _UNSPACED_TEXT.search(text):
        text = normalize("NFKC", text)
        yield from map(_character_pairs, _UNSPACED_TEXT.findall(text))
        yield from _WORDS_BESIDE_UNSPACED.findall(text)


def parse_query_words(text: str) -> list[QueryWord]:
    """Return the words of a query."""
    return [word for found in _QUERY_WORD.findall(normalize("NFKC", text)) for word in _expand_query_word(found)]


def is_indonesian(text: str) -> bool:
    """Return whether a text is Indonesian, judged by its most frequent words."""
    if " yang " not in text and " dan " not in text:
        # Hardly any Indonesian paragraph lacks both words. Most other texts need no further check.
        return False
    words = text[:_LANGUAGE_SAMPLE_CHARS].lower().translate(_NON_LETTERS_TO_SPACE).split()
    theirs = sum(map(INDONESIAN_MARKER_WORDS.__contains__, words))
    return theirs >= _MIN_INDONESIAN_WORDS and theirs > sum(map(ENGLISH_MARKER_WORDS.__contains__, words))


def _iter_compound_words(text: str) -> Iterator[str]:
    """Yield the words of a text that consist of parts, as far as their letters are ASCII."""
    # Other characters become "?", so that positions in the shape are positions in the text.
    shape = text.encode("ascii", "replace").translate(_SHAPE_TABLE)
    for seam in _CASE_CHANGES:
        at = shape.find(seam)
        while at >= 0:
            end = shape.find(b" ", at)
            end = len(text) if end < 0 else end
            yield text[shape.rfind(b" ", 0, at) + 1 : end]
            at = shape.find(seam, end)


def _expand_query_word(word: str) -> Iterator[QueryWord]:
    if _UNSPACED_TEXT.match(word):
        pairs = [*map("".join, pairwise(word))]
        if not pairs:
            yield QueryWord(word, f"{word}*")
        yield from (QueryWord(pair, pair) for pair in pairs)
        return
    pieces = _WORD_JOINERS.split(word)
    for piece in pieces:
        folded = normalize_word(piece)
        stem = stem_indonesian(folded)
        others = {folded, stem, *indonesian_roots(folded, stem), *split_identifier(piece)} - {piece.lower()}
        yield QueryWord(piece, stem_english(folded), tuple(sorted(others)))
    if len(pieces) > 1:
        # The same name, written as one word.
        yield QueryWord("".join(pieces), stem_english(normalize_word("".join(pieces))))


def _character_pairs(run: str) -> str:
    """Return every two adjacent characters of a text without spaces, and its last character."""
    return " ".join([*map("".join, pairwise(run)), run[-1]])


def _changed_indonesian_stems(word: str) -> str:
    """Return the stem of a word and the roots that its prefixes may hide, without the word itself."""
    stem = stem_indonesian(word)
    return " ".join(dict.fromkeys(one for one in (stem, *indonesian_roots(word, stem)) if one != word))


_name_parts = _WordCache(lambda word: " ".join(split_identifier(word)))
_indonesian_stems = _WordCache(_changed_indonesian_stems)
