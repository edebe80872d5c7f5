"""Whether it pays to send the last request again, only so that the cache keeps it."""

import pytest

from lamella.core.layout.layouts import is_keep_alive_worth_it, keep_alive_interval, return_probability_in_next_lifetime
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.prompt.cache_history import NO_CACHE_HISTORY, CacheHistory
from lamella.core.values import replace

CHEAP = CacheProfile(name="a", minimum=1_024, lifetime=300, read=0.1, write=1.25)
DEAR = CacheProfile(name="o", minimum=1_024, lifetime=600, read=0.5, write=1.0)
OFTEN = CacheHistory(requests=20, short_expiries=4)


def test_next_keep_alive_is_due_before_expiry() -> None:
    assert keep_alive_interval(CHEAP) == pytest.approx(285)


@pytest.mark.parametrize(
    "profile",
    [replace(CHEAP, lifetime=None), replace(CHEAP, read=1.0, write=1.0), replace(CHEAP, lifetime=None, read=0.0)],
)
def test_cache_without_expiry_or_savings_is_not_kept_alive(profile: CacheProfile) -> None:
    assert keep_alive_interval(profile) is None
    assert not is_keep_alive_worth_it(1.0, profile, cached_tokens=10_000, total=10_000)


def test_keep_alive_pays_from_nine_percent_at_read_price_of_a_tenth() -> None:
    assert not is_keep_alive_worth_it(0.08, CHEAP, cached_tokens=10_000, total=10_000)
    assert is_keep_alive_worth_it(0.09, CHEAP, cached_tokens=10_000, total=10_000)


def test_keep_alive_never_pays_at_half_price_with_few_returns() -> None:
    assert not is_keep_alive_worth_it(
        return_probability_in_next_lifetime(OFTEN, 570, DEAR), DEAR, cached_tokens=10_000, total=10_000
    )


def test_longer_lifetime_prefix_is_no_reason_for_keep_alive() -> None:
    assert not is_keep_alive_worth_it(0.2, CHEAP, cached_tokens=4_000, total=10_000)


def test_uncached_prompt_is_not_kept_alive() -> None:
    assert not is_keep_alive_worth_it(1.0, CHEAP, cached_tokens=1_000, total=1_000)


def test_return_probability_rises_with_past_returns_and_falls_with_absence() -> None:
    assert return_probability_in_next_lifetime(OFTEN, 285, CHEAP) > return_probability_in_next_lifetime(
        NO_CACHE_HISTORY, 285, CHEAP
    )
    assert return_probability_in_next_lifetime(OFTEN, 285, CHEAP) > return_probability_in_next_lifetime(
        OFTEN, 570, CHEAP
    )
    assert return_probability_in_next_lifetime(
        CacheHistory(requests=20, long_expiries=4), 285, CHEAP
    ) < return_probability_in_next_lifetime(NO_CACHE_HISTORY, 285, CHEAP)
    # A pause that was bridged tells as much of who comes back as one that was not.
    assert return_probability_in_next_lifetime(
        CacheHistory(requests=20, kept_alive_pauses=4), 285, CHEAP
    ) == return_probability_in_next_lifetime(OFTEN, 285, CHEAP)
    assert return_probability_in_next_lifetime(OFTEN, 3_600, CHEAP) == 0


def test_keep_alive_at_break_even_does_not_pay() -> None:
    even = CacheProfile(name="even", lifetime=300, read=0.5, write=1.5)
    assert not is_keep_alive_worth_it(0.5, even, cached_tokens=1_000, total=1_000)
    assert is_keep_alive_worth_it(0.5, even, cached_tokens=1_001, total=1_000)
