"""Every hash is the hash of what it names."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from lamella.core.artifacts.content import hash_text
from lamella.core.envelope.fingerprint import hash_layers, hash_prefix
from lamella.core.envelope.invariants.law import Law
from lamella.core.envelope.model import Envelope, Sent
from lamella.core.layers.fingerprint import hash_pieces
from lamella.core.layers.model import LayerId, Role, Segment, StandIn

_OWN_TEXT = frozenset(kind.value for kind in (*Role, *StandIn))


def _check(envelope: Envelope, before: Sent | None) -> Iterable[str]:
    for layer in envelope.layers:
        if layer.hash != hash_pieces(layer.pieces):
            yield f"the hash of {layer.id} is not that of its text"
    for layer_id in (LayerId.L1, LayerId.L4, LayerId.L5):
        for segment in _unchecked(envelope, before, layer_id):
            if segment.kind in _OWN_TEXT and segment.content not in (None, hash_text(segment.text)):
                yield f"the hash of {segment.id} is not that of its text"
    if envelope.prefix_hash != hash_prefix(envelope.messages):
        yield "the prefix hash is not that of the system message"
    if envelope.hash != hash_layers(envelope.layers):
        yield "the envelope's hash is not that of its layers"


def _unchecked(envelope: Envelope, before: Sent | None, layer_id: LayerId) -> Iterator[Segment]:
    """The layer's segments, without those of the request before: the same frozen objects, which were looked at."""
    passed = before.segments(layer_id) if before else ()
    for segment, same in zip_longest(envelope.layer(layer_id).segments, passed):
        if segment is not None and segment is not same:
            yield segment


LAW = Law(name="true_hashes", statement="Every hash is the hash of what it names.", check=_check)
