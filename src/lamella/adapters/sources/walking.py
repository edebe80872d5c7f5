"""Walking a vault: every file below a folder that the rules let anybody see. What cannot be looked at is told."""

import os
from collections.abc import Iterator
from pathlib import Path

from lamella.adapters.sources.inventory import Inventory, is_note, make_inventory
from lamella.adapters.sources.obsidian.rules import IgnoreRules


class _FolderWalk:
    """One walk, with what it found so far. It enters no linked folder, so only a link to a file can lead out."""

    def __init__(self, root: Path, rules: IgnoreRules) -> None:
        self._root, self._rules = root, rules
        self.files: list[str] = []
        self.links: list[str] = []
        self.left_out = list(rules.told)

    def go(self, folder: Path) -> Inventory:
        for parent, folders, names in os.walk(folder, onerror=self._tell):
            place = Path(parent)
            folders[:] = [
                name for name, path in self._list(place, sorted(folders)) if not self._rules.unlists(f"{path}/")
            ]
            self.links += [path for name, path in self._list(place, folders) if _is_link(place / name)]
            for name, path in self._list(place, names):
                if not self._rules.unlists(path):
                    self._take(place / name, path)
        return make_inventory(self.files, self.links, self.left_out)

    def _take(self, file: Path, path: str) -> None:
        if self._stays(file):
            self.files.append(path)
        elif is_note(path):
            self.links.append(path)

    def _list(self, parent: Path, names: list[str]) -> Iterator[tuple[str, str]]:
        """Names in a folder that are not hidden, each with its path in the vault."""
        for name in names:
            if name.startswith("."):
                continue
            try:
                yield name, name_in_vault(parent / name, self._root)
            except UnicodeDecodeError:
                place = os.fsencode((parent / name).relative_to(self._root).as_posix())
                self.left_out.append(f"The name of the file {place!r} is not UTF-8.")

    def _stays(self, file: Path) -> bool:
        # Following every path costs ten times more than asking whether it is a link.
        try:
            return not file.is_symlink() or file.resolve().is_relative_to(self._root)
        except (OSError, RuntimeError):
            return True

    def _tell(self, error: OSError) -> None:
        name = str(error.filename or self._root)
        shown = os.path.relpath(name, self._root) if name.startswith(str(self._root)) else name
        self.left_out.append(f"{shown} cannot be read: {error.strerror or error}.")


def walk_vault(root: Path, folder: Path, rules: IgnoreRules) -> Inventory:
    """What is below a folder of a vault. A link that leads nowhere is listed, and is an error when it is read."""
    return _FolderWalk(root, rules).go(folder)


def name_in_vault(file: Path, root: Path) -> str:
    """A file's path in the vault; ``UnicodeDecodeError`` if its name is not UTF-8."""
    return os.fsencode(file.relative_to(root).as_posix()).decode()


def _is_link(place: Path) -> bool:
    try:
        return place.is_symlink()
    except OSError:
        return False  # a folder that cannot be looked at; the walk into it says why
