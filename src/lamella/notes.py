"""Public API for searching a vault. ``open_index(vault)`` returns a ``NoteIndex``; see docs/how-to/search-notes.md.

A ``Citation`` is a passage that an answer cites; see docs/how-to/ask-with-citations.md.

Names are imported on first use, so importing this module costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.conversation.note_index import Citation, NoteIndex
    from lamella.ports import FileChange, IndexReport, NoteHit
    from lamella.wiring.sources import open_index

__all__ = ["Citation", "FileChange", "IndexReport", "NoteHit", "NoteIndex", "open_index"]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.conversation.note_index": ("NoteIndex", "Citation"),
        "lamella.ports": ("IndexReport", "FileChange", "NoteHit"),
        "lamella.wiring.sources": ("open_index",),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
