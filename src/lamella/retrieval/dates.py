"""Parse dates in queries, in English and Indonesian, and dates in the names of notes."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

_ONE_DAY = timedelta(days=1)
_DAYS_PER_WEEK = 7
_MONTH_PATTERNS = (
    "january|januari|jan", "february|februari|feb", "march|maret|mar", "april|apr", "may|mei", "june|juni|jun",
    "july|juli|jul", "august|agustus|aug|agu", "september|sept|sep", "october|oktober|oct|okt", "november|nov",
    "december|desember|dec|des",
)  # fmt: skip
_WEEKDAY_PATTERNS = (
    "monday|senin", "tuesday|selasa", "wednesday|rabu", "thursday|kamis", "friday|jumat", "saturday|sabtu",
    "sunday|hari minggu|ahad",
)  # fmt: skip
_UNIT_PATTERNS = {"day": "days?|hari", "week": "weeks?|minggu|pekan", "month": "months?|bulan", "year": "years?|tahun"}
_ANY_UNIT = "|".join(_UNIT_PATTERNS.values())
_ANY_MONTH, _ANY_WEEKDAY = "|".join(_MONTH_PATTERNS), "|".join(_WEEKDAY_PATTERNS)
_NUMBER_WORDS = {
    word: number
    for number, words in enumerate(("a one an se satu", "two dua", "three tiga", "four empat", "five lima"), start=1)
    for word in words.split()
}
_ANY_NUMBER = rf"\d{{1,3}}|{'|'.join(_NUMBER_WORDS)}"
# Dates in the names of notes. A week or a month counts only if it is the whole name, as in a diary.
_DAY_IN_NAME = re.compile(r"(?<!\d)(\d{4})[-_. ]?(\d{2})[-_. ]?(\d{2})(?!\d)")
_WEEK_NAME = re.compile(r"(\d{4})-?[Ww](\d{2})")
_MONTH_NAME = re.compile(r"(\d{4})[-_](\d{2})")


class DaySpan(NamedTuple):
    """A range of days, without its end, and the words that described it."""

    start: date
    end: date
    words: str = ""


def extract_day_range(text: str, *, today: date) -> tuple[DaySpan | None, str]:
    """Return the days that a query mentions and the rest of the query.

    Only the first date expression counts. Others remain search words.
    """
    match = _DATE_EXPRESSION.search(text)
    if match is None:
        return None, text
    try:
        span = _parse_day_span(match, today)
    except (ValueError, OverflowError):
        # An impossible date, such as the 31st of a shorter month or a year before 1, is treated as ordinary words.
        return None, text
    return span._replace(words=match[0].strip()), f"{text[: match.start()]} {text[match.end() :]}"


def parse_day_span_in_name(stem: str) -> DaySpan | None:
    """Return the days in the name of a note: a day anywhere in it, or a week or month that is the whole name."""
    with suppress(ValueError, OverflowError):
        if day := _DAY_IN_NAME.search(stem):
            start = date(int(day[1]), int(day[2]), int(day[3]))
            return DaySpan(start, start + _ONE_DAY)
        if week := _WEEK_NAME.fullmatch(stem):
            start = date.fromisocalendar(int(week[1]), int(week[2]), 1)
            return DaySpan(start, start + _DAYS_PER_WEEK * _ONE_DAY)
        if month := _MONTH_NAME.fullmatch(stem):
            return _make_month_span(int(month[1]), int(month[2]))
    return None


def _parse_day_span(match: re.Match[str], today: date) -> DaySpan:
    """Return the days of a match, taking words such as "since" and "before" into account."""
    first = _parse_date_words(match["begin"] or match["led"] or match["bare"], today)
    if match["end"]:
        return DaySpan(first.start, max(_parse_date_words(match["end"], today).end, first.end))
    match (match["how"] or "").lower():
        case "since" | "sejak":
            return DaySpan(first.start, date.max)
        case "after" | "setelah":
            return DaySpan(first.end, date.max)
        case "before" | "sebelum":
            return DaySpan(date.min, first.start)
    return first


def _parse_date_words(words: str, today: date) -> DaySpan:
    """Return the days of one date expression. Raises ``ValueError`` if it is not one."""
    normalized = " ".join(words.lower().split())
    for pattern, read in _DATE_PARSERS.items():
        match = re.fullmatch(pattern, normalized)
        if match:
            return read(match, today)
    raise ValueError(normalized)


def _parse_relative_day(match: re.Match[str], today: date) -> DaySpan:
    steps = {"today": 0, "yesterday": -1, "kemarin": -1, "tomorrow": 1, "besok": 1}
    start = today + steps.get(match[0], -2) * _ONE_DAY
    return DaySpan(start, start + _ONE_DAY)


def _parse_this_unit(match: re.Match[str], today: date) -> DaySpan:
    return _make_unit_span(match["unit"], today, 0)


def _parse_last_unit(match: re.Match[str], today: date) -> DaySpan:
    return _make_unit_span(match["unit"], today, 1)


def _parse_ago(match: re.Match[str], today: date) -> DaySpan:
    return _make_unit_span(match["unit"], today, _parse_number(match["number"]))


def _parse_past_units(match: re.Match[str], today: date) -> DaySpan:
    """Return a number of days up to today. A month counts as 30 days and a year as 365."""
    days = {"day": 1, "week": _DAYS_PER_WEEK, "month": 30, "year": 365}[_get_unit_of_word(match["unit"])]
    return DaySpan(today - _parse_number(match["number"] or "1") * days * _ONE_DAY, today + _ONE_DAY)


def _parse_weekday(match: re.Match[str], today: date) -> DaySpan:
    """Return the most recent such weekday before today."""
    weekday = next(at for at, names in enumerate(_WEEKDAY_PATTERNS) if re.fullmatch(names, match["day"]))
    start = today - ((today.weekday() - weekday - 1) % _DAYS_PER_WEEK + 1) * _ONE_DAY
    return DaySpan(start, start + _ONE_DAY)


def _parse_date(match: re.Match[str], today: date) -> DaySpan:
    found = match.groupdict()
    year = int(found["year"]) if found.get("year") else 0
    number = found.get("number_of_month")
    month = int(number) if number else _month_number(found.get("month"))
    if month is None:
        return DaySpan(date(year, 1, 1), date(year + 1, 1, 1))
        # A month without a year is the most recent such month that has begun.
    year = year or (today.year if month <= today.month else today.year - 1)
    if not found.get("day"):
        return _make_month_span(year, month)
    start = date(year, month, int(found["day"]))
    return DaySpan(start, start + _ONE_DAY)


def _make_month_span(year: int, month: int) -> DaySpan:
    return DaySpan(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1))


def _month_number(name: str | None) -> int | None:
    found = (at for at, names in enumerate(_MONTH_PATTERNS, start=1) if name and re.fullmatch(names, name))
    return next(found, None)


def _get_unit_of_word(word: str) -> str:
    return next(unit for unit, words in _UNIT_PATTERNS.items() if re.fullmatch(words, word))


def _make_unit_span(word: str, today: date, back: int) -> DaySpan:
    """Return the day, week (from Monday), month or year that lies ``back`` units before the current one."""
    match _get_unit_of_word(word):
        case "day":
            start = today - back * _ONE_DAY
            return DaySpan(start, start + _ONE_DAY)
        case "week":
            start = today - (today.weekday() + back * _DAYS_PER_WEEK) * _ONE_DAY
            return DaySpan(start, start + _DAYS_PER_WEEK * _ONE_DAY)
        case "month":
            months = today.year * 12 + today.month - 1 - back
            return _make_month_span(months // 12, months % 12 + 1)
        case _:
            return DaySpan(date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1))


def _parse_number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBER_WORDS[word]


def _without_group_names(pattern: str) -> str:
    """Return a pattern that can be combined with others: without group names, with any white space between words."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern).replace(" ", r"\s+")


_YEAR_PATTERN = r"(?P<year>(?:19|20)\d\d)"
_DAY_NUMBER_PATTERN = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# Longer patterns come first. The clear ones mean a time wherever they appear. A month, year, weekday or date means a
# time only after a word such as "in", since people also search for things with such names.
_UNAMBIGUOUS_PARSERS: Mapping[str, Callable[[re.Match[str], date], DaySpan]] = {
    rf"(?P<number>{_ANY_NUMBER}) (?P<unit>{_ANY_UNIT}) (?:ago|(?:yang )?lalu)": _parse_ago,
    rf"(?P<number>{_ANY_NUMBER}) (?P<unit>{_ANY_UNIT}) (?:yang )?terakhir": _parse_past_units,
    rf"(?:the )?(?:last|previous) (?P<unit>{_ANY_UNIT})": _parse_last_unit,
    rf"(?:the )?(?:last|past) (?:(?P<number>{_ANY_NUMBER}) )?(?P<unit>{_ANY_UNIT})": _parse_past_units,
    rf"this (?P<unit>{_ANY_UNIT})": _parse_this_unit,
    rf"(?P<unit>{_ANY_UNIT}) ini": _parse_this_unit,
    rf"(?P<unit>{_ANY_UNIT}) (?:yang )?(?:lalu|kemarin|sebelumnya)": _parse_last_unit,
    rf"last (?P<day>{_ANY_WEEKDAY})": _parse_weekday,
    rf"(?P<day>{_ANY_WEEKDAY}) (?:yang )?lalu": _parse_weekday,
    r"today|yesterday|tomorrow|kemarin lusa|kemarin dulu|kemarin|besok|(?:the )?day before yesterday": _parse_relative_day,
}
_DATE_PARSERS = {
    **_UNAMBIGUOUS_PARSERS,
    rf"{_YEAR_PATTERN}-(?P<number_of_month>\d\d)(?:-(?P<day>\d\d))?": _parse_date,
    rf"{_DAY_NUMBER_PATTERN} (?:of )?(?P<month>{_ANY_MONTH})(?:,? {_YEAR_PATTERN})?": _parse_date,
    rf"(?P<month>{_ANY_MONTH}) {_DAY_NUMBER_PATTERN}(?:,? {_YEAR_PATTERN})?(?!\d)": _parse_date,
    rf"(?:bulan )?(?P<month>{_ANY_MONTH})(?:,? {_YEAR_PATTERN})?": _parse_date,
    rf"(?P<day>{_ANY_WEEKDAY})": _parse_weekday,
    rf"(?:tahun )?{_YEAR_PATTERN}": _parse_date,
}
_ANY_DATE, _UNAMBIGUOUS_DATE = (
    "|".join(f"(?:{_without_group_names(one)})" for one in table) for table in (_DATE_PARSERS, _UNAMBIGUOUS_PARSERS)
)
_PREPOSITIONS = r"since|sejak|after|setelah|before|sebelum|in|on|during|from|within|pada|selama|dalam|dari"
_DATE_EXPRESSION = re.compile(
    rf"(?<!\w)(?:(?:between|from|antara|dari)\s+(?P<begin>{_ANY_DATE})\s+(?:and|to|until|dan|sampai|hingga)\s+(?P<end>{_ANY_DATE})"
    rf"|(?P<how>{_PREPOSITIONS})\s+(?P<led>{_ANY_DATE})|(?P<bare>{_UNAMBIGUOUS_DATE}))(?!\w)",
    re.IGNORECASE,
)
