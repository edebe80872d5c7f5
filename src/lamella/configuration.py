"""Where settings come from. What is nearer wins: caller, environment, the project's file, the user's, a profile.

Both files are called ``lamella.toml``. The project's is the nearest one in the working folder or above it; the user's
is in the folder that the system keeps for that, or where ``LAMELLA_CONFIG`` says. Only wiring asks.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from lamella.errors import SettingError
from lamella.settings import PROFILES, Environment, Settings

FILE = "lamella.toml"
VARIABLE = "LAMELLA_CONFIG"
_PREFIX = "LAMELLA_"
# What has this prefix and is no setting.
_OTHERS = [VARIABLE.removeprefix(_PREFIX), "API_KEY"]
# How alike two names are of which one is taken for the other misspelt: a letter or two apart.
_NEAR = 0.78
_KNOWN = f"Settings are: {', '.join(Settings.model_fields)}. See docs/settings.md."
# A password may hold any character, so everything up to the last @ of an address is taken for one; and what a query
# calls by such a name is one, too.
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^\s]*@")
_SECRET_FIELD = re.compile(r"(?i)([?&][^=&#\s]*(?:password|passwd|key|token|secret)[^=&#\s]*=)[^&#\s]*")
_FIELD = re.compile(r'field "(\w+)"')
_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)


class Origin(StrEnum):
    """Where a value was found, the nearest last."""

    DEFAULT = "default"
    PROFILE = "profile"
    USER = "user file"
    PROJECT = "project file"
    ENVIRONMENT = "environment"
    CALLER = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings, where each was found, and the files that were read."""

    settings: Settings
    origins: Mapping[str, Origin]
    files: Mapping[Origin, Path]

    def tell_places(self, names: Sequence[str]) -> str:
        """Where these settings were found: files and variables, nothing for defaults and for what the caller gave."""
        places = (_tell_place(name, self.origins[name], self.files) for name in names)
        return ", ".join(dict.fromkeys(place for place in places if place))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What files and the environment say, read once, for as many callers as there are."""

    files: Mapping[Origin, Path]
    found: Sequence[tuple[Origin, Mapping[str, object]]]

    def configure(self, given: Mapping[str, object] | None = None) -> Configuration:
        """The settings for one caller; none among what is given means not given."""
        own = {name: value for name, value in (given or {}).items() if value is not None}
        found = [*self.found, (Origin.CALLER, own)]
        origin, name = next(
            ((origin, values["profile"]) for origin, values in reversed(found) if "profile" in values),
            (Origin.DEFAULT, "default"),
        )
        found.insert(0, (Origin.PROFILE, find_profile(name, where=_tell_place("profile", origin, self.files))))
        values = {key: value for _, layer in found for key, value in layer.items()}
        origins = dict.fromkeys(Settings.model_fields, Origin.DEFAULT)
        origins |= {key: origin for origin, layer in found for key in layer}
        return Configuration(settings=_check(values), origins=origins, files=self.files)


def look_around() -> Surroundings:
    """Read files and the environment as they stand now."""
    files = _find_files()
    found = [(origin, read_file(path)) for origin, path in files.items()]
    return Surroundings(files=files, found=(*found, (Origin.ENVIRONMENT, _read_environment())))


def load_configuration(given: Mapping[str, object] | None = None) -> Configuration:
    """All settings as they stand now."""
    return look_around().configure(given)


def find_profile(name: object, *, where: str = "") -> Mapping[str, object]:
    """What a profile sets; ``where`` is the file or variable that names it."""
    if isinstance(name, str) and name not in PROFILES:
        told = f"{where}: " if where else ""
        raise SettingError(f"{told}There is no profile {name!r}.", hint=f"Choose one of: {', '.join(PROFILES)}.")
    return PROFILES.get(str(name), {})


def read_file(path: Path) -> Mapping[str, object]:
    """The settings in a file, each of its own type; an error names the file and the key."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingError(
            f"The settings in {path} cannot be read: {error.strerror}.", hint=f"Check the path, or unset {VARIABLE}."
        ) from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not TOML: {error}.", hint="Write lines such as: window = 200000") from error
    _check(values, where=f"{path}: ")
    return {name: _resolve(name, value, path.parent) for name, value in values.items()}


def find_misspelt() -> dict[str, str]:
    """Variables that are nearly the name of a setting and mean nothing, each with the name it is near to.

    Names that are near to none may be another program's.
    """
    known = [name.upper() for name in Settings.model_fields] + _OTHERS
    strange = {name: name.upper().removeprefix(_PREFIX) for name in os.environ if name.upper().startswith(_PREFIX)}
    near = {name: get_close_matches(word, known, n=1, cutoff=_NEAR) for name, word in strange.items()}
    return {name: name_variable(found[0]) for name, found in near.items() if found and strange[name] not in known}


def name_variable(setting: str) -> str:
    """The variable that holds a setting."""
    return _PREFIX + setting.upper()


def mask(text: str) -> str:
    """The same without passwords in addresses."""
    return _SECRET_FIELD.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def _find_files() -> dict[Origin, Path]:
    user, project = _user_file(), _project_file()
    files = {Origin.USER: user} if user is not None else {}
    if project is not None and (user is None or not _same(user, project)):
        files[Origin.PROJECT] = project
    return files


def place_user_file() -> Path:
    """Where the user's file is, or would be."""
    named = os.environ.get(VARIABLE)
    if named:
        return _expand(named)
    from platformdirs import user_config_path

    return user_config_path("lamella", appauthor=False) / FILE


def _user_file() -> Path | None:
    path = place_user_file()
    # One that was asked for by name must be there.
    return path if os.environ.get(VARIABLE) or _is_there(path) else None


def _project_file() -> Path | None:
    try:
        here = Path.cwd()
    except OSError:
        # The folder was removed while we stand in it.
        return None
    return next((folder / FILE for folder in (here, *here.parents) if _is_there(folder / FILE)), None)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _read_environment() -> dict[str, Any]:
    try:
        return Environment().model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise _explain(first, f"{name_variable(str(first['loc'][0]))}: " if first["loc"] else "") from error
    except SettingsError as error:
        named = _FIELD.search(str(error))
        name = name_variable(named[1]) if named else "A variable"
        raise SettingError(f"{name} is not JSON.", hint="In the environment a table is written as JSON.") from error


def _check(values: Mapping[str, object], *, where: str = "") -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise _explain(error.errors()[0], where) from error


def _explain(first: ErrorDetails, where: str) -> SettingError:
    name = ".".join(str(part) for part in first["loc"]) or "a setting"
    if first["type"] == "extra_forbidden":
        kept = "Keys are read from the environment alone, and never from a file. " if _SECRET.search(name) else ""
        near = get_close_matches(name, Settings.model_fields, n=1, cutoff=_NEAR)
        meant = f"Did you mean {near[0]}? " if near else ""
        return SettingError(f"{where}There is no setting {name}.", hint=kept + meant + _KNOWN)
    try:
        value = mask(repr(first["input"]))
    except ValueError:
        value = "a number of thousands of digits"
    wrong = f"{first['msg'][0].lower()}{first['msg'][1:]}"
    return SettingError(f"{where}The setting {name} is {value}: {wrong}.", hint=_KNOWN)


def _tell_place(name: str, origin: Origin, files: Mapping[Origin, Path]) -> str:
    """The file or variable that has a setting; nothing for defaults, profiles and what the caller gave."""
    return name_variable(name) if origin is Origin.ENVIRONMENT else str(files.get(origin, ""))


def _resolve(name: str, value: object, folder: Path) -> object:
    """A path in a file is meant from where the file is."""
    if name != "model_facts" or not isinstance(value, str):
        return value
    return str(folder / _expand(value))


def _expand(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingError(f"{path} names a home folder that does not exist.", hint="Write the whole path.") from error
