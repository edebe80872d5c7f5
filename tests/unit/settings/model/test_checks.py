"""Checks: every value has the type of its setting, at any depth; the first that has not is named."""

import pytest

from lamella.errors import SettingError
from lamella.settings.model import validate_settings

REFUSED = {
    "yes for a number": ({"window": True}, "The setting window is True: input should be a valid integer."),
    "a fraction for a number": ({"window": 1.0}, "The setting window is 1.0: input should be a valid integer."),
    "none for a text": ({"layout": None}, "The setting layout is None: input should be a valid string."),
    "too much": ({"window": 10**16}, "input should be less than or equal to 1000000000000000."),
    "more digits than are shown": ({"window": 10**5_000}, "The setting window is a number of thousands of digits: "),
    "a share beyond all numbers": ({"warn": 10**400}, "input should be a valid number."),
    "in a list": ({"compaction": {"steps": ["a", 1]}}, "The setting compaction.steps.1 is 1: "),
    "in a table of tables": (
        {"compaction": {"kinds": {"pdf": {"shrink": "no"}}}},
        "The setting compaction.kinds.pdf.shrink is 'no': input should be a valid boolean.",
    ),
    "unknown, deep": ({"compaction": {"runners": {"chat": {"step": 1}}}}, "no setting compaction.runners.chat.step."),
    "no text for a name": ({3: 4}, "There is no setting 3."),
}


@pytest.mark.parametrize(("values", "told"), REFUSED.values(), ids=REFUSED)
def test_value_of_wrong_type_is_named_with_path(values: dict[str, object], told: str) -> None:
    with pytest.raises(SettingError) as caught:
        validate_settings(values)
    assert told in caught.value.message


def test_unrelated_error_does_not_blame_unbounded_number() -> None:
    with pytest.raises(SettingError, match="no setting windw"):
        validate_settings({"history_turns": 10**16, "windw": 1})


def test_integer_share_and_unset_values_are_accepted() -> None:
    settings = validate_settings({"hard": 1, "model": None, "compaction": {"every_kind": {"shrink": False}}})
    assert (settings.hard, settings.model, settings.compaction.every_kind.shrink) == (1.0, None, False)
