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
        limits.count_request("ana")
    with pytest.raises(TooManyRequestsError, match="More than 6") as told:
        limits.count_request("ana")
    assert told.value.wait == pytest.approx(10)
    limits.count_request("ben")
    clock.at = 10.5
    limits.count_request("ana")
    with pytest.raises(TooManyRequestsError):
        limits.count_request("ana")
    clock.at = 10_000
    for _ in range(6):
        limits.count_request("ana")
    with pytest.raises(TooManyRequestsError):
        limits.count_request("ana")


def test_many_callers_use_bounded_memory() -> None:
    limits = RateLimits(1, now=HandClock())
    for number in range(30_000):
        limits.count_request(f"caller {number}")
    with pytest.raises(TooManyRequestsError):
        limits.count_request("caller 29999")
    limits.count_request("caller 0")
