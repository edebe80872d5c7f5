"""Passages: the part of a chunk that has the words, and what is told of where they stand."""

import re
from collections.abc import Mapping, Sequence

from lamella.adapters.retrieval.words import AskedWord
from lamella.core.text.scripts import WIDE

_FIELDS = (
    ("title", "title"),
    ("tags", "tags"),
    ("headings", "heading"),
    ("path", "path"),
    ("properties", "properties"),
)
_PASSAGE_CHARS = 300
_IS_WIDE = re.compile(rf"[{WIDE}]")


class Needles:
    """What the words of a question begin with in any of their forms, to be found in a text as it stands."""

    def __init__(self, words: Sequence[AskedWord]) -> None:
        starts = dict.fromkeys((word.text, _shorten(one)) for word in words for one in (word.stem, *word.others))
        self._starts = [(word, start, _IS_WIDE.search(word) is not None) for word, start in starts]
        self.words = tuple(dict.fromkeys(word.text for word in words))

    def find(self, folded: str) -> list[str]:
        """Those of the words that a folded text has."""
        return [
            word
            for word, start, wide in self._starts
            if start in folded and (wide or has_word(folded, start, whole=False))
        ]

    def place(self, folded: str) -> int:
        """Where most of them stand together, of several such places the first; the beginning where none stands."""
        places = sorted(at for _, start, _ in self._starts if (at := folded.find(start)) >= 0)
        near = [sum(0 <= other - at < _PASSAGE_CHARS // 2 for other in places) for at in places]
        return places[near.index(max(near))] if places else 0


def has_word(text: str, word: str, *, whole: bool = True) -> bool:
    """Whether a word stands in a text by itself and not as a part of another, or not ``whole``, as its beginning."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and text[at - 1].isalnum()) and not (whole and text[end : end + 1].isalnum()):
            return True
        at = text.find(word, end)
    return False


def tell_words(needles: Needles, fields: Mapping[str, str]) -> str:
    """Which words of a question a chunk has, and in which of its fields."""
    found = {name: needles.find(fields[field].casefold()) for field, name in _FIELDS if fields[field]}
    found["text"] = needles.find(f"{fields['body']} {fields['extra']}".casefold())
    told = [word for word in needles.words if any(word in words for words in found.values())]
    return f"{', '.join(told)} in {', '.join(name for name, words in found.items() if words)}" if told else ""


def cut_passage(text: str, needles: Needles | None) -> str:
    """A short text whole; of a long one the part that has the most of what was asked, from the beginning of a line."""
    if len(text) <= _PASSAGE_CHARS:
        return text
    place = 0 if needles is None else min(needles.place(text.casefold()), len(text) - 1)
    line = text.rfind("\n", 0, place) + 1
    start = line if place - line < _PASSAGE_CHARS // 2 else text.rfind(" ", 0, place - _PASSAGE_CHARS // 4) + 1
    end = min(len(text), start + _PASSAGE_CHARS)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def _shorten(stem: str) -> str:
    """What all forms of a word begin with: a stem may end in what none of them has."""
    stem = stem.removesuffix("*")
    return stem[:-1] if stem.endswith("i") and len(stem) > len("xi") else stem
