"""The vocabulary: which words hold a part of one, looked up by three characters at a time."""

from collections.abc import Iterable, Iterator

_GRAM = 3
# A longer word is looked at each time: it has as many parts as it has characters.
_LONGEST = 100


class WordParts:
    """Words that were entered, for those that hold a part."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._long: list[str] = []
        self._by_gram: dict[str, list[str]] = {}

    def extend(self, words: Iterable[str]) -> None:
        """Enter words that are not here."""
        for word in words:
            if len(word) > _LONGEST:
                self._long.append(word)
                continue
            self._words.append(word)
            for gram in {word[at : at + _GRAM] for at in range(len(word) - _GRAM + 1)}:
                self._by_gram.setdefault(gram, []).append(word)

    def find(self, part: str, *, core: str) -> Iterator[str]:
        """The words that hold ``part``; of those beyond ASCII, which may end otherwise, all that hold its ``core``."""
        yield from (word for word in self._list_near(part) if part in word and word.isascii())
        yield from (word for word in self._list_near(core) if core in word and not word.isascii())

    def _list_near(self, part: str) -> Iterator[str]:
        """Words that may hold a part: those with its rarest three characters; of a shorter part all."""
        yield from self._long
        grams = [part[at : at + _GRAM] for at in range(len(part) - _GRAM + 1)]
        yield from min((self._by_gram.get(gram, []) for gram in grams), key=len) if grams else self._words
