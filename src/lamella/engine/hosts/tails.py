"""Tails: how conversations of hosts end, so that one is known again whose host cut off its beginning."""

from collections.abc import Sequence
from datetime import timedelta

from lamella.core.text.content import canonical_json, hash_text
from lamella.engine.hosts.history import HostTurn
from lamella.ports import Clock, Shelf

# What is shorter than this, in characters, is said in more than one conversation: then a few before it tell, too.
_TELLING = 80
_MOST = 4
_LASTS = timedelta(days=7)


class HostTails:
    """How an owner's conversations end, by the hash of what was said last, on the shelf of a store."""

    def __init__(self, shelf: Shelf, *, clock: Clock, owner: str) -> None:
        self._shelf = shelf
        self._clock = clock
        self._owner = owner

    def find(self, past: Sequence[HostTurn]) -> str | None:
        """The key of the conversation that ends as a history does; none where nobody can tell."""
        name = self._name(_list_said(past))
        return None if name is None else self._shelf.find(name, at=self._clock.now()).get(name)

    def move(self, past: Sequence[HostTurn], asked: str, reply: str, *, conversation: str) -> None:
        """Note how a conversation ends now, in place of how it did."""
        said = _list_said(past)
        before = self._name(said)
        if before is not None:
            self._shelf.remove(before)
        name, at = self._name([*said, (asked, reply)]), self._clock.now()
        if name is not None:
            self._shelf.put(name, conversation, at=at, ends=at + _LASTS, conversation=conversation)

    def _name(self, exchanges: Sequence[tuple[str, str]]) -> str | None:
        """What an end is called: as few of the last exchanges as tell it from others, and none where they do not."""
        told: list[str] = []
        for asked, reply in reversed(exchanges[-_MOST:]):
            said = [asked.strip(), reply.strip()]
            if not all(said):
                return None
            told = [*said, *told]
            if sum(map(len, told)) >= _TELLING:
                return f"tail:{self._owner}:{hash_text(canonical_json(told))}"
        return None


def _list_said(past: Sequence[HostTurn]) -> list[tuple[str, str]]:
    return [(turn.typed, turn.reply or "") for turn in past]
