"""The replay as one JSON object; byte-identical for the same input on any machine."""

import json
import shutil
from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import TextIO

from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import Layer, Segment
from lamella.engine.turn import TurnView
from lamella.faces.cli.receipts import receipt_body
from lamella.faces.cli.totals import Totals, plain


def write_json(conversation: str, turns: Iterable[TurnView], *, totals: Totals, out: TextIO) -> None:
    """Write the object when it is whole: an error on the way leaves no half of it behind."""
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as draft:
        first = True
        for turn in turns:
            if first:
                layout = turn.envelope.layout.value
                head = json.dumps({"lamella": 1, "conversation": conversation, "layout": layout}, ensure_ascii=False)
                draft.write(head[:-1] + ', "turns": [\n')
            draft.write(("" if first else ",\n") + json.dumps(turn_body(turn), ensure_ascii=False))
            first = False
        if first:
            head = json.dumps({"lamella": 1, "conversation": conversation, "layout": None}, ensure_ascii=False)
            draft.write(head[:-1] + ', "turns": [')
        draft.write(f'],\n"totals": {json.dumps(totals_body(totals))}}}\n')
        draft.seek(0)
        shutil.copyfileobj(draft, out)


def turn_body(turn: TurnView) -> dict[str, object]:
    """One turn, in the names of docs/replay.md."""
    cost, cache = turn.cost, turn.cache
    return {
        "turn": turn.number,
        "envelope": envelope_body(turn.envelope),
        "messages": [message.to_dict() for message in turn.messages],
        "tokens": {
            "total": turn.tokens.total,
            "by_layer": dict(turn.tokens.by_layer),
            "limit": turn.tokens.limit,
        },
        "prefix": {
            "cause": turn.prefix.cause,
            "segment": turn.prefix.segment,
            "common_tokens": turn.prefix.common_tokens,
        },
        "cache": cache and {"read": cache.read, "write": cache.write, "uncached": cache.uncached},
        "cost": cost and {"currency": "USD", "amount": plain(cost.amount), "naive": plain(cost.naive)},
        "compaction": turn.compaction and receipt_body(turn.compaction),
    }


def envelope_body(envelope: Envelope) -> dict[str, object]:
    """The envelope with its layers, without the messages, which stand beside it."""
    return {
        "version": envelope.version,
        "conversation_id": envelope.conversation_id,
        "message_id": envelope.message_id,
        "epoch": envelope.epoch,
        "layers": [layer_body(layer) for layer in envelope.layers],
        "prefix_hash": envelope.prefix_hash,
        "hash": envelope.hash,
        "dropped": list(envelope.prompt.dropped),
        "warnings": list(envelope.warnings),
    }


def layer_body(layer: Layer) -> dict[str, object]:
    """A layer with its text and segments."""
    return {
        "id": layer.id.value,
        "text": layer.text,
        "hash": layer.hash,
        "tokens": layer.tokens,
        "segments": [segment_body(segment) for segment in layer.segments],
    }


def segment_body(segment: Segment) -> dict[str, object]:
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


def totals_body(totals: Totals) -> dict[str, object]:
    """The sums; money only where every turn has a price."""
    money = (totals.cost, totals.naive, totals.limit)
    cost, naive, limit = (plain(amount) if totals.priced else None for amount in money)
    return {
        "tokens": totals.tokens,
        "cache_read_share": totals.cache_read_share,
        "prefix_breaks": totals.prefix_breaks,
        "compactions": totals.compactions,
        "cost": cost,
        "naive_cost": naive,
        "limit_cost": limit,
    }
