"""A deferred index: opened by whoever searches first, so that those who do not pay nothing for it."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from threading import Lock

from lamella.holdings import IndexReport, NoteHit
from lamella.ports import Retriever


class DeferredIndex:
    """A retriever that is opened when it is first asked, and closed if it was."""

    def __init__(self, open_index: Callable[[], Retriever]) -> None:
        self._open_index = open_index
        self._opening = Lock()
        self._opened: Retriever | None = None

    def refresh(
        self, *, tell: Callable[[int, int], None] | None = None, only: Collection[str] | None = None, anew: bool = False
    ) -> IndexReport:
        return self._index.refresh(tell=tell, only=only, anew=anew)

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        return self._index.search(query, now=now, limit=limit)

    def rank_notes(self, question: str, *, among: Sequence[str]) -> Sequence[str]:
        return self._index.rank_notes(question, among=among)

    def close(self) -> None:
        """Close what was opened; asked again, it is opened anew."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    @property
    def _index(self) -> Retriever:
        with self._opening:
            if self._opened is None:
                self._opened = self._open_index()
            return self._opened
