"""Matching: which chunks are scored where very many have the words, and that none is lost by it."""

from collections.abc import Iterator

import pytest
from tests.unit.retrieval.vaults import indexed, paths, write

from lamella.retrieval.database import CHUNK_BITS
from lamella.retrieval.index import VaultIndex
from lamella.retrieval.search import ChunkMatcher

NOTES, SECTIONS = 80, 30


def _make_note(number: int) -> str:
    """A note of many sections: two words in a third of them each, seldom both, two others in all of them."""
    sections = []
    for at in range(SECTIONS):
        words = ("the tide", "a cliff", "nothing")[at % 3]
        both = " A cliff above the tide." if (number, at) in ((7, 3), (31, 8)) else ""
        sections.append(f"# Part {at}\n\nSand and stone, {words}, number {number * SECTIONS + at}.{both}\n")
    return "\n".join(sections)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VaultIndex]:
    notes = {f"coast/{number:02}.md": _make_note(number) for number in range(NOTES)}
    notes["coast/cliff.md"] = "Seen from the sea.\n"
    with indexed(write(tmp_path_factory.mktemp("vaults") / "v", notes)) as index:
        yield index


def test_chunks_with_two_words_or_name_match_come_first(index: VaultIndex) -> None:
    assert set(paths(index, "tide and cliff", limit=3)) == {"coast/07.md", "coast/31.md", "coast/cliff.md"}


@pytest.mark.parametrize("question", ["tide and cliff", "cliff tide 7", "tide", "stone cliff", "sand stone"])
def test_unscored_chunks_would_not_rank_first(index: VaultIndex, question: str) -> None:
    matcher = ChunkMatcher(index._file)
    query_words = matcher.prepare_query(question, [])
    assert query_words is not None
    assert query_words.best_expression
    scores = dict(matcher.list_bm25_scores(query_words, None))
    found = matcher.find_chunks(query_words, within=None, min_notes=2)
    assert sorted(scores[one.chunk_id] for one in found)[:2] == pytest.approx(sorted(scores.values())[:2])


@pytest.mark.parametrize("question", ["tide and cliff", "sand stone"])
def test_large_limit_finds_all_notes_with_a_word(index: VaultIndex, question: str) -> None:
    matcher = ChunkMatcher(index._file)
    query_words = matcher.prepare_query(question, [])
    assert query_words is not None
    found = matcher.find_chunks(query_words, within=None, min_notes=NOTES)
    assert len({one.chunk_id >> CHUNK_BITS for one in found}) >= NOTES


def test_few_chunks_are_all_scored(index: VaultIndex) -> None:
    query_words = ChunkMatcher(index._file).prepare_query("number 1204 above", [])
    assert query_words is not None
    assert not query_words.best_expression


def test_pairs_of_ubiquitous_words_are_not_searched(index: VaultIndex) -> None:
    matcher = ChunkMatcher(index._file)
    everywhere, seldom = matcher.prepare_query("sand stone", []), matcher.prepare_query("stone cliff", [])
    assert everywhere is not None
    assert seldom is not None
    assert '"sand stone"' not in everywhere.match_expression
    assert '"stone cliff"' in seldom.match_expression
