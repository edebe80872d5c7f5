"""All of a text of which less stands: it may still have to be read, and hardly anybody asks for it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast


class TextShelf(ABC):
    """Where whole texts of messages are found, by their ids."""

    @abstractmethod
    def find(self, message: str) -> str: ...


class KnownText(TextShelf):
    """One text, which somebody has read."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def find(self, message: str) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownText) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"KnownText({self._text!r})"


def read_texts(names: Sequence[str], texts: Sequence[str | TextShelf]) -> Sequence[str]:
    """The texts of messages, some of which may still have to be read."""
    if set(map(type, texts)) <= {str}:
        # Thousands of them whenever a conversation is opened, and hardly ever one that was not read.
        return cast(Sequence[str], texts)
    return [text if isinstance(text, str) else text.find(name) for name, text in zip(names, texts, strict=True)]
