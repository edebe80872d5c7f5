"""Compactions as they are told: planned, done, taken back; and what is recalled of what left."""

from pydantic import Field

from lamella.faces.server.bodies.shape import ConversationBody, Count, JsonBody, Moment, Money


class TokenCountsJson(JsonBody):
    """What a request weighs, by layer, and what fits."""

    total: Count
    by_layer: dict[str, int]
    limit: int | None


class StepJson(JsonBody):
    """A step that removed something."""

    name: str
    removed: list[str]
    tokens_before: Count
    tokens_after: Count


class SkippedStepJson(JsonBody):
    """A step that did nothing, and why."""

    name: str
    why: str


class CertificateCountsJson(JsonBody):
    """How many are still in the prompt, one recall away, and gone."""

    stand: Count
    recallable: Count
    gone: Count


class CertificateJson(JsonBody):
    """What became of the exact words and of the rules in what was touched."""

    words: CertificateCountsJson
    rules: CertificateCountsJson


class ReceiptJson(JsonBody):
    """What a compaction took out, step by step."""

    id: str
    parent: str | None
    steps: list[StepJson]
    skipped: list[SkippedStepJson]
    tokens_before: Count
    tokens_after: Count
    target: int
    automatic: bool
    certificate: CertificateJson | None


class PlannedCountsJson(JsonBody):
    """What the next request weighs without and with a compaction."""

    before: TokenCountsJson
    after: TokenCountsJson | None


class OutlookJson(JsonBody):
    """What a compaction costs now and saves later."""

    moved: int
    cost_now: Money
    saved_per_turn: Money


class PlanJson(JsonBody):
    """A compaction that was planned, and whether it was done; null where there is nothing to take out."""

    conversation: str
    committed: bool
    receipt: ReceiptJson | None
    tokens: PlannedCountsJson
    outlook: OutlookJson | None
    warnings: list[str]


class UndoneJson(JsonBody):
    """The compactions that were voided, by their receipts, oldest first."""

    conversation: str
    undone: list[str]


class ReceiptListJson(ConversationBody):
    """The compactions in force, oldest first."""

    receipts: list[ReceiptJson]


class FoundOriginalJson(JsonBody):
    """Something that was said or attached, word for word."""

    place: str
    at: Moment | None = Field(description="When it was said.")
    role: str
    id: str
    message: str | None
    title: str
    score: float
    excerpt: str
    text: str


class RecallJson(JsonBody):
    """What left the prompt and has the words, best first."""

    conversation: str
    query: str
    found: list[FoundOriginalJson]
