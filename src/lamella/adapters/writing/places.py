"""Places: where a note of a vault may be written. Nothing leads out of it, and no link is followed."""

import stat
from pathlib import Path, PurePosixPath

from lamella.adapters.sources.obsidian.rules import RULES_FILE, read_rules
from lamella.errors import SourceOutsideError, WriteRefusedError

# What is written as text and read as a note: other files are not a model's to make.
ENDINGS = (".md", ".canvas")
_LONGEST_NAME = 200
_LONGEST_PATH = 1_000
_BANNED = frozenset('\\:*?"<>|')


def find_place(root: Path, path: str) -> Path:
    """Where the note of a path stands, or would; an error says why nothing is written there."""
    parts = _split(path)
    place = root
    for number, part in enumerate(parts, start=1):
        place /= part
        _check_kind(place, path, is_last=number == len(parts))
    if read_rules(root).hides(path):
        raise WriteRefusedError(f"{path} is left out of this vault by {RULES_FILE}.", hint="Choose another place.")
    return place


def _split(path: str) -> tuple[str, ...]:
    """The names of a path that stays where it is meant; anything else is refused before a disk is asked."""
    plain = PurePosixPath(path)
    if plain.is_absolute() or ".." in plain.parts or path.startswith("~"):
        raise SourceOutsideError(
            f"{_show(path)} is outside the vault.", hint="Use a path relative to the vault that does not leave it."
        )
    parts = plain.parts
    if not parts or len(path) > _LONGEST_PATH or not all(_is_plain(part) for part in parts):
        raise WriteRefusedError(
            f"{_show(path)} is no path of a note.", hint="Use plain names, such as garden/beans.md; none is hidden."
        )
    if plain.suffix.lower() not in ENDINGS:
        raise WriteRefusedError(
            f"{_show(path)} is no note.", hint=f"What is written ends in one of: {', '.join(ENDINGS)}."
        )
    return parts


def _is_plain(name: str) -> bool:
    return (
        not name.startswith(".")
        and name == name.strip()
        and len(name.encode(errors="replace")) <= _LONGEST_NAME
        and name.isprintable()
        and not _BANNED & set(name)
    )


def _check_kind(place: Path, path: str, *, is_last: bool) -> None:
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WriteRefusedError(
            f"{_show(path)} cannot be looked at: {error.strerror}.", hint="Check permissions."
        ) from error
    if stat.S_ISLNK(mode):
        raise WriteRefusedError(
            f"{_show(path)} leads through a link.", hint="Write to where it leads, by its own path."
        )
    if not (stat.S_ISREG(mode) if is_last else stat.S_ISDIR(mode)):
        raise WriteRefusedError(f"{_show(path)} is in the way of something else.", hint="Choose another place.")


def _show(path: str) -> str:
    return repr(path[:80])
