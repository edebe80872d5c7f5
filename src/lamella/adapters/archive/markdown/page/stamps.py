"""Times as an archive shows them: to the second, in UTC."""

from datetime import UTC, datetime

_SHOWN = "%Y/%m/%d %H:%M:%S"
UNKNOWN = "unknown"


def show_time(at: str) -> str:
    """An event's time for people; what is no time is shown as unknown."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return UNKNOWN
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Not strftime: it writes years before 1000 with fewer than four digits on some systems.
    day = moment.astimezone(UTC)
    return f"{day.year:04}/{day.month:02}/{day.day:02} {day.hour:02}:{day.minute:02}:{day.second:02}"


def read_time(shown: str) -> str | None:
    """The time a line shows, taken as UTC, or none where it shows no time."""
    if not shown:
        return None
    try:
        moment = datetime.strptime(shown.strip(), _SHOWN).replace(tzinfo=UTC)
    except ValueError:
        return None
    return write_time(moment)


def read_epoch(milliseconds: str) -> str | None:
    """The time that a number of milliseconds since 1970 gives, or none where it gives none."""
    try:
        moment = datetime.fromtimestamp(int(float(milliseconds)) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return write_time(moment)


def write_time(moment: datetime) -> str:
    """A time in UTC as events have it."""
    return moment.isoformat().replace("+00:00", "Z")
