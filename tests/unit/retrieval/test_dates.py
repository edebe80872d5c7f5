"""Dates: time words of a query become days, and the rest of it stays."""

from datetime import date

import pytest

from lamella.retrieval.dates import DaySpan, extract_day_range, parse_day_span_in_name

TODAY = date(2026, 11, 17)  # a Tuesday


def spans(text: str) -> tuple[str, str] | None:
    span, _ = extract_day_range(text, today=TODAY)
    return None if span is None else (span.start.isoformat(), span.end.isoformat())


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2026-11-17", "2026-11-18"),
        ("hari ini", "2026-11-17", "2026-11-18"),
        ("yesterday", "2026-11-16", "2026-11-17"),
        ("kemarin", "2026-11-16", "2026-11-17"),
        ("the day before yesterday", "2026-11-15", "2026-11-16"),
        ("kemarin lusa", "2026-11-15", "2026-11-16"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("minggu lalu", "2026-11-09", "2026-11-16"),
        ("pekan kemarin", "2026-11-09", "2026-11-16"),
        ("this week", "2026-11-16", "2026-11-23"),
        ("minggu ini", "2026-11-16", "2026-11-23"),
        ("past week", "2026-11-10", "2026-11-18"),
        ("the last 3 days", "2026-11-14", "2026-11-18"),
        ("7 hari terakhir", "2026-11-10", "2026-11-18"),
        ("3 days ago", "2026-11-14", "2026-11-15"),
        ("dua minggu yang lalu", "2026-11-02", "2026-11-09"),
        ("bulan lalu", "2026-10-01", "2026-11-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("tahun ini", "2026-01-01", "2027-01-01"),
        ("last Monday", "2026-11-16", "2026-11-17"),
        ("senin lalu", "2026-11-16", "2026-11-17"),
        ("on Friday", "2026-11-13", "2026-11-14"),
        ("in March 2026", "2026-03-01", "2026-04-01"),
        ("pada bulan Maret 2026", "2026-03-01", "2026-04-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("on 5 March 2026", "2026-03-05", "2026-03-06"),
        ("on March 5th, 2026", "2026-03-05", "2026-03-06"),
        ("on 2026-03-05", "2026-03-05", "2026-03-06"),
        ("in 2025", "2025-01-01", "2026-01-01"),
        ("since yesterday", "2026-11-16", "9999-12-31"),
        ("before 2025", "0001-01-01", "2025-01-01"),
        ("after March 2026", "2026-04-01", "9999-12-31"),
        ("between 2026-01-01 and 2026-02-10", "2026-01-01", "2026-02-11"),
        ("from March to June 2026", "2026-03-01", "2026-07-01"),
    ],
)
def test_time_words_are_parsed_as_days(text: str, start: str, end: str) -> None:
    assert spans(text) == (start, end)
    assert spans(f"notes about beans {text.upper()} please") == (start, end)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the march of time",
        "may it last",
        "2026-03-05",
        "on 2026-13-45",
        "on 30 February",
        "Sunday best",
        "in 12 steps",
    ],
)
def test_text_resembling_date_stays_words(text: str) -> None:
    assert extract_day_range(text, today=TODAY) == (None, text)


def test_rest_of_query_is_returned() -> None:
    span, rest = extract_day_range("what did we decide last week about beans", today=TODAY)
    assert span is not None
    assert span.words == "last week"
    assert rest.split() == ["what", "did", "we", "decide", "about", "beans"]


def test_first_month_of_a_year_follows_the_last_of_another() -> None:
    span, _ = extract_day_range("last month", today=date(2026, 1, 31))
    assert span == DaySpan(date(2025, 12, 1), date(2026, 1, 1), "last month")


@pytest.mark.parametrize(
    ("stem", "start", "end"),
    [
        ("2026-03-05", "2026-03-05", "2026-03-06"),
        ("20260305", "2026-03-05", "2026-03-06"),
        ("Meeting 2026_03_05 minutes", "2026-03-05", "2026-03-06"),
        ("2026-W10", "2026-03-02", "2026-03-09"),
        ("2026-12", "2026-12-01", "2027-01-01"),
    ],
)
def test_note_name_may_be_day_week_or_month(stem: str, start: str, end: str) -> None:
    found = parse_day_span_in_name(stem)
    assert found is not None
    assert (found.start.isoformat(), found.end.isoformat()) == (start, end)


@pytest.mark.parametrize("stem", ["", "beans", "99999999", "2026-02-30", "v2026-03 draft", "2026-W60"])
def test_other_names_have_no_date(stem: str) -> None:
    assert parse_day_span_in_name(stem) is None
