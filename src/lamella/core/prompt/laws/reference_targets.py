"""A reference points only to what can be read in the same request, in full or in full plus its updates."""

from collections.abc import Iterable

from lamella.core.log.placement import Form
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import LayerId

_READABLE = (Form.FULL, Form.UPDATE)


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    references = [s for s in envelope.layer(LayerId.L3).segments if s.form is Form.REFERENCE]
    if not references:
        return
    readable = _readable(envelope)
    for segment in references:
        if (segment.id, segment.content) not in readable:
            yield f"{segment.id} is referred to and does not stand in the request in full"


def _readable(envelope: Envelope) -> set[tuple[str, str]]:
    targets = {
        (segment.id, segment.content)
        for layer_id in (LayerId.L2, LayerId.L4)
        for segment in envelope.layer(layer_id).segments
        if segment.form in _READABLE and segment.content is not None
    }
    targets.update(pair for segment in envelope.layer(LayerId.L1).segments for pair in segment.inlines)
    targets.update((c.artifact.id, c.artifact.hash) for c in envelope.carried if c.in_full)
    return targets


LAW = Law(
    name="reference_targets",
    statement="A reference points only to what stands in the request in full, or in full plus its updates.",
    check=_check,
)
