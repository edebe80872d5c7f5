"""Invariants: the laws every envelope satisfies, one named law per file.

Enters: an envelope and the one before it. Leaves: findings, or the places where a layer may be cut.
May not enter: searching in text. Laws look at ids, hashes, forms and places, so a user may quote any tag.
"""

from collections.abc import Iterator

from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws import (
    growing_prefix,
    layer_order,
    reference_targets,
    single_copy,
    strip_content,
    tool_pairs,
    true_hashes,
    unique_ids,
    verbatim,
)
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import Layer
from lamella.errors import LawBrokenError

LAWS: tuple[Law, ...] = (
    layer_order.LAW,
    unique_ids.LAW,
    reference_targets.LAW,
    strip_content.LAW,
    single_copy.LAW,
    verbatim.LAW,
    tool_pairs.LAW,
    true_hashes.LAW,
    growing_prefix.LAW,
)


def find_breaches(envelope: Envelope, *, before: Sent | None) -> Iterator[tuple[Law, tuple[str, ...]]]:
    """Each law the envelope breaks, with what was found."""
    for law in LAWS:
        findings = tuple(law.check(envelope, before))
        if findings:
            yield law, findings


def check_laws(envelope: Envelope, *, before: Sent | None) -> None:
    """Raise on the first broken law."""
    for law, findings in find_breaches(envelope, before=before):
        raise LawBrokenError(law=law.name, findings=findings)


def legal_cuts(layer: Layer) -> tuple[int, ...]:
    """The places, counted in segments, before which a layer may be cut without breaking any law."""
    allowed = frozenset(range(len(layer.segments) + 1))
    for law in LAWS:
        allowed &= law.cuts(layer)
    return tuple(sorted(allowed))
