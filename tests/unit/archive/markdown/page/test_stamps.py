"""Times in an archive: to the second, in UTC; what is no time is no error."""

import pytest

from lamella.archive.markdown.page import format_archive_time, parse_archive_time, parse_epoch_milliseconds


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-11-15T10:00:04Z", "2026/11/15 10:00:04"),
        ("2026-11-15T10:00:04.987654Z", "2026/11/15 10:00:04"),
        ("2026-11-15T12:00:04+02:00", "2026/11/15 10:00:04"),
        ("0987-01-02T03:04:05Z", "0987/01/02 03:04:05"),
        ("yesterday", "unknown"),
        ("", "unknown"),
    ],
)
def test_event_time_is_shown_in_utc(at: str, shown: str) -> None:
    assert format_archive_time(at) == shown


def test_shown_time_is_read_as_utc() -> None:
    assert parse_archive_time("2026/11/15 10:00:04") == "2026-11-15T10:00:04Z"
    assert parse_archive_time(" 2026/11/15 10:00:04 ") == "2026-11-15T10:00:04Z"


@pytest.mark.parametrize("shown", ["", "unknown", "15.11.2026", "2026/13/01 00:00:00", "2026/11/15"])
def test_invalid_time_gives_none(shown: str) -> None:
    assert parse_archive_time(shown) is None


def test_epoch_is_in_milliseconds() -> None:
    assert parse_epoch_milliseconds("1773550115168") == "2026-03-15T04:48:35.168000Z"
    assert parse_epoch_milliseconds("0") == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("epoch", ["", "soon", "1e999", "nan", "99999999999999999999"])
def test_invalid_epoch_gives_none(epoch: str) -> None:
    assert parse_epoch_milliseconds(epoch) is None
