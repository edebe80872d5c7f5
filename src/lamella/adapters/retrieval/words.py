"""Words: what a text is found by beyond the words that SQLite sees in it.

SQLite splits a text into words, takes case and accents away and reduces each to its English stem, in C: to do all of
that here takes three times as long (2026-11-17). What it does not do is done here, and stands in a column of its own:
parts of names such as `PodTemplateSpec`, stems of Indonesian words, scripts without spaces, letters that only look
accented.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from Stemmer import version as stemmer_version

from lamella.core.search.small_words import ENGLISH, INDONESIAN
from lamella.core.search.spelling import fold, split_name, stem_english, stem_indonesian
from lamella.core.text.scripts import WIDE

TOKENIZER = "porter unicode61 remove_diacritics 2"
# Raised when the same text would be found by other words: indexes that were made before are made anew.
RULES = f"1 {stemmer_version()}"

_RUN = rf"{WIDE}\uac00-\ud7a3"
_RUNS = re.compile(rf"[{_RUN}]+")
# The shape of a text: where a small letter is followed by a capital, or capitals by a small one, a name has parts. To
# look for these in it takes a fourth of what a pattern takes in the text itself.
_SHAPES = bytes(65 if 65 <= code <= 90 else 97 if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_SEAMS = (b"aA", b"AAa")
_ASKED = re.compile(rf"[{_RUN}]+|[^\W_{_RUN}]+(?:[_-][^\W_{_RUN}]+)*")
_JOINTS = re.compile("[_-]")
# Letters that only look accented, and the wide forms of letters and narrow ones of kana.
_ODD = re.compile(r"[ıİøØłŁđĐðÐþÞæÆœŒßẞ\uff00-\uffef]")
_WORD = re.compile(r"\w+")
# Latin words and numbers in the midst of a run, which SQLite takes for a part of it.
_BESIDE_RUNS = re.compile(rf"(?<=[{_RUN}])[^\W_{_RUN}]+|[^\W_{_RUN}]+(?=[{_RUN}])")
_BLANKS = {code: " " for code in range(128) if not chr(code).isalpha()}
_MOST_KNOWN = 100_000
_TELLING_CHARS = 4_000
_TELLING_LEAST = 3


class AskedWord(NamedTuple):
    """A word of a question as it was typed, as SQLite will know it, and what else finds the same.

    One that ends in a star stands for all that begin like it. Each of ``others`` is a word or several in a row.
    """

    text: str
    stem: str
    others: tuple[str, ...] = ()


class _Memory(dict[str, str]):
    """What was made of each word before. Python asks ``__missing__`` for the others: known ones cost no call."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, word: str) -> str:
        if len(self) > _MOST_KNOWN:
            self.clear()
        made = self[word] = self._make(word)
        return made


def extend(text: str, *, indonesian: bool = False) -> str:
    """The words that a text is found by beyond its own, with a space between them."""
    found = list(map(_names.__getitem__, _find_names(text)))
    if indonesian:
        found += filter(None, map(_stems.__getitem__, dict.fromkeys(text.lower().translate(_BLANKS).split())))
    if not text.isascii():
        found += _extend_odd(text)
    return " ".join(found)


def _extend_odd(text: str) -> Iterator[str]:
    if _ODD.search(text):
        yield from (fold(word) for word in _WORD.findall(text) if _ODD.search(word))
    if _RUNS.search(text):
        text = normalize("NFKC", text)
        yield from map(_split_run, _RUNS.findall(text))
        yield from _BESIDE_RUNS.findall(text)


def ask(text: str) -> list[AskedWord]:
    """The words of a question."""
    return [word for found in _ASKED.findall(normalize("NFKC", text)) for word in _ask_word(found)]


def is_indonesian(text: str) -> bool:
    """Whether a text is Indonesian, by words that nearly every such text has."""
    if " yang " not in text and " dan " not in text:
        # Hardly a paragraph does without both; most texts are done with this.
        return False
    words = text[:_TELLING_CHARS].lower().translate(_BLANKS).split()
    theirs = sum(map(INDONESIAN.__contains__, words))
    return theirs >= _TELLING_LEAST and theirs > sum(map(ENGLISH.__contains__, words))


def _find_names(text: str) -> Iterator[str]:
    """Words of a text that have parts, as far as their letters are ASCII."""
    shape = text.encode("ascii", "replace").translate(_SHAPES)
    for seam in _SEAMS:
        at = shape.find(seam)
        while at >= 0:
            end = shape.find(b" ", at)
            end = len(text) if end < 0 else end
            yield text[shape.rfind(b" ", 0, at) + 1 : end]
            at = shape.find(seam, end)


def _ask_word(word: str) -> Iterator[AskedWord]:
    if _RUNS.match(word):
        pairs = [*map("".join, pairwise(word))]
        if not pairs:
            yield AskedWord(word, f"{word}*")
        yield from (AskedWord(pair, pair) for pair in pairs)
        return
    pieces = _JOINTS.split(word)
    for piece in pieces:
        folded = fold(piece)
        others = {folded, stem_indonesian(folded), *split_name(piece)} - {piece.lower()}
        yield AskedWord(piece, stem_english(folded), tuple(sorted(others)))
    if len(pieces) > 1:
        # Written as one word it is the same name.
        yield AskedWord("".join(pieces), stem_english(fold("".join(pieces))))


def _split_run(run: str) -> str:
    """What has no spaces is found by every two characters that follow each other, and by its last one."""
    return " ".join([*map("".join, pairwise(run)), run[-1]])


def _stem_other(word: str) -> str:
    stem = stem_indonesian(word)
    return "" if stem == word else stem


_names = _Memory(lambda word: " ".join(split_name(word)))
_stems = _Memory(_stem_other)
