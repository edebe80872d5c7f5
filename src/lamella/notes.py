"""Notes: a vault that is searched. ``open_index(vault)`` gives a ``NoteIndex``; see docs/retrieval.md.

A ``ReplySource`` is a passage that an answer cites; see docs/runners.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamella.engine.notes import NoteIndex
    from lamella.engine.sources import ReplySource
    from lamella.holdings import IndexReport, NoteChange, NoteHit
    from lamella.wiring.retrieval import open_index

__all__ = ["IndexReport", "NoteChange", "NoteHit", "NoteIndex", "ReplySource", "open_index"]

if not TYPE_CHECKING:
    _HOMES = {
        "IndexReport": "lamella.holdings",
        "NoteChange": "lamella.holdings",
        "NoteHit": "lamella.holdings",
        "NoteIndex": "lamella.engine.notes",
        "ReplySource": "lamella.engine.sources",
        "open_index": "lamella.wiring.retrieval",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
