"""Laws of copies: what is referred to can be read, nothing stands twice, what cannot be fetched again stands whole."""

from collections.abc import Iterable

from lamella.core.artifacts.kinds import KINDS, Promotion
from lamella.core.log.placement import Form
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.laws.law import Law, anywhere
from lamella.core.prompt.layers.model import Layer, LayerId
from lamella.core.prompt.prompt import Prompt

_READABLE = (Form.FULL, Form.UPDATE)
_VERBATIM = (Form.FULL, Form.REFERENCE)
_KEPT_KINDS = {
    kind.value for kind, spec in KINDS.items() if not spec.recoverable and spec.promotion is not Promotion.NEVER
}


def _check_references(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    references = [s for s in envelope.segments(LayerId.L3) if s.form is Form.REFERENCE]
    if not references:
        return
    readable = _find_readable(envelope)
    for segment in references:
        if (segment.id, segment.content) not in readable:
            yield f"{segment.id} is referred to and does not stand in the request in full"


def _find_readable(envelope: Envelope) -> set[tuple[str, str]]:
    targets = {
        (segment.id, segment.content)
        for layer_id in (LayerId.L2, LayerId.L4)
        for segment in envelope.segments(layer_id)
        if segment.form in _READABLE and segment.content is not None
    }
    targets.update(pair for segment in envelope.segments(LayerId.L1) for pair in segment.inlines)
    targets.update((c.artifact.id, c.artifact.hash) for c in envelope.prompt.carried if c.in_full)
    return targets


REFERENCE_TARGETS = Law(
    name="reference_targets",
    statement="A reference points only to what stands in the request in full, or in full plus its updates.",
    check=_check_references,
)


def _check_copies(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    inlined = {pair for segment in envelope.segments(LayerId.L1) for pair in segment.inlines}
    readable: set[str] = {standing.artifact.id for standing in envelope.prompt.carried if standing.in_full}
    for layer_id in (LayerId.L2, LayerId.L4):
        for segment in envelope.segments(layer_id):
            if segment.form in _READABLE:
                drawn_in = segment.form is Form.FULL and (segment.id, segment.content) in inlined
                if segment.id in readable or drawn_in:
                    yield f"{segment.id} stands in the request more than once"
                readable.add(segment.id)
    for segment in envelope.segments(LayerId.L3):
        if segment.form is Form.FULL and (segment.id in readable or (segment.id, segment.content) in inlined):
            yield f"{segment.id} is sent in full although the request already holds it"


SINGLE_COPY = Law(
    name="single_copy",
    statement="Every artifact stands in a request at most once, updates excepted.",
    check=_check_copies,
)


def _check_verbatim(envelope: Envelope, before: Prompt | None) -> Iterable[str]:
    for layer in envelope.layers:
        for segment in layer.segments:
            if not segment.recoverable and segment.form not in _VERBATIM:
                yield f"{segment.id} cannot be fetched again and stands as {segment.form}"
    if before is not None and before.conversation_id == envelope.conversation_id:
        yield from _find_lost(before, envelope)


def _find_lost(before: Prompt, now: Envelope) -> Iterable[str]:
    kept = {segment.id for segment in now.segments(LayerId.L2)}
    for layer_id in (LayerId.L2, LayerId.L3):
        for segment in before.segments(layer_id):
            if segment.kind in _KEPT_KINDS and segment.id not in kept and segment.id not in now.prompt.dropped:
                yield f"{segment.id} cannot be fetched again and is gone"


def _cut_verbatim(layer: Layer) -> frozenset[int]:
    """L2 may be cut only before its first entry that cannot be fetched again; other layers have their own laws."""
    if layer.id is not LayerId.L2:
        return anywhere(layer)
    first = next((i for i, s in enumerate(layer.segments) if not s.recoverable), len(layer.segments))
    return frozenset(range(first + 1))


VERBATIM = Law(
    name="verbatim",
    statement="Text that cannot be fetched again stands verbatim, and leaves only when the user drops it.",
    check=_check_verbatim,
    cuts=_cut_verbatim,
)
