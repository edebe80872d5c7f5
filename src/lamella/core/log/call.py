"""One model call as it is written down with its reply: predicted, reported, judged, billed and timed."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import Usage

# What a call is made for that gives a turn its answer, or its tools their work.
ANSWER_PURPOSE = "answer"
# What one is made for that sends the last request again, so that a cache keeps it.
KEPT_PURPOSE = "keep_alive"
# How often at most: two bring most of what can be brought, and from the third on each costs more than it saves.
MOST_KEPT = 2


class Cause(StrEnum):
    """Why a prefix moved. ``none``: it did not, the request extends the one before."""

    FIRST_TURN = "first_turn"
    SYSTEM_CHANGED = "system_changed"
    TOOLS_CHANGED = "tools_changed"
    MODEL_CHANGED = "model_changed"
    ARTIFACT_ADDED = "artifact_added"
    ARTIFACT_UPDATED = "artifact_updated"
    EPOCH_FOLDED = "epoch_folded"
    COMPACTED = "compacted"
    HISTORY_EDITED = "history_edited"
    BRANCH = "branch"
    LAYOUT_CHANGED = "layout_changed"
    RENDERER_CHANGED = "renderer_changed"
    NONE = "none"


class Trigger(StrEnum):
    """What a turn does that may move the prefix, beside attaching something."""

    SYSTEM = "system"
    TOOLS = "tools"
    MODEL = "model"
    TERMS = "terms"
    DROP = "drop"
    FOLD = "fold"
    RULES = "rules"


class Movement(Struct, frozen=True, kw_only=True, gc=False):
    """The cause, and the segment it names: an artifact's id, or the part of L1.

    Where no byte moved it may name what else a cache depends on: ``effort`` or ``images``.
    """

    cause: Cause
    segment: str | None = None

    def __str__(self) -> str:
        return f"{self.cause}({self.segment})" if self.segment else str(self.cause)


class Outcome(StrEnum):
    """What became of the prefix that the provider had."""

    FIRST = "first"
    HIT = "hit"
    MOVED = "moved"
    TOO_SHORT = "too_short"
    COLD = "cold"
    EXPIRED = "expired"
    EVICTED = "evicted"
    UNKNOWN = "unknown"
    UNEXPLAINED = "unexplained"


class Verdict(Struct, frozen=True, kw_only=True, gc=False):
    """The outcome, and for a prefix that we moved what moved it."""

    outcome: Outcome
    movement: Movement

    @property
    def ours(self) -> bool:
        """Whether the miss is our doing, not the provider's."""
        return self.outcome in (Outcome.MOVED, Outcome.UNEXPLAINED)

    def __str__(self) -> str:
        still = self.movement.cause is Cause.NONE and self.movement.segment
        changed = f": {self.movement.segment} changed" if still else ""
        return _WORDS[self.outcome].format(movement=self.movement, changed=changed)


_WORDS = {
    Outcome.FIRST: "first turn: nothing was cached yet",
    Outcome.HIT: "hit",
    Outcome.MOVED: "we moved the prefix: {movement}",
    Outcome.TOO_SHORT: "too short for this model's cache",
    Outcome.COLD: "the cache held nothing of it, as expected{changed}",
    Outcome.EXPIRED: "the provider's cache entry expired",
    Outcome.EVICTED: "the provider dropped its cache entry",
    Outcome.UNKNOWN: "the provider does not say what was cached",
    Outcome.UNEXPLAINED: "the prefix moved and nothing recorded says why: a bug, please report it",
}


class CacheUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request's tokens by what becomes of them: read from the cache, written to it, neither.

    Of those that are written, ``lasting`` are meant for the longer lifetime, which costs more.
    """

    read: int
    write: int
    uncached: int
    lasting: int = 0

    @property
    def total(self) -> int:
        return self.read + self.write + self.uncached


class Cost(Struct, frozen=True, kw_only=True):
    """Input cost of one turn: as sent, as naive gluing would cost, and with a cache that never misses."""

    amount: Decimal
    naive: Decimal
    limit: Decimal


class Timing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long the phases of a call took, in seconds; none where nobody measured."""

    build: float | None = None
    first: float | None = None
    total: float | None = None


class Call(Struct, frozen=True, kw_only=True, gc=False):
    """A call and what is known of it. ``cost`` is the input as predicted, ``billed`` all that the reported usage costs.

    ``stop`` is why the answer ended, also ``stopped`` by the user or ``broken`` on the way. ``id`` is the provider's
    name for the reply. ``retries`` is how often it was tried before. ``purpose`` is what it was made for.
    """

    model: str | None
    verdict: Verdict
    predicted: CacheUse | None = None
    usage: Usage
    by_layer: Mapping[str, int] = {}
    cost: Cost | None = None
    billed: Decimal | None = None
    timing: Timing = Timing()
    stop: str = ""
    id: str | None = None
    diagnosis: Diagnosis | None = None
    retries: int = 0
    purpose: str = ANSWER_PURPOSE
