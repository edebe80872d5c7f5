"""Small words are known in both languages, and no others."""

import pytest

from lamella.core.search.language import ENGLISH_MARKER_WORDS, INDONESIAN_MARKER_WORDS, is_stop_word


def test_stop_words_are_detected() -> None:
    assert all(map(is_stop_word, ("the", "what", "yang", "bagaimana")))
    assert not any(map(is_stop_word, ("desk", "meja", "")))


@pytest.mark.parametrize(
    "words",
    [
        "the of and to in is for that with are on as this be or",
        "yang dan dengan untuk ini itu dari pada adalah tidak akan dalam ke di",
        "a an it its by from at about not there",
        "what which who when where why how do does did can was were has have had",
        "we i you my our your",
        "apa bagaimana siapa kapan mana mengapa ada oleh sudah telah juga atau saya kami kita mereka",
    ],
)
def test_question_words_are_stop_words(words: str) -> None:
    assert [word for word in words.split() if not is_stop_word(word)] == []


def test_no_word_is_small_in_both_languages() -> None:
    assert frozenset() == ENGLISH_MARKER_WORDS & INDONESIAN_MARKER_WORDS
