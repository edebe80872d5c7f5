"""Segment and layer: what stands in a request, and the five layers it can belong to."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from hashlib import sha256

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


class SegmentKind(StrEnum):
    """The kinds of segment that are no artifact: parts of L1, what was said, and what stands in for messages."""

    SYSTEM = "system"
    USER = "user"
    REPLY = "reply"
    CALL = "call"
    LEFT_OUT = "left_out"
    SUMMARY = "summary"
    DIGEST = "digest"
    RULES = "rules"


STAND_INS: frozenset[str] = frozenset(
    {SegmentKind.LEFT_OUT, SegmentKind.SUMMARY, SegmentKind.DIGEST, SegmentKind.RULES}
)


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


class Layer(Struct, frozen=True, kw_only=True, gc=False):
    """A layer: its segments, and the pieces of text they render to, in order."""

    id: LayerId
    segments: tuple[Segment, ...]
    pieces: tuple[str, ...]
    hash: str
    tokens: int

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def __repr__(self) -> str:
        return describe(self, without=("segments", "pieces"))


class _Places(dict[int, str]):
    """One object per place, so that thousands of segments are told to stand where they stood without reading them."""

    def __missing__(self, index: int) -> str:
        # Many at a time: whoever opens a conversation needs those of thousands.
        first = index - index % _TOGETHER
        self.update({at: f"message:{at}" for at in range(first, first + _TOGETHER)})
        return self[index]


_TOGETHER = 256
_PLACES = _Places()
# The place of what stands in the message of this index.
message_place: Callable[[int], str] = _PLACES.__getitem__


def hash_pieces(pieces: Iterable[str]) -> str:
    """The hash of the joined text; measured three times faster than joining 40 MB first."""
    digest = sha256()
    for piece in pieces:
        digest.update(piece.encode())
    return "sha256:" + digest.hexdigest()


_NO_TEXT = hash_pieces(())


def make_layer(layer_id: LayerId, *, segments: Iterable[Segment], pieces: Iterable[str], tokens: int) -> Layer:
    """A layer whose hash is that of its text."""
    pieces = tuple(pieces)
    digest = hash_pieces(pieces) if pieces else _NO_TEXT
    return Layer(id=layer_id, segments=tuple(segments), pieces=pieces, hash=digest, tokens=tokens)
