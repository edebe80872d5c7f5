"""Whether it pays to send the last request again, only so that the cache keeps it."""

import pytest

from lamella.core.ledger.cache import CacheProfile
from lamella.core.planning.alive import expect_return, find_due, pays_to_keep
from lamella.core.prompt.trail import NO_TRAIL, Trail
from lamella.core.values import replace

CHEAP = CacheProfile(name="a", minimum=1_024, lifetime=300, read=0.1, write=1.25)
DEAR = CacheProfile(name="o", minimum=1_024, lifetime=600, read=0.5, write=1.0)
OFTEN = Trail(requests=20, short=4)


def test_the_next_is_due_before_the_lifetime_is_over() -> None:
    assert find_due(CHEAP) == pytest.approx(285)


@pytest.mark.parametrize(
    "profile",
    [replace(CHEAP, lifetime=None), replace(CHEAP, read=1.0, write=1.0), replace(CHEAP, lifetime=None, read=0.0)],
)
def test_a_cache_that_nothing_expires_in_or_that_saves_nothing_is_never_kept(profile: CacheProfile) -> None:
    assert find_due(profile) is None
    assert not pays_to_keep(1.0, profile, hot=10_000, total=10_000)


def test_from_a_chance_of_nine_in_a_hundred_on_it_pays_where_reading_costs_a_tenth() -> None:
    assert not pays_to_keep(0.08, CHEAP, hot=10_000, total=10_000)
    assert pays_to_keep(0.09, CHEAP, hot=10_000, total=10_000)


def test_it_never_pays_where_reading_costs_half_and_few_come_back() -> None:
    assert not pays_to_keep(expect_return(OFTEN, 570, DEAR), DEAR, hot=10_000, total=10_000)


def test_what_a_longer_lifetime_holds_is_no_reason() -> None:
    assert not pays_to_keep(0.2, CHEAP, hot=4_000, total=10_000)


def test_what_no_cache_took_is_not_kept() -> None:
    assert not pays_to_keep(1.0, CHEAP, hot=1_000, total=1_000)


def test_who_came_back_before_is_expected_back_and_who_is_away_for_longer_is_less() -> None:
    assert expect_return(OFTEN, 285, CHEAP) > expect_return(NO_TRAIL, 285, CHEAP)
    assert expect_return(OFTEN, 285, CHEAP) > expect_return(OFTEN, 570, CHEAP)
    assert expect_return(Trail(requests=20, long=4), 285, CHEAP) < expect_return(NO_TRAIL, 285, CHEAP)
    # A pause that was bridged tells as much of who comes back as one that was not.
    assert expect_return(Trail(requests=20, kept=4), 285, CHEAP) == expect_return(OFTEN, 285, CHEAP)
    assert expect_return(OFTEN, 3_600, CHEAP) == 0


def test_what_costs_as_much_as_it_saves_does_not_pay() -> None:
    even = CacheProfile(name="even", lifetime=300, read=0.5, write=1.5)
    assert not pays_to_keep(0.5, even, hot=1_000, total=1_000)
    assert pays_to_keep(0.5, even, hot=1_001, total=1_000)
