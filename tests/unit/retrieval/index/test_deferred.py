"""A deferred index: opened once by the first use, and closed only if opened."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from lamella.ports import IndexReport, NoteHit
from lamella.retrieval.index import DeferredIndex


class Noted:
    """An index that notes what is done with it."""

    def __init__(self, done: list[str]) -> None:
        self._done = done
        done.append("opened")

    def refresh(
        self,
        *,
        on_progress: Callable[[int, int], None] | None = None,
        only_paths: Collection[str] | None = None,
        rebuild: bool = False,
    ) -> IndexReport:
        self._done.append(f"refreshed {only_paths} {rebuild}")
        return IndexReport(read_count=0, removed_count=0, file_count=0)

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        self._done.append(f"searched {query} {limit}")
        return ()

    def rank_notes(self, question: str, *, paths: Sequence[str]) -> Sequence[str]:
        self._done.append(f"ranked {question}")
        return paths

    def close(self) -> None:
        self._done.append("closed")


def test_deferred_index_opens_on_first_use_and_closes_only_if_opened() -> None:
    done: list[str] = []
    index = DeferredIndex(lambda: Noted(done))
    index.close()
    assert done == []
    index.search("tides", now=datetime(2026, 11, 17, tzinfo=UTC), limit=3)
    index.refresh(only_paths=["a.md"])
    assert index.rank_notes("tides", paths=["a.md"]) == ["a.md"]
    index.close()
    index.close()
    assert done == ["opened", "searched tides 3", "refreshed ['a.md'] False", "ranked tides", "closed"]
