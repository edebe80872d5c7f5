"""What every retriever does, whatever it finds passages with."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.adapters.retrieval.vaults import write

from lamella.adapters.retrieval.index import VaultIndex
from lamella.adapters.sources.opening import open_sources
from lamella.holdings import NoteHit
from lamella.ports import Retriever

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
NOTES = {
    "one.md": "# Pump\n\nThe pump is new.\n\n# Hose\n\nThe hose of the pump is old.\n",
    "two.md": "A pump in a shed.\n",
    "three.md": "Nothing of that.\n",
}
Open = Callable[[Path], Retriever]


def open_index(root: Path) -> Retriever:
    return VaultIndex(root.parent / "index" / "index.db", vault=root, look=open_sources(root))


@pytest.fixture(params=[open_index])
def retriever(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Retriever]:
    """A retriever of every kind over the notes above, that knows nothing yet."""
    found: Retriever = request.param(write(tmp_path / "vault", NOTES))
    yield found
    found.close()


def find(retriever: Retriever, query: str, limit: int = 10) -> list[NoteHit]:
    return list(retriever.search(query, now=NOW, limit=limit))


def test_nothing_is_found_before_the_first_refreshing(retriever: Retriever) -> None:
    assert find(retriever, "pump") == []


def test_refreshing_says_what_it_did_and_does_it_once(retriever: Retriever) -> None:
    report = retriever.refresh()
    assert (report.read, report.removed, report.files, report.unread, report.rebuilt) == (3, 0, 3, (), None)
    assert retriever.refresh().read == 0
    assert retriever.refresh(anew=True).read == 3


def test_a_passage_says_where_it_stands_and_why_it_was_found(retriever: Retriever) -> None:
    retriever.refresh()
    [hit] = [hit for hit in find(retriever, "hose") if hit.heading == "Hose"]
    assert (hit.path, hit.title, hit.text) == ("one.md", "one", "The hose of the pump is old.")
    assert hit.id == "one.md#Hose"
    assert hit.excerpt in hit.text
    assert "hose" in hit.why
    assert hit.score > 0


def test_one_passage_of_every_note_comes_before_the_second_of_any(retriever: Retriever) -> None:
    retriever.refresh()
    found = [hit.path for hit in find(retriever, "pump")]
    assert sorted(found[:2]) == ["one.md", "two.md"]
    assert found[2:] == ["one.md"]
    assert len(find(retriever, "pump", limit=1)) == 1


def test_the_same_question_has_the_same_answer(retriever: Retriever) -> None:
    retriever.refresh()
    assert find(retriever, "old pump") == find(retriever, "old pump")


def test_ranking_gives_every_path_once(retriever: Retriever) -> None:
    retriever.refresh()
    ranked = retriever.rank_notes("hose", among=["three.md", "two.md", "one.md", "gone.md", "one.md"])
    assert ranked[0] == "one.md"
    assert sorted(ranked) == ["gone.md", "one.md", "three.md", "two.md"]
