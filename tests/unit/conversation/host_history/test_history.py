"""A host's history: what belongs to which turn."""

import pytest

from lamella import ToolCall, ToolOutput
from lamella.conversation.host_history import (
    ClientMessage,
    ClientToolRound,
    ClientTurn,
    group_into_turns,
    name_from_first_question,
)
from lamella.errors import InvalidOperationError

CALL = ToolCall(id="c1", name="look", arguments="{}")
OUTPUT = ToolOutput(call="c1", output="noon")


def test_what_is_said_in_a_row_is_one_question_or_one_reply() -> None:
    said = [
        ClientMessage(role, text) for role, text in [("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d")]
    ]
    assert group_into_turns(said) == (ClientTurn("a\n\nb", reply="c"), ClientTurn("d"))


def test_calls_and_their_results_are_rounds_of_the_question() -> None:
    said = [
        ClientMessage("user", "a"),
        ClientMessage("assistant", "hm", calls=(CALL,)),
        ClientMessage("tool", outputs=(OUTPUT,)),
    ]
    assert group_into_turns(said) == (ClientTurn("a", rounds=(ClientToolRound("hm", (CALL,), (OUTPUT,)),)),)
    later = group_into_turns([*said, ClientMessage("user", "b")])
    assert (later[0].reply, later[1].question) == ("", "b")


@pytest.mark.parametrize(
    "said",
    [
        [],
        [ClientMessage("assistant", "a")],
        [ClientMessage("user", "a"), ClientMessage("assistant", "b")],
        [ClientMessage("user", "a"), ClientMessage("assistant", calls=(CALL,))],
        [ClientMessage("user", "a"), ClientMessage("tool", outputs=(OUTPUT,))],
    ],
)
def test_a_history_that_ends_or_begins_in_no_question_is_refused(said: list[ClientMessage]) -> None:
    with pytest.raises(InvalidOperationError):
        group_into_turns(said)


def test_histories_that_begin_alike_have_one_name() -> None:
    one, other = ClientTurn("Hello"), ClientTurn("Hello \n", reply="x")
    assert name_from_first_question([one]) == name_from_first_question([other, one])
    assert name_from_first_question([one]) != name_from_first_question([ClientTurn("Hi")])
