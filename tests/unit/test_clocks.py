"""A settable clock stands still until it is told otherwise."""

from datetime import UTC, datetime

from lamella.clocks import SettableClock

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_it_stands_until_it_is_set_or_time_is_let_go_by() -> None:
    clock = SettableClock(NOON)
    assert (clock.now(), clock.now()) == (NOON, NOON)
    clock.advance(90)
    assert (clock.now() - NOON).total_seconds() == 90
    clock.set(NOON)
    assert clock.now() == NOON


def test_with_a_step_it_goes_on_whenever_it_is_looked_at() -> None:
    clock = SettableClock(NOON, step=1.5)
    assert [(clock.now() - NOON).total_seconds() for _ in range(3)] == [0.0, 1.5, 3.0]


def test_it_has_a_time_zone_from_the_start() -> None:
    assert SettableClock().now().tzinfo is UTC
