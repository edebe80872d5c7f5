"""Properties of every retriever."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.retrieval.vaults import write

from lamella.ports import NoteHit, NoteRetriever
from lamella.retrieval.index import VaultIndex
from lamella.sources.open_sources import make_source_opener

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
NOTES = {
    "one.md": "# Pump\n\nThe pump is new.\n\n# Hose\n\nThe hose of the pump is old.\n",
    "two.md": "A pump in a shed.\n",
    "three.md": "Nothing of that.\n",
}
Open = Callable[[Path], NoteRetriever]


def open_index(root: Path) -> NoteRetriever:
    return VaultIndex(root.parent / "index" / "index.db", vault=root, open_readers=make_source_opener(root))


@pytest.fixture(params=[open_index])
def retriever(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NoteRetriever]:
    """A retriever of every kind over the notes above, that knows nothing yet."""
    found: NoteRetriever = request.param(write(tmp_path / "vault", NOTES))
    yield found
    found.close()


def find(retriever: NoteRetriever, query: str, limit: int = 10) -> list[NoteHit]:
    return list(retriever.search(query, now=NOW, limit=limit))


def test_search_before_refresh_finds_nothing(retriever: NoteRetriever) -> None:
    assert find(retriever, "pump") == []


def test_refresh_reports_what_it_did_once(retriever: NoteRetriever) -> None:
    report = retriever.refresh()
    assert (report.read_count, report.removed_count, report.file_count, report.unread, report.rebuild_reason) == (
        3,
        0,
        3,
        (),
        None,
    )
    assert retriever.refresh().read_count == 0
    assert retriever.refresh(rebuild=True).read_count == 3


def test_passage_has_its_location_and_match_reason(retriever: NoteRetriever) -> None:
    retriever.refresh()
    [hit] = [hit for hit in find(retriever, "hose") if hit.heading == "Hose"]
    assert (hit.path, hit.title, hit.text) == ("one.md", "one", "The hose of the pump is old.")
    assert hit.id == "one.md#Hose"
    assert hit.excerpt in hit.text
    assert "hose" in hit.why
    assert hit.score > 0


def test_first_passage_of_each_note_precedes_second_ones(retriever: NoteRetriever) -> None:
    retriever.refresh()
    found = [hit.path for hit in find(retriever, "pump")]
    assert sorted(found[:2]) == ["one.md", "two.md"]
    assert found[2:] == ["one.md"]
    assert len(find(retriever, "pump", limit=1)) == 1


def test_same_question_has_the_same_answer(retriever: NoteRetriever) -> None:
    retriever.refresh()
    assert find(retriever, "old pump") == find(retriever, "old pump")


def test_ranking_gives_every_path_once(retriever: NoteRetriever) -> None:
    retriever.refresh()
    ranked = retriever.rank_notes("hose", paths=["three.md", "two.md", "one.md", "gone.md", "one.md"])
    assert ranked[0] == "one.md"
    assert sorted(ranked) == ["gone.md", "one.md", "three.md", "two.md"]
