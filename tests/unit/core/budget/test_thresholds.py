"""Thresholds: ordered shares of what fits, from which on a request is warned about or shrunk."""

import pytest

from lamella.core.budget import TokenBudget, budget_warnings, exceeds_share, should_compact, validate_share
from lamella.errors import SettingError


def test_the_limit_is_the_window_less_the_reserve() -> None:
    assert TokenBudget(window=10_000, reserve=1_000).limit == 9_000
    assert TokenBudget().limit == 123_904


@pytest.mark.parametrize(
    "thresholds",
    [
        {"warn": 0.85},
        {"warn": 0.9},
        {"target": 0.85},
        {"target": 0.0},
        {"target": float("nan")},
        {"trigger": 0.95},
        {"hard": 0.85},
        {"hard": 1.01},
        {"warn": 0.0},
        {"warn": -0.1},
        {"warn": float("nan")},
    ],
)
def test_thresholds_out_of_order_are_refused_with_their_values(thresholds: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="not in order") as caught:
        TokenBudget(**thresholds)  # type: ignore[arg-type]
    assert "warn < trigger < hard" in caught.value.hint


def test_the_target_may_be_below_what_is_warned_of() -> None:
    assert (TokenBudget().target, TokenBudget().warn) == (0.4, 0.6)
    assert TokenBudget(target=0.1).target == 0.1


@pytest.mark.parametrize(("target", "own"), [(0.1, 500), (0.5, 500), (0.7, 700)])
def test_what_is_attached_and_typed_now_may_have_half_of_what_fits_or_the_target(target: float, own: int) -> None:
    budget = TokenBudget(window=1_100, reserve=100, target=target)
    assert (budget.current_turn_limit, budget.current_turn_share) == (own, own / 1_000)


def test_a_hard_threshold_of_all_that_fits_is_allowed() -> None:
    assert TokenBudget(hard=1.0).hard == 1.0


@pytest.mark.parametrize(("window", "reserve"), [(0, 0), (-1, 0), (100, 100), (100, 200), (100, -1)])
def test_a_window_without_room_is_refused(window: int, reserve: int) -> None:
    with pytest.raises(SettingError, match="leaves no room") as caught:
        TokenBudget(window=window, reserve=reserve)
    assert "window > reserve" in caught.value.hint


def test_compaction_waits_until_the_request_has_grown_by_half_the_distance_to_the_soft_goal() -> None:
    budget = TokenBudget(window=1_000, reserve=0, warn=0.25, target=0.5, trigger=0.75, hard=1.0)
    assert not should_compact(750, budget, last_compacted_total=None)
    assert should_compact(751, budget, last_compacted_total=None)
    assert not should_compact(779, budget, last_compacted_total=730)
    assert should_compact(780, budget, last_compacted_total=730)
    assert should_compact(1_001, budget, last_compacted_total=1_000)


def test_the_soft_goal_is_a_tenth_below_the_trigger_unless_the_target_is_higher() -> None:
    assert TokenBudget().soft == pytest.approx(0.75)
    assert TokenBudget(target=0.849, trigger=0.85).soft == 0.849


@pytest.mark.parametrize("share", [0.01, 0.5, 1, 1.0])
def test_a_share_above_nothing_and_up_to_all_is_taken_as_a_float(share: float) -> None:
    assert validate_share(share) == share
    assert isinstance(validate_share(share), float)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, 2, float("nan"), True, "0.5", None])
def test_anything_else_is_no_share_and_the_error_says_what_is(share: object) -> None:
    with pytest.raises(SettingError, match="is no share of the window") as caught:
        validate_share(share)  # type: ignore[arg-type]
    assert repr(share) in caught.value.message
    assert "above 0 and up to 1" in caught.value.hint


def test_a_warning_begins_above_its_share_and_has_the_numbers() -> None:
    budget = TokenBudget(window=1_100, reserve=100)
    assert budget_warnings(600, budget) == ()
    assert budget_warnings(601, budget) == ("The request uses 601 of 1,000 tokens, 60% of what fits.",)


def test_a_request_is_over_a_threshold_only_above_it() -> None:
    budget = TokenBudget(window=1_000, reserve=0)
    assert not exceeds_share(500, 0.5, budget)
    assert exceeds_share(501, 0.5, budget)
