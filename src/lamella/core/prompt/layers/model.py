"""Segment and layer: an artifact as it stands in a request, and the five shelves it can stand on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct

from lamella.core.log.placement import Form
from lamella.core.text.content import hash_text
from lamella.core.values import describe

Count = Callable[[str], int]

SYSTEM_PLACE = "system"


class LayerId(StrEnum):
    """The five layers, from most stable to most volatile."""

    L1 = "L1_SYSTEM"
    L2 = "L2_PREVIOUS"
    L3 = "L3_TURN"
    L4 = "L4_STRIP"
    L5 = "L5_USER"


LAYER_ORDER: tuple[LayerId, ...] = tuple(LayerId)


class StandIn(StrEnum):
    """The kinds of segment that stand in for messages taken out: that they are, what they said, what they decided."""

    LEFT_OUT = "left_out"
    SUMMARY = "summary"
    DIGEST = "digest"


class Segment(Struct, frozen=True, kw_only=True, gc=False):
    """One artifact, system part or typed text as it stands in a layer.

    ``text`` is what it renders to here, which is shorter for a preview or a reference. ``content`` is the hash of the
    content it stands for, none where that is the text itself: most of a long request is, and nobody asks for its hash.
    """

    id: str
    kind: str
    form: Form
    place: str | None
    text: str
    tokens: int
    recoverable: bool
    content: str | None = None
    inlines: tuple[tuple[str, str], ...] = ()

    @property
    def hash(self) -> str:
        """The hash of the content it stands for."""
        return self.content or hash_text(self.text)

    def __repr__(self) -> str:
        return describe(self, without=("text",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer: its segments, and the pieces of text they render to, in order."""

    id: LayerId
    segments: tuple[Segment, ...] = field(repr=False)
    pieces: tuple[str, ...] = field(repr=False)
    hash: str
    tokens: int

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def message_place(index: int) -> str:
    """The place of what stands in the message of this index."""
    return f"message:{index}"
