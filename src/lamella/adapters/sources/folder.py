"""A vault's folder: paths become files in it, and nothing else. What rules hide is not there."""

import os
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from lamella.adapters.files.reading import read_plain
from lamella.adapters.sources.obsidian.rules import RULES_FILE, IgnoreRules
from lamella.errors import SourceMissingError, SourceOutsideError, SourceUnreadableError

MAX_FILE_BYTES = 50_000_000


class VaultFolder:
    """Files below a root. ``suggest`` says, for a path that names nothing, what may have been meant."""

    def __init__(self, root: Path, rules: IgnoreRules, *, suggest: Callable[[str], str]) -> None:
        self._root, self._rules, self._suggest = root, rules, suggest

    def locate(self, path: str) -> Path:
        """The file a relative path names, after links; an error if that is outside the vault."""
        try:
            place = self._on_disk(path).resolve()
            place.exists()
        except RuntimeError as error:
            raise SourceMissingError(f"{path} is a link to itself.", hint="Mend the link, or remove it.") from error
        except (OSError, ValueError) as error:
            raise SourceMissingError(f"{path!r} is not a usable path.", hint="Check the path.") from error
        if PurePosixPath(path).is_absolute() or not place.is_relative_to(self._root):
            raise SourceOutsideError(
                f"{path} is outside the vault {self._root.name}.",
                hint="Use a path relative to the vault that does not leave it, also not through a link.",
            )
        return place

    def find_plain(self, path: str) -> Path:
        """The plain file at a path; an error says why there is none to be had."""
        file = self.locate(path)
        if not _is(stat.S_ISREG, file):
            raise self._no_file(path, file)
        if self._hides(path, file):
            raise SourceMissingError(
                f"{path} is left out of this vault by {RULES_FILE}.", hint="Change the rule there to have it read."
            )
        return file

    def stat(self, path: str) -> os.stat_result:
        """What the disk says of a file that a walk found; ``OSError`` if it is gone since."""
        return self._on_disk(path).stat()

    def has(self, what: Callable[[int], bool], path: str) -> bool:
        """Whether there is something of this kind at a path, and no rule hides it."""
        try:
            place = self.locate(path)
        except (SourceOutsideError, SourceMissingError):
            return False
        return _is(what, place) and not self._hides(path, place)

    def read_bytes(self, path: str) -> bytes:
        """A file as it is; an error says why it cannot be had."""
        try:
            return read_plain(
                self.find_plain(path),
                limit=MAX_FILE_BYTES,
                name=path,
                hint="Attach a selection of it, or split the file.",
            )
        except OSError as error:
            raise SourceUnreadableError(
                f"{path} cannot be read: {error.strerror or error}.",
                hint="Check its permissions and the length of its path.",
            ) from error

    def read_text(self, path: str) -> str:
        """A file's text, which must be UTF-8."""
        data = self.read_bytes(path)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(
                f"{path} is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
                hint="Save the file as UTF-8, or detach it.",
            ) from error

    def name(self, path: str) -> str:
        """The path as an id: one that goes up and down again is the same note as without the detour."""
        return name_in_vault(self.locate(path), self._root) if ".." in PurePosixPath(path).parts else path

    def _hides(self, path: str, place: Path) -> bool:
        if self._rules.spec is None:
            return False
        mark = "/" if place.is_dir() else ""
        named = PurePosixPath(path).as_posix()
        return self._rules.hides(named + mark) or self._rules.hides(name_in_vault(place, self._root) + mark)

    def _no_file(self, path: str, place: Path) -> SourceMissingError:
        if place.exists():
            return SourceMissingError(f"{path} is not a file.", hint="Attach a file, or a folder as a folder.")
        if self._on_disk(path).is_symlink():
            return SourceMissingError(f"{path} is a link to nothing.", hint="Mend the link, or remove it.")
        return SourceMissingError(f"There is no file {path} in the vault.", hint=self._suggest(path))

    def _on_disk(self, path: str) -> Path:
        """A vault path is UTF-8 in any locale, as it is in any program that syncs a vault."""
        return self._root / os.fsdecode(path.encode())


def name_in_vault(file: Path, root: Path) -> str:
    """A file's path in the vault; ``UnicodeDecodeError`` if its name is not UTF-8."""
    return os.fsencode(file.relative_to(root).as_posix()).decode()


def _is(what: Callable[[int], bool], place: Path) -> bool:
    try:
        return what(place.stat().st_mode)
    except OSError:
        return False
