"""Clocks: ``SystemClock`` returns the time of the machine, ``SettableClock`` a time that only a test changes."""

from datetime import UTC, datetime, timedelta

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
