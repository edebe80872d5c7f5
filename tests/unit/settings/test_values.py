"""What settings take, in words, and what somebody meant who wrote another name."""

import pytest
from msgspec.structs import fields

from lamella.errors import SettingError
from lamella.settings.checks import check_settings, tell_takes
from lamella.settings.meaning import make_terms
from lamella.settings.model import NAMES, Settings
from lamella.settings.values import CHOICES, find_near


def test_every_setting_says_what_it_takes() -> None:
    for name in NAMES:
        assert tell_takes(name).startswith(f"{name} takes ")
    assert {name for name in NAMES if name in CHOICES} == {*CHOICES}
    assert tell_takes("secrets") == "secrets takes one of: warn, refuse, off."
    assert tell_takes("index_folder") == "index_folder takes the path of a folder."


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_a_value_of_another_type_is_told_with_what_the_setting_takes(name: str) -> None:
    with pytest.raises(SettingError) as refused:
        check_settings({name: ["x"]})
    assert tell_takes(name) in refused.value.hint


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
    assert find_near(word, NAMES) == meant


def test_a_word_that_is_none_of_a_few_is_told_with_the_one_it_is_near_to() -> None:
    with pytest.raises(SettingError) as refused:
        make_terms(Settings(layout="libary"))
    assert refused.value.hint == "Did you mean library? Choose one of: library, in_place, auto."
