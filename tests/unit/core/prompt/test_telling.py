"""Telling a past: turns told together lead to the state that each of them, told alone, leads to."""

import pytest
from tests.unit.core.compaction.talking import IN_PLACE, LIBRARY, QUARTERS, note, result

from lamella.core.log.placement import Placement
from lamella.core.log.terms import Attachments, CarryForward, History, Rewrite, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance
from lamella.core.prompt.state import State
from lamella.core.prompt.telling import advance_all
from lamella.core.values import replace

NEW = State(conversation="chat", measured_by=QUARTERS.name)
CALL = ToolCall(id="c", name="search", arguments="{}")
ROUND = ToolRound(text="Looking.", calls=(CALL,), outputs=(ToolOutput(call="c", output="found"),))
BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])


def go(state: State, *turns: Turn, terms: Terms) -> State:
    for turn in turns:
        state = advance(state, replace(turn, terms=terms), place, measure=QUARTERS)
    return state


def texts(state: State) -> list[str]:
    assert state.last is not None
    return [message.text for message in state.last.messages]


@BOTH
@pytest.mark.parametrize(
    "odd",
    [
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"),)),
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"), note("b.md", "B"), note("a.md", "C"))),
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"),), results=(result("x", "found"),)),
        Turn(text="odd", reply="yes", results=(result("x", "found"),)),
        Turn(text="odd", reply="yes", fold=True),
        Turn(text="odd", reply="yes", model="two"),
        Turn(text="odd", reply="yes", system=SystemParts(base="Be brief.")),
        Turn(text="odd", reply="yes", rewritten=Rewrite.BRANCH),
        Turn(text="odd", reply="yes", rounds=(ROUND,)),
        Turn(text="odd"),
    ],
)
def test_turns_that_only_talk_are_told_together_as_each_of_them_would_be(odd: Turn, terms: Terms) -> None:
    plain = [Turn(text=f"q{number}", reply=f"a{number}") for number in range(3)]
    turns = [replace(turn, terms=terms) for turn in (*plain, odd, *plain, odd, *plain)]
    each, together = go(NEW, *turns, terms=terms), advance_all(NEW, turns, place, measure=QUARTERS)
    assert replace(together, last=None) == replace(each, last=None)
    assert texts(together) == texts(each)
    assert together.talk.spoken == each.talk.spoken


@pytest.mark.parametrize(
    "under",
    [
        Terms(attachments=Attachments.STICKY),
        Terms(carry_forward=CarryForward.PREVIEW),
        Terms(history=History.WINDOW, history_turns=2),
        Terms(history=History.STRIP, history_turns=2),
    ],
    ids=["sticky", "preview", "window", "strip"],
)
@BOTH
def test_a_past_is_told_as_it_was_under_whatever_terms(terms: Terms, under: Terms) -> None:
    other = replace(under, layout=terms.layout)
    plain = [Turn(text=f"q{number}", reply=f"a{number}") for number in range(3)]
    brings = Turn(text="see", reply="yes", attached=(note("a.md", "A\n\n" + "long " * 2_000),))
    told = [(*plain, brings, *plain), (*plain, brings, *plain, brings)]
    turns = [replace(turn, terms=held) for part, held in zip(told, (terms, other), strict=True) for turn in part]
    each = NEW
    for turn in turns:
        each = advance(each, turn, place, measure=QUARTERS)
    together = advance_all(NEW, turns, place, measure=QUARTERS)
    assert replace(together, last=None) == replace(each, last=None)
    assert texts(together) == texts(each)


def test_a_planner_is_asked_again_where_terms_change_or_something_came_along() -> None:
    asked: list[str] = []

    def note_place(state: State, turn: Turn) -> Placement:
        asked.append(turn.text)
        return place(state, turn)

    plain = [Turn(text=f"q{number}", reply="a", terms=IN_PLACE) for number in range(6)]
    plain[3] = replace(plain[3], attached=(note("a.md", "A"),))
    advance_all(NEW, plain, note_place, measure=QUARTERS)
    assert asked == ["q0", "q0", "q1", "q3", "q4", "q5"]
