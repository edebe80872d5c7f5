"""What a cache miss cost: the tokens that were cached and were processed again, and the money that this cost."""

from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.ledger.entry import CacheMiss, Pricing, measure_cache_miss, sum_cache_misses
from lamella.core.log.call import CacheOutcome, CacheUsage, CacheVerdict, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.messages import Usage

CLAUDE = CacheProfile(name="claude", minimum=1_024, bills_writes=True)
GPT = CacheProfile(name="gpt", minimum=1_024, granularity=128)
MOVED = PrefixChange(cause=PrefixChangeCause.ARTIFACT_UPDATED, segment="a.md")
STILL = PrefixChange(cause=PrefixChangeCause.NONE)


def price(usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal:
    """A read costs 1, plain input 10, a write 12, and one with the longer lifetime 20."""
    del at, output
    short = usage.write - usage.long_lifetime
    return Decimal(usage.read + 10 * usage.uncached + 12 * short + 20 * usage.long_lifetime)


def call(
    usage: Usage,
    *,
    outcome: CacheOutcome = CacheOutcome.PREFIX_CHANGED,
    change: PrefixChange = MOVED,
    predicted: CacheUsage | None = None,
) -> ModelCall:
    return ModelCall(
        model="m", verdict=CacheVerdict(outcome=outcome, prefix_change=change), usage=usage, predicted=predicted
    )


def measure(now: ModelCall, before: Usage, *, profile: CacheProfile = CLAUDE, priced: bool = True) -> CacheMiss | None:
    pricing = Pricing(profile=profile, price=price) if priced else Pricing(profile=profile)
    return measure_cache_miss(now, call(before), pricing=pricing, at=None)


def test_tokens_that_were_written_again_cost_a_write_instead_of_a_read() -> None:
    now = call(Usage(plain=0, read=2_000, write=4_000))
    assert measure(now, Usage(plain=500, read=1_000, write=4_000)) == CacheMiss(tokens=3_000, cost=Decimal(33_000))


def test_plain_input_of_a_request_that_is_not_cached_at_all_cost_plain_input() -> None:
    now = call(Usage(plain=6_000, read=0, write=0), outcome=CacheOutcome.EVICTED, change=STILL)
    assert measure(now, Usage(plain=0, read=0, write=5_000)) == CacheMiss(tokens=5_000, cost=Decimal(45_000))


def test_the_long_lifetime_is_priced_as_such() -> None:
    now = call(Usage(plain=0, read=0, write=0, write_long=5_000))
    assert measure(now, Usage(plain=0, read=0, write=5_000)) == CacheMiss(tokens=5_000, cost=Decimal(95_000))


def test_a_provider_without_write_counts_has_the_whole_request_cached_in_steps() -> None:
    now = call(Usage(plain=6_000, read=0), outcome=CacheOutcome.EXPIRED, change=STILL)
    assert measure(now, Usage(plain=5_000, read=0), profile=GPT) == CacheMiss(tokens=4_992, cost=Decimal(9 * 4_992))


def test_a_shorter_request_loses_no_more_than_its_own_tokens() -> None:
    now = call(Usage(plain=0, read=0, write=2_000))
    assert measure(now, Usage(plain=0, read=0, write=50_000)) == CacheMiss(tokens=2_000, cost=Decimal(22_000))


def test_unreported_usage_is_taken_from_the_prediction() -> None:
    now = call(Usage(), predicted=CacheUsage(read=1_000, write=4_000, uncached=0))
    assert measure(now, Usage(plain=0, read=0, write=5_000)) == CacheMiss(tokens=4_000, cost=Decimal(44_000))
    assert measure(call(Usage()), Usage(plain=0, read=0, write=5_000)) is None


def test_without_a_price_only_the_tokens_are_known() -> None:
    now = call(Usage(plain=0, read=0, write=5_000))
    assert measure(now, Usage(plain=0, read=0, write=5_000), priced=False) == CacheMiss(tokens=5_000, cost=None)


@pytest.mark.parametrize(
    ("outcome", "change"),
    [
        (CacheOutcome.FIRST, PrefixChange(cause=PrefixChangeCause.FIRST_TURN)),
        (CacheOutcome.HIT, STILL),
        (CacheOutcome.TOO_SHORT, STILL),
        (CacheOutcome.UNKNOWN, STILL),
        (CacheOutcome.EXPECTED_MISS, STILL),
    ],
)
def test_outcomes_without_a_loss_cost_nothing(outcome: CacheOutcome, change: PrefixChange) -> None:
    now = call(Usage(plain=6_000, read=0, write=0), outcome=outcome, change=change)
    assert measure(now, Usage(plain=0, read=0, write=5_000)) is None


def test_a_change_of_effort_costs_what_was_cached() -> None:
    effort = PrefixChange(cause=PrefixChangeCause.NONE, segment="effort")
    now = call(Usage(plain=6_000, read=0, write=0), outcome=CacheOutcome.EXPECTED_MISS, change=effort)
    assert measure(now, Usage(plain=0, read=0, write=5_000)) == CacheMiss(tokens=5_000, cost=Decimal(45_000))


def test_a_prefix_change_behind_everything_cached_costs_nothing() -> None:
    assert measure(call(Usage(plain=9_000, read=5_000, write=0)), Usage(plain=700, read=0, write=5_000)) is None


COUNTS = st.integers(0, 50_000)
USAGES = st.builds(Usage, plain=COUNTS, read=COUNTS, write=COUNTS, write_long=COUNTS)


@given(now=USAGES, before=USAGES, profile=st.sampled_from((CLAUDE, GPT)))
def test_a_miss_never_exceeds_the_request_or_what_was_cached(now: Usage, before: Usage, profile: CacheProfile) -> None:
    miss = measure(call(now), before, profile=profile)
    if miss is not None:
        assert now.read is not None
        assert now.prompt_tokens is not None
        assert before.prompt_tokens is not None
        assert 0 < miss.tokens <= min(now.prompt_tokens - now.read, before.prompt_tokens)
        assert miss.cost is not None
        # A token cost between 9 (plain instead of read) and 19 (written for long instead of read) more.
        assert 9 * miss.tokens <= miss.cost <= 19 * miss.tokens


def test_the_sum_of_misses_has_a_cost_only_if_each_has_one() -> None:
    priced, unpriced = CacheMiss(tokens=10, cost=Decimal(1)), CacheMiss(tokens=5, cost=None)
    assert sum_cache_misses([None, priced, priced]) == CacheMiss(tokens=20, cost=Decimal(2))
    assert sum_cache_misses([priced, unpriced]) == CacheMiss(tokens=15, cost=None)
    assert sum_cache_misses([None, None]) is None
