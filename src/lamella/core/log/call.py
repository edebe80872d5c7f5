"""A model call as it is recorded with its reply: prediction, reported usage, verdict, cost and timing."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from lamella.core.messages import CacheDiagnosis, Usage

# The purpose of a call that gives a turn its reply or requests tools.
ANSWER_PURPOSE = "answer"
# The purpose of a call that sends the last request again, so that the provider's cache entry does not expire.
KEEP_ALIVE_PURPOSE = "keep_alive"
# The maximum number of keep-alive requests. Two bring most of the possible savings; from the third on each costs more
# than it saves.
MAX_KEEP_ALIVES = 2


class IncompleteReplyReason(StrEnum):
    """Why a reply is shorter than the model's answer.

    ``stopped`` by the user, ``interrupted`` by the program, such as a server that was shut down, or ``broken`` off by
    an error.
    """

    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    BROKEN = "broken"


class PrefixChangeCause(StrEnum):
    """The cause of a prefix change; ``none`` means that the request extends the previous one."""

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


class PrefixChangeTrigger(StrEnum):
    """A change in a turn, other than an attachment, that may change the prefix."""

    SYSTEM = "system"
    TOOLS = "tools"
    MODEL = "model"
    TURN_SETTINGS = "terms"
    DROP = "drop"
    FOLD = "fold"
    RULES = "rules"


class PrefixChange(Struct, frozen=True, kw_only=True, gc=False):
    """The cause of a prefix change, and the segment it concerns: an artifact id, or a part of L1.

    If no byte changed, ``segment`` may name another input that a cache depends on: ``effort`` or ``images``.
    """

    cause: PrefixChangeCause
    segment: str | None = None

    def __str__(self) -> str:
        return f"{self.cause}({self.segment})" if self.segment else str(self.cause)


class CacheOutcome(StrEnum):
    """The fate of the prefix that the provider had cached."""

    FIRST = "first"
    HIT = "hit"
    PREFIX_CHANGED = "moved"
    TOO_SHORT = "too_short"
    EXPECTED_MISS = "cold"
    EXPIRED = "expired"
    EVICTED = "evicted"
    UNKNOWN = "unknown"
    UNEXPLAINED = "unexplained"


class CacheVerdict(Struct, frozen=True, kw_only=True, gc=False):
    """The cache outcome of a call and, if Lamella changed the prefix, the cause."""

    outcome: CacheOutcome
    prefix_change: PrefixChange

    @property
    def is_caused_by_lamella(self) -> bool:
        """Whether Lamella caused the cache miss, not the provider."""
        return self.outcome in (CacheOutcome.PREFIX_CHANGED, CacheOutcome.UNEXPLAINED)

    def __str__(self) -> str:
        still = self.prefix_change.cause is PrefixChangeCause.NONE and self.prefix_change.segment
        changed = f": {self.prefix_change.segment} changed" if still else ""
        return _OUTCOME_TEXTS[self.outcome].format(change=self.prefix_change, changed=changed)


_OUTCOME_TEXTS = {
    CacheOutcome.FIRST: "first turn: nothing was cached yet",
    CacheOutcome.HIT: "hit",
    CacheOutcome.PREFIX_CHANGED: "the prefix changed: {change}",
    CacheOutcome.TOO_SHORT: "too short for this model's cache",
    CacheOutcome.EXPECTED_MISS: "nothing of it was cached, as expected{changed}",
    CacheOutcome.EXPIRED: "the provider's cache entry expired",
    CacheOutcome.EVICTED: "the provider dropped its cache entry",
    CacheOutcome.UNKNOWN: "the provider does not say what was cached",
    CacheOutcome.UNEXPLAINED: "the prefix changed for an unknown reason: a bug, please report it",
}


class CacheUsage(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"long_lifetime": "lasting"}):
    """The tokens of a request by cache handling: read from the cache, written to it, or neither.

    ``long_lifetime`` is the part of ``write`` that goes into the cache with the longer lifetime, which costs more.
    """

    read: int
    write: int
    uncached: int
    long_lifetime: int = 0

    @property
    def total(self) -> int:
        return self.read + self.write + self.uncached


class TurnInputCost(Struct, frozen=True, kw_only=True):
    """The input cost of one turn: as sent, in the naive layout, and with a cache that never misses."""

    amount: Decimal
    naive: Decimal
    limit: Decimal


class CallTiming(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Durations of a call in seconds; None if not measured.

    ``phases`` has the phases of ``build`` that took measurable time, such as reading attachments.
    """

    build: float | None = None
    first: float | None = None
    total: float | None = None
    phases: dict[str, float] = {}


class RequestHash(Struct, frozen=True, gc=False, array_like=True):
    """The hash of a request with all its tool rounds, and the version of the renderer that wrote it."""

    hash: str
    renderer: int


class ModelCall(Struct, frozen=True, kw_only=True, gc=False):
    """One model call and everything known about it.

    - ``cost``: the predicted cost of the input; ``billed``: the cost of the whole reported usage.
    - ``stop``: why the reply ended, including ``stopped`` by the user and ``broken`` off.
    - ``id``: the provider's id of the reply.
    - ``retries``: the number of failed attempts before.
    - ``purpose``: what the call was made for.
    - ``request``: the hash of the request that was sent; None in older records and for auxiliary calls.
    """

    model: str | None
    verdict: CacheVerdict
    predicted: CacheUsage | None = None
    usage: Usage
    by_layer: Mapping[str, int] = {}
    cost: TurnInputCost | None = None
    billed: Decimal | None = None
    timing: CallTiming = CallTiming()
    stop: str = ""
    id: str | None = None
    diagnosis: CacheDiagnosis | None = None
    retries: int = 0
    purpose: str = ANSWER_PURPOSE
    request: RequestHash | None = None
