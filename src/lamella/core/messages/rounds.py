"""Tool rounds: what the model asked for inside a turn and what it got, and the messages that say so."""

import json
from math import isfinite

from msgspec import Struct

from lamella.core.messages.delta import NativeReply, ToolCall
from lamella.core.messages.model import Message, Role


class ToolOutput(Struct, frozen=True, kw_only=True, gc=False):
    """What a tool gave back for a call, which is named by its id; ``failed`` says that the tool did not do it.

    ``id`` is what it is known by where that does not follow from its place and its words: it was told elsewhere first,
    or its words were erased.
    """

    call: str
    output: str
    failed: bool = False
    id: str | None = None


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


def read_arguments(arguments: str) -> dict[str, object]:
    """What a call was made with, as an object that JSON can hold; what is none stands whole in one of its own."""
    try:
        given: object = (
            json.loads(arguments, parse_constant=_refuse, parse_float=_read_float) if arguments.strip() else {}
        )
        # A character in halves can be escaped in JSON, and nothing can write it down.
        json.dumps(given, ensure_ascii=False).encode()
    except (RecursionError, ValueError):
        given = arguments
    return given if isinstance(given, dict) else {"arguments": given}


def _read_float(text: str) -> float:
    return number if isfinite(number := float(text)) else _refuse(text)


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number")
