"""What a command did, as data: with which conversation, and what became of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from lamella.holdings import Damage

_FORMAT = {"lamella": 1}


class HitShape(Protocol):
    """What has to be known of a message that a search found."""

    @property
    def conversation(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def excerpt(self) -> str: ...


def view_outcome(conversation: str, name: str, **more: object) -> dict[str, object]:
    """What was done with one conversation, by its key and its name."""
    return {**_FORMAT, "conversation": conversation, "name": name, **more}


def view_several(done: Sequence[Mapping[str, object]], failed: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """What was done with several of a kind, and which of them failed."""
    return {**_FORMAT, "done": list(done), "failed": list(failed)}


def view_hits(hits: Iterable[HitShape]) -> dict[str, object]:
    """The messages that a search found."""
    found = [
        {
            "conversation": hit.conversation,
            "name": hit.name,
            "title": hit.title,
            "message": hit.message,
            "role": str(hit.role),
            "excerpt": hit.excerpt,
        }
        for hit in hits
    ]
    return {**_FORMAT, "hits": found}


def view_verified(damages: Sequence[Damage], names: Mapping[str, str], *, repaired: Sequence[str]) -> dict[str, object]:
    """What was found to be damaged and is not repaired; ``names`` are those of conversations by their keys."""
    found = [
        {
            "conversation": one.conversation,
            "name": None if one.conversation is None else names.get(one.conversation),
            "place": one.place,
            "what": one.what,
            "derived": one.derived,
        }
        for one in damages
    ]
    return {**_FORMAT, "verified": not damages, "damages": found, "repaired": list(repaired)}


def view_copied(outcomes: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Each conversation of a store by its name, and what became of it in another."""
    return {**_FORMAT, "conversations": [{"name": name, "outcome": outcome} for name, outcome in outcomes]}
