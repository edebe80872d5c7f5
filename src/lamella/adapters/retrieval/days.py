"""Days: what a question says of time, in English and Indonesian, and what the name of a note says."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

_DAY = timedelta(days=1)
_WEEK = 7
_MONTHS = (
    "january|januari|jan", "february|februari|feb", "march|maret|mar", "april|apr", "may|mei", "june|juni|jun",
    "july|juli|jul", "august|agustus|aug|agu", "september|sept|sep", "october|oktober|oct|okt", "november|nov",
    "december|desember|dec|des",
)  # fmt: skip
_WEEKDAYS = (
    "monday|senin", "tuesday|selasa", "wednesday|rabu", "thursday|kamis", "friday|jumat", "saturday|sabtu",
    "sunday|hari minggu|ahad",
)  # fmt: skip
_UNITS = {"day": "days?|hari", "week": "weeks?|minggu|pekan", "month": "months?|bulan", "year": "years?|tahun"}
_UNIT = "|".join(_UNITS.values())
_MONTH, _WEEKDAY = "|".join(_MONTHS), "|".join(_WEEKDAYS)
_NUMBERS = {
    word: number
    for number, words in enumerate(("a one an se satu", "two dua", "three tiga", "four empat", "five lima"), start=1)
    for word in words.split()
}
_NUMBER = rf"\d{{1,3}}|{'|'.join(_NUMBERS)}"
# As dates can be written: a name has these alone where it is a day, week or month of a diary.
_NAMED_DAY = re.compile(r"(?<!\d)(\d{4})[-_. ]?(\d{2})[-_. ]?(\d{2})(?!\d)")
_NAMED_WEEK = re.compile(r"(\d{4})-?[Ww](\d{2})")
_NAMED_MONTH = re.compile(r"(\d{4})[-_](\d{2})")


class DaySpan(NamedTuple):
    """Days from one up to another, which is not among them, and the words that said so."""

    start: date
    end: date
    words: str = ""


def find_days(text: str, *, today: date) -> tuple[DaySpan | None, str]:
    """The days that a question speaks of, and the rest of it. Of several the first counts, and others stay words."""
    match = _ASKED.search(text)
    if match is None:
        return None, text
    try:
        span = _find_span(match, today)
    except (ValueError, OverflowError):
        # The 31st of a month that has none, or a year before all years: words like any other.
        return None, text
    return span._replace(words=match[0].strip()), f"{text[: match.start()]} {text[match.end() :]}"


def find_named_days(stem: str) -> DaySpan | None:
    """The days that the name of a note says it is about: a day anywhere in it; a week or month if it is all of it."""
    with suppress(ValueError, OverflowError):
        if day := _NAMED_DAY.search(stem):
            start = date(int(day[1]), int(day[2]), int(day[3]))
            return DaySpan(start, start + _DAY)
        if week := _NAMED_WEEK.fullmatch(stem):
            start = date.fromisocalendar(int(week[1]), int(week[2]), 1)
            return DaySpan(start, start + _WEEK * _DAY)
        if month := _NAMED_MONTH.fullmatch(stem):
            return _month(int(month[1]), int(month[2]))
    return None


def _find_span(match: re.Match[str], today: date) -> DaySpan:
    first = _read(match["begin"] or match["led"] or match["bare"], today)
    if match["end"]:
        return DaySpan(first.start, max(_read(match["end"], today).end, first.end))
    match (match["how"] or "").lower():
        case "since" | "sejak":
            return DaySpan(first.start, date.max)
        case "after" | "setelah":
            return DaySpan(first.end, date.max)
        case "before" | "sebelum":
            return DaySpan(date.min, first.start)
    return first


def _read(words: str, today: date) -> DaySpan:
    """The days that one expression means."""
    told = " ".join(words.lower().split())
    for pattern, read in _READERS.items():
        match = re.fullmatch(pattern, told)
        if match:
            return read(match, today)
    raise ValueError(told)


def _read_near(match: re.Match[str], today: date) -> DaySpan:
    steps = {"today": 0, "yesterday": -1, "kemarin": -1, "tomorrow": 1, "besok": 1}
    start = today + steps.get(match[0], -2) * _DAY
    return DaySpan(start, start + _DAY)


def _read_this(match: re.Match[str], today: date) -> DaySpan:
    return _unit_span(match["unit"], today, 0)


def _read_last(match: re.Match[str], today: date) -> DaySpan:
    return _unit_span(match["unit"], today, 1)


def _read_ago(match: re.Match[str], today: date) -> DaySpan:
    return _unit_span(match["unit"], today, _number(match["number"]))


def _read_past(match: re.Match[str], today: date) -> DaySpan:
    """So many days up to today; months and years count as thirty days and as 365."""
    days = {"day": 1, "week": _WEEK, "month": 30, "year": 365}[_unit(match["unit"])]
    return DaySpan(today - _number(match["number"] or "1") * days * _DAY, today + _DAY)


def _read_weekday(match: re.Match[str], today: date) -> DaySpan:
    wanted = next(at for at, names in enumerate(_WEEKDAYS) if re.fullmatch(names, match["day"]))
    start = today - ((today.weekday() - wanted - 1) % _WEEK + 1) * _DAY
    return DaySpan(start, start + _DAY)


def _read_date(match: re.Match[str], today: date) -> DaySpan:
    found = match.groupdict()
    year = int(found["year"]) if found.get("year") else 0
    number = found.get("number_of_month")
    month = int(number) if number else _month_number(found.get("month"))
    if month is None:
        return DaySpan(date(year, 1, 1), date(year + 1, 1, 1))
    # Without a year, the last such month that has begun.
    year = year or (today.year if month <= today.month else today.year - 1)
    if not found.get("day"):
        return _month(year, month)
    start = date(year, month, int(found["day"]))
    return DaySpan(start, start + _DAY)


def _month(year: int, month: int) -> DaySpan:
    return DaySpan(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1))


def _month_number(name: str | None) -> int | None:
    found = (at for at, names in enumerate(_MONTHS, start=1) if name and re.fullmatch(names, name))
    return next(found, None)


def _unit(word: str) -> str:
    return next(unit for unit, words in _UNITS.items() if re.fullmatch(words, word))


def _unit_span(word: str, today: date, back: int) -> DaySpan:
    """The day, week from Monday, month or year that is so many before this one."""
    match _unit(word):
        case "day":
            start = today - back * _DAY
            return DaySpan(start, start + _DAY)
        case "week":
            start = today - (today.weekday() + back * _WEEK) * _DAY
            return DaySpan(start, start + _WEEK * _DAY)
        case "month":
            months = today.year * 12 + today.month - 1 - back
            return _month(months // 12, months % 12 + 1)
        case _:
            return DaySpan(date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1))


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _plain(pattern: str) -> str:
    """A pattern without the names of its groups, to stand beside others, and with any blanks between its words."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern).replace(" ", r"\s+")


_YEAR = r"(?P<year>(?:19|20)\d\d)"
_NTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# Longer ones first. Those that are clear mean a time wherever they stand; a month, a year, a weekday or a date does so
# only behind a word such as "in", since people also look for what is called that.
_CLEAR: Mapping[str, Callable[[re.Match[str], date], DaySpan]] = {
    rf"(?P<number>{_NUMBER}) (?P<unit>{_UNIT}) (?:ago|(?:yang )?lalu)": _read_ago,
    rf"(?P<number>{_NUMBER}) (?P<unit>{_UNIT}) (?:yang )?terakhir": _read_past,
    rf"(?:the )?(?:last|previous) (?P<unit>{_UNIT})": _read_last,
    rf"(?:the )?(?:last|past) (?:(?P<number>{_NUMBER}) )?(?P<unit>{_UNIT})": _read_past,
    rf"this (?P<unit>{_UNIT})": _read_this,
    rf"(?P<unit>{_UNIT}) ini": _read_this,
    rf"(?P<unit>{_UNIT}) (?:yang )?(?:lalu|kemarin|sebelumnya)": _read_last,
    rf"last (?P<day>{_WEEKDAY})": _read_weekday,
    rf"(?P<day>{_WEEKDAY}) (?:yang )?lalu": _read_weekday,
    r"today|yesterday|tomorrow|kemarin lusa|kemarin dulu|kemarin|besok|(?:the )?day before yesterday": _read_near,
}
_READERS = {
    **_CLEAR,
    rf"{_YEAR}-(?P<number_of_month>\d\d)(?:-(?P<day>\d\d))?": _read_date,
    rf"{_NTH} (?:of )?(?P<month>{_MONTH})(?:,? {_YEAR})?": _read_date,
    rf"(?P<month>{_MONTH}) {_NTH}(?:,? {_YEAR})?(?!\d)": _read_date,
    rf"(?:bulan )?(?P<month>{_MONTH})(?:,? {_YEAR})?": _read_date,
    rf"(?P<day>{_WEEKDAY})": _read_weekday,
    rf"(?:tahun )?{_YEAR}": _read_date,
}
_ANY, _BARE = ("|".join(f"(?:{_plain(one)})" for one in table) for table in (_READERS, _CLEAR))
_HOW = r"since|sejak|after|setelah|before|sebelum|in|on|during|from|within|pada|selama|dalam|dari"
_ASKED = re.compile(
    rf"(?<!\w)(?:(?:between|from|antara|dari)\s+(?P<begin>{_ANY})\s+(?:and|to|until|dan|sampai|hingga)\s+(?P<end>{_ANY})"
    rf"|(?P<how>{_HOW})\s+(?P<led>{_ANY})|(?P<bare>{_BARE}))(?!\w)",
    re.IGNORECASE,
)
