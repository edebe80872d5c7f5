"""Where settings come from. What is nearer wins: caller, environment, the project's file, the user's, a profile."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from lamella.errors import SettingError
from lamella.settings.checks import check_settings
from lamella.settings.environment import name_variable, read_environment
from lamella.settings.files import find_project_file, find_user_file, is_same, read_file
from lamella.settings.model import NAMES, PROFILES, Settings
from lamella.settings.values import find_near


class Origin(StrEnum):
    """Where a value was found, the nearest last."""

    DEFAULT = "default"
    PROFILE = "profile"
    USER = "user file"
    PROJECT = "project file"
    ENVIRONMENT = "environment"
    CALLER = "caller"


class Configuration(Struct, frozen=True, kw_only=True):
    """The settings, where each was found, and the files that were read."""

    settings: Settings
    origins: Mapping[str, Origin]
    files: Mapping[Origin, Path]

    def is_set(self, name: str) -> bool:
        """Whether somebody set it, or a profile that somebody chose."""
        return self.origins[name] is not Origin.DEFAULT

    def find_overreach(self, names: Sequence[str]) -> list[SettingError]:
        """An error for each of these that the project's file sets, which may be somebody else's."""
        return [
            SettingError(
                f"{self.files[Origin.PROJECT]} sets {name}, which only your own settings may.",
                hint="Take it out there. If you want it, set it in your own lamella.toml or in the environment.",
            )
            for name in names
            if self.origins[name] is Origin.PROJECT
        ]

    def tell_places(self, names: Sequence[str]) -> str:
        """Where these settings were found: files and variables, nothing for defaults and for what the caller gave."""
        places = (_tell_place(name, self.origins[name], self.files) for name in names)
        return ", ".join(dict.fromkeys(place for place in places if place))


class Surroundings(Struct, frozen=True, kw_only=True):
    """What files and the environment say, read once, for as many callers as there are."""

    files: Mapping[Origin, Path]
    found: Sequence[tuple[Origin, Mapping[str, object]]]

    def list_own(self, name: str) -> list[object]:
        """What a setting is by default and set to, but for the project's file, which may be somebody else's."""
        own = [values[name] for origin, values in self.found if origin is not Origin.PROJECT and name in values]
        return [getattr(Settings(), name), *own]

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
        origins = dict.fromkeys(NAMES, Origin.DEFAULT)
        origins |= {key: origin for origin, layer in found for key in layer}
        return Configuration(settings=check_settings(values), origins=origins, files=self.files)


def look_around() -> Surroundings:
    """Read files and the environment as they stand now."""
    files = _find_files()
    found = [(origin, read_file(path)) for origin, path in files.items()]
    return Surroundings(files=files, found=(*found, (Origin.ENVIRONMENT, read_environment())))


def find_profile(name: object, *, where: str = "") -> Mapping[str, object]:
    """What a profile sets; ``where`` is the file or variable that names it."""
    if isinstance(name, str) and name not in PROFILES:
        told = f"{where}: " if where else ""
        near = find_near(name, PROFILES)
        meant = f"Did you mean {near}? " if near else ""
        raise SettingError(f"{told}There is no profile {name!r}.", hint=f"{meant}Choose one of: {', '.join(PROFILES)}.")
    return PROFILES.get(str(name), {})


def _find_files() -> dict[Origin, Path]:
    user, project = find_user_file(), find_project_file()
    files = {Origin.USER: user} if user is not None else {}
    if project is not None and (user is None or not is_same(user, project)):
        files[Origin.PROJECT] = project
    return files


def _tell_place(name: str, origin: Origin, files: Mapping[Origin, Path]) -> str:
    """The file or variable that has a setting; nothing for defaults, profiles and what the caller gave."""
    return name_variable(name) if origin is Origin.ENVIRONMENT else str(files.get(origin, ""))
