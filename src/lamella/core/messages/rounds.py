"""Tool rounds: what the model asked for inside a turn and what it got, and the messages that say so."""

from msgspec import Struct

from lamella.core.messages.delta import NativeReply, ToolCall
from lamella.core.messages.model import Message, Role


class ToolOutput(Struct, frozen=True, kw_only=True, gc=False):
    """What a tool gave back for a call, which is named by its id; ``failed`` says that the tool did not do it."""

    call: str
    output: str
    failed: bool = False


class ToolRound(Struct, frozen=True, kw_only=True, gc=False):
    """One round: what the model said with its calls, and an output for every call.

    ``carried`` is the model's side of it in the form of the provider that answered, and ``tokens`` what that provider
    counted when it was put out, if it said so.
    """

    text: str
    calls: tuple[ToolCall, ...]
    outputs: tuple[ToolOutput, ...]
    carried: NativeReply | None = None
    tokens: int | None = None


def round_messages(tool_round: ToolRound) -> tuple[Message, ...]:
    """The assistant's message with its calls, then one message per output. Nobody has counted their tokens yet."""
    said = Message(role=Role.ASSISTANT, pieces=(tool_round.text,), calls=tool_round.calls, carried=tool_round.carried)
    got = (
        Message(role=Role.TOOL, pieces=(one.output,), call=one.call, failed=one.failed) for one in tool_round.outputs
    )
    return (said, *got)
