import pytest

from lamella.core.planning.habits import Hazards, expect_short_lapses, find_hazards
from lamella.core.prompt.trail import NO_TRAIL, Habit


def test_what_is_usual_holds_before_anything_was_seen() -> None:
    hazards = find_hazards(NO_TRAIL)
    assert 0 < hazards.lapse < 0.2
    assert hazards.come_back("a.md") == hazards.returns
    assert hazards.drop("a.md") == hazards.drops


def test_lapses_make_lapses_likelier_and_quiet_talk_less_so() -> None:
    usual = find_hazards(NO_TRAIL).lapse
    assert find_hazards(NO_TRAIL._replace(requests=10, short=5)).lapse > usual
    assert find_hazards(NO_TRAIL._replace(requests=100)).lapse < usual


def test_what_keeps_coming_back_is_worth_less_to_take_out() -> None:
    habits = {"often.md": Habit(absent=10, returned=6), "never.md": Habit(absent=30)}
    hazards = find_hazards(NO_TRAIL._replace(habits=habits))
    assert hazards.worth("often.md", 0.1, 1.25) < 0 < hazards.worth("never.md", 0.1, 1.25)
    assert hazards.worth("never.md", 0.1, 1.25) < hazards.rest_worth(0.1, 1.25)


def test_what_is_read_for_nothing_saves_nothing() -> None:
    assert find_hazards(NO_TRAIL).rest_worth(0.0, 1.0) == 0


def test_short_lapses_are_expected_from_those_that_were() -> None:
    seen = NO_TRAIL._replace(requests=40)
    assert expect_short_lapses(seen) < expect_short_lapses(seen._replace(short=4))
    assert expect_short_lapses(seen._replace(short=4, long=9)) < expect_short_lapses(seen._replace(short=4))


def test_a_cut_saves_no_more_than_the_same_costs_a_turn_later() -> None:
    hazards = find_hazards(NO_TRAIL)
    nothing_goes, some_goes = (hazards.wait_worth(0.1, 1.25, behind=1_000, going=going) for going in (0.0, 500.0))
    assert 0 < some_goes < nothing_goes < 1_150
    assert hazards.wait_worth(0.1, 1.25, behind=1_000, going=1_000) == 0
    assert hazards.wait_worth(1.0, 1.0, behind=1_000, going=500) == 0


def test_what_a_token_saves_is_what_it_is_read_for_until_it_comes_back_lapses_or_is_cut_later() -> None:
    hazards = Hazards(
        lapse=0.1, returns=0.05, drops=0.2, trail=NO_TRAIL._replace(habits={"b.md": Habit(absent=4, returned=2)})
    )
    assert [hazards.come_back(name) for name in ("a.md", "b.md")] == pytest.approx([0.05, 0.23])
    # A cut later takes it along with a chance of .45 times the root of .1 / .9.
    assert hazards.worth("a.md", 0.1, 1.0) == pytest.approx(0.9 * (0.1 - 0.05) / (0.05 + 0.1 + 0.15))
    assert hazards.rest_worth(0.1, 1.0) == pytest.approx(0.9 * 0.1 / (0.1 + 0.15))
    assert hazards.rest_worth(1.0, 1.0) == pytest.approx(0.9 / 1.1)


def test_ten_requests_are_ahead_at_least() -> None:
    assert expect_short_lapses(NO_TRAIL) == pytest.approx(0.06 * 10)
    assert expect_short_lapses(NO_TRAIL._replace(requests=10)) == pytest.approx(0.06 * 8 / 18 * 10)
    assert expect_short_lapses(NO_TRAIL._replace(requests=11)) == pytest.approx(0.06 * 8 / 19 * 11)


def test_what_leaves_some_turns_after_it_was_attached_is_due_then() -> None:
    ages = ((20, 0), (20, 18), *NO_TRAIL.ages[2:])
    hazards = find_hazards(NO_TRAIL._replace(ages=ages))
    assert [hazards.is_due(age) for age in (1, 2, 3, 40)] == [False, True, False, False]
    assert not any(find_hazards(NO_TRAIL).is_due(age) for age in (1, 2, 40))
