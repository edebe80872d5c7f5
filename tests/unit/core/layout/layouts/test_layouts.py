"""The planners: library folds every turn, in_place only when an epoch ends; each gives its reason."""

import pytest

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.layout.layouts import (
    LAYOUT_PLANNERS,
    choose_layout,
    keep_compacted_prefix,
    plan_in_place_layout,
    plan_library_layout,
)
from lamella.core.log.turn import (
    ArtifactForm,
    CarryForwardMode,
    HistoryChangeReason,
    HistoryMode,
    ImageNoteMode,
    LayoutMode,
    LayoutPlan,
    RuleChanges,
    SystemParts,
    Turn,
    TurnSettings,
)
from lamella.core.prompt.advance import advance_by_turn
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.tokenizers.counter import OfflineTokenCounter

MEASURE = OfflineTokenCounter().get_tokenizer(None)
LIBRARY = TurnSettings(layout=LayoutMode.LIBRARY)
IN_PLACE = TurnSettings(layout=LayoutMode.IN_PLACE)
SEARCH = make_tool_definition("search", description="", parameters={})
PROMPT = SystemParts(base="B.", memory="M.")
NEW = PromptState(conversation="chat")


def after_a_turn(terms: TurnSettings) -> PromptState:
    turn = Turn(text="one", system=PROMPT, tools=(SEARCH,), model="m", turn_settings=terms, reply="yes")
    return advance_by_turn(NEW, turn, choose_layout, tokenizer=MEASURE)


def test_every_layout_has_planner_that_plans_its_turns() -> None:
    assert set(LAYOUT_PLANNERS) == set(LayoutMode)
    state = after_a_turn(IN_PLACE)
    for turn_settings in (LIBRARY, IN_PLACE):
        turn = Turn(text="two", turn_settings=turn_settings)
        assert choose_layout(state, turn) == LAYOUT_PLANNERS[turn_settings.layout](state, turn)


@pytest.mark.parametrize("state", [NEW, after_a_turn(LIBRARY), after_a_turn(IN_PLACE)])
def test_library_layout_folds_all_and_promotes_attachments(state: PromptState) -> None:
    layout_plan = plan_library_layout(state, Turn(text="two"))
    assert (layout_plan.keep_messages, layout_plan.promotes) == (0, True)
    assert layout_plan.why == "what earlier turns attached goes into the system message"
    assert layout_plan.forms == {}


def test_in_place_first_turn_folds_existing_history() -> None:
    layout_plan = plan_in_place_layout(NEW, Turn(text="one", turn_settings=IN_PLACE))
    assert (layout_plan.keep_messages, layout_plan.promotes, layout_plan.why) == (0, False, "nothing was sent before")


@pytest.mark.parametrize(
    "turn",
    [
        Turn(text="two", history_rewrite=HistoryChangeReason.HISTORY_EDITED, prefix_unchanged=True),
        Turn(text="two"),
        Turn(text="two", system=PROMPT, tools=(SEARCH,), model="m"),
        Turn(text="two", system=replace(PROMPT, typed_instructions="typed otherwise")),
        Turn(text="two", rules=RuleChanges()),
    ],
)
def test_in_place_turn_without_changes_keeps_all_messages(turn: Turn) -> None:
    layout_plan = choose_layout(after_a_turn(IN_PLACE), replace(turn, turn_settings=IN_PLACE))
    assert (layout_plan.keep_messages, layout_plan.promotes) == (None, False)
    assert layout_plan.why == "nothing that was sent has to move"


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (Turn(text="two", history_rewrite=HistoryChangeReason.BRANCH), "what was said before was rewritten"),
        (Turn(text="two", history_rewrite=HistoryChangeReason.HISTORY_EDITED), "what was said before was rewritten"),
        (Turn(text="two", system=replace(PROMPT, memory="")), "the system prompt changed"),
        (Turn(text="two", system=SystemParts(base="M.", memory="B.")), "the system prompt changed"),
        (Turn(text="two", tools=()), "the tools changed"),
        (Turn(text="two", model="n"), "the model changed"),
        (Turn(text="two", rules=RuleChanges(added=((1, "Always cite the page."),))), "the rules changed"),
        (Turn(text="two", drop=("a.md",)), "a.md was dropped"),
        (Turn(text="two", drop=(f"sha256:{'a' * 64}",)), "an image was dropped"),
        (Turn(text="two", drop=("a.md#L1-L2:0123abcd4567",)), "a.md#L1-L2 was dropped"),
        (Turn(text="two", drop=("a.md", "b.md", "c.md")), "a.md, b.md and c.md were dropped"),
        (Turn(text="two", drop=("a.md", "b.md", "c.md", "d.md")), "a.md, b.md and 2 more were dropped"),
        (Turn(text="two", fold=True), "a fold was asked for"),
    ],
)
def test_in_place_epoch_ends_with_reason(turn: Turn, why: str) -> None:
    layout_plan = choose_layout(after_a_turn(IN_PLACE), replace(turn, turn_settings=IN_PLACE))
    assert (layout_plan.keep_messages, layout_plan.promotes, layout_plan.why) == (0, False, why)


def test_another_layout_ends_the_epoch_of_the_one_before() -> None:
    assert choose_layout(after_a_turn(LIBRARY), Turn(text="two", turn_settings=IN_PLACE)).why == "the layout changed"
    assert choose_layout(after_a_turn(IN_PLACE), Turn(text="two", turn_settings=LIBRARY)).promotes


@pytest.mark.parametrize(
    "terms",
    [
        replace(IN_PLACE, carry_forward=CarryForwardMode.PREVIEW),
        replace(IN_PLACE, history=HistoryMode.WINDOW),
        replace(IN_PLACE, image_notes=ImageNoteMode.TEXT),
    ],
)
def test_in_place_new_settings_wait_for_next_epoch(terms: TurnSettings) -> None:
    assert choose_layout(after_a_turn(IN_PLACE), Turn(text="two", turn_settings=terms)).keep_messages is None


def test_forced_plan_keeps_only_first_breakpoint() -> None:
    layout_plan = LayoutPlan(
        keep_messages=2,
        within=1,
        forms={"a.md": ArtifactForm.FULL},
        breakpoints=(0, 3),
        cached_message=2,
        long_lifetime_until=1,
        why="folded",
        cost=1.0,
    )
    turn = Turn(text="two", turn_settings=TurnSettings(layout=LayoutMode.AUTO), layout_plan=layout_plan)
    placement = choose_layout(after_a_turn(IN_PLACE), turn)
    assert (placement.keep_messages, placement.within, placement.forms, placement.breakpoints) == (0, 0, {}, (0,))
    assert (placement.cached_message, placement.long_lifetime_until, placement.why) == (
        None,
        None,
        "the layout changed",
    )
    assert (placement.cost, placement.priced) == (1.0, True)


def test_compacted_prefix_is_kept_with_reason() -> None:
    layout_plan = keep_compacted_prefix(
        replace(after_a_turn(IN_PLACE), kept_messages=2), LayoutPlan(breakpoints=(0, 1))
    )
    assert (layout_plan.keep_messages, layout_plan.breakpoints) == (2, ())
    assert layout_plan.why == "what was said before was compacted from some message on"
