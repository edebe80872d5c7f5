"""Passages: the part of a chunk that has the words, and what is told of where they stand."""

from collections.abc import Iterator, Sequence

from lamella.adapters.retrieval.matching import Wording

_FIELDS = ("title", "tags", "headings", "path", "properties", "text")
_PASSAGE_CHARS = 300


def tell_words(wording: Wording, fields: Sequence[str]) -> Iterator[str]:
    """Which words of a question a chunk has, and in which of its fields."""
    padded = [f" {field} " for field in fields]
    terms = [term for term in wording.worth if any(f" {term.rstrip('*')}" in field for field in padded)]
    if terms:
        places = [
            name
            for name, field in zip(_FIELDS, padded, strict=True)
            if any(f" {term} " in field or (term.endswith("*") and f" {term[:-1]}" in field) for term in terms)
        ]
        yield f"{', '.join(term.rstrip('*') for term in terms)} in {', '.join(places)}"


def cut_passage(text: str, wording: Wording | None) -> str:
    """The lines of a text that have the most of what was asked; its beginning where none has any."""
    if len(text) <= _PASSAGE_CHARS:
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    worth = {} if wording is None else {term.rstrip("*"): worth for term, worth in wording.worth.items()}
    scores = [sum(worth[term] for term in worth if term in line.casefold()) for line in lines]
    best = max(range(len(lines)), key=lambda at: (scores[at], -at), default=0)
    taken = "\n".join(lines[best : best + 3])
    return _cut(taken, worth) if len(taken) > _PASSAGE_CHARS else taken


def _cut(text: str, terms: dict[str, float]) -> str:
    folded = text.casefold()
    places = [at for term in terms if (at := folded.find(term)) >= 0]
    start = max(0, min(places, default=0) - _PASSAGE_CHARS // 4)
    end = min(len(text), start + _PASSAGE_CHARS)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"
