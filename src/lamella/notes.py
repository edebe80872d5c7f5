"""Notes: a vault that is searched. ``open_index(vault)`` gives a ``NoteIndex``; see docs/retrieval.md.

A ``ReplySource`` is a passage that an answer cites; see docs/runners.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.fetching import fetch_later

if TYPE_CHECKING:
    from lamella.engine.notes import NoteIndex
    from lamella.engine.sources import ReplySource
    from lamella.holdings import IndexReport, NoteChange, NoteHit
    from lamella.wiring.retrieval import open_index

__all__ = ["IndexReport", "NoteChange", "NoteHit", "NoteIndex", "ReplySource", "open_index"]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.engine.notes": ("NoteIndex",),
        "lamella.engine.sources": ("ReplySource",),
        "lamella.holdings": (
            "IndexReport",
            "NoteChange",
            "NoteHit",
        ),
        "lamella.wiring.retrieval": ("open_index",),
    }
    __getattr__, __dir__ = fetch_later(__name__, _HOMES)
