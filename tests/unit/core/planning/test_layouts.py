"""The planners: library folds every turn, in_place only when an epoch has to end; each says why."""

import pytest

from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.artifacts.make import make_tool_definition
from lamella.core.log.placement import Form, Placement
from lamella.core.log.terms import CarryForward, History, ImageNotes, Layout, Rewrite, Terms
from lamella.core.log.turn import RuleBook, SystemParts, Turn
from lamella.core.planning.layouts import PLANNERS, keep_kept, place, place_in_library, place_in_turn
from lamella.core.prompt.advance import advance
from lamella.core.prompt.state import State
from lamella.core.values import replace

MEASURE = OfflineCounter().measure(None)
LIBRARY = Terms(layout=Layout.LIBRARY)
IN_PLACE = Terms(layout=Layout.IN_PLACE)
SEARCH = make_tool_definition("search", description="", parameters={})
PROMPT = SystemParts(base="B.", memory="M.")
NEW = State(conversation="chat")


def after_a_turn(terms: Terms) -> State:
    turn = Turn(text="one", system=PROMPT, tools=(SEARCH,), model="m", terms=terms, reply="yes")
    return advance(NEW, turn, place, measure=MEASURE)


def test_every_layout_has_a_planner_and_a_turn_is_placed_by_that_of_its_own() -> None:
    assert set(PLANNERS) == set(Layout)
    state = after_a_turn(IN_PLACE)
    for terms in (LIBRARY, IN_PLACE):
        turn = Turn(text="two", terms=terms)
        assert place(state, turn) == PLANNERS[terms.layout](state, turn)


@pytest.mark.parametrize("state", [NEW, after_a_turn(LIBRARY), after_a_turn(IN_PLACE)])
def test_library_folds_everything_every_turn_and_takes_in_what_was_attached(state: State) -> None:
    placement = place_in_library(state, Turn(text="two"))
    assert (placement.keep, placement.promotes) == (0, True)
    assert placement.why == "what earlier turns attached goes into the system message"
    assert placement.forms == {}


def test_in_place_the_first_turn_folds_what_there_is() -> None:
    placement = place_in_turn(NEW, Turn(text="one", terms=IN_PLACE))
    assert (placement.keep, placement.promotes, placement.why) == (0, False, "nothing was sent before")


@pytest.mark.parametrize(
    "turn",
    [
        Turn(text="two", rewritten=Rewrite.HISTORY_EDITED, unmoved=True),
        Turn(text="two"),
        Turn(text="two", system=PROMPT, tools=(SEARCH,), model="m"),
        Turn(text="two", system=replace(PROMPT, typed_instructions="typed otherwise")),
        Turn(text="two", rules=RuleBook()),
    ],
)
def test_in_place_a_turn_that_changes_nothing_leaves_all_messages_where_they_stand(turn: Turn) -> None:
    placement = place(after_a_turn(IN_PLACE), replace(turn, terms=IN_PLACE))
    assert (placement.keep, placement.promotes) == (None, False)
    assert placement.why == "nothing that was sent has to move"


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (Turn(text="two", rewritten=Rewrite.BRANCH), "what was said before was rewritten"),
        (Turn(text="two", rewritten=Rewrite.HISTORY_EDITED), "what was said before was rewritten"),
        (Turn(text="two", system=replace(PROMPT, memory="")), "the system prompt changed"),
        (Turn(text="two", system=SystemParts(base="M.", memory="B.")), "the system prompt changed"),
        (Turn(text="two", tools=()), "the tools changed"),
        (Turn(text="two", model="n"), "the model changed"),
        (Turn(text="two", rules=RuleBook(added=((1, "Always cite the page."),))), "the rules changed"),
        (Turn(text="two", drop=("a.md",)), "something was dropped"),
        (Turn(text="two", fold=True), "a fold was asked for"),
    ],
)
def test_in_place_an_epoch_ends_for_a_reason_that_is_said(turn: Turn, why: str) -> None:
    placement = place(after_a_turn(IN_PLACE), replace(turn, terms=IN_PLACE))
    assert (placement.keep, placement.promotes, placement.why) == (0, False, why)


def test_another_layout_ends_the_epoch_of_the_one_before() -> None:
    assert place(after_a_turn(LIBRARY), Turn(text="two", terms=IN_PLACE)).why == "the layout changed"
    assert place(after_a_turn(IN_PLACE), Turn(text="two", terms=LIBRARY)).promotes


@pytest.mark.parametrize(
    "terms",
    [
        replace(IN_PLACE, carry_forward=CarryForward.PREVIEW),
        replace(IN_PLACE, history=History.WINDOW),
        replace(IN_PLACE, image_notes=ImageNotes.TEXT),
    ],
)
def test_in_place_other_terms_wait_for_the_next_epoch(terms: Terms) -> None:
    assert place(after_a_turn(IN_PLACE), Turn(text="two", terms=terms)).keep is None


def test_a_plan_that_something_else_forces_keeps_nothing_of_it_but_a_mark_on_what_comes_first() -> None:
    planned = Placement(
        keep=2, within=1, forms={"a.md": Form.FULL}, marks=(0, 3), served=2, lasting=1, why="folded", cost=1.0
    )
    turn = Turn(text="two", terms=Terms(layout=Layout.AUTO), placement=planned)
    placement = place(after_a_turn(IN_PLACE), turn)
    assert (placement.keep, placement.within, placement.forms, placement.marks) == (0, 0, {}, (0,))
    assert (placement.served, placement.lasting, placement.why) == (None, None, "the layout changed")
    assert (placement.cost, placement.priced) == (1.0, True)


def test_what_a_compaction_left_as_it_was_stays_and_says_so() -> None:
    placement = keep_kept(replace(after_a_turn(IN_PLACE), kept=2), Placement(marks=(0, 1)))
    assert (placement.keep, placement.marks) == (2, ())
    assert placement.why == "what was said before was compacted from some message on"
