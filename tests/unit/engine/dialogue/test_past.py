"""The past of a conversation folds to the state it was left in; compactions are found, taken back and kept in order."""

import pytest

from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.artifacts.make import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.fitting import Rules, fit_turn
from lamella.core.log.placement import Placement
from lamella.core.log.receipt import Receipt, make_receipt
from lamella.core.log.terms import Layout, Rewrite, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance, answer, waiting
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.past import Past
from lamella.errors import CallError

MEASURE = OfflineCounter().measure(None)
LIBRARY = Terms()
IN_PLACE = Terms(layout=Layout.IN_PLACE)
START = State(conversation="chat", measured_by=MEASURE.name)


def note(name: str, text: str, kind: Kind = Kind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=Source(path=name))


def told(text: str, *, reply: str | None = "yes", **given: object) -> Turn:
    return Turn(text=text, reply=reply, **given)  # type: ignore[arg-type]


def under(terms: Terms, *turns: Turn) -> list[Turn]:
    return [replace(turn, terms=terms) for turn in turns]


def fold(*turns: Turn) -> State:
    return Past(turns).fold(START, place, measure=MEASURE)


def live(turns: list[Turn]) -> State:
    """Every turn asked and answered as it is in a conversation under way."""
    state = START
    for turn in turns:
        opened = advance(state, replace(turn, reply=None, reply_id=None), place, measure=MEASURE)
        state = answer(opened, turn.reply or "", reply_id=turn.reply_id)
    return state


PAST = [
    told("one", attached=(note("a.md", "A"),), results=(make_tool_result("t", arguments={}, output="T"),)),
    told("two", attached=(note("a.md", "A"), note("b.md", "B"))),
    told("three", fold=True),
    told("four", attached=(note("a.md", "A2"),)),
    told("five", attached=(note("a.md", "A2"), note("c.md", "C")), reply=None),
    told("six", drop=("b.md",)),
    told("seven", attached=(note("b.md", "B"),), rewritten=Rewrite.BRANCH),
    told("eight"),
]


@pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
@pytest.mark.parametrize("turns", range(1, len(PAST) + 1))
def test_the_next_turn_is_the_one_that_asking_turn_by_turn_gives(terms: Terms, turns: int) -> None:
    past = under(terms, *PAST[:turns])
    folded, asked = fold(*past), live(past)
    assert folded.waits is (past[-1].reply is None)
    following = Turn(text="next", attached=(note("a.md", "A2"),), terms=terms)
    sent, expected = (waiting(advance(state, following, place, measure=MEASURE)) for state in (folded, asked))
    assert sent.messages == expected.messages
    assert [sent.segments(layer) for layer in LayerId] == [expected.segments(layer) for layer in LayerId]
    assert (sent.epoch, sent.total, sent.warnings) == (expected.epoch, expected.total, expected.warnings)
    folded = answer(folded, "") if folded.waits else folded
    assert (folded.library, folded.epoch, folded.head) == (asked.library, asked.epoch, asked.head)
    assert list(folded.standing) == list(asked.standing)


def test_nothing_past_is_a_conversation_that_begins() -> None:
    start = State(conversation="chat", model="openai:gpt-5", measured_by=MEASURE.name)
    assert Past().fold(start, place, measure=MEASURE) == start


def test_a_past_is_folded_by_the_planner_that_it_is_asked_with() -> None:
    stays = Placement(why="a planner of one's own")
    past = under(LIBRARY, told("one", attached=(note("a.md", "A"),)), told("two"))
    state = Past(past).fold(START, lambda _state, _turn: stays, measure=MEASURE)
    assert state.last is not None
    assert state.last.placement is stays
    assert (state.epoch, state.shelf) == (0, {})


def test_a_turn_that_waits_is_open_in_the_state_it_was_asked_in() -> None:
    state = fold(*under(IN_PLACE, told("one"), told("two", reply=None)))
    assert waiting(state).user.text == "two"
    assert [exchange.user.text for exchange in state.talk.exchanges] == ["one"]


def test_a_question_that_was_never_answered_is_kept_with_the_empty_reply() -> None:
    for terms in (LIBRARY, IN_PLACE):
        state = fold(*under(terms, told("one", reply=None), told("two")))
        assert [(one.user.text, one.reply.text) for one in state.talk.exchanges] == [("one", ""), ("two", "yes")]


def test_messages_keep_the_ids_they_were_given() -> None:
    past = [
        Turn(text="one", id="first", reply="yes", reply_id="second"),
        Turn(text="two", id="third", reply="no"),
    ]
    for terms in (LIBRARY, IN_PLACE):
        state = fold(*under(terms, *past))
        assert [(e.user.id, e.reply.id) for e in state.talk.exchanges] == [("first", "second"), ("third", state.head)]


def test_each_turn_is_laid_out_under_the_terms_it_was_asked_under() -> None:
    state = fold(*under(IN_PLACE, told("one", attached=(note("a.md", "A"),)), told("two")))
    assert (state.terms, state.epoch) == (IN_PLACE, 0)
    assert "A" in state.talk.exchanges[0].sent.text


def test_the_same_text_drawn_in_from_another_note_is_the_prompt_from_then_on() -> None:
    first = SystemParts(instructions="Use A.", typed_instructions="Use {[[a]]}.", inlined=(note("a.md", "A"),))
    typed = SystemParts(instructions="Use A.", typed_instructions="Use A.")
    state = fold(*under(IN_PLACE, told("one", system=first), told("two", system=typed), told("three")))
    assert (state.epoch, state.system) == (0, typed)


def test_a_conversation_that_no_longer_fits_can_still_be_resumed() -> None:
    state = fold(*under(IN_PLACE, told("word " * 1_000), told("short")))
    small = Rules(measure=MEASURE, place=place, budget=Budget(window=200, reserve=100))
    turn, opened, _ = fit_turn(state, Turn(text="next", terms=IN_PLACE), small)
    assert turn.receipts
    assert [message.text for message in waiting(opened).messages][-2:] == ["yes", "next"]


def receipt(parent: str) -> Receipt:
    return make_receipt("chat", parent=parent, steps=(), skipped=(), tokens=(9, 5), target=5, automatic=False)


FIRST, SECOND, THIRD = receipt("one"), receipt("two"), receipt("three")


def compacted() -> Past:
    past = Past()
    past.commit(FIRST)
    past.ask(Turn(text="one", receipts=past.receipts), message="q1")
    past.answer("yes", message="a1")
    past.commit(SECOND)
    past.commit(THIRD)
    return past


def test_receipts_in_force_are_listed_in_their_order_wherever_they_stand() -> None:
    past = compacted()
    assert past.committed() == [FIRST, SECOND, THIRD]
    assert past.receipts == (SECOND, THIRD)
    assert past.path == ["q1", "a1"]
    assert [(turn.text, turn.reply, turn.reply_id) for turn in past.turns] == [("one", "yes", "a1")]


def test_undoing_takes_back_the_last_or_the_one_named_with_all_after_it() -> None:
    past = compacted()
    assert past.find_undone(None) == [THIRD]
    assert past.find_undone(FIRST.id) == [FIRST, SECOND, THIRD]
    left = past.without(past.find_undone(SECOND.id))
    assert left.committed() == [FIRST]
    assert (left.path, [turn.text for turn in left.turns]) == (past.path, ["one"])
    assert past.without([FIRST]).committed() == [SECOND, THIRD]
    assert past.committed() == [FIRST, SECOND, THIRD]


def test_what_was_never_committed_cannot_be_undone_and_the_error_names_what_can() -> None:
    with pytest.raises(CallError, match="no compaction to undo"):
        Past().find_undone(None)
    with pytest.raises(CallError, match="'other'") as error:
        compacted().find_undone("other")
    assert FIRST.id in error.value.hint
