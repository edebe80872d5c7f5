"""What a law is: a name, a sentence, a check, and where cutting a layer keeps it true."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.layers.model import Layer


def anywhere(layer: Layer) -> frozenset[int]:
    """Every place, for laws that no cut can break."""
    return frozenset(range(len(layer.segments) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A law that every envelope satisfies. ``cuts`` gives the places before which a layer may be cut."""

    name: str
    statement: str
    check: Callable[[Envelope, Sent | None], Iterable[str]]
    cuts: Callable[[Layer], frozenset[int]] = anywhere
