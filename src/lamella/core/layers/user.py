"""L5, the user: what was typed now, after templates."""

from lamella.core.layers.fingerprint import make_layer
from lamella.core.layers.model import Form, Layer, LayerId, Segment
from lamella.core.layers.strip import Said


def build_user(said: Said, *, place: str) -> Layer:
    """L5 as its one segment; an empty text still has one, so that the turn can be named."""
    segment = Segment(
        id=said.id,
        kind=said.role,
        form=Form.FULL,
        place=place,
        hash=said.hash,
        text=said.text,
        tokens=said.message.tokens,
        recoverable=False,
    )
    pieces = (said.text,) if said.text else ()
    return make_layer(LayerId.L5, segments=(segment,), pieces=pieces, tokens=segment.tokens)
