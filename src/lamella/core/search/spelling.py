"""Spelling: what texts and words are compared by, whatever their case, accents, invisible characters and endings."""

import re
from collections.abc import Callable
from unicodedata import normalize

from Stemmer import Stemmer

from lamella.core.search.irregular import list_roots, list_words
from lamella.core.text.notation import settle

# The two letters i of Turkish: Python folds a capital one to two characters, and the small one not at all.
_TURKISH = {"İ": "i", "\u0131": "i"}
_DOTS = str.maketrans(_TURKISH)
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
# Letters that Unicode does not take for others with an accent, and people do.
_LOOKALIKES = {"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ß": "ss"}
_FOLDING = str.maketrans(_LOOKALIKES)

_NAME = re.compile(r"(?:[A-Z]*+[a-z0-9]++[A-Z]|[A-Z]{2,}+[a-z])[^\W_]*+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SHORTEST_PART = 2
# No word of a language is longer; what is, has no endings.
_LONGEST_WORD = 60

_VOWELS = frozenset("aeiou")
_LETTERS = {"n": "t", "ng": "k"}
_SWALLOWED = re.compile("[mp]en(?:g)?(?=[aeiou])")

_english = Stemmer("porter", 0)
_indonesian = Stemmer("indonesian", 0)
stem_english: Callable[[str], str] = _english.stemWord
stem_indonesian: Callable[[str], str] = _indonesian.stemWord


def lower(text: str) -> str:
    """A settled text without case, by the rules of every language at once: of the letters i of Turkish there is one."""
    return text.lower() if text.isascii() else text.translate(_DOTS).casefold()


def spell(text: str) -> str:
    """A text as it is compared: compatible characters are one, and so are upper and lower case."""
    return lower(settle(text))


def fold(word: str) -> str:
    """A word in the spelling in which words are compared: without case and accents."""
    if word.isascii():
        return word.lower()
    bare = _ACCENTS.sub("", normalize("NFKD", word.casefold()))
    return normalize("NFC", bare).translate(_FOLDING)


def list_stems(folded: str) -> tuple[str, ...]:
    """What is left of a folded word without its endings and beginnings, in English and in Indonesian.

    Of an irregular form it is also what is left of the word.
    """
    if len(folded) > _LONGEST_WORD:
        return ()
    indonesian = stem_indonesian(folded)
    found = [stem_english(folded), indonesian, *map(stem_english, list_words(folded))]
    swallowed = _SWALLOWED.match(folded)
    # Indonesian swallows a letter that the stemmer does not give back: tulis, menulis, and kirim, pengiriman.
    if swallowed is not None and indonesian[:1] in _VOWELS and folded[swallowed.end() :].startswith(indonesian):
        found.append(f"{_LETTERS[swallowed[0][2:]]}{indonesian}")
    return (*found, *map(stem_indonesian, list_roots(folded, indonesian)))


def split_name(word: str) -> list[str]:
    """The parts of a name in which capitals or digits begin words; none of a plain word."""
    bare = word if word.isascii() else _ACCENTS.sub("", normalize("NFKD", word)).translate(_FOLDING)
    parts = _PARTS.findall(bare) if _NAME.fullmatch(bare) else []
    return [part.lower() for part in parts if len(part) >= _SHORTEST_PART]
