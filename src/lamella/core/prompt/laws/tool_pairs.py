"""A tool's call and its result stand together, in the message of the turn that made the call."""

from collections.abc import Iterable

from lamella.core.artifacts.model import Kind
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import Layer, LayerId


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    asked = {segment.place for segment in envelope.layer(LayerId.L4).segments if segment.kind == Voice.USER}
    asked.update(segment.place for segment in envelope.layer(LayerId.L5).segments)
    for layer_id in (LayerId.L2, LayerId.L3, LayerId.L4):
        for segment in envelope.layer(layer_id).segments:
            if segment.kind != Kind.TOOL:
                continue
            if layer_id is LayerId.L2:
                yield f"{segment.id} stands in the library, apart from its turn"
            elif segment.form is Form.FULL and segment.place not in asked:
                yield f"{segment.id} stands at {segment.place}, apart from its turn"


def _cuts(layer: Layer) -> frozenset[int]:
    """Never between a tool result and the typed text of the turn that it belongs to."""
    inside = {
        index + 1
        for index, segment in enumerate(layer.segments[:-1])
        if segment.kind == Kind.TOOL and segment.place == layer.segments[index + 1].place
    }
    return frozenset(range(len(layer.segments) + 1)) - inside


LAW = Law(
    name="tool_pairs",
    statement="A tool's call and its result stand together, in the message of their turn.",
    check=_check,
    cuts=_cuts,
)
