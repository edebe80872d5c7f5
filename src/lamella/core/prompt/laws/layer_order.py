"""All five layers, always, in order."""

from collections.abc import Iterable

from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.laws.law import Law
from lamella.core.prompt.layers.model import LAYER_ORDER


def _check(envelope: Envelope, _before: Sent | None) -> Iterable[str]:
    found = tuple(layer.id for layer in envelope.layers)
    if found != LAYER_ORDER:
        yield f"the layers are {', '.join(found) or 'none'}"


LAW = Law(name="layer_order", statement="An envelope has its five layers in order.", check=_check)
