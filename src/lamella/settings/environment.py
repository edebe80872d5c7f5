"""The environment: settings as variables, which are texts."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from lamella.errors import SettingError
from lamella.settings.checks import check_name, check_settings, explain_fault, find_type, tell_wanted
from lamella.settings.model import NAMES, Settings
from lamella.settings.values import NEAR

PREFIX = "LAMELLA_"
# Names the user's file of settings.
FILE_VARIABLE = "LAMELLA_CONFIG"
# What has this prefix and is no setting.
_OTHERS = [FILE_VARIABLE.removeprefix(PREFIX), "API_KEY"]
_YES = ("1", "on", "t", "true", "y", "yes")
_NO = ("0", "off", "f", "false", "n", "no")
_UNREAD: Mapping[object, str] = {
    bool: "unable to interpret input",
    int: "unable to parse string as an integer",
    float: "unable to parse string as a number",
}


def read_environment() -> dict[str, object]:
    """The settings that variables have, each of its own type; the names of variables are taken in any case."""
    variables = {name.upper(): text for name, text in os.environ.items()}
    given = [name for name in NAMES if name_variable(name) in variables]
    values = {name: _read(name, variables[name_variable(name)], name_variable(name)) for name in given}
    return {name: value for name, value in values.items() if value is not None}


def find_misspelt() -> dict[str, str]:
    """Variables that are nearly the name of a setting and mean nothing, each with the name it is near to.

    Names that are near to none may be another program's.
    """
    known = [name.upper() for name in NAMES] + _OTHERS
    strange = {name: name.upper().removeprefix(PREFIX) for name in os.environ if name.upper().startswith(PREFIX)}
    strange = {name: word for name, word in strange.items() if word not in known}
    if not strange:
        return {}
    from difflib import get_close_matches  # only for those who misspelt something

    near = {name: get_close_matches(word, known, n=1, cutoff=NEAR) for name, word in strange.items()}
    return {name: name_variable(found[0]) for name, found in near.items() if found}


def name_variable(setting: str) -> str:
    """The variable that holds a setting."""
    return PREFIX + setting.upper()


def read_typed(name: str, text: str) -> object:
    """A setting's value from what somebody typed; ``none`` takes back what was set, where there may be none."""
    check_name(name)
    if text == "none" and getattr(Settings(), name) is None:
        return "" if find_type(name) is str else None
    return _read(name, text)


def _read(name: str, text: str, told: str = "") -> object:
    """A value from a text; ``told`` is where it was found."""
    kind, where = find_type(name), f"{told}: " if told else ""
    read: Callable[[str], object] = _READERS.get(kind, _read_table)
    try:
        value = read(text)
    except ValueError as error:
        if kind not in _READERS:
            raise SettingError(
                f"{told or name} is not JSON.", hint="In the environment and in commands a table is written as JSON."
            ) from error
        raise explain_fault(((name,), text, f"{tell_wanted(kind)}, {_UNREAD[kind]}"), where=where) from error
    if value is not None:
        check_settings({name: value}, where=where)
    return value


def _read_bool(text: str) -> bool:
    word = text.lower()
    if word not in (*_YES, *_NO):
        raise ValueError(word)
    return word in _YES


def _read_int(text: str) -> int:
    return int(text.strip().removesuffix(".0"))


def _read_table(text: str) -> Any:  # noqa: ANN401 - whatever JSON has
    import json  # only for those who set a table

    return json.loads(text)


_READERS: Mapping[object, Callable[[str], object]] = {bool: _read_bool, int: _read_int, float: float, str: str}
