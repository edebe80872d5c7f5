"""Values of queries: durations, dates, links and records, with their order, truth and text form.

``make_order_key`` and ``format_value`` work on every value; values of different types have an order as well, and a missing
value comes first. ``QueryBudget`` limits the work of a query, counted in steps and not in seconds so that it ends
alike on every machine.
"""

import re
from abc import ABC, abstractmethod
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

# A query over 10,000 notes with twenty words in its condition takes a third of this. All of it takes some seconds.
MOST_STEPS = 1_000_000
CHARS_PER_STEP = 64


class QueryError(Exception):
    """The reason why a query is not answered and stays text."""


class QueryBudget:
    """The steps that are left to a query."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self._total = self._remaining = steps

    def spend(self, steps: int = 1) -> None:
        """Subtract steps.

        Raises:
            QueryError: No steps are left.
        """
        self._remaining -= steps
        if self._remaining < 0:
            raise QueryError(f"it takes more than {self._total:,} steps")

    def spend_for_text(self, characters: int) -> None:
        """Subtract the steps for looking at this many letters."""
        self.spend(1 + characters // CHARS_PER_STEP)


# Durations and dates. The caller passes the current day.

_DAY_SECONDS = 86_400
_MONTH_SECONDS = 365 * _DAY_SECONDS / 12
_MAX_TIME_LENGTH = 100

# Units of time, in months or in seconds. A plural ``s`` is removed before the lookup.
_MONTHS_PER_UNIT = {"year": 12, "yr": 12, "month": 1, "mo": 1}
_SECONDS_PER_UNIT = {
    **dict.fromkeys(("week", "wk", "w"), 7 * _DAY_SECONDS),
    **dict.fromkeys(("day", "d"), _DAY_SECONDS),
    **dict.fromkeys(("hour", "hr", "h"), 3_600),
    **dict.fromkeys(("minute", "min", "m"), 60),
    **dict.fromkeys(("second", "sec", "s"), 1),
}
_SPAN_PART = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)\s*([a-zA-Z]{1,7})\s*,?\s*")
_TIME_PATTERN = re.compile(
    r"(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?(Z|[+-]\d\d:?\d\d)?)?"
)
_DAY_IN_NAME = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?!\d)")
# Words for days relative to today, and for the first and last day of the current week, month and year.
DAY_WORDS = (
    "today", "yesterday", "tomorrow", "sow", "start-of-week", "eow", "end-of-week", "som", "start-of-month", "eom",
    "end-of-month", "soy", "start-of-year", "eoy", "end-of-year",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """A duration in months, which differ in length, and seconds."""

    months: int = 0
    seconds: float = 0

    @property
    def total_seconds(self) -> float:
        """The duration in seconds, with months of a twelfth of a year. Durations are compared by it."""
        return self.months * _MONTH_SECONDS + self.seconds

    def scaled(self, factor: float) -> "TimeSpan":
        """Return the duration multiplied by a factor; fractions of a month become seconds."""
        months = self.months * factor
        whole = int(months)
        return TimeSpan(months=whole, seconds=self.seconds * factor + (months - whole) * _MONTH_SECONDS)

    def plus(self, other: "TimeSpan") -> "TimeSpan":
        return TimeSpan(months=self.months + other.months, seconds=self.seconds + other.seconds)

    def display_text(self) -> str:
        """Return the duration in words, as in ``1 month, 2 days``."""
        rest = round(abs(self.seconds))
        parts = [(abs(self.months) // 12, "year"), (abs(self.months) % 12, "month")]
        for size, name in ((_DAY_SECONDS, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
            count, rest = divmod(rest, size)
            parts.append((count, name))
        parts_text = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts if count)
        return ("-" if self.total_seconds < 0 else "") + parts_text if parts_text else "0 seconds"


def parse_span(text: str) -> TimeSpan | None:
    """Parse a duration such as ``2 days`` or ``1h 30m``; None if the text is not one."""
    found, position = TimeSpan(), 0
    text = text.strip()
    if not text or len(text) > _MAX_TIME_LENGTH:
        return None
    while position < len(text):
        part = _SPAN_PART.match(text, position)
        if part is None:
            return None
        unit = part.group(2).lower()
        known = unit if unit in _MONTHS_PER_UNIT or unit in _SECONDS_PER_UNIT else unit.removesuffix("s")
        if known not in _MONTHS_PER_UNIT and known not in _SECONDS_PER_UNIT:
            return None
        one = TimeSpan(months=_MONTHS_PER_UNIT.get(known, 0), seconds=_SECONDS_PER_UNIT.get(known, 0))
        found = found.plus(one.scaled(float(part.group(1))))
        position = part.end()
    return found


def parse_time(text: str) -> datetime | None:
    """Parse a month, a day or a time in ISO form; None if the text is not one.

    The result has no time zone. A time with an offset is converted to UTC.
    """
    found = _TIME_PATTERN.fullmatch(text.strip()) if len(text) <= _MAX_TIME_LENGTH else None
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


def parse_day_in_name(name: str) -> datetime | None:
    """Return the day in the name of a daily note, such as ``2026-11-15`` or ``20261115``, or None."""
    found = _DAY_IN_NAME.search(name)
    return parse_time("-".join(found.groups())) if found else None


def parse_day_word(word: str, today: date) -> datetime:
    """Return the day that a word of ``DAY_WORDS`` means relative to ``today``. Weeks begin on Monday."""
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


def add_span(time: datetime, span: TimeSpan) -> datetime | None:
    """Add a duration to a time; None beyond the calendar. Days are limited to the length of the month."""
    months = time.year * 12 + time.month - 1 + span.months
    year, month = divmod(months, 12)
    try:
        day = min(time.day, monthrange(year, month + 1)[1])
        return time.replace(year=year, month=month + 1, day=day) + timedelta(seconds=span.seconds)
    except (ValueError, OverflowError):
        return None


# Order, truth and text of values.

# Nested lists and objects are read to this depth. Deeper values are None.
MAX_VALUE_DEPTH = 8
_BETWEEN_WORDS = re.compile(r"\s+")
_NOT_IN_NAMES = re.compile(r"[^\w-]")
_MAX_SORT_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLink:
    """A link: the path of a note of the vault, or the target as written if there is no such note."""

    path: str
    subpath: str = ""
    alias: str = ""

    def ordering(self) -> tuple[object, ...]:
        return ("link", self.path.casefold(), self.path, self.subpath)

    def display_text(self) -> str:
        target = self.path.removesuffix(".md") + self.subpath
        return f"[[{target}|{self.alias}]]" if self.alias and self.alias != target else f"[[{target}]]"


class FieldRecord(ABC):
    """An object whose fields are computed on demand: a note, its file, or a task."""

    @abstractmethod
    def get(self, name: str) -> "Value":
        """Return the field of a name, or None."""
        ...

    @abstractmethod
    def position(self) -> tuple[str, int]:
        """Return the position of the record: a path and a line."""
        ...

    def ordering(self) -> tuple[object, ...]:
        return ("object", *self.position())

    @abstractmethod
    def display_text(self) -> str:
        """Return the text that stands for the record in a result: a link to its note, or the text of a task."""
        ...


Value = (
    None
    | bool
    | int
    | float
    | str
    | datetime
    | TimeSpan
    | QueryLink
    | FieldRecord
    | tuple["Value", ...]
    | Mapping[str, "Value"]
)
OrderKey = tuple[object, ...]


def normalize_field_name(name: str) -> str:
    """Return a field's name as queries write it: lower case, with ``-`` instead of blanks."""
    return _NOT_IN_NAMES.sub("", _BETWEEN_WORDS.sub("-", name.strip().lower()))


def get_field(fields: Mapping[str, "Value"], name: str) -> "Value":
    """Return the field with exactly this name, or with the same normalised name; None if there is none."""
    if name in fields:
        return fields[name]
    normalized_name = normalize_field_name(name)
    return next((value for key, value in fields.items() if normalize_field_name(key) == normalized_name), None)


def get_type_name(value: Value) -> str:
    """Return the name of a value's type."""
    # The order matters: ``bool`` is a subclass of ``int`` and must come first.
    for kinds, name in _TYPES:
        if isinstance(value, kinds):
            return name
    return "object"


_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "boolean"),
    ((int, float), "number"),
    (str, "string"),
    (datetime, "date"),
    (TimeSpan, "duration"),
    (QueryLink, "link"),
    (tuple, "array"),
)


def make_order_key(value: Value, *, max_length: int | None = None) -> OrderKey:
    """Return the key that a value is compared by.

    Values of different types are ordered by type name. Texts are compared without case first, then with it.
    ``max_length`` limits texts and lists to their first characters or items.
    """
    match value:
        case None:
            return ()
        case bool() | int() | float() | datetime():
            return (get_type_name(value), value)
        case str():
            return ("string", value[:max_length].casefold(), value[:max_length])
        case TimeSpan():
            return ("duration", value.total_seconds)
        case QueryLink() | FieldRecord():
            return value.ordering()
        case tuple():
            return ("array", *(make_order_key(item, max_length=max_length) for item in value[:max_length]))
        case _:
            pairs = sorted(value.items())[:max_length]
            return ("object", *((key, make_order_key(item, max_length=max_length)) for key, item in pairs))


def make_truncated_order_key(value: Value) -> OrderKey:
    """Return the key for sorting rows: like ``make_order_key``, but only of the beginning of texts and lists."""
    return make_order_key(value, max_length=_MAX_SORT_LENGTH)


def is_truthy(value: Value) -> bool:
    """Return whether a value counts as true: not missing, false, zero or empty."""
    if isinstance(value, TimeSpan):
        return value.total_seconds != 0
    if isinstance(value, FieldRecord | QueryLink | datetime):
        return True
    return bool(value)


def format_value(value: Value, *, is_nested: bool = False) -> str:
    """Return a value as text on one line."""
    match value:
        case None:
            return "-"
        case bool() | int() | float():
            return _format_number(value)
        case str():
            return " ".join(value.split())
        case datetime():
            return _format_date(value)
        case TimeSpan() | QueryLink() | FieldRecord():
            return value.display_text()
        case tuple():
            items = ", ".join(format_value(item, is_nested=True) for item in value)
            return f"[{items}]" if is_nested else items
        case _:
            return "{" + ", ".join(f"{key}: {format_value(item, is_nested=True)}" for key, item in value.items()) + "}"


def _format_number(number: float) -> str:
    return str(number).lower() if isinstance(number, int) else f"{number:.12g}"  # bool is an int: true, false


def _format_date(moment: datetime) -> str:
    if moment.hour == moment.minute == moment.second == 0:
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="seconds" if moment.second else "minutes")


def estimate_value_cost(value: Value) -> int:
    """Return roughly how many letters' worth of work a value is; each item of a list adds a full step."""
    match value:
        case str():
            return len(value)
        case tuple():
            return sum(CHARS_PER_STEP + estimate_value_cost(item) for item in value)
        case Mapping():
            return sum(CHARS_PER_STEP + len(key) + estimate_value_cost(item) for key, item in value.items())
        case _:
            return 1
