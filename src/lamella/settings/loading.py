"""Load settings from files, environment variables and callers.

``read_settings_sources`` reads the user file, the project file and the environment once. A later source overrides the
earlier ones: profile, user file, project file, environment, caller. ``ResolvedSettings`` has the origin of each value.
Both files are called ``lamella.toml``. The project file is the nearest one in the working folder or above it; the user
file is in the system's folder for user settings, or at the path in ``LAMELLA_CONFIG``. ``read_private_file`` reads
Lamella's own JSON files, which only their owner may open.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from msgspec import DecodeError, Struct, ValidationError, json

from lamella.errors import SettingError
from lamella.files import (
    MAX_SETTINGS_BYTES,
    make_private_folder,
    read_regular_file,
    remove_access_of_other_users,
    replace_file,
    write_new_file,
)
from lamella.settings.model import (
    MIN_NAME_SIMILARITY,
    SETTING_NAMES,
    SETTINGS_PROFILES,
    Settings,
    check_name,
    describe_expected_type,
    find_closest_match,
    get_setting_value_type,
    setting_error,
    validate_settings,
)

VARIABLE_PREFIX = "LAMELLA_"
# This variable names the user's settings file.
SETTINGS_FILE_VARIABLE = "LAMELLA_CONFIG"
# Variables with the prefix that are not settings.
_OTHER_VARIABLES = [SETTINGS_FILE_VARIABLE.removeprefix(VARIABLE_PREFIX), "API_KEY"]
_TRUE_WORDS = ("1", "on", "t", "true", "y", "yes")
_FALSE_WORDS = ("0", "off", "f", "false", "n", "no")
_PARSE_PROBLEMS: Mapping[object, str] = {
    bool: "unable to interpret input",
    int: "unable to parse string as an integer",
    float: "unable to parse string as a number",
}


def read_environment() -> dict[str, object]:
    """Return the settings that environment variables set, each in its own type.

    Variable names match in upper and lower case. Raises ``SettingError`` for a value that cannot be parsed.
    """
    variables = {name.upper(): text for name, text in os.environ.items()}
    given = [name for name in SETTING_NAMES if variable_name(name) in variables]
    values = {name: _parse_value(name, variables[variable_name(name)], variable_name(name)) for name in given}
    return {name: value for name, value in values.items() if value is not None}


def find_misspelt_variables() -> dict[str, str]:
    """Return variables that look like a misspelt setting, each with the variable it probably means.

    Variables that resemble no setting are ignored: they may belong to another program.
    """
    known = [name.upper() for name in SETTING_NAMES] + _OTHER_VARIABLES
    strange = {
        name: name.upper().removeprefix(VARIABLE_PREFIX)
        for name in os.environ
        if name.upper().startswith(VARIABLE_PREFIX)
    }
    strange = {name: word for name, word in strange.items() if word not in known}
    if not strange:
        return {}
    from difflib import get_close_matches  # imported late: only a misspelt variable needs it

    similar_names = {
        name: get_close_matches(word, known, n=1, cutoff=MIN_NAME_SIMILARITY) for name, word in strange.items()
    }
    return {name: variable_name(found[0]) for name, found in similar_names.items() if found}


def variable_name(setting: str) -> str:
    """Return the environment variable of a setting."""
    return VARIABLE_PREFIX + setting.upper()


def parse_setting_value(name: str, text: str) -> object:
    """Parse the value of a setting as the user typed it.

    ``none`` clears a setting whose default is None. Text settings are cleared with an empty string, others with None.
    """
    check_name(name)
    if text == "none" and getattr(Settings(), name) is None:
        return "" if get_setting_value_type(name) is str else None
    return _parse_value(name, text)


def _parse_value(name: str, text: str, variable: str = "") -> object:
    """Parse and check a value; ``variable`` is the variable it comes from, empty if the user typed it."""
    kind, where = get_setting_value_type(name), f"{variable}: " if variable else ""
    read: Callable[[str], object] = _PARSERS.get(kind, _parse_table)
    try:
        value = read(text)
    except ValueError as error:
        if kind not in _PARSERS:
            raise SettingError(
                f"{variable or name} is not JSON.",
                hint="In the environment and in commands a table is written as JSON.",
            ) from error
        raise setting_error(
            ((name,), text, f"{describe_expected_type(kind)}, {_PARSE_PROBLEMS[kind]}"), where=where
        ) from error
    if value is not None:
        validate_settings({name: value}, where=where)
    return value


def _parse_bool(text: str) -> bool:
    word = text.lower()
    if word not in (*_TRUE_WORDS, *_FALSE_WORDS):
        raise ValueError(word)
    return word in _TRUE_WORDS


def _parse_int(text: str) -> int:
    return int(text.strip().removesuffix(".0"))


def _parse_table(text: str) -> Any:  # noqa: ANN401 - any JSON value
    import json  # imported late: only a setting that is a table needs it

    return json.loads(text)


_PARSERS: Mapping[object, Callable[[str], object]] = {bool: _parse_bool, int: _parse_int, float: float, str: str}


# Settings files.

SETTINGS_FILE_NAME = "lamella.toml"
_FOLDER_SETTINGS = ("conversions", "index_folder", "note_backups", "memory_folder", "workflow_folder")
_PATH_SETTINGS = ("model_facts", "instructions_file", *_FOLDER_SETTINGS)


def read_settings_file(path: Path) -> Mapping[str, object]:
    """Return the settings in a file, each in its own type.

    Relative paths become relative to the file's folder. Raises ``SettingError`` with the file and the key.
    """
    import tomllib  # imported late: only users with a settings file need it

    try:
        values = tomllib.loads(read_regular_file(path, limit=MAX_SETTINGS_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise SettingError(
            f"The settings in {path} cannot be read: {error.strerror}.",
            hint=f"Check the path, or unset {SETTINGS_FILE_VARIABLE}.",
        ) from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not TOML: {error}.", hint="Write lines such as: window = 200000") from error
    validate_settings(values, where=f"{path}: ")
    return {name: _resolve_path_setting(name, value, path.parent) for name, value in values.items()}


def find_user_settings_file() -> Path | None:
    """Return the path of the user file, or None if there is none.

    A path from ``LAMELLA_CONFIG`` is returned even if the file does not exist, so that reading it raises an error.
    """
    path = get_user_file_path()
    # Without a home folder the path would be relative, and a file of the project would count as the user's own.
    return path if os.environ.get(SETTINGS_FILE_VARIABLE) or (path.is_absolute() and _is_existing_file(path)) else None


def get_user_file_path() -> Path:
    """Return the path of the user file, whether or not it exists."""
    named = os.environ.get(SETTINGS_FILE_VARIABLE)
    return _expand_path(named) if named else get_user_folder_path() / SETTINGS_FILE_NAME


def get_user_folder_path() -> Path:
    """Return the system's folder for the user's settings of Lamella."""
    from platformdirs import user_config_path

    return user_config_path("lamella", appauthor=False)


def find_project_settings_file() -> Path | None:
    """Return the nearest settings file in the working folder or above it, or None."""
    try:
        here = Path.cwd()
    except OSError:
        # The working folder was removed after this process entered it.
        return None
    return next(
        (
            folder / SETTINGS_FILE_NAME
            for folder in (here, *here.parents)
            if _is_existing_file(folder / SETTINGS_FILE_NAME)
        ),
        None,
    )


def is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths name the same file."""
    try:
        return first.samefile(second)
    except OSError:
        return False


def _is_existing_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _resolve_path_setting(name: str, value: object, folder: Path) -> object:
    """Make a path setting relative to the folder of its file; return other values unchanged."""
    if name not in _PATH_SETTINGS or not isinstance(value, str):
        return value
    return str(folder / _expand_path(value))


def _expand_path(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingError(f"{path} names a home folder that does not exist.", hint="Write the whole path.") from error


# Merging.


class SettingOrigin(StrEnum):
    """Source of a setting's value, from the lowest precedence to the highest."""

    # Other modules compare origins by this order.
    DEFAULT = "default"
    PROFILE = "profile"
    USER = "user file"
    PROJECT = "project file"
    ENVIRONMENT = "environment"
    CALLER = "caller"


class ResolvedSettings(Struct, frozen=True, kw_only=True):
    """The settings, the origin of each value, and the files that were read."""

    settings: Settings
    origins: Mapping[str, SettingOrigin]
    files: Mapping[SettingOrigin, Path]

    def is_set(self, name: str) -> bool:
        """Return whether any source sets this value, including a chosen profile."""
        return self.origins[name] is not SettingOrigin.DEFAULT

    def errors_for_project_settings(self, names: Sequence[str]) -> list[SettingError]:
        """Return an error for each of these settings that the project file sets.

        The project file is not trusted with them, because it may come from another author.
        """
        return [
            SettingError(
                f"{self.files[SettingOrigin.PROJECT]} sets {name}, which only your own settings may.",
                hint="Take it out there. If you want it, set it in your own lamella.toml or in the environment.",
            )
            for name in names
            if self.origins[name] is SettingOrigin.PROJECT
        ]

    def describe_setting_origins(self, names: Sequence[str]) -> str:
        """Return the files and variables that set these values, separated by commas.

        Defaults, profiles and values that the caller passed add nothing.
        """
        origins = (_describe_setting_origin(name, self.origins[name], self.files) for name in names)
        return ", ".join(dict.fromkeys(origin for origin in origins if origin))


class SettingsSources(Struct, frozen=True, kw_only=True):
    """Values from the settings files and the environment, read once and used for any number of callers."""

    files: Mapping[SettingOrigin, Path]
    values_by_origin: Sequence[tuple[SettingOrigin, Mapping[str, object]]]

    def list_trusted_values(self, name: str) -> list[object]:
        """Return the default of a setting and every value set for it outside the project file.

        The project file is left out because it may come from another author.
        """
        own = [
            values[name]
            for origin, values in self.values_by_origin
            if origin is not SettingOrigin.PROJECT and name in values
        ]
        return [getattr(Settings(), name), *own]

    def resolve(self, overrides: Mapping[str, object] | None = None) -> ResolvedSettings:
        """Return the resolved settings for one caller; a value of None in ``overrides`` means "not given"."""
        own = {name: value for name, value in (overrides or {}).items() if value is not None}
        found = [*self.values_by_origin, (SettingOrigin.CALLER, own)]
        # The profile itself can come from any source, so find it first; its values then have the lowest precedence.
        origin, name = next(
            ((origin, values["profile"]) for origin, values in reversed(found) if "profile" in values),
            (SettingOrigin.DEFAULT, "default"),
        )
        found.insert(
            0,
            (
                SettingOrigin.PROFILE,
                get_settings_profile(name, where=_describe_setting_origin("profile", origin, self.files)),
            ),
        )
        values = {key: value for _, layer in found for key, value in layer.items()}
        origins = dict.fromkeys(SETTING_NAMES, SettingOrigin.DEFAULT)
        origins |= {key: origin for origin, layer in found for key in layer}
        return ResolvedSettings(settings=validate_settings(values), origins=origins, files=self.files)


def read_settings_sources() -> SettingsSources:
    """Read the settings files and the environment as they are now."""
    files = _settings_files()
    found = [(origin, read_settings_file(path)) for origin, path in files.items()]
    return SettingsSources(files=files, values_by_origin=(*found, (SettingOrigin.ENVIRONMENT, read_environment())))


def get_settings_profile(name: object, *, where: str = "") -> Mapping[str, object]:
    """Return the values that a profile sets; ``where`` is the file or variable that names the profile.

    Raises ``SettingError`` for an unknown profile name. A name that is not a string gives no values here
    and is rejected later.
    """
    if isinstance(name, str) and name not in SETTINGS_PROFILES:
        prefix = f"{where}: " if where else ""
        similar = find_closest_match(name, SETTINGS_PROFILES)
        meant = f"Did you mean {similar}? " if similar else ""
        raise SettingError(
            f"{prefix}There is no profile {name!r}.", hint=f"{meant}Choose one of: {', '.join(SETTINGS_PROFILES)}."
        )
    return SETTINGS_PROFILES.get(str(name), {})


def _settings_files() -> dict[SettingOrigin, Path]:
    user, project = find_user_settings_file(), find_project_settings_file()
    files = {SettingOrigin.USER: user} if user is not None else {}
    # Working in the folder of the user file must not turn the user's own settings into untrusted project settings.
    if project is not None and (user is None or not is_same_file(user, project)):
        files[SettingOrigin.PROJECT] = project
    return files


def _describe_setting_origin(name: str, origin: SettingOrigin, files: Mapping[SettingOrigin, Path]) -> str:
    """Return the file or variable that sets a value; empty for defaults, profiles and values from the caller."""
    return variable_name(name) if origin is SettingOrigin.ENVIRONMENT else str(files.get(origin, ""))


# Private JSON files, such as trusted locations and access tokens. A file is always read and written as a whole.

_FileBody = TypeVar("_FileBody", bound=Struct)


def read_private_file(path: Path, kind: type[_FileBody]) -> _FileBody:
    """Return the content of a private file, or an empty ``kind()`` if the file does not exist."""
    try:
        return json.decode(read_regular_file(path, limit=MAX_SETTINGS_BYTES), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, DecodeError, ValidationError, RecursionError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise SettingError(f"{path} cannot be read: {reason}.", hint="Mend it, or remove it.") from error


def write_private_file(path: Path, body: Struct) -> None:
    """Write the whole file or nothing; raises ``SettingError`` if it cannot be written.

    The file and its folder are closed to other users, even if they existed with wider permissions.
    """
    data = json.format(json.encode(body)) + b"\n"
    try:
        make_private_folder(path.parent)
        # Close an existing file first: replace_file gives the new file the mode of the old one.
        remove_access_of_other_users(path)
        (replace_file if path.exists() else write_new_file)(path, data)
    except OSError as error:
        raise SettingError(
            f"{path} cannot be written: {error.strerror}.", hint="Permit writing to it and to its folder."
        ) from error
