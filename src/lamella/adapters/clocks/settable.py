"""A clock that says what it is told: time passes when somebody says so."""

from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class SettableClock:
    """Stands at a time until it is set to another; ``step`` seconds go by whenever it is looked at."""

    def __init__(self, at: datetime = _START, *, step: float = 0.0) -> None:
        self._at = at
        self._step = timedelta(seconds=step)

    def now(self) -> datetime:
        at, self._at = self._at, self._at + self._step
        return at

    def set(self, at: datetime) -> None:
        """Make it this time."""
        self._at = at

    def wait(self, seconds: float) -> None:
        """Let so much time go by at once."""
        self._at += timedelta(seconds=seconds)
