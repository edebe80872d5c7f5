"""Descriptions of setting types, and suggestions for misspelt names."""

import pytest
from msgspec.structs import fields

from lamella.errors import SettingError
from lamella.settings.model import (
    SETTING_NAMES,
    TURN_SETTING_CHOICES,
    Settings,
    describe_accepted_values,
    find_closest_match,
    validate_settings,
)
from lamella.settings.rules import build_turn_settings


def test_every_setting_describes_its_type() -> None:
    for name in SETTING_NAMES:
        assert describe_accepted_values(name).startswith(f"{name} takes ")
    assert {name for name in SETTING_NAMES if name in TURN_SETTING_CHOICES} == {*TURN_SETTING_CHOICES}
    assert describe_accepted_values("secrets") == "secrets takes one of: warn, refuse, off."
    assert describe_accepted_values("index_folder") == "index_folder takes the path of a folder."


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_wrong_type_hint_describes_setting(name: str) -> None:
    with pytest.raises(SettingError) as refused:
        validate_settings({name: ["x"]})
    assert describe_accepted_values(name) in refused.value.hint


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("widnow", "window"),
        ("WINDOW", "window"),
        ("history-turns", "history_turns"),
        ("effort", "reasoning_effort"),
        ("attach", "attachments"),
        ("llm_temperature", "temperature"),
        ("cache", None),
        ("x", None),
        ("", None),
        ("nothing_like_it", None),
    ],
)
def test_closest_match_finds_similar_name_or_none(word: str, meant: str | None) -> None:
    assert find_closest_match(word, SETTING_NAMES) == meant


def test_unknown_choice_suggests_similar_one() -> None:
    with pytest.raises(SettingError) as refused:
        build_turn_settings(Settings(layout="libary"))
    assert refused.value.hint == "Did you mean library? Choose one of: library, in_place, auto."
