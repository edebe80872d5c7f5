"""Small words are known in both languages, and no others."""

from lamella.core.search.small_words import is_common


def test_small_words_say_nothing_of_what_a_text_is_about() -> None:
    assert all(map(is_common, ("the", "what", "yang", "bagaimana")))
    assert not any(map(is_common, ("desk", "meja", "")))
