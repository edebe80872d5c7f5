"""Passages: the part of a chunk that has the words, and what is told of where they stand."""

import re
from collections.abc import Mapping

from lamella.adapters.retrieval.matching import Wording
from lamella.core.text.scripts import WIDE

_FIELDS = {"title": "title", "tags": "tags", "headings": "heading", "path": "path", "properties": "properties"}
_PASSAGE_CHARS = 300
_LINES = 3
_IS_WIDE = re.compile(rf"[{WIDE}]")


def find_in(wording: Wording) -> re.Pattern[str]:
    """A pattern for words of a question in any of their forms."""
    stems = {_shorten(stem) for word in wording.words for stem in (word.stem, *word.others)}
    return re.compile("|".join(_write(stem) for stem in sorted(stems, key=lambda one: (-len(one), one)) if stem))


def tell_words(words: re.Pattern[str], fields: Mapping[str, str]) -> str:
    """Which words of a question a chunk has, and in which of its fields."""
    found = {name: words.findall(fields[field].casefold()) for field, name in _FIELDS.items()}
    found["text"] = words.findall(f"{fields['body']} {fields['extra']}".casefold())
    told = dict.fromkeys(word for words in found.values() for word in words)
    return f"{', '.join(told)} in {', '.join(name for name, has in found.items() if has)}" if told else ""


def cut_passage(text: str, words: re.Pattern[str] | None) -> str:
    """The lines of a text that have the most of what was asked; its beginning where none has any."""
    if len(text) <= _PASSAGE_CHARS:
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    scores = [0 if words is None else len(set(words.findall(line.casefold()))) for line in lines]
    best = scores.index(max(scores))
    taken = "\n".join(lines[best : best + _LINES])
    match = None if words is None else words.search(taken.casefold())
    start = max(0, (match.start() if match else 0) - _PASSAGE_CHARS // 4) if len(taken) > _PASSAGE_CHARS else 0
    end = start + _PASSAGE_CHARS
    return f"{'… ' if start else ''}{taken[start:end].strip()}{' …' if end < len(taken) else ''}"


def _shorten(stem: str) -> str:
    """What all forms of a word begin with: a stem may end in what none of them has."""
    stem = stem.removesuffix("*")
    return stem[:-1] if stem.endswith("i") and len(stem) > len("xi") else stem


def _write(stem: str) -> str:
    return re.escape(stem) if _IS_WIDE.search(stem) else rf"(?<!\w){re.escape(stem)}\w*"
