"""Cached conversions: when a source is read once, and when again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamella.errors import (
    AddressNotAllowedError,
    BadInputError,
    ExtraNotInstalledError,
    SourceNotFoundError,
    SourceUnreachableError,
)
from lamella.sources.converted_files import (
    FILE_KEY_PREFIX,
    TRY_AGAIN_HINT,
    ConversionCache,
    ConversionEntry,
    SizeLimitedCacheFolder,
)


class Desk:
    """A cache, a clock that is set by hand, and a source that gives what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.time = datetime(2026, 11, 18, 12, tzinfo=UTC)
        self.cache = ConversionCache(SizeLimitedCacheFolder(folder, max_bytes=1_000_000), now=lambda: self.time)
        self.gives: str | BadInputError | None = "text"
        self.reads = 0
        self.told: list[str] = []

    def read(self, _kept: ConversionEntry | None) -> ConversionEntry | None:
        self.reads += 1
        if isinstance(self.gives, BadInputError):
            raise self.gives
        return None if self.gives is None else ConversionEntry(key="", text=self.gives)

    def obtain(self, *, fresh: bool = False, key: str = "url:x", under: str = "") -> str | None:
        tell = self.told.append
        return self.cache.get_or_read(key, self.read, name="x", limits_key=under, is_fresh_read=fresh, report=tell).text


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_conversion_is_cached_until_refresh(desk: Desk) -> None:
    assert desk.obtain() == desk.obtain() == "text"
    assert desk.reads == 1
    desk.gives = "other"
    assert (desk.obtain(), desk.obtain(fresh=True), desk.obtain()) == ("text", "other", "other")
    assert (desk.reads, desk.told) == (2, [])


def test_unchanged_source_keeps_text_and_counts_as_checked(desk: Desk) -> None:
    desk.obtain()
    desk.time += timedelta(days=3)
    desk.gives = None
    assert desk.obtain(fresh=True) == "text"
    desk.obtain()
    assert desk.told == []


def test_old_conversion_reports_its_date(desk: Desk) -> None:
    desk.obtain()
    desk.obtain(key=f"{FILE_KEY_PREFIX}x")
    desk.time += timedelta(days=2)
    desk.obtain()
    desk.obtain(key=f"{FILE_KEY_PREFIX}x")
    assert desk.told == ["x is as it was read on 2026-11-18 12:00; refresh it to read it anew."]


@pytest.mark.parametrize(
    "error", [SourceNotFoundError, SourceUnreachableError, AddressNotAllowedError, ExtraNotInstalledError]
)
def test_failed_refresh_keeps_text_with_warning(desk: Desk, error: type[BadInputError]) -> None:
    desk.obtain()
    desk.gives = error("It is gone.", hint="Look.")
    desk.time += timedelta(hours=1)
    assert desk.obtain(fresh=True) == "text"
    assert desk.told == ["x stays as it was read on 2026-11-18 12:00: It is gone."]
    assert desk.obtain() == "text"
    assert desk.reads == 2


def test_failure_is_cached_with_time_and_retry_hint(desk: Desk) -> None:
    desk.gives = SourceNotFoundError("There is no page.", hint="Check the address.")
    with pytest.raises(SourceNotFoundError, match=r"There is no page\.\nhint"):
        desk.obtain()
    desk.time += timedelta(minutes=5)
    with pytest.raises(SourceNotFoundError, match=r"There is no page\. That was found on 2026-11-18 12:00\.") as caught:
        desk.obtain()
    assert caught.value.hint == "Try again after 2026-11-18 12:10. Check the address."
    assert desk.reads == 1
    desk.gives = "mended"
    assert desk.obtain(fresh=True) == desk.obtain() == "mended"


def test_cached_failure_expires_or_ends_with_changed_limits(desk: Desk) -> None:
    desk.gives = SourceUnreachableError("Nobody.", hint=TRY_AGAIN_HINT)
    for key in ("url:x", f"{FILE_KEY_PREFIX}x"):
        with pytest.raises(SourceUnreachableError):
            desk.obtain(key=key)
    desk.gives = "there"
    assert desk.obtain(under="other limits") == "there"
    desk.time += timedelta(days=20)
    with pytest.raises(SourceUnreachableError) as caught:
        desk.obtain(key=f"{FILE_KEY_PREFIX}x")
    assert caught.value.hint.startswith("Refresh it to try again. ")
    desk.gives = SourceUnreachableError("Nobody.", hint="Wait.")
    with pytest.raises(SourceUnreachableError):
        desk.obtain(key="url:y")
    desk.gives = "there"
    desk.time += timedelta(minutes=2)
    assert desk.obtain(key="url:y") == "there"


@pytest.mark.parametrize("error", [AddressNotAllowedError, ExtraNotInstalledError])
def test_failure_fixed_by_settings_is_retried_each_time(desk: Desk, error: type[BadInputError]) -> None:
    desk.gives = error("No.", hint="Allow it.")
    for _ in range(2):
        with pytest.raises(error):
            desk.obtain()
    assert desk.reads == 2
