"""Clocks: ``SystemClock`` returns the time of the machine, ``SettableClock`` a time that only a test changes.

``PhaseTimer`` measures the phases of a build; ``measure_phase`` marks one where it happens.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import TypeVar

_Result = TypeVar("_Result")

_DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)


class SettableClock:
    """A clock that keeps its time until it is set; each call of ``now`` advances it by ``step`` seconds."""

    def __init__(self, at: datetime = _DEFAULT_START, *, step: float = 0.0) -> None:
        self._current = at
        self._step = timedelta(seconds=step)

    def now(self) -> datetime:
        """Return the current time, then advance the clock by its step."""
        at, self._current = self._current, self._current + self._step
        return at

    def set(self, at: datetime) -> None:
        """Set the current time."""
        self._current = at

    def advance(self, seconds: float) -> None:
        """Advance the time by a number of seconds, without sleeping."""
        self._current += timedelta(seconds=seconds)


# The machine's time.


class SystemClock:
    """A clock that returns the current time of the machine in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_seconds(self) -> float:
        """Return seconds since an arbitrary moment, to measure durations."""
        return perf_counter()


# The phases of a build.

# Names of the phases, in the order in which they first occur.
PHASES = ("read", "plan", "render", "count", "compaction", "store")
_MIN_SECONDS, _DIGITS = 5e-5, 4


class PhaseTimer:
    """Adds up the seconds of each phase of a build; time in an inner phase does not count for the outer one.

    ``monotonic_seconds`` is a clock's method; None measures nothing, for clocks whose time only a test changes.
    """

    def __init__(self, monotonic_seconds: Callable[[], float] | None) -> None:
        self._read_seconds = monotonic_seconds
        self._seconds: dict[str, float] = {}
        self._phases: list[str] = []
        self._since = 0.0

    @classmethod
    def from_clock(cls, clock: object) -> "PhaseTimer":
        """Return a timer over a clock, which measures nothing if the clock has no ``monotonic_seconds``."""
        return cls(getattr(clock, "monotonic_seconds", None))

    @property
    def seconds(self) -> Mapping[str, float]:
        """The seconds of each phase that took measurable time."""
        known = {phase: round(self._seconds.get(phase, 0.0), _DIGITS) for phase in PHASES}
        return {phase: seconds for phase, seconds in known.items() if seconds > _MIN_SECONDS}

    def run(self, function: Callable[[], _Result]) -> _Result:
        """Run a function and measure the phases that it marks, in this thread."""
        if self._read_seconds is None:
            return function()
        token = _active_timer.set(self)
        try:
            return function()
        finally:
            _active_timer.reset(token)

    def begin(self, phase: str) -> None:
        """Begin a phase inside the current one."""
        self._add_elapsed()
        self._phases.append(phase)

    def end(self) -> None:
        """End the current phase and return to the one around it."""
        self._add_elapsed()
        self._phases.pop()

    def _add_elapsed(self) -> None:
        assert self._read_seconds is not None, "a timer without a clock is never active"
        now = self._read_seconds()
        if self._phases:
            phase = self._phases[-1]
            self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._since
        self._since = now


_active_timer: ContextVar[PhaseTimer | None] = ContextVar("active_timer", default=None)


@contextmanager
def measure_phase(phase: str) -> Iterator[None]:
    """Count the time of a block for a phase, if a timer is active."""
    timer = _active_timer.get()
    if timer is None:
        yield
        return
    timer.begin(phase)
    try:
        yield
    finally:
        timer.end()
