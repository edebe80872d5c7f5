"""Full texts of shortened messages: missing ones are found by their message."""

import pytest

from lamella.core.messages import TextsById, resolve_lazy_texts

SHELF: TextsById = {"a": "The text of a.", "b": "The text of b."}


def test_loaded_texts_are_returned_unchanged() -> None:
    texts = ["One.", "Two."]
    assert resolve_lazy_texts(["a", "b"], texts) is texts


def test_missing_texts_are_found_by_message() -> None:
    assert resolve_lazy_texts(["a", "b", "c"], ["One.", SHELF, "Three."]) == ["One.", "The text of b.", "Three."]


def test_missing_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="longer"):
        resolve_lazy_texts(["a"], [SHELF, SHELF])
