"""Whole texts of which less stands: at hand or not, they are the same."""

import pytest

from lamella.core.messages.whole import KnownText, TextShelf, read_texts


class Shelf(TextShelf):
    """Texts by id, and whose were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find(self, message: str) -> str:
        self.asked.append(message)
        return f"The text of {message}."


def test_a_known_text_is_the_same_whoever_asks() -> None:
    assert KnownText("All of it.").find("a") == KnownText("All of it.").find("b") == "All of it."


def test_known_texts_are_equal_where_they_say_the_same() -> None:
    assert KnownText("One.") == KnownText("One.")
    assert hash(KnownText("One.")) == hash(KnownText("One."))
    assert KnownText("One.") != KnownText("Two.")
    assert KnownText("One.") != "One."
    assert repr(KnownText("One.")) == "KnownText('One.')"


def test_texts_at_hand_are_given_as_they_are() -> None:
    texts = ["One.", "Two."]
    assert read_texts(["a", "b"], texts) is texts


def test_texts_that_are_not_at_hand_are_found_by_their_message() -> None:
    shelf = Shelf()
    assert read_texts(["a", "b", "c"], ["One.", shelf, "Three."]) == ["One.", "The text of b.", "Three."]
    assert shelf.asked == ["b"]


def test_each_text_has_its_message() -> None:
    with pytest.raises(ValueError, match="longer"):
        read_texts(["a"], [Shelf(), Shelf()])
