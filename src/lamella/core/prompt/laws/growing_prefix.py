"""Within an epoch of layout in_place, each request extends the one before it."""

from collections.abc import Iterable

from lamella.core.log.terms import Layout
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.movement import extends


def _check(envelope: Envelope, before: Sent | None) -> Iterable[str]:
    if before is None or envelope.layout is not Layout.IN_PLACE or before.layout is not Layout.IN_PLACE:
        return
    if before.epoch == envelope.epoch and not extends(before, envelope):
        yield f"the request does not extend the one before it, within epoch {envelope.epoch}"


LAW = Law(
    name="growing_prefix",
    statement="Within an epoch of layout in_place, each request extends the one before it.",
    check=_check,
)
