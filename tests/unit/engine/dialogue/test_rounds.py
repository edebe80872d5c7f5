"""Calls under ids of their own, whatever ids a model gives."""

import pytest

from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.engine.dialogue.rounds import name_calls


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
    reply = name_calls(Reply(text="", stop=StopReason.TOOLS, calls=calls))
    assert tuple(call.id for call in reply.calls) == named
