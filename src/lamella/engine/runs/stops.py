"""Stop signs: what one process puts up for whichever other is answering in a conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from lamella.ports import Clock, Shelf

# Nobody heeds a sign that is older: what it was about is over.
_LASTS = timedelta(seconds=30)


class StopSigns:
    """Signs on the shelf of a store, each with when it was put up."""

    def __init__(self, shelf: Shelf, *, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    def put(self, conversation: str) -> None:
        """Ask whoever answers in a conversation now to stop."""
        at = self._clock.now()
        name = _name(conversation)
        self._shelf.put(name, at.isoformat(), at=at, ends=at + _LASTS, conversation=conversation)

    def find(self, conversations: Sequence[str]) -> Mapping[str, datetime]:
        """Those of these conversations in which somebody wants to have stopped what was under way then."""
        names = {_name(one): one for one in conversations}
        found = self._shelf.find(*names, at=self._clock.now())
        return {names[name]: datetime.fromisoformat(at) for name, at in found.items()}

    def remove(self, conversation: str) -> None:
        """It was heeded, or there was nothing to stop."""
        self._shelf.remove(_name(conversation))


def _name(conversation: str) -> str:
    return f"stop:{conversation}"
