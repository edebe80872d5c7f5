"""JSON bodies of turns as a replay prints them, and of explanations.

``turn_to_json`` returns envelope, messages, prefix change, cache use and cost of a turn. ``explanation_to_json`` says
why an artifact is in the prompt or not.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lamella.core.budget import Tokenizer
from lamella.core.ledger.entry import PrefixChangeReport, cached_tokens_by_layer
from lamella.core.log.call import CacheUsage, TurnCost
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import ArtifactForm, LayoutPlan
from lamella.core.messages import Message
from lamella.core.prompt.envelope import Envelope, PromptTokenCounts
from lamella.core.prompt.layers.model import Layer, LayerId, Segment
from lamella.schemas.compaction import receipt_to_json, tokens_to_json
from lamella.schemas.formatting import format_decimal


class TurnShape(Protocol):
    """The properties of a turn that the JSON body needs."""

    @property
    def number(self) -> int: ...
    @property
    def envelope(self) -> Envelope: ...
    @property
    def messages(self) -> tuple[Message, ...]: ...
    @property
    def tokens(self) -> PromptTokenCounts: ...
    @property
    def prefix_change(self) -> PrefixChangeReport: ...
    @property
    def cache(self) -> CacheUsage | None: ...
    @property
    def cost(self) -> TurnCost | None: ...
    @property
    def compaction(self) -> CompactionReceipt | None: ...


def replay_header_to_json(conversation_key: str, first: TurnShape | None) -> dict[str, object]:
    """Return the first line of a replay; the layout is None if there is no turn."""
    layout = None if first is None else first.envelope.layout.value
    return {"lamella": 1, "conversation": conversation_key, "layout": layout}


def turn_to_json(turn: TurnShape) -> dict[str, object]:
    """Return one turn with the field names of docs/reference/json-output.md."""
    cost, cache, layout_plan = turn.cost, turn.cache, turn.envelope.prompt.layout_plan
    planned = {"placement": layout_plan_to_json(layout_plan)} if layout_plan.priced else {}
    return {
        "turn": turn.number,
        "envelope": envelope_to_json(turn.envelope),
        "messages": [message.to_dict() for message in turn.messages],
        "tokens": tokens_to_json(turn.tokens),
        "prefix": {
            "cause": turn.prefix_change.cause,
            "segment": turn.prefix_change.segment,
            "common_tokens": turn.prefix_change.common_tokens,
        },
        "cache": cache and {"read": cache.read, "write": cache.write, "uncached": cache.uncached},
        "cost": cost
        and {"currency": "USD", "amount": format_decimal(cost.amount), "naive": format_decimal(cost.naive)},
        "compaction": turn.compaction and receipt_to_json(turn.compaction),
        **planned,
    }


def layout_plan_to_json(layout_plan: LayoutPlan) -> dict[str, object]:
    """Return the layout plan that was chosen by cost, with the reason."""
    return {
        "why": layout_plan.why,
        "keep": layout_plan.keep_messages,
        "within": layout_plan.within,
        **({"order": list(layout_plan.order)} if layout_plan.order else {}),
        "whole": sorted(name for name, form in layout_plan.forms.items() if form is ArtifactForm.FULL),
        "marks": list(layout_plan.breakpoints),
        "lasting": layout_plan.long_lifetime_until,
        "served": layout_plan.cached_message,
        "expected": layout_plan.cost,
        "next_best": layout_plan.other,
    }


def envelope_to_json(envelope: Envelope) -> dict[str, object]:
    """Return the envelope with its layers, without its messages, which are a field of the turn."""
    return {
        "version": envelope.version,
        "conversation_id": envelope.conversation_id,
        "message_id": envelope.message_id,
        "epoch": envelope.epoch,
        "layers": [_layer_to_json(layer) for layer in envelope.layers],
        "prefix_hash": envelope.prefix_hash,
        "hash": envelope.hash,
        "dropped": list(envelope.prompt.dropped),
        "warnings": list(envelope.warnings),
        # Only a layout chosen by cost has a reason.
        **({"why": envelope.prompt.layout_plan.why} if envelope.prompt.layout_plan.priced else {}),
    }


def reported_cache_by_layer(
    turn: TurnShape, tokenizer: Tokenizer, *, read: int | None, prompt: int | None
) -> Mapping[str, int]:
    """Return the tokens of each layer that the provider reports as cached.

    The provider counts with its own vocabulary. Only the share of cached tokens can be applied to Lamella's own
    counts.
    """
    known = round(turn.tokens.total * read / prompt) if read is not None and prompt else 0
    return {layer.value: tokens for layer, tokens in cached_tokens_by_layer(turn.envelope, known, tokenizer).items()}


def _layer_to_json(layer: Layer) -> dict[str, object]:
    return {
        "id": layer.id.value,
        "text": layer.text,
        "hash": layer.hash,
        "tokens": layer.tokens,
        "segments": [_segment_to_json(segment) for segment in layer.segments],
    }


def _segment_to_json(segment: Segment) -> dict[str, object]:
    """Return a segment without its text, which is part of the layer's text."""
    return {
        "id": segment.id,
        "kind": str(segment.kind),
        "form": segment.form.value,
        "place": segment.place,
        "hash": segment.hash,
        "tokens": segment.tokens,
        "recoverable": segment.recoverable,
    }


# Explanations.


class SuggestedActionShape(Protocol):
    """The properties of a suggested action that the JSON body needs: the action and its object."""

    @property
    def kind(self) -> str: ...
    @property
    def target(self) -> str: ...


class ExplanationShape(Protocol):
    """The properties of an explanation that the JSON body needs."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def in_prompt(self) -> bool: ...
    @property
    def why(self) -> str: ...
    @property
    def turns(self) -> Sequence[int]: ...
    @property
    def segments(self) -> Sequence[tuple[LayerId | None, Segment]]: ...
    @property
    def remedies(self) -> Sequence[SuggestedActionShape]: ...


def explanation_to_json(conversation_key: str, explanation: ExplanationShape) -> dict[str, object]:
    """Return an explanation with the field names of docs/reference/json-output.md."""
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "id": explanation.id,
        "kind": explanation.kind,
        "title": explanation.title,
        "in_prompt": explanation.in_prompt,
        "why": explanation.why,
        "turns": list(explanation.turns),
        "segments": [_placed_segment_to_json(layer, segment) for layer, segment in explanation.segments],
        "brings_in": [{"do": str(remedy.kind), "what": remedy.target} for remedy in explanation.remedies],
    }


def _placed_segment_to_json(layer: LayerId | None, segment: Segment) -> dict[str, object]:
    return {
        "layer": None if layer is None else layer.value,
        "form": segment.form.value,
        "place": segment.place,
        "tokens": segment.tokens,
    }
