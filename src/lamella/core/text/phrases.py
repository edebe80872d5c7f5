"""Phrases of word lists, and the search for them: ``*`` continues a word and ``...`` means a few words."""

import re
from collections.abc import Iterable, Iterator, Set

from lamella.core.text.content import UNSPACED_SCRIPTS

_UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}]")
_GAP_PATTERN = r"[^.!?;\n\u3002\uff01\uff1f]{0,40}?"
_ANY_WORD = re.compile(r"\w+")


class Phrases:
    """Phrases of one list, searched only if the text has all of their words: most sentences have those of none."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_word: dict[str, list[tuple[frozenset[str], re.Pattern[str]]]] = {}
        self._unspaced: list[tuple[str, re.Pattern[str]]] = []
        beginnings: list[str] = []
        for phrase in dict.fromkeys(phrases):
            pattern = re.compile(phrase_pattern(phrase), re.IGNORECASE)
            needed = frozenset(_ANY_WORD.findall(re.sub(r"\w*\*\w*", " ", phrase)))
            if not needed and not _UNSPACED.search(phrase):
                beginnings.append(phrase_pattern(phrase))
            elif _UNSPACED.search(phrase):
                self._unspaced.append((max(re.split(r"\.\.\.|\*", phrase), key=len), pattern))
            else:
                self._by_word.setdefault(max(needed, key=lambda word: (len(word), word)), []).append((needed, pattern))

        # Phrases without a whole word, such as "decid*", cannot be looked up by one.
        self._beginnings = re.compile("|".join(beginnings), re.IGNORECASE) if beginnings else None

    def could_match(self, text: str, words: Set[str]) -> bool:
        """Return whether the text has all words of a phrase."""
        return next(self._candidates(text, words), None) is not None

    def finditer(self, text: str) -> list[re.Match[str]]:
        """Return all matches, in order."""
        words = frozenset(_ANY_WORD.findall(text.lower()))
        found = [match for pattern in self._candidates(text, words) for match in pattern.finditer(text)]
        return sorted(found, key=lambda match: (match.start(), -match.end()))

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match."""
        return next(iter(self.finditer(text)), None)

    def first_match_at(self, text: str, places: Iterable[int]) -> int | None:
        """Return the first of these places where a phrase begins."""
        starts = {match.start() for match in self.finditer(text)}
        return next((at for at in sorted(places) if at in starts), None)

    def blank_out(self, text: str) -> str:
        """Return the text with spaces instead of its phrases."""
        for match in self.finditer(text):
            text = f"{text[: match.start()]}{' ' * len(match[0])}{text[match.end() :]}"
        return text

    def _candidates(self, text: str, words: Set[str]) -> Iterator[re.Pattern[str]]:
        if self._beginnings is not None and self._beginnings.search(text):
            yield self._beginnings
        for word in words & self._by_word.keys():
            yield from (pattern for needed, pattern in self._by_word[word] if needed <= words)
        if self._unspaced and not text.isascii():
            yield from (pattern for part, pattern in self._unspaced if part in text)


def phrase_pattern(phrase: str) -> str:
    """Return the pattern of one phrase, with word boundaries in scripts that have spaces."""
    parts = [re.escape(part).replace(r"\ ", r"\s+").replace(r"\*", r"\w*") for part in phrase.split("...")]
    pattern = _GAP_PATTERN.join(part.strip() for part in parts)
    if _UNSPACED.search(phrase):
        return pattern
    return rf"(?<!\w){pattern}(?!\w)"
