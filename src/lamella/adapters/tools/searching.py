"""``search_notes``: passages of a vault by their words, each with where it stands."""

from collections.abc import Callable, Sequence
from datetime import datetime

from lamella.adapters.retrieval.days import find_days
from lamella.adapters.tools.days import read_days
from lamella.adapters.tools.schema import Arguments, ToolParameter, make_tool
from lamella.attach import Tool
from lamella.engine.notes import NoteIndex
from lamella.engine.sending.tools import NOTHING_FOUND
from lamella.holdings import NoteHit

_MOST, _USUAL = 20, 8
# A passage that is no longer is given whole: the excerpt of it would be about as long.
_WHOLE = 1_200
# The first search of a large vault reads all of it.
_SECONDS = 300.0
_PARAMETERS = (
    ToolParameter(
        "query",
        'Words of what is looked for. [[Note]] names a note; what stands in "double quotes" must be there exactly.',
        required=True,
    ),
    ToolParameter("folder", "Only notes in this folder and below it."),
    ToolParameter("tag", "Only notes with this tag, or one below it."),
    ToolParameter("when", 'Only notes of these days, such as "last week" or "in March 2026".'),
    ToolParameter("limit", f"How many passages to give at most; {_USUAL} by default.", "integer", least=1, most=_MOST),
)


def make_search_tool(notes: NoteIndex, now: Callable[[], datetime]) -> Tool:
    """The index of a vault as a tool."""

    def search(given: Arguments) -> str:
        query = str(given["query"])
        if not query.strip():
            raise ValueError("query is blank")
        at = now()
        asked = compose_query(given, at)
        limit = given.get("limit", _USUAL)
        assert isinstance(limit, int)
        return tell_hits(query, notes.search(asked, limit=limit, now=at))

    return make_tool(
        "search_notes",
        "Search the user's notes, offline, and get the passages that fit best, each with its path and heading. "
        "Other words may find more.",
        parameters=_PARAMETERS,
        run=search,
        seconds=_SECONDS,
    )


def compose_query(given: Arguments, now: datetime) -> str:
    """The question as the index takes it, with its filters in front: of several times the first counts."""
    parts: list[str] = []
    if when := str(given.get("when", "")).strip():
        words = f"in {when}"
        parts.append(when if find_days(when, today=now.date())[0] is not None else words)
        read_days(when, now.date())
    if folder := str(given.get("folder", "")).strip().strip("/"):
        if '"' in folder:
            raise ValueError("folder has a quotation mark in it")
        parts.append(f'path:"{folder}"')
    if tag := str(given.get("tag", "")).strip().lstrip("#"):
        if any(letter.isspace() for letter in tag):
            raise ValueError("tag has a blank in it; give one tag")
        parts.append(f"#{tag}")
    return " ".join((*parts, str(given["query"])))


def tell_hits(query: str, hits: Sequence[NoteHit]) -> str:
    """Passages, the best first, each under its place."""
    if not hits:
        return f"{NOTHING_FOUND}: no note fits {query[:200]!r}. Try fewer or other words, or leave filters out."
    return "\n\n".join(f"{_tell_place(number, hit)}\n{_tell_text(hit)}" for number, hit in enumerate(hits, start=1))


def _tell_place(number: int, hit: NoteHit) -> str:
    below = f", below {hit.heading}" if hit.heading else ""
    return f"[{number}] {hit.path}{below}"


def _tell_text(hit: NoteHit) -> str:
    return hit.text.strip() if len(hit.text) <= _WHOLE else hit.excerpt.strip()
