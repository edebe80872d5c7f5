"""Rounds of tool calls in a conversation that a test plays."""

import json

from lamella import Conversation, Turn
from lamella.conversation.turn import ModelAnswer
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput


def call_tools(chat: Conversation, number: int) -> Turn:
    """A round of two calls, one of which fails."""
    given = {"page": number, "a": [None, "ü"]}
    arguments = json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    calls = tuple(ToolCall(id=f"c{number}{one}", name="look", arguments=arguments) for one in "ab")
    said = ModelReply(text="Let me look." * (number % 2), stop=StopReason.TOOL_CALLS, calls=calls)
    chat.reply(ModelAnswer(reply=said))
    return chat.submit_tool_outputs(
        [ToolOutput(call=c.id, output=f"Page {number}.", failed=c.id.endswith("b")) for c in calls]
    )
