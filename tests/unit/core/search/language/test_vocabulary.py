"""The vocabulary: every part of a word leads to it."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.search.language import SubstringIndex

words = st.lists(st.text(alphabet="abé", min_size=1, max_size=120), unique=True, max_size=12)


@steady
@given(words, st.text(alphabet="abé", min_size=1, max_size=6), st.integers(0, 12))
def test_substring_index_finds_all_containing_words(given_words: list[str], part: str, later: int) -> None:
    vocabulary = SubstringIndex()
    vocabulary.extend(given_words[:later])
    vocabulary.extend(given_words[later:])
    expected = [word for word in given_words if part in word]
    assert sorted(vocabulary.words_containing(part, core=part)) == sorted(expected)


def test_beyond_ascii_the_core_is_enough() -> None:
    vocabulary = SubstringIndex()
    vocabulary.extend(["cafe", "café", "cake"])
    assert list(vocabulary.words_containing("cafe", core="caf")) == ["cafe", "café"]
    assert list(vocabulary.words_containing("a", core="")) == ["cafe", "cake", "café"]
