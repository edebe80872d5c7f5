"""A deferred index: opened by whoever asks first, once, and closed if it was."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from lamella.adapters.retrieval.deferred import DeferredIndex
from lamella.holdings import IndexReport, NoteHit


class Noted:
    """An index that notes what is done with it."""

    def __init__(self, done: list[str]) -> None:
        self._done = done
        done.append("opened")

    def refresh(
        self, *, tell: Callable[[int, int], None] | None = None, only: Collection[str] | None = None, anew: bool = False
    ) -> IndexReport:
        self._done.append(f"refreshed {only} {anew}")
        return IndexReport(read=0, removed=0, files=0)

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        self._done.append(f"searched {query} {limit}")
        return ()

    def rank_notes(self, question: str, *, among: Sequence[str]) -> Sequence[str]:
        self._done.append(f"ranked {question}")
        return among

    def close(self) -> None:
        self._done.append("closed")


def test_nothing_is_opened_before_somebody_asks_and_nothing_closed_that_was_not_opened() -> None:
    done: list[str] = []
    index = DeferredIndex(lambda: Noted(done))
    index.close()
    assert done == []
    index.search("tides", now=datetime(2026, 11, 17, tzinfo=UTC), limit=3)
    index.refresh(only=["a.md"])
    assert index.rank_notes("tides", among=["a.md"]) == ["a.md"]
    index.close()
    index.close()
    assert done == ["opened", "searched tides 3", "refreshed ['a.md'] False", "ranked tides", "closed"]
