"""The one name of a file: whole and without links, so that two ways to name it are seen to be the same."""

from pathlib import Path

from lamella.errors import SettingError


def find_real(path: str | Path) -> Path:
    """Where a path leads that somebody wrote, whether or not something is there."""
    try:
        return Path(path).expanduser().resolve()
    except (RuntimeError, OSError, ValueError) as error:
        # A home that nobody has, links that lead in a ring, a character that no path has.
        told = str(error).rstrip(".")
        raise SettingError(f"{str(path)!r} leads to no file: {told}.", hint="Write the whole path.") from error
