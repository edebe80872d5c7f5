"""Dates and time spans: parsing, addition and formatting."""

from datetime import date, datetime

import pytest

from lamella.sources.dataview.values import (
    DAY_WORDS,
    TimeSpan,
    add_span,
    parse_day_in_name,
    parse_day_word,
    parse_span,
    parse_time,
)


def at(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001 - notes name no zone


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11", at(2026, 11, 1)),
        (" 2026-11-15 ", at(2026, 11, 15)),
        ("2026-11-15T10:30", at(2026, 11, 15, 10, 30)),
        ("2026-11-15 10:30:05.25", at(2026, 11, 15, 10, 30, 5)),
        ("2026-11-15T10:30:00Z", at(2026, 11, 15, 10, 30)),
        ("2026-11-15T10:30+02:00", at(2026, 11, 15, 8, 30)),
        ("2026-11-15T10:30-0130", at(2026, 11, 15, 12, 0)),
    ],
)
def test_moment_is_read_in_iso_form(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13", "2026-02-30", "2026-1-1", "0000-01-01", "0001-01-01T00:00+05:00"]
)
def test_impossible_date_is_none(text: str) -> None:
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 day", "1 day"),
        ("2 weeks", "14 days"),
        ("1h 30m", "1 hour, 30 minutes"),
        ("90 min", "1 hour, 30 minutes"),
        ("1 yr, 2 mos", "1 year, 2 months"),
        ("1.5 hours", "1 hour, 30 minutes"),
        ("-3 days", "-3 days"),
        ("0 s", "0 seconds"),
    ],
)
def test_span_is_parsed_and_formatted(text: str, told: str) -> None:
    span = parse_span(text)
    assert span is not None
    assert span.display_text() == told


@pytest.mark.parametrize("text", ["", "day", "1", "1 parsec", "1 day x", "1 day " * 50])
def test_other_words_are_no_span(text: str) -> None:
    assert parse_span(text) is None


def test_months_follow_calendar() -> None:
    assert add_span(at(2026, 1, 31), TimeSpan(months=1)) == at(2026, 2, 28)
    assert add_span(at(2026, 1, 31), TimeSpan(months=-2)) == at(2025, 11, 30)
    assert add_span(at(2026, 1, 1), TimeSpan(months=12, seconds=86_400)) == at(2027, 1, 2)


@pytest.mark.parametrize("span", [TimeSpan(months=10**6), TimeSpan(months=-(10**6)), TimeSpan(seconds=1e300)])
def test_dates_beyond_calendar_are_none(span: TimeSpan) -> None:
    assert add_span(at(2026, 1, 1), span) is None


def test_month_is_longer_than_thirty_days_and_shorter_than_thirty_one() -> None:
    month = TimeSpan(months=1)
    assert (
        TimeSpan(seconds=30 * 86_400).total_seconds < month.total_seconds < TimeSpan(seconds=31 * 86_400).total_seconds
    )
    assert month.scaled(0.5).total_seconds == month.total_seconds / 2


def test_every_word_for_a_day_means_one() -> None:
    days = {word: parse_day_word(word, date(2026, 2, 11)).date().isoformat() for word in DAY_WORDS}
    assert days == {
        "today": "2026-02-11", "yesterday": "2026-02-10", "tomorrow": "2026-02-12",
        "sow": "2026-02-09", "start-of-week": "2026-02-09", "eow": "2026-02-15", "end-of-week": "2026-02-15",
        "som": "2026-02-01", "start-of-month": "2026-02-01", "eom": "2026-02-28", "end-of-month": "2026-02-28",
        "soy": "2026-01-01", "start-of-year": "2026-01-01", "eoy": "2026-12-31", "end-of-year": "2026-12-31",
    }  # fmt: skip


def test_day_is_found_in_the_name_of_a_note() -> None:
    assert parse_day_in_name("2026-11-15 Sunday") == at(2026, 11, 15)
    assert parse_day_in_name("notes of 20261115") == at(2026, 11, 15)
    assert parse_day_in_name("1202611150") is None
    assert parse_day_in_name("2026-99-99") is None
