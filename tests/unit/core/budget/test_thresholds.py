"""Thresholds: ordered shares of what fits, from which on a request is warned about or shrunk."""

import pytest

from lamella.core.budget import TokenBudget, exceeds_share, list_budget_warnings, should_compact, validate_share
from lamella.errors import SettingError


def test_limit_is_the_window_less_the_reserve() -> None:
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


def test_target_may_be_below_warn() -> None:
    assert (TokenBudget().target, TokenBudget().warn) == (0.4, 0.6)
    assert TokenBudget(target=0.1).target == 0.1


@pytest.mark.parametrize(("target", "own"), [(0.1, 500), (0.5, 500), (0.7, 700)])
def test_current_turn_may_use_half_the_limit_or_the_target(target: float, own: int) -> None:
    budget = TokenBudget(window=1_100, reserve=100, target=target)
    assert (budget.current_turn_limit, budget.current_turn_share) == (own, own / 1_000)


def test_hard_threshold_may_be_full_limit() -> None:
    assert TokenBudget(hard=1.0).hard == 1.0


@pytest.mark.parametrize(("window", "reserve"), [(0, 0), (-1, 0), (100, 100), (100, 200), (100, -1)])
def test_window_without_space_is_refused(window: int, reserve: int) -> None:
    with pytest.raises(SettingError, match="leaves no room") as caught:
        TokenBudget(window=window, reserve=reserve)
    assert "window > reserve" in caught.value.hint


def test_next_compaction_waits_for_growth_to_soft_goal() -> None:
    budget = TokenBudget(window=1_000, reserve=0, warn=0.25, target=0.5, trigger=0.75, hard=1.0)
    assert not should_compact(750, budget, last_compacted_total=None)
    assert should_compact(751, budget, last_compacted_total=None)
    assert not should_compact(779, budget, last_compacted_total=730)
    assert should_compact(780, budget, last_compacted_total=730)
    assert should_compact(1_001, budget, last_compacted_total=1_000)


def test_soft_goal_is_ten_percent_below_trigger_or_target() -> None:
    assert TokenBudget().soft_target == pytest.approx(0.75)
    assert TokenBudget(target=0.849, trigger=0.85).soft_target == 0.849


@pytest.mark.parametrize("share", [0.01, 0.5, 1, 1.0])
def test_valid_share_is_returned_as_float(share: float) -> None:
    assert validate_share(share) == share
    assert isinstance(validate_share(share), float)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, 2, float("nan"), True, "0.5", None])
def test_invalid_share_is_refused_with_hint(share: object) -> None:
    with pytest.raises(SettingError, match="is no share of the window") as caught:
        validate_share(share)  # type: ignore[arg-type]
    assert repr(share) in caught.value.message
    assert "above 0 and up to 1" in caught.value.hint


def test_warning_starts_above_share_with_numbers() -> None:
    budget = TokenBudget(window=1_100, reserve=100)
    assert list_budget_warnings(600, budget) == ()
    assert list_budget_warnings(601, budget) == ("The request uses 601 of 1,000 tokens, 60% of what fits.",)


def test_threshold_is_exceeded_only_above_it() -> None:
    budget = TokenBudget(window=1_000, reserve=0)
    assert not exceeds_share(500, 0.5, budget)
    assert exceeds_share(501, 0.5, budget)
