"""L5, the user: what was typed now, after templates."""

from dataclasses import replace

from lamella.core.layers.fingerprint import make_layer
from lamella.core.layers.model import Layer, LayerId
from lamella.core.layers.strip import Said


def build_user(said: Said, *, place: str) -> Layer:
    """L5 as its one segment; an empty text still has one, so that the turn can be named."""
    pieces = (said.text,) if said.text else ()
    segment = replace(said.segment, place=place)
    return make_layer(LayerId.L5, segments=(segment,), pieces=pieces, tokens=segment.tokens)
