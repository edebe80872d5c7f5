"""Ranking: which of some notes speak of what a question asks, by its words and how rare they are among them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from lamella.core.search.terms import find_terms
from lamella.core.text.outline import find_headings

# How much more a word counts in the name of a note, and in a heading of it, than in its text.
_IN_NAME = 4.0
_IN_HEADING = 2.0


def rank_texts(question: str, texts: Sequence[tuple[str, str]], *, key: Callable[[str], str]) -> Sequence[str]:
    """The paths of these texts, those first that hold most of the question; where none does, as they came.

    ``key`` gives the spelling in which texts are compared. A word counts by how few of the texts hold it, once for
    each place: name, headings, body.
    """
    asked = frozenset(find_terms(key(question)))
    if not asked:
        return [path for path, _ in texts]
    found = [(path, _find_places(asked, path, text, key=key)) for path, text in texts]
    held_by = Counter(term for _, places in found for term in {term for _, terms in places for term in terms})
    rarity = {term: math.log(1 + len(texts) / times) for term, times in held_by.items()}
    scores = {path: sum(weight * rarity[term] for weight, terms in places for term in terms) for path, places in found}
    # Sorting is stable: equals stay in the order in which they came.
    return sorted(scores, key=lambda path: -scores[path])


def _find_places(
    asked: frozenset[str], path: str, text: str, *, key: Callable[[str], str]
) -> list[tuple[float, frozenset[str]]]:
    """The words of the question in each place of a note, with how much they count there."""
    headings = "\n".join(words for _, _, words in find_headings(text))
    return [
        (_IN_NAME, _common(asked, find_terms(key(path)))),
        (_IN_HEADING, _common(asked, find_terms(key(headings)))),
        (1.0, _common(asked, find_terms(key(text)))),
    ]


def _common(asked: frozenset[str], terms: Iterable[str]) -> frozenset[str]:
    return asked.intersection(terms)
