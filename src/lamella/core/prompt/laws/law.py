"""What a law is: a name, a sentence, a check, and where cutting a layer keeps it true."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import Layer
from lamella.core.prompt.prompt import Prompt


def anywhere(layer: Layer) -> frozenset[int]:
    """Every place, for laws that no cut can break."""
    return frozenset(range(len(layer.segments) + 1))


class Law(Struct, frozen=True, kw_only=True):
    """A law that every envelope satisfies. ``cuts`` gives the places before which a layer may be cut."""

    name: str
    statement: str
    check: Callable[[Envelope, Prompt | None], Iterable[str]]
    cuts: Callable[[Layer], frozenset[int]] = anywhere
