"""Prompts as they are told: envelopes layer by layer, what they weigh, what moved, what they cost."""

from typing import Literal

from pydantic import Field

from lamella.faces.server.bodies.compaction import ReceiptJson, TokenCountsJson
from lamella.faces.server.bodies.shape import ConversationBody, Count, Hash, JsonBody, Money


class SegmentJson(JsonBody):
    """An artifact, or something said, as it stands in a layer."""

    id: str
    kind: str
    form: str
    place: str | None = Field(description="`system`, or `message:N`; null for what is listed and not stated.")
    hash: Hash
    tokens: Count
    recoverable: bool


class LayerJson(JsonBody):
    """One of the five layers."""

    id: Literal["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"]
    text: str
    hash: Hash
    tokens: Count
    segments: list[SegmentJson]


class EnvelopeJson(JsonBody):
    """A request in its layers, from the most stable to the most volatile."""

    version: int
    conversation_id: str
    message_id: str
    epoch: Count
    layers: list[LayerJson] = Field(min_length=5, max_length=5)
    prefix_hash: Hash
    hash: Hash
    dropped: list[str]
    warnings: list[str]


class PromptMessageJson(JsonBody):
    """A message as it is sent: a text, or parts where there are pictures."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, object]] | None


class PrefixJson(JsonBody):
    """What moved beside the request before, and how much of it is common to both."""

    cause: str
    segment: str | None
    common_tokens: Count


class CacheUseJson(JsonBody):
    """What a cache is expected to serve, to take, and neither."""

    read: Count
    write: Count
    uncached: Count


class CostJson(JsonBody):
    """What a request is expected to cost, and what gluing everything into it would."""

    currency: Literal["USD"]
    amount: Money
    naive: Money


class PlacementJson(JsonBody):
    """Where prices decided how things stand: what was chosen, and why."""

    why: str
    keep: int | None
    within: int
    whole: list[str]
    marks: list[int]
    lasting: int | None
    served: int | None
    expected: float | None
    next_best: float | None
    order: list[str] | None = None


class AskedTurnJson(JsonBody):
    """What a turn weighs, what moved, and what it is expected to cost."""

    message: str
    epoch: Count
    hash: Hash
    prefix_hash: Hash
    turn: int
    tokens: TokenCountsJson
    prefix: PrefixJson
    cache: CacheUseJson | None
    cost: CostJson | None
    compaction: ReceiptJson | None
    warnings: list[str]


class WeighedTurnJson(AskedTurnJson, ConversationBody):
    """A turn that might be asked: what it weighs and costs; with `whole` its envelope and messages as well."""


class ImprintJson(JsonBody):
    """What was noted of a turn when it was sent."""

    renderer: int
    hashes: dict[str, str | None]
    segments: dict[str, int]
    dedup_ratio: float
    compacted_share: float
    unparsed: int


class SentTurnJson(ConversationBody):
    """A turn as it was sent, built again from the log."""

    turn: int
    envelope: EnvelopeJson
    messages: list[PromptMessageJson]
    tokens: TokenCountsJson
    prefix: PrefixJson
    cache: CacheUseJson | None
    cost: CostJson | None
    compaction: ReceiptJson | None
    sent: ImprintJson | None
    same_bytes: bool | None = Field(description="Whether its hash is that of what was sent; null of older turns.")


class RequestJson(JsonBody):
    """The body that a provider's SDK sends; its fields are those of that provider's API."""


class BudgetJson(ConversationBody):
    """How full the window is."""

    tokens: TokenCountsJson
    left: int | None


class WorkingSetJson(ConversationBody):
    """What the model can read in the next turn, by id."""

    working_set: list[str]


class StandingJson(JsonBody):
    """Where something stands in the prompt."""

    layer: str | None
    form: str
    place: str | None
    tokens: Count


class RemedyJson(JsonBody):
    """Something to do, and with what."""

    do: str
    what: str


class ReasonJson(ConversationBody):
    """Why something is in the next prompt or is not, and what would bring it in."""

    id: str
    kind: str
    title: str
    in_prompt: bool
    why: str
    turns: list[int]
    segments: list[StandingJson]
    brings_in: list[RemedyJson]
