"""L5, the user: what was typed now, after templates."""

from lamella.core.prompt.layers.fingerprint import make_layer
from lamella.core.prompt.layers.model import Layer, LayerId, Segment
from lamella.core.prompt.layers.strip import Said
from lamella.core.values import replace


def build_user(said: Said, *, place: str) -> Layer:
    """L5 as its one segment; an empty text still has one, so that the turn can be named."""
    pieces = (said.text,) if said.text else ()
    segment = place_user(said, place=place)
    return make_layer(LayerId.L5, segments=(segment,), pieces=pieces, tokens=segment.tokens)


def place_user(said: Said, *, place: str) -> Segment:
    """The one segment of L5, where it stands."""
    return replace(said.segment, place=place)
