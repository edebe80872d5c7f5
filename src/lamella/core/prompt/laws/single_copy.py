"""Every artifact stands in a request at most once; only an update may follow the copy it updates."""

from collections.abc import Iterable

from lamella.core.log.placement import Form
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import LayerId


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    inlined = {pair for segment in envelope.layer(LayerId.L1).segments for pair in segment.inlines}
    readable: set[str] = {standing.artifact.id for standing in envelope.carried if standing.in_full}
    for layer_id in (LayerId.L2, LayerId.L4):
        for segment in envelope.layer(layer_id).segments:
            if segment.form in (Form.FULL, Form.UPDATE):
                drawn_in = segment.form is Form.FULL and (segment.id, segment.content) in inlined
                if segment.id in readable or drawn_in:
                    yield f"{segment.id} stands in the request more than once"
                readable.add(segment.id)
    for segment in envelope.layer(LayerId.L3).segments:
        if segment.form is Form.FULL and (segment.id in readable or (segment.id, segment.content) in inlined):
            yield f"{segment.id} is sent in full although the request already holds it"


LAW = Law(
    name="single_copy",
    statement="Every artifact stands in a request at most once, updates excepted.",
    check=_check,
)
