"""The environment: each variable is read as its setting's type, or refused by its name."""

import pytest

from lamella.errors import SettingError
from lamella.settings.loading import find_misspelt_variables, read_environment

READ = {
    "a number": ("LAMELLA_WINDOW", " 128_000 ", {"window": 128_000}),
    "a number with nothing behind the point": ("LAMELLA_HISTORY_TURNS", "3.0", {"history_turns": 3}),
    "a share": ("LAMELLA_WARN", "5e-1", {"warn": 0.5}),
    "a choice": ("LAMELLA_IMAGE_NOTES", "handle", {"image_notes": "handle"}),
    "a path in bytes of its own": ("LAMELLA_STORE", "sqlite:///\udcff.db", {"store": "sqlite:///\udcff.db"}),
    "nothing of a table": ("LAMELLA_COMPACTION", "null", {}),
    "a text": ("LAMELLA_MODEL", "null", {"model": "null"}),
    "a table": ("LAMELLA_COMPACTION", '{"words": ["ok"]}', {"compaction": {"words": ["ok"]}}),
    "a name in small letters": ("lamella_reserve", "9", {"reserve": 9}),
}
REFUSED = {
    "words": (
        "LAMELLA_WINDOW",
        "wide",
        "LAMELLA_WINDOW: The setting window is 'wide': input should be a",
    ),
    "nothing": ("LAMELLA_HARD", "", "LAMELLA_HARD: The setting hard is '': input should be a valid number"),
    "too many tokens": ("LAMELLA_RESERVE", f"{10**15 + 1}", "less than or equal to 1000000000000000"),
    "no JSON": ("LAMELLA_COMPACTION", "{", "LAMELLA_COMPACTION is not JSON."),
    "no table": ("LAMELLA_COMPACTION", "3", "LAMELLA_COMPACTION: The setting compaction is 3: input should be a table"),
    "a table with more": ("LAMELLA_COMPACTION", '{"step": []}', "There is no setting compaction.step."),
}


@pytest.mark.parametrize(("variable", "text", "read"), READ.values(), ids=READ)
def test_variable_is_parsed_by_type_of_setting(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, read: dict[str, object]
) -> None:
    # Every test has one of its own.
    monkeypatch.delenv("LAMELLA_MEMORY_FOLDER", raising=False)
    monkeypatch.setenv(variable, text)
    assert read_environment() == read


@pytest.mark.parametrize(("variable", "text", "told"), REFUSED.values(), ids=REFUSED)
def test_invalid_variable_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, told: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(SettingError) as caught:
        read_environment()
    assert told in caught.value.message


def test_only_names_that_are_near_to_a_setting_are_misspelt(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAMELLA_LAYUOT", "LAMELLA_LAYOUT", "LAMELLA_SERVICE_PORT", "LAMELLA_API_KEY"):
        monkeypatch.setenv(name, "x")
    assert find_misspelt_variables() == {"LAMELLA_LAYUOT": "LAMELLA_LAYOUT"}
