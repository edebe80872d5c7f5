"""The ledger as it is told: turns, model calls, and what they add up to."""

from pydantic import Field

from lamella.faces.server.bodies.prompts import CacheUseJson, CostJson, ImprintJson, PlacementJson
from lamella.faces.server.bodies.shape import ConversationBody, Count, JsonBody, Moment, Money


class VerdictJson(JsonBody):
    """What became of the cache, and whose doing that is."""

    outcome: str
    cause: str
    segment: str | None
    ours: bool
    says: str


class UsageJson(JsonBody):
    """Tokens by price class, as the provider reported them; null where it did not."""

    plain: int | None = None
    read: int | None = None
    write: int | None = None
    write_long: int | None = None
    output: int | None = None
    reasoning: int | None = None
    fault: str | None = None


class SecondsJson(JsonBody):
    """How long a call took: to build, until its first word, and in all."""

    build: float | None
    first: float | None
    total: float | None


class CallCostJson(CostJson):
    """What a call was expected to cost, and what a perfect cache would have made of it."""

    limit: Money


class DiagnosisJson(JsonBody):
    """What the provider says of a miss."""

    verdict: str
    reason: str | None
    missed: int | None


class ModelCallJson(JsonBody):
    """One call to a model; what nobody knows is null."""

    purpose: str
    model: str | None
    verdict: VerdictJson
    predicted: CacheUseJson | None
    reported: UsageJson
    by_layer: dict[str, int]
    billed: Money
    cost: CallCostJson | None
    seconds: SecondsJson
    stop: str
    id: str | None
    diagnosis: DiagnosisJson | None
    retries: Count


class LedgerTurnJson(JsonBody):
    """A turn with the calls that were made for it."""

    turn: int
    message: str
    at: Moment
    standing: str = Field(description="`waiting`, `called`, `no_call` or `unanswered`.")
    sent: ImprintJson | None
    placement: PlacementJson | None
    calls: list[ModelCallJson]


class LedgerTotalsJson(JsonBody):
    """What all calls add up to."""

    turns: Count
    calls: Count
    asides: Count
    predicted: int | None
    read: int | None
    write: int | None
    plain: int | None
    output: int | None
    cache_read_share: float | None
    billed: Money
    cost: Money
    naive_cost: Money
    limit_cost: Money
    unpriced_calls: Count
    seconds: float | None
    retries: Count


class SeenDoubtJson(JsonBody):
    """A contradiction, and the turns that it was seen in."""

    turns: list[int]
    says: str


class DoubtJson(JsonBody):
    """A model that its profile does not fit, and the lines for a file of facts."""

    model: str
    seen: list[SeenDoubtJson]
    facts: dict[str, int | bool]
    model_facts: str


class LedgerJson(ConversationBody):
    """Every turn with its calls, and the sums."""

    turns: list[LedgerTurnJson]
    totals: LedgerTotalsJson
    unexplained: list[int]
    doubts: list[DoubtJson]
