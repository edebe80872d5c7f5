"""Words: what a text is found by. Case and accents do not count, a word is its stem, and a name has parts.

Texts are reduced here, in Python, and the index takes the result as it is: words with a space between them. SQLite's own
tokenizers find nothing in Chinese or Japanese, and no part of a name such as `PodTemplateSpec`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from unicodedata import is_normalized, normalize

from Stemmer import Stemmer
from Stemmer import version as stemmer_version

from lamella.core.text.scripts import WIDE

# Raised when the same text would be reduced to other words: indexes that were made before are made anew.
RULES = f"1 {stemmer_version()}"
ENGLISH, INDONESIAN = "english", "indonesian"

_HANGUL = r"\uac00-\ud7a3"
_RUN = rf"{WIDE}{_HANGUL}"
# Vowel signs of the scripts of India are no letters to Python, and do not end a word either.
_INDIC = r"\u0900-\u0963\u0966-\u0dff"
_HALF_WIDTH = r"\uff00-\uffef"
# Each is slower than the one before it, and most texts need no more than the first. What stands between the parts of a
# name is taken with them: to look for what is on both sides of it takes half as long again.
_ASCII_WORDS = re.compile(r"[A-Za-z0-9_-]+")
_WORDS = re.compile(r"[\w-]+")
_WORDS_AND_RUNS = re.compile(rf"[{_RUN}]+|(?:[^\W{_RUN}]|[{_INDIC}-])+")
_IS_RUN = re.compile(rf"[{_RUN}]")
_IS_SPECIAL = re.compile(rf"[{_RUN}{_INDIC}{_HALF_WIDTH}]")
_JOINTS = re.compile("[_-]+")
_PLAIN = re.compile(r"[A-Z]?[a-z]*|[A-Z]+|[0-9]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
# Letters that Unicode does not take for another with an accent, and people do.
_LOOKALIKES = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"})
_SHORTEST_PART = 2
_LONGEST_WORD = 100
_MOST_KNOWN = 200_000

# Words that nearly every text of a language has, and hardly one of the other.
_TELLING: Mapping[str, frozenset[str]] = {
    ENGLISH: frozenset("the of and to in is for that with are on as this be or".split()),
    INDONESIAN: frozenset("yang dan dengan untuk ini itu dari pada adalah tidak akan dalam kita saya ke di".split()),
}
_TELLING_CHARS = 4_000
_TELLING_LEAST = 3


class Lexicon(dict[str, str]):
    """Each spelling with the words that it is found by, in one language. A spelling is reduced once and remembered."""

    def __init__(self, language: str) -> None:
        super().__init__()
        # Its own memory is slower than ours.
        stemmer = Stemmer(language, 0)
        self._stem: Callable[[str], str] = stemmer.stemWord
        self._stem_all: Callable[[Sequence[str]], list[str]] = stemmer.stemWords

    def reduce(self, text: str) -> str:
        """A text as words to be found by, with a space between them."""
        if text.isascii():
            return " ".join(map(self.__getitem__, _ASCII_WORDS.findall(text)))
        if not is_normalized("NFC", text):
            text = normalize("NFC", text)
        if _IS_SPECIAL.search(text) is None:
            return " ".join(map(self.__getitem__, _WORDS.findall(text)))
        found = _WORDS_AND_RUNS.findall(normalize("NFKC", text))
        return " ".join(_split_run(one) if _IS_RUN.match(one) else self[one] for one in found)

    def ask(self, text: str) -> list[str]:
        """A question as words to look for; one that ends in a star stands for all that begin like it."""
        if text.isascii():
            return self.reduce(text).split()
        found = _WORDS_AND_RUNS.findall(normalize("NFKC", text))
        return [word for one in found for word in (_ask_run(one) if _IS_RUN.match(one) else self[one].split())]

    def __missing__(self, word: str) -> str:
        """Python asks this for a spelling that is new; those that are known cost no call of ours."""
        if len(self) > _MOST_KNOWN:
            self.clear()
        plain = _PLAIN.fullmatch(word) is not None
        found = self[word] = self._stem(word.lower()) if plain else self._reduce_name(word)
        return found

    def _reduce_name(self, word: str) -> str:
        """A word with an accent, or a name of several parts: each of the parts, and the whole."""
        parts = _split_name(word)
        whole = "".join(parts)[:_LONGEST_WORD]
        if len(parts) == 1:
            return self._stem(whole)
        told = [part[:_LONGEST_WORD] for part in parts if len(part) >= _SHORTEST_PART]
        return " ".join(dict.fromkeys(self._stem_all([*told, whole])))


class Vocabulary:
    """The languages that are known; a text is of one of them, and a question may be of any."""

    def __init__(self) -> None:
        self._lexicons = {language: Lexicon(language) for language in _TELLING}

    def lexicon(self, language: str) -> Lexicon:
        """The words of a language."""
        return self._lexicons[language]

    def ask(self, text: str) -> tuple[tuple[str, ...], ...]:
        """A question as words to look for, in each language; where two give the same, once."""
        return tuple(dict.fromkeys(tuple(lexicon.ask(text)) for lexicon in self._lexicons.values()))


def guess_language(text: str) -> str:
    """The language of a text, by words that nearly every one has; English where there are none."""
    words = _ASCII_WORDS.findall(text[:_TELLING_CHARS].lower())
    english, indonesian = (sum(map(telling.__contains__, words)) for telling in _TELLING.values())
    return INDONESIAN if indonesian >= _TELLING_LEAST and indonesian > english else ENGLISH


def fold(word: str) -> str:
    """A word in the spelling in which words are compared: without case and accents."""
    if word.isascii():
        return word.lower()
    bare = _ACCENTS.sub("", normalize("NFKD", word.casefold()))
    return normalize("NFC", bare).translate(_LOOKALIKES)


def _split_run(run: str) -> str:
    """What has no spaces is found by every two characters that follow each other, and by its last one."""
    return " ".join([*map("".join, pairwise(run)), run[-1]])


def _ask_run(run: str) -> list[str]:
    return [*map("".join, pairwise(run))] or [f"{run}*"]


def _split_name(word: str) -> list[str]:
    """The parts of a name that capitals, digits, dashes or underscores divide, as they are compared."""
    if word.isascii():
        return _PARTS.findall(word) if word.islower() else [part.lower() for part in _PARTS.findall(word)]
    return [fold(part) for piece in _JOINTS.split(word) for part in _split_case(piece)]


def _split_case(word: str) -> list[str]:
    if word.islower() or word.isupper() or word[1:].islower():
        return [word]
    cuts = [at for at in range(1, len(word)) if word[at].isupper() and word[at - 1].islower()]
    return [word[start:end] for start, end in pairwise((0, *cuts, len(word))) if end > start]
