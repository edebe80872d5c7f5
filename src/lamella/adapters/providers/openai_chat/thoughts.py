"""Thoughts that servers send as a part of the text: a block at the beginning of an answer is taken out of it."""

from collections.abc import Iterator

from lamella.core.messages.delta import ReasoningDelta, TextDelta

_OPEN, _CLOSE = "<think>", "</think>"
# Blanks before a block; more of them are an answer.
_BLANKS = 64


class ThoughtSplitter:
    """Parts of a text as thoughts and words, wherever the parts end. A block further down is quoted, and stays."""

    def __init__(self) -> None:
        self._held = ""
        self._step = self._begin

    def take(self, text: str) -> Iterator[TextDelta | ReasoningDelta]:
        """What is known to be a thought or a word by now."""
        self._held += text
        step = None
        while self._held and step != self._step:
            step = self._step
            yield from step()

    def end(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        if held and self._step == self._think:
            yield ReasoningDelta(text=held)
        elif held and self._step != self._pause:
            yield TextDelta(text=held)

    def _begin(self) -> Iterator[TextDelta | ReasoningDelta]:
        start = self._held.lstrip()
        if len(self._held) - len(start) > _BLANKS:
            self._step = self._speak
        elif start.startswith(_OPEN):
            self._held, self._step = start[len(_OPEN) :], self._think
        elif not _OPEN.startswith(start):
            self._step = self._speak
        yield from ()

    def _think(self) -> Iterator[TextDelta | ReasoningDelta]:
        thought, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._held, self._step = rest, self._pause
        else:
            kept = next(size for size in range(len(_CLOSE) - 1, -1, -1) if self._held.endswith(_CLOSE[:size]))
            thought, self._held = self._held[: len(self._held) - kept], _CLOSE[:kept]
        if thought:
            yield ReasoningDelta(text=thought)

    def _pause(self) -> Iterator[TextDelta | ReasoningDelta]:
        self._held = self._held.lstrip()
        if self._held:
            self._step = self._speak
        yield from ()

    def _speak(self) -> Iterator[TextDelta | ReasoningDelta]:
        said, self._held = self._held, ""
        yield TextDelta(text=said)
