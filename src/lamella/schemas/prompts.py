"""JSON bodies of turns: sent, replayed and previewed, with their cost, and explanations.

``turn_prompt_to_json`` returns envelope, messages, prefix change, cache use and cost of a turn. ``explanation_to_json`` says
why an artifact is in the prompt or not.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.structs import asdict

from lamella.core.budget import Tokenizer
from lamella.core.ledger.entry import PrefixChangeReport, cached_tokens_by_layer
from lamella.core.log.call import CacheUsage, TurnInputCost
from lamella.core.log.turn import ArtifactForm, LayoutPlan, RequestFingerprint
from lamella.core.messages import Message
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import LAYER_ORDER, Layer, LayerId, Segment
from lamella.schemas.body import ConversationJsonBase, Count, Hash, JsonBody, Money, VersionedBody
from lamella.schemas.compaction import ReceiptJson, TokenCountsJson, receipt_to_json_or_none, token_counts_to_json
from lamella.schemas.formatting import format_decimal, format_decimal_or_none

if TYPE_CHECKING:
    from lamella.conversation.reasons import PromptExplanation
    from lamella.conversation.turn import BuiltTurn, EarlierRequest

SHARE_DIGITS = 6

# Parts of a turn.


class SegmentJson(JsonBody, frozen=True, kw_only=True):
    """An artifact or a message within a layer; its text is part of the layer's text."""

    id: str
    kind: str
    form: str
    place: Annotated[str | None, Meta(description="`system`, or `message:N`; null if it is listed, but not sent.")]
    hash: Hash
    tokens: Count
    recoverable: Annotated[bool, Meta(description="Whether it can be read again from its source.")]


class LayerJson(JsonBody, frozen=True, kw_only=True):
    """One of the five layers."""

    id: Literal["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"]
    text: Annotated[str, Meta(description="Left out if it was not asked for.")] | UnsetType = UNSET
    hash: Hash
    tokens: Count
    segments: Sequence[SegmentJson]


class EnvelopeJson(JsonBody, frozen=True, kw_only=True):
    """A request by layers, from the most stable to the most volatile; its messages are a field of the turn."""

    version: int
    conversation_id: str
    message_id: str
    epoch: Annotated[int, Meta(ge=0, description="How often the history was folded.")]
    layers: Annotated[Sequence[LayerJson], Meta(min_length=5, max_length=5)]
    prefix_hash: Hash
    hash: Hash
    dropped: Annotated[Sequence[str], Meta(description="Artifacts that were dropped from the prompt.")]
    warnings: Sequence[str]
    why: (
        Annotated[str, Meta(description="Why this layout was chosen; only of a layout chosen by cost.")] | UnsetType
    ) = UNSET


class MessageCallJson(JsonBody, frozen=True, kw_only=True):
    """A tool call within a message."""

    id: str
    name: str
    arguments: str


class PromptMessageJson(JsonBody, frozen=True, kw_only=True):
    """A message as it is sent: a text, or parts if it has images."""

    role: Literal["system", "user", "assistant", "tool"]
    call: Annotated[str, Meta(description="The call whose output this is.")] | UnsetType = UNSET
    content: str | Sequence[Mapping[str, str]]
    calls: Annotated[Sequence[MessageCallJson], Meta(description="Tool calls of the model.")] | UnsetType = UNSET
    failed: Annotated[bool, Meta(description="Whether the call failed; only if it did.")] | UnsetType = UNSET


class PrefixJson(JsonBody, frozen=True, kw_only=True):
    """The change of the prefix since the previous request, and how many tokens both have in common."""

    cause: str
    segment: Annotated[str | None, Meta(description="The part of the prompt that changed.")]
    common_tokens: int | None


class ExpectedCacheUseJson(JsonBody, frozen=True, kw_only=True):
    """Tokens that the cache is expected to serve, tokens that it is expected to store, and the rest."""

    read: Count
    write: Count
    uncached: Count


class CostJson(JsonBody, frozen=True, kw_only=True):
    """The expected cost of a request, and its cost in the naive layout.

    The naive layout repeats every attachment in force in the last message of each request.
    """

    currency: Literal["USD"] = "USD"
    amount: Money
    naive: Money


class LayoutPlanJson(JsonBody, frozen=True, kw_only=True):
    """The layout plan that was chosen by cost, and the reason."""

    why: str
    keep: Annotated[int | None, Meta(description="How many messages of the previous request stay; null for all.")]
    within: Annotated[int, Meta(description="How many pieces of the first message after those stay, too.")]
    order: (
        Annotated[Sequence[str], Meta(description="Order of moved texts, if it is not the first one.")] | UnsetType
    ) = UNSET
    whole: Annotated[Sequence[str], Meta(description="Changed artifacts that are shown in full.")]
    marks: Annotated[Sequence[int], Meta(description="Messages with a cache breakpoint, besides the last one.")]
    lasting: Annotated[int | None, Meta(description="Up to this message, breakpoints ask for the longer lifetime.")]
    served: Annotated[int | None, Meta(description="The last message that the cache is expected to serve.")]
    expected: Annotated[float | None, Meta(description="Expected cost, in tokens of uncached input.")]
    next_best: Annotated[float | None, Meta(description="Expected cost of the next best plan.")]


def cache_use_to_json(usage: CacheUsage) -> ExpectedCacheUseJson:
    """Return the predicted use of the cache."""
    return ExpectedCacheUseJson(read=usage.read, write=usage.write, uncached=usage.uncached)


def layout_plan_to_json(layout_plan: LayoutPlan) -> LayoutPlanJson:
    """Return the layout plan that was chosen by cost, with the reason."""
    return LayoutPlanJson(
        why=layout_plan.why,
        keep=layout_plan.keep_messages,
        within=layout_plan.within,
        order=layout_plan.order or UNSET,
        whole=sorted(name for name, form in layout_plan.forms.items() if form is ArtifactForm.FULL),
        marks=layout_plan.breakpoints,
        lasting=layout_plan.long_lifetime_until,
        served=layout_plan.cached_message,
        expected=layout_plan.cost,
        next_best=layout_plan.other,
    )


def _envelope_to_json(envelope: Envelope, *, with_texts: bool = True) -> EnvelopeJson:
    return EnvelopeJson(
        version=envelope.version,
        conversation_id=envelope.conversation_id,
        message_id=envelope.message_id,
        epoch=envelope.epoch,
        layers=[_layer_to_json(layer, with_texts=with_texts) for layer in envelope.layers],
        prefix_hash=envelope.prefix_hash,
        hash=envelope.hash,
        dropped=envelope.prompt.dropped,
        warnings=envelope.warnings,
        why=envelope.prompt.layout_plan.why if envelope.prompt.layout_plan.priced else UNSET,
    )


def _layer_to_json(layer: Layer, *, with_texts: bool) -> LayerJson:
    return LayerJson(
        id=layer.id.value,
        text=layer.text if with_texts else UNSET,
        hash=layer.hash,
        tokens=layer.tokens,
        segments=[_segment_to_json(segment) for segment in layer.segments],
    )


def _segment_to_json(segment: Segment) -> SegmentJson:
    return SegmentJson(
        id=segment.id,
        kind=str(segment.kind),
        form=segment.form.value,
        place=segment.place,
        hash=segment.hash,
        tokens=segment.tokens,
        recoverable=segment.recoverable,
    )


def _message_to_json(message: Message) -> PromptMessageJson:
    return convert(message.to_dict(), PromptMessageJson)


def prefix_to_json(change: PrefixChangeReport) -> PrefixJson:
    """Return the change of the prefix."""
    return PrefixJson(cause=change.cause, segment=change.segment, common_tokens=change.common_tokens)


def cost_to_json(cost: TurnInputCost | None) -> CostJson | None:
    """Return the expected cost of a request; None if it is unknown."""
    return None if cost is None else CostJson(amount=format_decimal(cost.amount), naive=format_decimal(cost.naive))


def _planned_layout(turn: "BuiltTurn") -> LayoutPlanJson | UnsetType:
    layout_plan = turn.envelope.prompt.layout_plan
    return layout_plan_to_json(layout_plan) if layout_plan.priced else UNSET


# Turns.

_Placement = (
    Annotated[LayoutPlanJson, Meta(description="The chosen plan; only of a layout chosen by cost.")] | UnsetType
)


class RequestCheckJson(Struct, frozen=True, kw_only=True):
    """Whether a request derived from the log is the one that was sent."""

    status: Annotated[
        Literal["verified", "unverified", "differs", "erased", "other_renderer"],
        Meta(
            description="`verified`: it has the stored hash. `unverified`: no hash was stored. `differs`: it has "
            "another hash. `erased`: content that it had was erased. `other_renderer`: another version of Lamella "
            "wrote it."
        ),
    ]
    detail: Annotated[str, Meta(description="The reason, unless it is verified.")]


class EarlierRequestJson(JsonBody, frozen=True, kw_only=True):
    """A request that a turn with tools sent before its last one."""

    tokens: Count
    cache: ExpectedCacheUseJson | None
    cost: Annotated[CostJson | None, Meta(description="Null without a known price.")]


class TurnPromptJson(JsonBody, frozen=True, kw_only=True):
    """A turn with its request, the change of the prefix, the expected use of the cache, and the expected cost."""

    turn: Annotated[int, Meta(description="Number of the turn, from 1.")]
    envelope: EnvelopeJson
    messages: (
        Annotated[Sequence[PromptMessageJson], Meta(description="Left out if texts were not asked for.")] | UnsetType
    ) = UNSET
    tokens: TokenCountsJson
    prefix: PrefixJson
    cache: ExpectedCacheUseJson | None
    cost: Annotated[CostJson | None, Meta(description="Null without a known price.")]
    compaction: Annotated[ReceiptJson | None, Meta(description="The compaction before this turn.")]
    placement: _Placement = UNSET
    earlier_requests: (
        Annotated[
            Sequence[EarlierRequestJson], Meta(description="The requests before this one; only of a turn with tools.")
        ]
        | UnsetType
    ) = UNSET
    check: Annotated[RequestCheckJson, Meta(description="Only of a turn that was sent.")] | UnsetType = UNSET


class TurnEstimateJson(JsonBody, frozen=True, kw_only=True):
    """The token counts of a stored question, its prefix change, and its expected cost."""

    message: Annotated[str, Meta(description="Id of the question.")]
    epoch: Count
    hash: Hash
    prefix_hash: Hash
    turn: Annotated[int, Meta(ge=0, description="Number of the turn, from 1.")]
    tokens: TokenCountsJson
    prefix: PrefixJson
    cache: ExpectedCacheUseJson | None
    cost: Annotated[CostJson | None, Meta(description="Null without a known price.")]
    compaction: Annotated[ReceiptJson | None, Meta(description="The compaction before this turn.")]
    placement: _Placement = UNSET
    warnings: Sequence[str]


class TurnPreviewJson(TurnEstimateJson, frozen=True, kw_only=True):
    """A preview of a turn with its tokens and cost; with `whole` also its envelope and messages."""

    lamella: Literal[1] = 1
    conversation: str
    envelope: EnvelopeJson | UnsetType = UNSET
    messages: Sequence[PromptMessageJson] | UnsetType = UNSET


class RequestFingerprintJson(JsonBody, frozen=True, kw_only=True):
    """The fingerprint of a turn, recorded when it was sent."""

    renderer: Annotated[int, Meta(description="Version of the renderer.")]
    hashes: Annotated[Mapping[str, str | None], Meta(description="Of two layers, the prefix and the whole request.")]
    segments: Annotated[Mapping[str, int], Meta(description="Number of segments by layer.")]
    dedup_ratio: Annotated[float, Meta(description="Share of the attached bytes that a reference replaced.")]
    compacted_share: Annotated[float, Meta(description="Share of earlier messages and artifacts that was shortened.")]
    unparsed: int


class SentTurnJson(TurnPromptJson, frozen=True, kw_only=True):
    """A turn as it was sent, rebuilt from the log."""

    lamella: Literal[1] = 1
    conversation: str
    sent: RequestFingerprintJson | None
    same_bytes: Annotated[
        bool | None, Meta(description="Whether its hash is that of what was sent; null of old turns.")
    ]


class ProviderRequestJson(Struct, frozen=True, kw_only=True):
    """The request body that a provider's SDK sends, with the fields of that provider's API."""


class CommandRequestJson(VersionedBody, frozen=True, kw_only=True):
    """The request body of a turn, with its conversation and provider."""

    conversation: str
    turn: int
    provider: str
    body: Annotated[Mapping[str, object], Meta(description="The request body, with the fields of the provider's API.")]


def turn_prompt_to_json(turn: "BuiltTurn", *, with_texts: bool = True) -> TurnPromptJson:
    """Return one turn with its envelope and messages; without texts, only ids, hashes and numbers."""
    return TurnPromptJson(
        turn=turn.number,
        envelope=_envelope_to_json(turn.envelope, with_texts=with_texts),
        messages=[_message_to_json(message) for message in turn.messages] if with_texts else UNSET,
        tokens=token_counts_to_json(turn.tokens),
        prefix=prefix_to_json(turn.prefix_change),
        cache=None if turn.cache is None else cache_use_to_json(turn.cache),
        cost=cost_to_json(turn.cost),
        compaction=receipt_to_json_or_none(turn.compaction),
        placement=_planned_layout(turn),
        earlier_requests=[_earlier_request_to_json(one) for one in turn.earlier_requests] or UNSET,
        check=UNSET
        if turn.check is None
        else RequestCheckJson(status=turn.check.status.value, detail=turn.check.detail),
    )


def _earlier_request_to_json(request: "EarlierRequest") -> EarlierRequestJson:
    return EarlierRequestJson(
        tokens=request.tokens,
        cache=None if request.cache is None else cache_use_to_json(request.cache),
        cost=cost_to_json(request.cost),
    )


def turn_estimate_to_json(turn: "BuiltTurn") -> TurnEstimateJson:
    """Return a turn that was asked: message id, token counts, prefix change and expected cost."""
    envelope = turn.envelope
    return TurnEstimateJson(
        message=envelope.message_id,
        epoch=envelope.epoch,
        hash=envelope.hash,
        prefix_hash=envelope.prefix_hash,
        turn=turn.number,
        tokens=token_counts_to_json(turn.tokens),
        prefix=prefix_to_json(turn.prefix_change),
        cache=None if turn.cache is None else cache_use_to_json(turn.cache),
        cost=cost_to_json(turn.cost),
        compaction=receipt_to_json_or_none(turn.compaction),
        placement=_planned_layout(turn),
        warnings=envelope.warnings,
    )


def turn_preview_to_json(conversation_key: str, turn: "BuiltTurn", *, with_messages: bool) -> TurnPreviewJson:
    """Return a preview of a turn: tokens, expected cache use and cost; ``with_messages`` adds envelope and messages."""
    return TurnPreviewJson(
        **asdict(turn_estimate_to_json(turn)),
        conversation=conversation_key,
        envelope=_envelope_to_json(turn.envelope) if with_messages else UNSET,
        messages=[_message_to_json(message) for message in turn.messages] if with_messages else UNSET,
    )


def sent_turn_to_json(
    conversation_key: str,
    turn: "BuiltTurn",
    fingerprint: RequestFingerprint | None,
    *,
    with_texts: bool = True,
) -> SentTurnJson:
    """Return a turn rebuilt from the log, and its fingerprint from when it was sent.

    ``same_bytes`` says whether the first request of the turn has the stored hash. It is null without one.
    """
    return SentTurnJson(
        **asdict(turn_prompt_to_json(turn, with_texts=with_texts)),
        conversation=conversation_key,
        sent=None if fingerprint is None else fingerprint_to_json(fingerprint),
        same_bytes=None if fingerprint is None or turn.check is None else turn.check.has_no_known_difference,
    )


def fingerprint_to_json(fingerprint: RequestFingerprint) -> RequestFingerprintJson:
    """Return the fingerprint of a turn as it was first sent: hashes, version of the renderer, and measurements."""
    return RequestFingerprintJson(
        renderer=fingerprint.renderer,
        hashes=dict(zip(("L1_SYSTEM", "L2_PREVIOUS", "prefix", "whole"), fingerprint.hashes, strict=True)),
        segments=dict(zip((layer.value for layer in LAYER_ORDER), fingerprint.segments, strict=False)),
        dedup_ratio=round(fingerprint.dedup_ratio, SHARE_DIGITS),
        compacted_share=round(fingerprint.compacted_share, SHARE_DIGITS),
        unparsed=fingerprint.unparsed,
    )


def estimate_cached_tokens_by_layer(
    turn: "BuiltTurn", tokenizer: Tokenizer, *, read: int | None, prompt: int | None
) -> Mapping[str, int]:
    """Return the tokens of each layer that the provider reports as cached.

    The provider counts with its own vocabulary. Only the share of cached tokens can be applied to Lamella's own
    counts.
    """
    known = round(turn.tokens.total * read / prompt) if read is not None and prompt else 0
    return {layer.value: tokens for layer, tokens in cached_tokens_by_layer(turn.envelope, known, tokenizer).items()}


# The next request.


class BudgetJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The used and free tokens of the window."""

    tokens: TokenCountsJson
    left: Annotated[int, Meta(description="Tokens that are free.")]


class WorkingSetJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The ids of the artifacts that the model can read in the next turn."""

    working_set: Sequence[str]


def budget_to_json(conversation_key: str, turn: "BuiltTurn") -> BudgetJson:
    """Return the token counts of the next request, and how many tokens are left."""
    counts = turn.tokens
    return BudgetJson(
        conversation=conversation_key, tokens=token_counts_to_json(counts), left=counts.limit - counts.total
    )


# Explanations.


class PlacedArtifactJson(JsonBody, frozen=True, kw_only=True):
    """The position and form of an artifact in the prompt."""

    layer: Annotated[str | None, Meta(description="Null for an artifact that an earlier message carries.")]
    form: str
    place: str | None
    tokens: Count


class SuggestedActionJson(JsonBody, frozen=True, kw_only=True):
    """A suggested action and its object."""

    do: Annotated[str, Meta(description="`attach`, `undo`, `set`, `recall` or `fork`.")]
    what: str


class ExplainedCacheMissJson(JsonBody, frozen=True, kw_only=True):
    """A cache miss that something caused, and what it cost."""

    turn: Annotated[int, Meta(ge=1, description="Number of the turn, from 1.")]
    why: str
    tokens: Annotated[
        int,
        Meta(
            ge=0, description="Input tokens that the previous request left in the cache, and that were processed again."
        ),
    ]
    cost: Annotated[Money, Meta(description="How much more they cost than if the cache had served them.")]


class PromptExplanationJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The reason why an artifact is in the next prompt or not, and how to include it."""

    id: str
    kind: str
    title: str
    in_prompt: bool
    why: str
    turns: Annotated[Sequence[int], Meta(description="The turns that brought it.")]
    segments: Sequence[PlacedArtifactJson]
    brings_in: Annotated[Sequence[SuggestedActionJson], Meta(description="Ways to include its full text.")]
    misses: Annotated[
        Sequence[ExplainedCacheMissJson],
        Meta(description="Cache misses that it caused; of a message, those of its turn."),
    ]


def explanation_to_json(conversation_key: str, explanation: "PromptExplanation") -> PromptExplanationJson:
    """Return why an artifact is in the prompt or not."""
    return PromptExplanationJson(
        conversation=conversation_key,
        id=explanation.id,
        kind=explanation.kind,
        title=explanation.title,
        in_prompt=explanation.in_prompt,
        why=explanation.why,
        turns=explanation.turns,
        segments=[_placed_segment_to_json(layer, segment) for layer, segment in explanation.segments],
        brings_in=[SuggestedActionJson(do=str(one.kind), what=one.target) for one in explanation.remedies],
        misses=[
            ExplainedCacheMissJson(turn=one.turn, why=one.why, tokens=one.tokens, cost=format_decimal_or_none(one.cost))
            for one in explanation.cache_misses
        ],
    )


def _placed_segment_to_json(layer: LayerId | None, segment: Segment) -> PlacedArtifactJson:
    return PlacedArtifactJson(
        layer=None if layer is None else layer.value,
        form=segment.form.value,
        place=segment.place,
        tokens=segment.tokens,
    )
