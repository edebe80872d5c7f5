"""Change settings files: set and remove single values, and leave comments and everything else as they are."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.errors import SettingError
from lamella.files import MAX_SETTINGS_BYTES, make_data_folder, read_regular_file, replace_file, write_new_file
from lamella.settings.loading import parse_setting_value
from lamella.settings.model import check_name, validate_settings

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_TEMPLATE = """# Settings of Lamella, one per line, such as:
# model = "anthropic:claude-opus-5-5"
# docs/reference/settings.md describes all settings.
"""


def create_settings_file(path: Path) -> None:
    """Create a settings file with comments only, if there is none."""
    if not path.exists():
        _write_settings_file(path, _TEMPLATE)


def set_in_file(path: Path, name: str, text: str) -> object:
    """Set a value as the user typed it, and return it in its own type; ``serve.port`` names an entry of a table.

    Raises ``SettingError`` for an unknown setting or an invalid value; the file is unchanged then.
    """
    setting, _, entry = name.partition(".")
    check_name(setting)
    document = _read_document(path)
    value = parse_setting_value(setting, text) if not entry else _parse_entry(text)
    if value is None:
        raise SettingError(f"{name} cannot be {text!r} in a file.", hint="Remove the setting from the file.")
    target: Any = document
    if entry:
        target = document.setdefault(setting, {})
        if not isinstance(target, dict):
            raise SettingError(f"{setting} is no table.", hint="Set it as a whole.")
    target[entry or setting] = value
    validate_settings(document.unwrap(), where=f"{path}: ")
    _write_settings_file(path, document.as_string())
    return value


def unset_in_file(path: Path, name: str) -> bool:
    """Remove a value, and return whether the file had it."""
    setting, _, entry = name.partition(".")
    check_name(setting)
    if not path.exists():
        return False
    document = _read_document(path)
    target: Any = document.get(setting, {}) if entry else document
    if (entry or setting) not in target:
        return False
    del target[entry or setting]
    _write_settings_file(path, document.as_string())
    return True


def _parse_entry(text: str) -> object:
    """Parse a value of a table: TOML such as ``8800``, ``true`` or ``["a"]``, otherwise a text."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.value(text).unwrap()
    except (TOMLKitError, ValueError):
        return text


def _read_document(path: Path) -> "TOMLDocument":
    import tomlkit  # imported late: only a changed file needs it
    from tomlkit.exceptions import TOMLKitError

    try:
        text = read_regular_file(path, limit=MAX_SETTINGS_BYTES).decode("utf-8-sig") if path.exists() else ""
        return tomlkit.parse(text)
    except OSError as error:
        raise SettingError(
            f"The settings in {path} cannot be read: {error.strerror}.", hint="Check the path."
        ) from error
    except (UnicodeDecodeError, TOMLKitError, RecursionError) as error:
        raise SettingError(f"{path} is not TOML: {error}.", hint="Correct it in an editor.") from error


def _write_settings_file(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():
        raise SettingError(f"{path} is no file that settings can be written to.", hint="Check the path.")
    data = text.encode()
    try:
        make_data_folder(path.parent)
        (replace_file if path.exists() else write_new_file)(path, data)
    except OSError as error:
        raise SettingError(
            f"The settings in {path} cannot be written: {error.strerror}.", hint="Check the path and its permissions."
        ) from error
