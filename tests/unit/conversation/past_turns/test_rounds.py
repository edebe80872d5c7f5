"""Tool calls get unique ids for any ids of the model."""

import pytest

from lamella.conversation.past_turns import with_unique_call_ids
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput, ToolRound


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a", "b"), ("a", "b")),
        (("", ""), ("call-1-1-1", "call-1-1-2")),
        (("x", "x"), ("x", "x-2")),
        (("x-3", "x", "x"), ("x-3", "x", "x-4")),
        (("call-2", ""), ("call-2", "call-1-1-2")),
    ],
)
def test_every_call_gets_unique_id(given: tuple[str, ...], named: tuple[str, ...]) -> None:
    calls = tuple(ToolCall(id=name, name="f", arguments="{}") for name in given)
    reply = with_unique_call_ids(ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=calls))
    assert tuple(call.id for call in reply.calls) == named


def test_ids_differ_across_rounds_and_turns() -> None:
    def reply(*ids: str) -> ModelReply:
        calls = tuple(ToolCall(id=name, name="f", arguments="{}") for name in ids)
        return ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=calls)

    def tool_round(answer: ModelReply) -> ToolRound:
        outputs = tuple(ToolOutput(call=call.id, output="") for call in answer.calls)
        return ToolRound(text="", calls=answer.calls, outputs=outputs)

    first = with_unique_call_ids(reply("", "x"))
    second = with_unique_call_ids(reply("", "x"), earlier_rounds=[tool_round(first)])
    later = with_unique_call_ids(reply(""), turn=2)
    ids = [call.id for one in (first, second, later) for call in one.calls]
    assert len(set(ids)) == len(ids) == 5
