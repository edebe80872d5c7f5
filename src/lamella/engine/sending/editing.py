"""Editing: the text of an answer changed on its way, before anybody sees it."""

from typing import Protocol

from lamella.core.log.events.reply import CitedSource


class AnswerEditor(Protocol):
    """Changes the text of an answer on its way: what it gives is shown and written down, and nothing else."""

    @property
    def sources(self) -> tuple[CitedSource, ...]:
        """What the numbers mean in what was given so far."""
        ...

    def take(self, text: str) -> str:
        """What can be shown once this much more has come; the rest is held back."""
        ...

    def end(self, *, called: bool) -> str:
        """What was held back, now that no more comes; an answer in words ends here, unless tools were called."""
        ...
