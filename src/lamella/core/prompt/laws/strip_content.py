"""L4 holds typed text, replies, what stands in for those, and, in layout in_place, earlier tool results."""

from collections.abc import Iterable

from lamella.core.artifacts.model import Kind
from lamella.core.log.ids import Voice
from lamella.core.log.terms import Layout
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import Layer, LayerId, StandIn


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    allowed = {Voice.USER.value, Voice.REPLY.value, *(stand_in.value for stand_in in StandIn)}
    if envelope.layout is Layout.IN_PLACE:
        allowed.add(Kind.TOOL.value)
    for segment in envelope.layer(LayerId.L4).segments:
        if segment.kind not in allowed:
            yield f"L4 holds {segment.id}, a {segment.kind}"


def _cuts(layer: Layer) -> frozenset[int]:
    """A strip is cut only where a turn begins: an answer without its question is no longer what the user saw."""
    if layer.id is not LayerId.L4:
        return frozenset(range(len(layer.segments) + 1))
    starts = {0, len(layer.segments)}
    starts.update(
        index
        for index, segment in enumerate(layer.segments)
        if index > 0 and layer.segments[index - 1].kind == Voice.REPLY and segment.kind != Voice.REPLY
    )
    return frozenset(starts)


LAW = Law(
    name="strip_content",
    statement="L4 holds typed text, replies, what stands in for those, and, in_place, earlier tool results.",
    check=_check,
    cuts=_cuts,
)
