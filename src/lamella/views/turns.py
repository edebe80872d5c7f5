"""A turn as a replay prints it: its envelope, its messages, what moved, what was cached and what it costs."""

from collections.abc import Mapping
from typing import Protocol

from lamella.core.budget.counting import Measure
from lamella.core.ledger.entry import Prefix, cover_layers
from lamella.core.log.call import CacheUse, Cost
from lamella.core.log.placement import Form, Placement
from lamella.core.log.receipt import Receipt
from lamella.core.messages.model import Message
from lamella.core.prompt.envelope import Envelope, TokenCounts
from lamella.core.prompt.layers.model import Layer, Segment
from lamella.views.amounts import plain
from lamella.views.receipts import view_receipt, view_tokens


class TurnShape(Protocol):
    """What has to be known of a turn to show it, whoever built it."""

    @property
    def number(self) -> int: ...
    @property
    def envelope(self) -> Envelope: ...
    @property
    def messages(self) -> tuple[Message, ...]: ...
    @property
    def tokens(self) -> TokenCounts: ...
    @property
    def prefix(self) -> Prefix: ...
    @property
    def cache(self) -> CacheUse | None: ...
    @property
    def cost(self) -> Cost | None: ...
    @property
    def compaction(self) -> Receipt | None: ...


def view_head(conversation: str, first: TurnShape | None) -> dict[str, object]:
    """What a replay begins with; without a turn there is no layout."""
    layout = None if first is None else first.envelope.layout.value
    return {"lamella": 1, "conversation": conversation, "layout": layout}


def view_turn(turn: TurnShape) -> dict[str, object]:
    """One turn, in the names of docs/replay.md."""
    cost, cache, placement = turn.cost, turn.cache, turn.envelope.prompt.placement
    planned = {"placement": view_placement(placement)} if placement.priced else {}
    return {
        "turn": turn.number,
        "envelope": view_envelope(turn.envelope),
        "messages": [message.to_dict() for message in turn.messages],
        "tokens": view_tokens(turn.tokens),
        "prefix": {
            "cause": turn.prefix.cause,
            "segment": turn.prefix.segment,
            "common_tokens": turn.prefix.common_tokens,
        },
        "cache": cache and {"read": cache.read, "write": cache.write, "uncached": cache.uncached},
        "cost": cost and {"currency": "USD", "amount": plain(cost.amount), "naive": plain(cost.naive)},
        "compaction": turn.compaction and view_receipt(turn.compaction),
        **planned,
    }


def view_placement(placement: Placement) -> dict[str, object]:
    """Where prices decided, what was chosen and why."""
    return {
        "why": placement.why,
        "keep": placement.keep,
        "within": placement.within,
        **({"order": list(placement.order)} if placement.order else {}),
        "whole": sorted(name for name, form in placement.forms.items() if form is Form.FULL),
        "marks": list(placement.marks),
        "lasting": placement.lasting,
        "served": placement.served,
        "expected": placement.cost,
        "next_best": placement.other,
    }


def view_envelope(envelope: Envelope) -> dict[str, object]:
    """The envelope with its layers, without the messages, which stand beside it."""
    return {
        "version": envelope.version,
        "conversation_id": envelope.conversation_id,
        "message_id": envelope.message_id,
        "epoch": envelope.epoch,
        "layers": [_view_layer(layer) for layer in envelope.layers],
        "prefix_hash": envelope.prefix_hash,
        "hash": envelope.hash,
        "dropped": list(envelope.prompt.dropped),
        "warnings": list(envelope.warnings),
        # Where prices decided, how; elsewhere there was nothing to choose.
        **({"why": envelope.prompt.placement.why} if envelope.prompt.placement.priced else {}),
    }


def cover_reported(turn: TurnShape, measure: Measure, *, read: int | None, prompt: int | None) -> Mapping[str, int]:
    """Tokens of each layer that a provider says it had cached.

    The provider counts with its own vocabulary: what can be laid over our layers is its share.
    """
    known = round(turn.tokens.total * read / prompt) if read is not None and prompt else 0
    return {layer.value: tokens for layer, tokens in cover_layers(turn.envelope, known, measure).items()}


def _view_layer(layer: Layer) -> dict[str, object]:
    """A layer with its text and segments."""
    return {
        "id": layer.id.value,
        "text": layer.text,
        "hash": layer.hash,
        "tokens": layer.tokens,
        "segments": [_view_segment(segment) for segment in layer.segments],
    }


def _view_segment(segment: Segment) -> dict[str, object]:
    """A segment without its text, which is part of its layer's."""
    return {
        "id": segment.id,
        "kind": str(segment.kind),
        "form": segment.form.value,
        "place": segment.place,
        "hash": segment.hash,
        "tokens": segment.tokens,
        "recoverable": segment.recoverable,
    }
