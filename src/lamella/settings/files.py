"""Files of settings. Both are called ``lamella.toml``: the user's, and the project's.

The project's is the nearest one in the working folder or above it; the user's is in the folder that the system keeps
for that, or where ``LAMELLA_CONFIG`` says.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from lamella.adapters.files.reading import MAX_SETTINGS_BYTES, read_plain
from lamella.errors import SettingError
from lamella.settings.checks import check_settings
from lamella.settings.environment import FILE_VARIABLE

FILE = "lamella.toml"
_FOLDERS = ("conversions", "index_folder", "note_backups", "memory_folder", "workflow_folder")
_PATHS = ("model_facts", "instructions_file", *_FOLDERS)


def read_file(path: Path) -> Mapping[str, object]:
    """The settings in a file, each of its own type; an error names the file and the key."""
    import tomllib  # only for those who have a file

    try:
        values = tomllib.loads(read_plain(path, limit=MAX_SETTINGS_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise SettingError(
            f"The settings in {path} cannot be read: {error.strerror}.",
            hint=f"Check the path, or unset {FILE_VARIABLE}.",
        ) from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not TOML: {error}.", hint="Write lines such as: window = 200000") from error
    check_settings(values, where=f"{path}: ")
    return {name: _resolve(name, value, path.parent) for name, value in values.items()}


def find_user_file() -> Path | None:
    """The user's file, if there is one; one that was asked for by name must be there."""
    path = place_user_file()
    # Without a home the folder of the user's own settings would be one of the project's.
    return path if os.environ.get(FILE_VARIABLE) or (path.is_absolute() and _is_there(path)) else None


def place_user_file() -> Path:
    """Where the user's file is, or would be."""
    named = os.environ.get(FILE_VARIABLE)
    return _expand(named) if named else place_user_folder() / FILE


def place_user_folder() -> Path:
    """The folder that the system keeps for the user's own settings."""
    from platformdirs import user_config_path

    return user_config_path("lamella", appauthor=False)


def find_project_file() -> Path | None:
    """The nearest file in the working folder or above it."""
    try:
        here = Path.cwd()
    except OSError:
        # The folder was removed while we stand in it.
        return None
    return next((folder / FILE for folder in (here, *here.parents) if _is_there(folder / FILE)), None)


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths name one file."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _resolve(name: str, value: object, folder: Path) -> object:
    """A path in a file is meant from where the file is."""
    if name not in _PATHS or not isinstance(value, str):
        return value
    return str(folder / _expand(value))


def _expand(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingError(f"{path} names a home folder that does not exist.", hint="Write the whole path.") from error
