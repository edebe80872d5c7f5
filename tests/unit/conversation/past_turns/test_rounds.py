"""Calls under ids of their own, whatever ids a model gives."""

import pytest

from lamella.conversation.past_turns import with_unique_call_ids
from lamella.core.messages import ModelReply, StopReason, ToolCall


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a", "b"), ("a", "b")),
        (("", ""), ("call-1", "call-2")),
        (("x", "x"), ("x", "x-2")),
        (("x-3", "x", "x"), ("x-3", "x", "x-4")),
        (("call-2", ""), ("call-2", "call-2-2")),
    ],
)
def test_every_call_has_an_id_of_its_own(given: tuple[str, ...], named: tuple[str, ...]) -> None:
    calls = tuple(ToolCall(id=name, name="f", arguments="{}") for name in given)
    reply = with_unique_call_ids(ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=calls))
    assert tuple(call.id for call in reply.calls) == named
