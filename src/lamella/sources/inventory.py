"""The files of a vault, found by one walk and indexed by name.

``walk_vault`` lists every file that the ignore rules allow; entries that cannot be read are reported.
``FileInventory`` finds files by name.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from lamella.sources.obsidian import IgnoreRules


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInventory:
    """All files below a folder and all links that were not followed, as sorted vault paths.

    ``left_out`` lists entries that could not be examined, with the reason.
    """

    files: tuple[str, ...]
    unfollowed_symlinks: tuple[str, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    _notes_by_name: dict[str, list[str]] = field(repr=False)
    _other_files_by_name: dict[str, list[str]] = field(repr=False)

    def find_notes_named(self, name: str) -> list[str]:
        """Return the notes that a link can mean, those nearest to the root first.

        The first of these that gives a match is used:

        1. the note at exactly this path,
        2. all notes whose whole path is equal after normalisation of case and Unicode form,
        3. all notes whose path ends with it, so that a name alone finds the note in any folder.
        """
        normalized_name = normalize_name(name)
        same = self._notes_by_name.get(normalized_name.rpartition("/")[2], [])
        exact = [path for path in same if path in (name, f"{name}.md")]
        whole = [path for path in same if normalize_name(path) == normalized_name]
        ending = [path for path in same if normalize_name(path).endswith(f"/{normalized_name}")]
        return exact or whole or ending

    def find_files_at(self, path: str) -> list[str]:
        """Return the files at this path, whatever Unicode form the path is written in."""
        composed = normalize("NFC", path)
        return [file for file in self.files if normalize("NFC", file) == composed]

    def find_other_files_named(self, name: str) -> list[str]:
        """Return the files other than notes with this name, in any folder and any case."""
        return self._other_files_by_name.get(name.casefold(), [])


def build_inventory(files: Iterable[str], links: Iterable[str], left_out: Iterable[str] = ()) -> FileInventory:
    """Build an inventory from the paths that a walk found."""
    files = tuple(sorted(files))
    notes = tuple(path for path in files if is_note(path))
    named: dict[str, list[str]] = {}
    for path in sorted(notes, key=lambda path: (path.count("/"), path)):
        named.setdefault(normalize_name(PurePosixPath(path).name), []).append(path)
    others: dict[str, list[str]] = {}
    for path in files:
        if not is_note(path):
            others.setdefault(path.rpartition("/")[2].casefold(), []).append(path)
    return FileInventory(
        files=files,
        unfollowed_symlinks=tuple(sorted(links)),
        notes=notes,
        left_out=tuple(sorted(left_out)),
        _notes_by_name=named,
        _other_files_by_name=others,
    )


def normalize_name(name: str) -> str:
    """Return a name or path in the form used for comparison: NFC, case-folded, without ``.md``."""
    # Case folding can undo NFC, so the text is normalised before and after it. ASCII needs neither.
    folded = name.casefold() if name.isascii() else normalize("NFC", normalize("NFC", name).casefold())
    return folded.removesuffix(".md")


def is_note(name: str) -> bool:
    """Return whether a file of this name is a note."""
    return name.lower().endswith(".md")


# The walk.


class _FolderWalk:
    """One walk through a folder, with the entries found so far.

    The walk does not enter linked folders, so only a link to a file can lead out of the vault.
    """

    def __init__(self, root: Path, rules: IgnoreRules) -> None:
        self._root, self._rules = root, rules
        self.files: list[str] = []
        self.links: list[str] = []
        self.left_out = list(rules.warnings)

    def walk(self, folder: Path) -> FileInventory:
        for parent, folders, names in os.walk(folder, onerror=self._record_error):
            parent_folder = Path(parent)
            # os.walk enters the folders that remain in this list, so it is changed in place.
            folders[:] = [
                name
                for name, path in self._iter_visible(parent_folder, sorted(folders))
                if not self._rules.is_unlisted(f"{path}/")
            ]
            self.links += [
                path for name, path in self._iter_visible(parent_folder, folders) if _is_link(parent_folder / name)
            ]
            for name, path in self._iter_visible(parent_folder, names):
                if not self._rules.is_unlisted(path):
                    self._add_entry(parent_folder / name, path)
        return build_inventory(self.files, self.links, self.left_out)

    def _add_entry(self, file: Path, path: str) -> None:
        if self._stays_in_vault(file):
            self.files.append(path)
        elif is_note(path):
            self.links.append(path)

    def _iter_visible(self, parent: Path, names: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the visible names of a folder, each with its vault path."""
        for name in names:
            if name.startswith("."):
                continue
            try:
                yield name, vault_path(parent / name, self._root)
            except UnicodeDecodeError:
                relative_path = os.fsencode((parent / name).relative_to(self._root).as_posix())
                self.left_out.append(f"The name of the file {relative_path!r} is not UTF-8.")

    def _stays_in_vault(self, file: Path) -> bool:
        # Resolving every path costs ten times more than asking whether it is a link.
        try:
            return not file.is_symlink() or file.resolve().is_relative_to(self._root)
        except (OSError, RuntimeError):
            return True

    def _record_error(self, error: OSError) -> None:
        name = str(error.filename or self._root)
        shown = os.path.relpath(name, self._root) if name.startswith(str(self._root)) else name
        self.left_out.append(f"{shown} cannot be read: {error.strerror or error}.")


def walk_vault(root: Path, folder: Path, rules: IgnoreRules) -> FileInventory:
    """Return an inventory of all files below a folder of a vault.

    A dangling link is listed too; reading it raises an error.
    """
    return _FolderWalk(root, rules).walk(folder)


def vault_path(file: Path, root: Path) -> str:
    """Return a file's path relative to the vault.

    Raises:
        UnicodeDecodeError: The name on disk is not UTF-8.
    """
    return os.fsencode(file.relative_to(root).as_posix()).decode()


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return False  # the folder cannot be examined; the walk into it reports why
