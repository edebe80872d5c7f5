"""Services: settings read once, from the caller before the environment before the defaults."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import asdict

from lamella.errors import SettingError
from lamella.wiring.services import load_settings, read_services


def test_defaults_match_documentation() -> None:
    defaults = asdict(load_settings())
    expected = {
        "model": None,
        "window": 128_000,
        "reserve": 4_096,
        "layout": "auto",
        "carry_forward": "full",
        "history": "full",
        "warn": 0.60,
        "target": 0.40,
        "trigger": 0.85,
        "hard": 0.95,
        "image_notes": "text",
        "store": "sqlite:///~/.lamella/chats.db",
    }
    assert {name: defaults[name] for name in expected} == expected


def test_given_setting_wins_and_none_means_unset() -> None:
    settings = load_settings({"window": 10, "layout": None})
    assert (settings.window, settings.layout) == (10, "auto")


def test_unknown_setting_is_refused_with_known_ones() -> None:
    with pytest.raises(SettingError, match="colour") as caught:
        load_settings({"colour": "red"})
    assert "carry_forward" in caught.value.hint


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_environment_is_read_under_the_same_names() -> None:
    done = run(
        "from lamella.wiring import load_settings as s; print(s().window, s().layout, s({'window': 7}).window)",
        LAMELLA_WINDOW="9999",
        LAMELLA_LAYOUT="in_place",
    )
    assert done.stdout.split() == ["9999", "in_place", "7"]


def test_invalid_environment_value_names_its_setting() -> None:
    code = (
        "from lamella.wiring import load_settings\nfrom lamella.errors import SettingError\n"
        "try:\n    load_settings()\nexcept SettingError as error:\n    print(error)"
    )
    assert "window" in run(code, LAMELLA_WINDOW="wide").stdout


def test_importing_package_has_no_side_effects(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import lamella"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_services_are_created_once_per_reading(tmp_path: Path) -> None:
    facts = tmp_path / "facts.toml"
    facts.write_text('[[model]]\nmatch = "house"\nas_of = 2026-11-16\nwindow = 7\n', encoding="utf-8")
    services = read_services({"model_facts": str(facts)})
    assert services.models.get_model_profile("house-1").window == 7
    facts.unlink()
    assert (services.profiles, services.models) == (services.user_models, services.user_models)
    assert services.counter is services.counter
    assert services.wire_formats is services.wire_formats


def test_second_caller_shares_reading_with_own_settings() -> None:
    services = read_services({"window": 10})
    other = services.with_only_overrides({"reserve": 3})
    assert other.settings_sources is services.settings_sources
    assert (services.settings.window, other.settings.window, other.settings.reserve) == (10, 128_000, 3)
    assert (other.resolved.is_set("reserve"), other.resolved.is_set("window")) == (True, False)
