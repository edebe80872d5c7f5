"""``clocks``: a settable clock changes only when it is set, and a timer adds up the phases of a build."""

from datetime import UTC, datetime

import pytest

from lamella.clocks import PhaseTimer, SettableClock, SystemClock, measure_phase

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


def test_inner_phase_does_not_count_for_outer_phase() -> None:
    moments = iter([0.0, 1.0, 3.0, 7.0])
    timer = PhaseTimer(lambda: next(moments))

    def build() -> str:
        with measure_phase("plan"), measure_phase("count"):
            return "built"

    assert timer.run(build) == "built"
    assert timer.seconds == {"plan": 5.0, "count": 2.0}


def test_phases_are_measured_only_while_a_timer_runs() -> None:
    unmeasured = PhaseTimer.from_clock(SettableClock())
    with measure_phase("plan"):
        assert unmeasured.run(lambda: 1) == 1
    assert unmeasured.seconds == {}
    assert SystemClock().monotonic_seconds() <= SystemClock().monotonic_seconds()


def test_time_before_an_error_counts() -> None:
    moments = iter([0.0, 1.0])
    timer = PhaseTimer(lambda: next(moments))

    def fail() -> None:
        with measure_phase("read"):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        timer.run(fail)
    assert timer.seconds == {"read": 1.0}
