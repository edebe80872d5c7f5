"""Settings about reading sources, and who may set them."""

from pathlib import Path

import pytest

from lamella.errors import SettingError
from lamella.settings.loading import ResolvedSettings, SettingOrigin
from lamella.wiring.services import load_configuration, read_services
from lamella.wiring.sources import (
    USER_ONLY_SETTINGS,
    list_source_setting_errors,
    open_attachment_resolver,
    open_document_converter,
)


def test_settings_are_the_bounds_of_reading() -> None:
    given = {"document_seconds": 5, "page_bytes": 1_000, "page_seconds": 2, "video_languages": "de, en"}
    conversions = open_document_converter(read_services(given))
    assert conversions.converter.limits.seconds == 5
    assert conversions.languages == ("de", "en")
    assert (conversions.open_fetcher().limits.max_bytes, conversions.open_fetcher().limits.max_seconds) == (1_000, 2)


@pytest.mark.parametrize(
    "given",
    [
        {"page_bytes": 0},
        {"page_seconds": -1},
        {"document_seconds": 0},
        {"document_memory": 1_000},
        {"conversions_bytes": -1},
        {"private_addresses": "10.0.0.0/99"},
    ],
)
def test_invalid_source_setting_is_reported(given: dict[str, object]) -> None:
    (name,) = given
    (fault,) = list_source_setting_errors(load_configuration(given))
    assert name in fault.message
    with pytest.raises(SettingError, match=name):
        open_document_converter(read_services(given))


@pytest.mark.parametrize("name", USER_ONLY_SETTINGS)
def test_project_cannot_set_owner_settings(name: str) -> None:
    resolved = load_configuration({name: "127.0.0.1"})
    theirs = ResolvedSettings(
        settings=resolved.settings,
        origins={**resolved.origins, name: SettingOrigin.PROJECT},
        files={SettingOrigin.PROJECT: Path("/p/lamella.toml")},
    )
    assert list_source_setting_errors(resolved) == []
    (fault,) = list_source_setting_errors(theirs)
    assert f"/p/lamella.toml sets {name}" in fault.message


def test_named_files_open_without_conversion_settings(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    assert [type(one).__name__ for one in open_attachment_resolver(tmp_path).resolve("a.md")] == ["Note"]
    assert [type(one).__name__ for one in open_attachment_resolver(None).resolve("https://e.org/x")] == ["Url"]
