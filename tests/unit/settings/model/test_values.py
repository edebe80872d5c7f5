"""What settings take, in words, and what somebody meant who wrote another name."""

import pytest
from msgspec.structs import fields

from lamella.errors import SettingError
from lamella.settings.model import (
    SETTING_NAMES,
    TURN_SETTING_CHOICES,
    Settings,
    closest_match,
    describe_setting_type,
    validate_settings,
)
from lamella.settings.rules import build_turn_settings


def test_every_setting_says_what_it_takes() -> None:
    for name in SETTING_NAMES:
        assert describe_setting_type(name).startswith(f"{name} takes ")
    assert {name for name in SETTING_NAMES if name in TURN_SETTING_CHOICES} == {*TURN_SETTING_CHOICES}
    assert describe_setting_type("secrets") == "secrets takes one of: warn, refuse, off."
    assert describe_setting_type("index_folder") == "index_folder takes the path of a folder."


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_a_value_of_another_type_is_told_with_what_the_setting_takes(name: str) -> None:
    with pytest.raises(SettingError) as refused:
        validate_settings({name: ["x"]})
    assert describe_setting_type(name) in refused.value.hint


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
def test_a_name_is_near_to_one_or_to_none(word: str, meant: str | None) -> None:
    assert closest_match(word, SETTING_NAMES) == meant


def test_a_word_that_is_none_of_a_few_is_told_with_the_one_it_is_near_to() -> None:
    with pytest.raises(SettingError) as refused:
        build_turn_settings(Settings(layout="libary"))
    assert refused.value.hint == "Did you mean library? Choose one of: library, in_place, auto."
