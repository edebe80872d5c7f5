"""One model call as the ledger keeps it: predicted, reported, judged, billed and timed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from lamella.core.ledger.cache import CacheUse
from lamella.core.ledger.cost import Cost
from lamella.core.ledger.verdict import Verdict
from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the phases of a call took, in seconds; none where nobody measured."""

    build: float | None = None
    first: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call and what is known of it. ``cost`` is the input as predicted, ``billed`` all that the reported usage costs.

    ``stop`` is why the answer ended, also ``stopped`` by the user or ``broken`` on the way. ``id`` is the provider's
    name for the reply. ``retries`` is how often it was tried before.
    """

    model: str | None
    verdict: Verdict
    predicted: CacheUse | None = None
    usage: Usage
    by_layer: Mapping[str, int] = field(default_factory=dict)
    cost: Cost | None = None
    billed: Decimal | None = None
    timing: Timing = field(default_factory=Timing)
    stop: str = ""
    id: str | None = None
    diagnosis: Diagnosis | None = None
    retries: int = 0


def reported_use(usage: Usage) -> CacheUse | None:
    """What a provider reported, by price class; none where it says too little to be billed."""
    if usage.plain is None:
        return None
    write = (usage.write or 0) + (usage.write_long or 0)
    return CacheUse(read=usage.read or 0, write=write, uncached=usage.plain)
