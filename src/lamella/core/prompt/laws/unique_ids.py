"""No id stands twice in a layer."""

from collections import Counter
from collections.abc import Iterable

from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    for layer in envelope.layers:
        ids = [segment.id for segment in layer.segments]
        if len(set(ids)) != len(ids):
            repeated = [name for name, times in Counter(ids).items() if times > 1]
            yield f"{layer.id} holds {', '.join(repeated)} more than once"


LAW = Law(name="unique_ids", statement="No id stands twice in a layer.", check=_check)
