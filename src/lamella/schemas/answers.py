"""JSON bodies of answers, streamed events, sent prompts, previews and budgets, and of the list of runners.

``answer_to_json`` returns an answered question, and ``event_to_json`` an event of its stream.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from lamella.core.log.call import ModelCall
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import RequestFingerprint
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import ToolCall, ToolOutput, Usage
from lamella.schemas.compaction import receipt_to_json, tokens_to_json
from lamella.schemas.ledger import ExpiredCacheShape, call_to_json, expired_cache_to_json, fingerprint_to_json
from lamella.schemas.prompts import TurnShape, turn_to_json


def answer_to_json(turn: TurnShape, answer: str, call: ModelCall, *, conversation_key: str | None) -> dict[str, object]:
    """Return an answered turn; ``conversation_key`` is None if the conversation is not stored."""
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "turn": turn.number,
        "answer": answer,
        "warnings": list(turn.envelope.warnings),
        "call": call_to_json(call),
    }


def runners_to_json(known: Mapping[str, str], *, default: str) -> dict[str, object]:
    """Return every runner with its description, and which one the settings choose."""
    return {"runners": [{"name": name, "does": does, "usual": name == default} for name, does in known.items()]}


# Streamed events, and finished turns.

# Fields left out of a turn's event because they are long. Clients can request them separately.
_LARGE_FIELDS = ("messages", "envelope")


class EventShape(Protocol):
    """The properties of an event that the JSON body needs."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def turn(self) -> TurnShape | None: ...
    @property
    def message(self) -> str: ...
    @property
    def call(self) -> ToolCall | None: ...
    @property
    def output(self) -> ToolOutput | None: ...
    @property
    def calls(self) -> Sequence[ToolCall]: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def receipt(self) -> CompactionReceipt | None: ...
    @property
    def wait(self) -> float | None: ...
    @property
    def expired_cache(self) -> ExpiredCacheShape | None: ...


def event_to_json(event: EventShape) -> dict[str, object]:
    """Return the body of an event; the event's name is its kind."""
    view = _EVENT_CONVERTERS.get(str(event.kind))
    return {"said": event.message} if view is None else view(event)


def turn_estimate_to_json(turn: TurnShape) -> dict[str, object]:
    """Return a turn that was asked: message id, token counts, prefix change and expected cost."""
    whole = {name: value for name, value in turn_to_json(turn).items() if name not in _LARGE_FIELDS}
    envelope = turn.envelope
    return {
        "message": envelope.message_id,
        "epoch": envelope.epoch,
        "hash": envelope.hash,
        "prefix_hash": envelope.prefix_hash,
        **whole,
        "warnings": list(envelope.warnings),
    }


def finished_turn_to_json(
    conversation_key: str,
    record: TurnRecord,
    calls_by_turn: Sequence[Sequence[ModelCall]],
    *,
    calls: Sequence[ToolCall],
    warnings: Sequence[str],
    stopped: bool,
) -> dict[str, object]:
    """Return a finished turn: its answer, tool calls that the client must run, and its last model call."""
    reply, last = record.reply, next(iter(calls_by_turn), ())
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "message": record.message.id,
        "reply": None if reply is None else reply.id,
        "answer": "" if reply is None else reply.text,
        "calls": [tool_call_to_json(call) for call in calls],
        "stopped": stopped,
        "warnings": list(warnings),
        "call": call_to_json(last[-1]) if last else None,
    }


def tool_call_to_json(call: ToolCall) -> dict[str, object]:
    """Return a tool call of the model; ``arguments`` is the JSON text as the model wrote it."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _tool_to_json(event: EventShape) -> dict[str, object]:
    call, output = event.call, event.output
    return {
        "call": None if call is None else tool_call_to_json(call),
        "output": output and {"call": output.call, "output": output.output, "failed": output.failed},
    }


def _usage_to_json(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    names = ("plain", "read", "write", "write_long", "output", "reasoning", "fault")
    return {name: getattr(usage, name) for name in names}


def _envelope_to_json(event: EventShape) -> dict[str, object]:
    assert event.turn is not None, "an envelope is of a turn"
    return turn_estimate_to_json(event.turn)


def _compaction_to_json(event: EventShape) -> dict[str, object]:
    return {"said": event.message, "receipt": None if event.receipt is None else receipt_to_json(event.receipt)}


_EVENT_CONVERTERS: Mapping[str, Callable[[EventShape], dict[str, object]]] = {
    "cold": lambda event: {"cold": expired_cache_to_json(event.expired_cache)},
    "envelope": _envelope_to_json,
    "delta": lambda event: {"text": event.text},
    "reasoning": lambda event: {"text": event.message},
    "tool": _tool_to_json,
    "usage": lambda event: _usage_to_json(event.usage),
    "retry": lambda event: {"said": event.message, "wait": event.wait},
    "compaction": _compaction_to_json,
    "done": lambda event: {"calls": [tool_call_to_json(call) for call in event.calls]},
}


# Sent prompts, previews and budgets.


def sent_turn_to_json(
    conversation_key: str, turn: TurnShape, fingerprint: RequestFingerprint | None
) -> dict[str, object]:
    """Return a turn rebuilt from the log, and its fingerprint from when it was sent.

    ``same_bytes`` says whether both have the same hash. It is null for old turns without a fingerprint.
    """
    same = None if fingerprint is None else fingerprint.whole == turn.envelope.hash
    sent = None if fingerprint is None else fingerprint_to_json(fingerprint)
    return {"lamella": 1, "conversation": conversation_key, **turn_to_json(turn), "sent": sent, "same_bytes": same}


def turn_preview_to_json(conversation_key: str, turn: TurnShape, *, with_messages: bool) -> dict[str, object]:
    """Return a preview of a turn: tokens, expected cache use and cost; ``with_messages`` adds envelope and messages."""
    return {
        "lamella": 1,
        "conversation": conversation_key,
        **turn_estimate_to_json(turn),
        **(turn_to_json(turn) if with_messages else {}),
    }


def budget_to_json(conversation_key: str, turn: TurnShape) -> dict[str, object]:
    """Return the token counts of the next request, and how many tokens are left."""
    counts = turn.tokens
    left = None if counts.limit is None else counts.limit - counts.total
    return {"lamella": 1, "conversation": conversation_key, "tokens": tokens_to_json(counts), "left": left}


def working_set_to_json(conversation_key: str, ids: Sequence[str]) -> dict[str, object]:
    """Return the ids of the artifacts that the model can read."""
    return {"lamella": 1, "conversation": conversation_key, "working_set": list(ids)}
