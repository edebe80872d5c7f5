"""Laws: what every envelope satisfies.

Enters: an envelope and the prompt before it. Leaves: findings, or the places where a layer may be cut.
May not enter: searching in text. Laws look at ids, hashes, forms and places, so a user may quote any tag.
"""

from collections.abc import Iterator

from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.laws.copies import REFERENCE_TARGETS, SINGLE_COPY, VERBATIM
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.laws.shape import GROWING_PREFIX, LAYER_ORDER_LAW, TRUE_HASHES, UNIQUE_IDS
from lamella.core.prompt.laws.talk import STRIP_CONTENT, TOOL_PAIRS
from lamella.core.prompt.layers.model import Layer
from lamella.core.prompt.prompt import Prompt
from lamella.errors import LawBrokenError

LAWS: tuple[Law, ...] = (
    LAYER_ORDER_LAW,
    UNIQUE_IDS,
    REFERENCE_TARGETS,
    STRIP_CONTENT,
    SINGLE_COPY,
    VERBATIM,
    TOOL_PAIRS,
    TRUE_HASHES,
    GROWING_PREFIX,
)


def find_breaches(envelope: Envelope, *, before: Prompt | None) -> Iterator[tuple[Law, tuple[str, ...]]]:
    """Each law the envelope breaks, with what was found."""
    for law in LAWS:
        findings = tuple(law.check(envelope, before))
        if findings:
            yield law, findings


def check_laws(envelope: Envelope, *, before: Prompt | None) -> None:
    """Raise on the first broken law."""
    for law, findings in find_breaches(envelope, before=before):
        raise LawBrokenError(law=law.name, findings=findings)


def legal_cuts(layer: Layer) -> tuple[int, ...]:
    """The places, counted in segments, before which a layer may be cut without breaking any law."""
    allowed = frozenset(range(len(layer.segments) + 1))
    for law in LAWS:
        allowed &= law.cuts(layer)
    return tuple(sorted(allowed))
