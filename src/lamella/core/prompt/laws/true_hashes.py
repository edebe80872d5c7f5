"""Every hash is the hash of what it names."""

from collections.abc import Iterable

from lamella.core.log.ids import Voice
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.fingerprint import hash_layers, hash_prefix
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.fingerprint import hash_pieces
from lamella.core.prompt.layers.model import StandIn
from lamella.core.text.content import hash_text

_OWN_TEXT = frozenset(kind.value for kind in (*Voice, *StandIn))


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    for layer in envelope.layers:
        if layer.hash != hash_pieces(layer.pieces):
            yield f"the hash of {layer.id} is not that of its text"
        for segment in layer.segments:
            # What is its own content has no other hash than that of its text, which is derived when asked for.
            if segment.content is not None and segment.kind in _OWN_TEXT and segment.content != hash_text(segment.text):
                yield f"the hash of {segment.id} is not that of its text"
    if envelope.prefix_hash != hash_prefix(envelope.messages):
        yield "the prefix hash is not that of the system message"
    if envelope.hash != hash_layers(envelope.layers):
        yield "the envelope's hash is not that of its layers"


LAW = Law(name="true_hashes", statement="Every hash is the hash of what it names.", check=_check)
