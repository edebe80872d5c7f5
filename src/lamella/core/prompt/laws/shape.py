"""Laws of shape: five layers in order, no id twice, hashes that are true, and prefixes that only grow in an epoch."""

from collections import Counter
from collections.abc import Iterable

from lamella.core.prompt.envelope import Envelope, hash_layers, hash_prefix
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import LAYER_ORDER, SegmentKind, hash_pieces
from lamella.core.prompt.movement import extends
from lamella.core.prompt.prompt import Prompt
from lamella.core.text.content import hash_text

_OWN_TEXT: frozenset[str] = frozenset(kind.value for kind in SegmentKind)


def _check_order(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    found = tuple(layer.id for layer in envelope.layers)
    if found != LAYER_ORDER:
        yield f"the layers are {', '.join(found) or 'none'}"


LAYER_ORDER_LAW = Law(name="layer_order", statement="An envelope has its five layers in order.", check=_check_order)


def _check_ids(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    for layer in envelope.layers:
        ids = [segment.id for segment in layer.segments]
        if len(set(ids)) != len(ids):
            repeated = [name for name, times in Counter(ids).items() if times > 1]
            yield f"{layer.id} holds {', '.join(repeated)} more than once"


UNIQUE_IDS = Law(name="unique_ids", statement="No id stands twice in a layer.", check=_check_ids)


def _check_hashes(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
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


TRUE_HASHES = Law(name="true_hashes", statement="Every hash is the hash of what it names.", check=_check_hashes)


def _check_growth(envelope: Envelope, before: Prompt | None) -> Iterable[str]:
    if before is None or before.epoch != envelope.epoch or before.terms.layout is not envelope.layout:
        return
    if not extends(before.messages, envelope.messages):
        yield f"the request does not extend the one before it, within epoch {envelope.epoch}"


GROWING_PREFIX = Law(
    name="growing_prefix",
    statement="Within an epoch, each request extends the one before it.",
    check=_check_growth,
)
