"""What a search in originals found, as data."""

from collections.abc import Sequence

from lamella.core.search.index import Found


def view_recall(conversation: str, query: str, found: Sequence[Found]) -> dict[str, object]:
    """What left the prompt and has these words, best first."""
    return {"conversation": conversation, "query": query, "found": [_view_found(one) for one in found]}


def _view_found(found: Found) -> dict[str, object]:
    passage = found.passage
    return {
        "place": passage.place,
        "role": passage.role,
        "id": passage.id,
        "title": passage.title,
        "score": found.score,
        "excerpt": found.excerpt,
        "text": passage.text,
    }
