"""Lines: no text can do anything to a terminal, and none is cut within a word that has room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.cli.output import escape_lines, escape_to_short_line, format_count, format_time


@given(st.text())
def test_shown_line_is_printable_on_one_line(text: str) -> None:
    shown = escape_to_short_line(text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(letter) < 32 or 0x7F <= ord(letter) <= 0x9F for letter in shown)
    shown.encode()


def test_long_text_is_cut_in_middle_with_count() -> None:
    assert escape_to_short_line("a" * 2_000) == "a" * 2_000
    assert (
        escape_to_short_line("a" * 1_000 + "b" * 500 + "c" * 1_000) == f"{'a' * 1_000} … 500 characters … {'c' * 1_000}"
    )


def test_escaped_lines_keep_line_breaks_and_tabs_only() -> None:
    assert escape_lines("a\n\tb\r\x1b[2J") == "a\n\tb\\r\\x1b[2J"


def test_singular_count_is_formatted() -> None:
    assert [format_count(number, "turn") for number in (0, 1, 1_200)] == ["0 turns", "1 turn", "1,200 turns"]


@pytest.mark.usefixtures("zone_of_tokyo")
@pytest.mark.parametrize(
    ("at", "here", "utc"),
    [
        ("2026-03-01T20:34:56.789Z", "2026-03-02 05:34:56", "2026-03-01 20:34:56"),
        ("2026-03-01T20:34:56+09:00", "2026-03-01 20:34:56", "2026-03-01 11:34:56"),
        ("2026-03-01T20:34:56", "2026-03-02 05:34:56", "2026-03-01 20:34:56"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "9999-12-31 23:59:59"),
        ("yesterday\x1b[2J", "yesterday\\x1b[2J", "yesterday\\x1b[2J"),
    ],
)
def test_time_is_formatted_in_local_zone_or_utc(at: str, here: str, utc: str) -> None:
    assert (format_time(at), format_time(at, utc=True)) == (here, utc)
