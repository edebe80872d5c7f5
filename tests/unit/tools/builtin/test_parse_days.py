"""Words of time as days, from a day that is given."""

from datetime import UTC, date, datetime

import pytest

from lamella.tools.builtin import format_day_span, make_time_range_tool, parse_days

TODAY = date(2026, 11, 17)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("last week", "From 2026-11-09 (Monday) to 2026-11-15 (Sunday), both included."),
        ("yesterday", "2026-11-16 (Monday)."),
        ("March 2026", "From 2026-03-01 (Sunday) to 2026-03-31 (Tuesday), both included."),
        ("since 2026-11-01", "From 2026-11-01 (Sunday) on."),
        ("before 2026-01-01", "Up to 2025-12-31 (Wednesday)."),
        ("minggu lalu", "From 2026-11-09 (Monday) to 2026-11-15 (Sunday), both included."),
    ],
)
def test_words_mean_days(words: str, told: str) -> None:
    assert format_day_span(parse_days(words, TODAY)) == told


def test_text_without_time_is_error_with_examples() -> None:
    with pytest.raises(ValueError, match="'the tides' tells no time"):
        parse_days("the tides", TODAY)


def test_time_range_tool_names_today() -> None:
    tool = make_time_range_tool(lambda: datetime(2026, 11, 17, 9, tzinfo=UTC))
    assert tool.run is not None
    assert str(tool.run(words="today")) == "2026-11-17 (Tuesday). Today is 2026-11-17 (Tuesday)."
