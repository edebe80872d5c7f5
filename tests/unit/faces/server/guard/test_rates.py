"""Rates: a bucket for each caller, which fills again."""

import pytest

from lamella.faces.server.guard.rates import RateLimits
from lamella.refusals import TooManyRequestsError


class HandClock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_caller_has_so_many_a_minute_and_gets_them_back_as_time_goes_by() -> None:
    clock = HandClock()
    limits = RateLimits(6, now=clock)
    for _ in range(6):
        limits.take("ana")
    with pytest.raises(TooManyRequestsError, match="More than 6") as told:
        limits.take("ana")
    assert told.value.wait == pytest.approx(10)
    limits.take("ben")
    clock.at = 10.5
    limits.take("ana")
    with pytest.raises(TooManyRequestsError):
        limits.take("ana")
    clock.at = 10_000
    for _ in range(6):
        limits.take("ana")
    with pytest.raises(TooManyRequestsError):
        limits.take("ana")


def test_many_callers_take_no_memory_without_an_end() -> None:
    limits = RateLimits(1, now=HandClock())
    for number in range(30_000):
        limits.take(f"caller {number}")
    with pytest.raises(TooManyRequestsError):
        limits.take("caller 29999")
    limits.take("caller 0")
