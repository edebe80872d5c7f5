"""The system prompt that settings mean: its parts as texts, from a file where that is where they are."""

from collections.abc import Collection
from pathlib import Path

from lamella.adapters.files.reading import MAX_SETTINGS_BYTES, read_plain
from lamella.core.text.content import normalise
from lamella.engine.checks import check_parts
from lamella.engine.keeping.lasting import PART_SETTINGS
from lamella.errors import BadInputError, SettingError
from lamella.settings.configuration import Configuration, Origin

_NEARER = tuple(Origin)
# Where both were found in one place, the first counts.
_INSTRUCTIONS = ("instructions", "instructions_file")


def read_parts(found: Configuration, names: Collection[str] = PART_SETTINGS) -> dict[str, str]:
    """The parts that these settings give. Of a text and a file with instructions the nearer one counts."""
    settings = found.settings
    parts: dict[str, str] = {}
    if "system" in names and settings.system is not None:
        parts |= check_parts(settings.system)
    given = [name for name in _INSTRUCTIONS if name in names and getattr(settings, name) is not None]
    if given:
        nearest = max(given, key=lambda name: _NEARER.index(found.origins[name]))
        value = str(getattr(settings, nearest))
        if nearest == "instructions_file":
            _check_own(value, found)
            value = _read_instructions(value)
        parts["instructions"] = value
    return parts


def _check_own(place: str, found: Configuration) -> None:
    """A project's file may be somebody else's: it sends no file of yours to a model."""
    if not place or found.origins["instructions_file"] is not Origin.PROJECT:
        return
    project = found.files[Origin.PROJECT]
    if not Path(place).resolve().is_relative_to(project.parent.resolve()):
        raise SettingError(
            f"The instructions that {project} names are outside its folder: {place}.",
            hint="Move them into the project, or name them in your own settings.",
        )


def _read_instructions(place: str) -> str:
    if not place:
        return ""
    path = Path(place)
    try:
        return normalise(read_plain(path.expanduser(), limit=MAX_SETTINGS_BYTES).decode())
    except (OSError, UnicodeDecodeError, RuntimeError, BadInputError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None) or error
        raise SettingError(
            f"The instructions in {path} cannot be read: {why}.", hint="Check instructions_file, or unset it."
        ) from error
