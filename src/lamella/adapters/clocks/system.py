"""The machine's clock."""

from datetime import UTC, datetime


class SystemClock:
    """Now, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)
