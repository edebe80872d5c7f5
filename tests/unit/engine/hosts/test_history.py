"""A host's history: what belongs to which turn."""

import pytest

from lamella import ToolCall, ToolOutput
from lamella.engine.hosts.history import HostMessage, HostRound, HostTurn, build_turns, name_history
from lamella.errors import CallError

CALL = ToolCall(id="c1", name="look", arguments="{}")
OUTPUT = ToolOutput(call="c1", output="noon")


def test_what_is_said_in_a_row_is_one_question_or_one_reply() -> None:
    said = [HostMessage(role, text) for role, text in [("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d")]]
    assert build_turns(said) == (HostTurn("a\n\nb", reply="c"), HostTurn("d"))


def test_calls_and_their_results_are_rounds_of_the_question() -> None:
    said = [
        HostMessage("user", "a"),
        HostMessage("assistant", "hm", calls=(CALL,)),
        HostMessage("tool", outputs=(OUTPUT,)),
    ]
    assert build_turns(said) == (HostTurn("a", rounds=(HostRound("hm", (CALL,), (OUTPUT,)),)),)
    later = build_turns([*said, HostMessage("user", "b")])
    assert (later[0].reply, later[1].typed) == ("", "b")


@pytest.mark.parametrize(
    "said",
    [
        [],
        [HostMessage("assistant", "a")],
        [HostMessage("user", "a"), HostMessage("assistant", "b")],
        [HostMessage("user", "a"), HostMessage("assistant", calls=(CALL,))],
        [HostMessage("user", "a"), HostMessage("tool", outputs=(OUTPUT,))],
    ],
)
def test_a_history_that_ends_or_begins_in_no_question_is_refused(said: list[HostMessage]) -> None:
    with pytest.raises(CallError):
        build_turns(said)


def test_histories_that_begin_alike_have_one_name() -> None:
    one, other = HostTurn("Hello"), HostTurn("Hello \n", reply="x")
    assert name_history([one]) == name_history([other, one])
    assert name_history([one]) != name_history([HostTurn("Hi")])
