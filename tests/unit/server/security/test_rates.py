"""Rates: a bucket for each caller, which fills again."""

import pytest

from lamella.errors import TooManyRequestsError
from lamella.server.security import RateLimits


class HandClock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_rate_limit_refills_over_time() -> None:
    clock = HandClock()
    limits = RateLimits(6, now=clock)
    for _ in range(6):
        limits.check_rate("ana")
    with pytest.raises(TooManyRequestsError, match="More than 6") as told:
        limits.check_rate("ana")
    assert told.value.wait == pytest.approx(10)
    limits.check_rate("ben")
    clock.at = 10.5
    limits.check_rate("ana")
    with pytest.raises(TooManyRequestsError):
        limits.check_rate("ana")
    clock.at = 10_000
    for _ in range(6):
        limits.check_rate("ana")
    with pytest.raises(TooManyRequestsError):
        limits.check_rate("ana")


def test_many_callers_use_bounded_memory() -> None:
    limits = RateLimits(1, now=HandClock())
    for number in range(30_000):
        limits.check_rate(f"caller {number}")
    with pytest.raises(TooManyRequestsError):
        limits.check_rate("caller 29999")
    limits.check_rate("caller 0")
