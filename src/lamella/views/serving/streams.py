"""Events of an answer as they are streamed, and what a turn came to, as data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from lamella.core.log.call import Call
from lamella.core.log.nodes import Told
from lamella.core.log.receipt import Receipt
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.messages.usage import Usage
from lamella.views.caches.cold import ColdShape, view_cold
from lamella.views.ledger import view_call
from lamella.views.receipts import view_receipt
from lamella.views.turns import TurnShape, view_turn

# What a turn is told without: its texts and messages, which can be asked for.
_LONG = ("messages", "envelope")


class EventShape(Protocol):
    """What has to be known of an event to stream it."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def turn(self) -> TurnShape | None: ...
    @property
    def said(self) -> str: ...
    @property
    def call(self) -> ToolCall | None: ...
    @property
    def output(self) -> ToolOutput | None: ...
    @property
    def calls(self) -> Sequence[ToolCall]: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def receipt(self) -> Receipt | None: ...
    @property
    def wait(self) -> float | None: ...
    @property
    def cold(self) -> ColdShape | None: ...


def view_event(event: EventShape) -> dict[str, object]:
    """The body of an event; its name is its kind."""
    view = _VIEWS.get(str(event.kind))
    return {"said": event.said} if view is None else view(event)


def view_asked(turn: TurnShape) -> dict[str, object]:
    """A turn that was asked: its question, what it weighs, what moved, and what it is expected to cost."""
    whole = {name: value for name, value in view_turn(turn).items() if name not in _LONG}
    envelope = turn.envelope
    return {
        "message": envelope.message_id,
        "epoch": envelope.epoch,
        "hash": envelope.hash,
        "prefix_hash": envelope.prefix_hash,
        **whole,
        "warnings": list(envelope.warnings),
    }


def view_answered(
    conversation: str,
    told: Told,
    made: Sequence[Sequence[Call]],
    *,
    calls: Sequence[ToolCall],
    warnings: Sequence[str],
    stopped: bool,
) -> dict[str, object]:
    """A turn that is over, whole: its answer, the calls that wait for the caller, and the last model call of it."""
    reply, last = told.reply, next(iter(made), ())
    return {
        "lamella": 1,
        "conversation": conversation,
        "message": told.message.id,
        "reply": None if reply is None else reply.id,
        "answer": "" if reply is None else reply.text,
        "calls": [view_wanted(call) for call in calls],
        "stopped": stopped,
        "warnings": list(warnings),
        "call": view_call(last[-1]) if last else None,
    }


def view_wanted(call: ToolCall) -> dict[str, object]:
    """A call that the model wants made; ``arguments`` are as the model wrote them."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _view_tool(event: EventShape) -> dict[str, object]:
    call, output = event.call, event.output
    return {
        "call": None if call is None else view_wanted(call),
        "output": output and {"call": output.call, "output": output.output, "failed": output.failed},
    }


def _view_usage(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    names = ("plain", "read", "write", "write_long", "output", "reasoning", "fault")
    return {name: getattr(usage, name) for name in names}


def _view_envelope(event: EventShape) -> dict[str, object]:
    assert event.turn is not None, "an envelope is of a turn"
    return view_asked(event.turn)


def _view_compaction(event: EventShape) -> dict[str, object]:
    return {"said": event.said, "receipt": None if event.receipt is None else view_receipt(event.receipt)}


_VIEWS: Mapping[str, Callable[[EventShape], dict[str, object]]] = {
    "cold": lambda event: {"cold": view_cold(event.cold)},
    "envelope": _view_envelope,
    "delta": lambda event: {"text": event.text},
    "reasoning": lambda event: {"text": event.said},
    "tool": _view_tool,
    "usage": lambda event: _view_usage(event.usage),
    "retry": lambda event: {"said": event.said, "wait": event.wait},
    "compaction": _view_compaction,
    "done": lambda event: {"calls": [view_wanted(call) for call in event.calls]},
}
