"""A settable clock stands still until it is told otherwise."""

from datetime import UTC, datetime

from lamella.clocks import SettableClock

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_settable_clock_moves_only_when_set_or_advanced() -> None:
    clock = SettableClock(NOON)
    assert (clock.now(), clock.now()) == (NOON, NOON)
    clock.advance(90)
    assert (clock.now() - NOON).total_seconds() == 90
    clock.set(NOON)
    assert clock.now() == NOON


def test_settable_clock_advances_by_step() -> None:
    clock = SettableClock(NOON, step=1.5)
    assert [(clock.now() - NOON).total_seconds() for _ in range(3)] == [0.0, 1.5, 3.0]


def test_settable_clock_is_in_utc_by_default() -> None:
    assert SettableClock().now().tzinfo is UTC
