"""Spans of time and moments, as queries and notes write them; the day is told by whoever asks."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_DAY = 86_400
_MONTH = 365 * _DAY / 12
_LONGEST = 100

# In months, else in seconds, by the words that people write; plurals are told apart by their s.
_MONTHS = {"year": 12, "yr": 12, "month": 1, "mo": 1}
_SECONDS = {
    **dict.fromkeys(("week", "wk", "w"), 7 * _DAY),
    **dict.fromkeys(("day", "d"), _DAY),
    **dict.fromkeys(("hour", "hr", "h"), 3_600),
    **dict.fromkeys(("minute", "min", "m"), 60),
    **dict.fromkeys(("second", "sec", "s"), 1),
}
_PART = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)\s*([a-zA-Z]{1,7})\s*,?\s*")
_MOMENT = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?(Z|[+-]\d\d:?\d\d)?)?")
_DAY_IN_NAME = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?!\d)")
# Days that are counted from the one it is; what begins and what ends a week, a month, a year.
DAY_WORDS = (
    "today", "yesterday", "tomorrow", "sow", "start-of-week", "eow", "end-of-week", "som", "start-of-month", "eom",
    "end-of-month", "soy", "start-of-year", "eoy", "end-of-year",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """So many months, which differ in length, and so many seconds."""

    months: int = 0
    seconds: float = 0

    @property
    def length(self) -> float:
        """Its seconds, with months of a twelfth of a year: what spans are compared by."""
        return self.months * _MONTH + self.seconds

    def times(self, factor: float) -> "TimeSpan":
        """So many times as long; of a month that is parted, days are left."""
        months = self.months * factor
        whole = int(months)
        return TimeSpan(months=whole, seconds=self.seconds * factor + (months - whole) * _MONTH)

    def plus(self, other: "TimeSpan") -> "TimeSpan":
        return TimeSpan(months=self.months + other.months, seconds=self.seconds + other.seconds)

    def told(self) -> str:
        """It in words, as in ``1 month, 2 days``."""
        rest = round(abs(self.seconds))
        parts = [(abs(self.months) // 12, "year"), (abs(self.months) % 12, "month")]
        for size, name in ((_DAY, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
            count, rest = divmod(rest, size)
            parts.append((count, name))
        told = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts if count)
        return ("-" if self.length < 0 else "") + told if told else "0 seconds"


def parse_span(text: str) -> TimeSpan | None:
    """A span such as ``2 days`` or ``1h 30m``; nothing if it is none."""
    found, position = TimeSpan(), 0
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        unit = part.group(2).lower()
        known = unit if unit in _MONTHS or unit in _SECONDS else unit.removesuffix("s")
        if known not in _MONTHS and known not in _SECONDS:
            return None
        one = TimeSpan(months=_MONTHS.get(known, 0), seconds=_SECONDS.get(known, 0))
        found = found.plus(one.times(float(part.group(1))))
        position = part.end()
    return found


def parse_moment(text: str) -> datetime | None:
    """A month, a day or a time of day in ISO form, without its zone: one that has another is told in UTC."""
    found = _MOMENT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    zone = found.group(7)
    try:
        moment = datetime(year, month, day or 1, hour, minute, second)  # noqa: DTZ001 - notes name no zone
        if zone is None or zone == "Z":
            return moment
        aware = datetime.fromisoformat(moment.isoformat() + (zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"))
        return aware.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def find_day(name: str) -> datetime | None:
    """The day in the name of a daily note: ``2026-11-15`` or ``20261115``, wherever it stands."""
    found = _DAY_IN_NAME.search(name)
    return parse_moment("-".join(found.groups())) if found else None


def name_day(word: str, today: date) -> datetime:
    """The day that a word of ``DAY_WORDS`` means on a day; a week begins on Monday."""
    day = datetime(today.year, today.month, today.day)  # noqa: DTZ001 - a day has no zone
    last = monthrange(day.year, day.month)[1]
    match word:
        case "yesterday" | "tomorrow":
            return day + timedelta(days=1 if word == "tomorrow" else -1)
        case "sow" | "start-of-week":
            return day - timedelta(days=day.weekday())
        case "eow" | "end-of-week":
            return day + timedelta(days=6 - day.weekday())
        case "som" | "start-of-month" | "eom" | "end-of-month":
            return day.replace(day=last if word.startswith("e") else 1)
        case "soy" | "start-of-year" | "eoy" | "end-of-year":
            return day.replace(month=12, day=31) if word.startswith("e") else day.replace(month=1, day=1)
        case _:
            return day


def move(moment: datetime, span: TimeSpan) -> datetime | None:
    """A moment so much later; the last day of a month that is too short. Nothing beyond the calendar."""
    months = moment.year * 12 + moment.month - 1 + span.months
    year, month = divmod(months, 12)
    try:
        day = min(moment.day, monthrange(year, month + 1)[1])
        return moment.replace(year=year, month=month + 1, day=day) + timedelta(seconds=span.seconds)
    except (ValueError, OverflowError):
        return None
