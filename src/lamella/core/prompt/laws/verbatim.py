"""Text that cannot be fetched again stands verbatim, and leaves only when the user drops it."""

from collections.abc import Iterable

from lamella.core.artifacts.kinds import KINDS, Promotion
from lamella.core.log.placement import Form
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import Layer, LayerId

_VERBATIM = (Form.FULL, Form.REFERENCE)
_KEPT_KINDS = {
    kind.value for kind, spec in KINDS.items() if not spec.recoverable and spec.promotion is not Promotion.NEVER
}


def _check(envelope: Envelope, before: Sent | None) -> Iterable[str]:
    for layer in envelope.layers:
        for segment in layer.segments:
            if not segment.recoverable and segment.form not in _VERBATIM:
                yield f"{segment.id} cannot be fetched again and stands as {segment.form}"
    if before is not None and before.conversation_id == envelope.conversation_id:
        yield from _lost(before, envelope)


def _lost(before: Sent, now: Envelope) -> Iterable[str]:
    kept = {segment.id for segment in now.layer(LayerId.L2).segments}
    for layer_id in (LayerId.L2, LayerId.L3):
        for segment in before.segments(layer_id):
            if segment.kind in _KEPT_KINDS and segment.id not in kept and segment.id not in now.dropped:
                yield f"{segment.id} cannot be fetched again and is gone"


def _cuts(layer: Layer) -> frozenset[int]:
    """L2 may be cut only before its first entry that cannot be fetched again; other layers have their own laws."""
    if layer.id is not LayerId.L2:
        return frozenset(range(len(layer.segments) + 1))
    first = next((i for i, s in enumerate(layer.segments) if not s.recoverable), len(layer.segments))
    return frozenset(range(first + 1))


LAW = Law(
    name="verbatim",
    statement="Text that cannot be fetched again stands verbatim, and leaves only when the user drops it.",
    check=_check,
    cuts=_cuts,
)
