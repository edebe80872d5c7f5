"""The index: adding and removing passages equals building it from the rest."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.search.index import Passage, PassageIndex
from lamella.core.search.search import search

WORDS = ["budget", "Budgets", "getUserName", "username", "user_name", "12,500", "12500", "Käse", "kase", "中文", "a"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
QUERIES = ["budget", "user name", '"username"', "12500", "kase", "中", '"12"', "a budget"]


def passage(name: str, text: str) -> Passage:
    return Passage(id=name, place="turn 1", role="user", title=name, text=text)


def make(bodies: list[str]) -> list[Passage]:
    return [passage(f"m{number}", text) for number, text in enumerate(bodies)]


@steady
@given(st.lists(texts, max_size=6), st.lists(texts, max_size=6), st.integers(0, 6))
def test_cutting_and_extending_index_equals_rebuilding(first: list[str], second: list[str], size: int) -> None:
    grown = PassageIndex(make(first))
    for query in QUERIES:
        search(grown, query)
    size = min(size, len(first))
    grown.truncate_to(size)
    passages = [*make(first)[:size], *(passage(f"n{number}", text) for number, text in enumerate(second))]
    for one in passages[size:]:
        grown.extend([one])
    built = PassageIndex(passages)
    assert len(grown) == len(built)
    for query in QUERIES:
        assert search(grown, query, limit=20) == search(built, query, limit=20)


def test_passage_is_indexed_once() -> None:
    index = PassageIndex([passage("a", "one"), passage("a", "two")])
    index.extend([passage("a", "three"), passage("b", "four")])
    assert [one.passage.text for one in index.passages] == ["one", "four"]
    assert ("a" in index, "c" in index) == (True, False)


def test_removed_passages_leave_nothing() -> None:
    index = PassageIndex(make(["a secret", "a plan"]))
    index.truncate_to(0)
    assert len(index) == 0
    assert not index.word_forms("secret")
    assert not index.words_containing("secre", core="secre")
    assert search(index, '"secret"') == ()
    assert index.average_length == 0


def test_later_words_are_found_by_substring() -> None:
    index = PassageIndex([passage("a", "a cafe")])
    assert index.words_containing("cafe", core="caf") == ["cafe"]
    index.extend([passage("b", "two cafes")])
    assert index.words_containing("cafe", core="caf") == ["cafe", "cafes"]


def test_words_containing_part_include_accented_variants() -> None:
    index = PassageIndex([passage("", "cafe café cafés decaf cake")])
    assert sorted(index.words_containing("cafe", core="caf")) == ["cafe", "café", "cafés"]
    assert sorted(index.words_containing("ca", core="kä")) == ["cafe", "cake", "decaf"]


def test_word_positions_are_listed_by_passage_and_half() -> None:
    titled = Passage(id="plan@1", place="turn 1", role="note", title="plan", text="word " * 60 + "plan")
    index = PassageIndex([titled, passage("x", "a plan")])
    assert list(index.iter_positions("plan")) == [(0, 0), (0, 2), (1, 1)]
    assert list(index.iter_halves("plan", 0)) == [0, 2]
    assert list(index.iter_halves("plan", 1)) == [1]
    assert index.passages_with_any(["plan", "word"]) == {0, 1}
    assert (index.find_passage_number("x"), index.find_passage_number("plan")) == (1, None)
    assert index.max_passage_count(["plan", "word"]) == 2
