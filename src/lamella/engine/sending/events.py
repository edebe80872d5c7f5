"""What is told of a turn on its way to a model and back, one event after the other."""

from enum import StrEnum

from msgspec import Struct

from lamella.core.log.receipt import Receipt
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.messages.usage import Usage
from lamella.engine.cold import ColdCache
from lamella.engine.dialogue.turn import TurnView


class EventName(StrEnum):
    """What an event is about."""

    COLD = "cold"
    ENVELOPE = "envelope"
    DELTA = "delta"
    REASONING = "reasoning"
    TOOL = "tool"
    USAGE = "usage"
    RETRY = "retry"
    COMPACTION = "compaction"
    NOTE = "note"
    DONE = "done"


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """Something that happened on the way. ``text`` is more of the answer, and only ever that.

    ``calls`` are those that wait for the caller where a turn ends without an answer. ``cold`` is what a message costs
    that comes after the cache lapsed, told before it is sent.
    """

    kind: EventName
    text: str = ""
    turn: TurnView | None = None
    said: str = ""
    call: ToolCall | None = None
    output: ToolOutput | None = None
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    receipt: Receipt | None = None
    wait: float | None = None
    cold: ColdCache | None = None
