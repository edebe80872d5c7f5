"""A folder of notes on disk, read safely."""

import os
import stat
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from lamella.adapters.files.reading import read_plain
from lamella.adapters.sources.inventory import Inventory, is_note, make_inventory
from lamella.adapters.sources.pictures.finding import find_embedded, read_kept
from lamella.adapters.sources.pictures.reader import PictureReader
from lamella.adapters.sources.readers import DocumentReader, OpenConversions, PageReader
from lamella.adapters.sources.tags import carries_tag, find_tags
from lamella.core.artifacts.kinds import KINDS, Medium
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import (
    BadInputError,
    SourceMissingError,
    SourceOutsideError,
    SourceUnreadableError,
)
from lamella.ports import NoteList, Reader, Sources

MAX_FILE_BYTES = 50_000_000
_LONGEST_GUESS = 1_000


@dataclass(slots=True)
class _Sight:
    """What one glance has seen: folders as they are listed, the tags of notes, and which notes could not be read."""

    listings: dict[Path, Inventory] = field(default_factory=dict)
    tags: dict[str, frozenset[str]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


class Vault:
    """Notes below one folder. Hidden folders, such as ``.obsidian``, hold no notes."""

    def __init__(self, root: Path, conversions: OpenConversions | None = None) -> None:
        if not root.is_dir():
            raise SourceMissingError(f"There is no vault folder at {root}.", hint="Check the `vault` path.")
        self._root = root.resolve()
        self._seen: _Sight | None = None
        self._conversions = conversions

    def look(self) -> Sources:
        """All that can be read of the vault at one moment."""
        glance = self.glance()
        told: list[str] = []
        pictures = PictureReader(read_bytes=glance.read_bytes)
        readers: dict[Medium, Reader] = {Medium.FILE: glance, Medium.PICTURE: pictures}
        if self._conversions is not None:
            open_them = self._conversions
            documents = DocumentReader(conversions=open_them, locate=self.locate, read_bytes=self.read_bytes)
            pages = PageReader(conversions=open_them, tell=told.append)
            readers |= {Medium.PDF: documents, Medium.OFFICE: documents, Medium.PAGE: pages, Medium.VIDEO: pages}
            readers[Medium.PICTURE] = replace(
                pictures, fetch=lambda url: open_them().read_picture(url, tell=told.append)
            )
        return Sources(readers=readers, catalog=glance, told=told)

    def glance(self) -> "Vault":
        """The vault at one moment: what was listed or searched once is not listed or searched again."""
        # One turn means one state of the vault: its links are not told by a walk through all folders each. Whether the
        # folder is still there is asked by what reads it: a turn may read nothing.
        glance = copy(self)
        glance._seen = _Sight()
        return glance

    def read(self, wanted: Wanted) -> Artifact:
        """A file that is its own text: a note, a canvas, source code."""
        text = self.read_text(wanted.name)
        source = Source(path=self._name(wanted.name), via=wanted.via, read=True)
        return make_artifact(wanted.kind, text=text, source=source, title=wanted.title, policy=wanted.policy)

    def list_notes(self, kind: Kind, name: str) -> NoteList:
        if KINDS[kind].medium is Medium.TAG:
            return self._list_tag(name)
        folder = self.locate(name)
        if not self._is(stat.S_ISDIR, folder):
            raise SourceMissingError(f"There is no folder {name} in the vault.", hint=self._suggest(name))
        found = self._list(folder)
        return NoteList(paths=found.notes, links=found.links)

    def _list_tag(self, tag: str) -> NoteList:
        seen = self._seen or _Sight()
        found = self._list(self._root)
        paths = tuple(path for path in found.notes if carries_tag(self._find_tags(path, seen), tag))
        return NoteList(paths=paths, links=found.links, unread=tuple(seen.unread.values()))

    def has_folder(self, path: str) -> bool:
        try:
            return self._is(stat.S_ISDIR, self.locate(path))
        except (SourceOutsideError, SourceMissingError):
            return False

    def find_note(self, name: str) -> Sequence[str]:
        return self._list(self._root).find_note(name)

    def find_file(self, target: str, *, beside: str) -> str:
        return find_embedded(
            target,
            beside=beside,
            has_file=self.has_file,
            find_named=lambda name: self._list(self._root).find_others(name),
            find_kept=lambda: read_kept(self.read_text),
        )

    def has_file(self, path: str) -> bool:
        try:
            return self._is(stat.S_ISREG, self.locate(path))
        except (SourceOutsideError, SourceMissingError):
            return False

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

    def read_bytes(self, path: str) -> bytes:
        """A file as it is; an error says why it cannot be had."""
        file = self.locate(path)
        if not self._is(stat.S_ISREG, file):
            raise self._no_file(path, file)
        try:
            return read_plain(
                file, limit=MAX_FILE_BYTES, name=path, hint="Attach a selection of it, or split the file."
            )
        except OSError as error:
            raise _unreadable(path, error) from error

    def _no_file(self, path: str, place: Path) -> SourceMissingError:
        if place.exists():
            return SourceMissingError(f"{path} is not a file.", hint="Attach a file, or a folder as a folder.")
        if self._on_disk(path).is_symlink():
            return SourceMissingError(f"{path} is a link to nothing.", hint="Mend the link, or remove it.")
        return SourceMissingError(f"There is no file {path} in the vault.", hint=self._suggest(path))

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

    def _name(self, path: str) -> str:
        """The path as an id: one that goes up and down again is the same note as without the detour."""
        return self._vault_path(self.locate(path)) if ".." in PurePosixPath(path).parts else path

    def _on_disk(self, path: str) -> Path:
        """A vault path is UTF-8 in any locale, as it is in any program that syncs a vault."""
        return self._root / os.fsdecode(path.encode())

    @staticmethod
    def _is(what: Callable[[int], bool], place: Path) -> bool:
        try:
            return what(place.stat().st_mode)
        except OSError:
            return False

    def _find_tags(self, path: str, seen: _Sight) -> frozenset[str]:
        """The tags of a note. One that cannot be read carries none, and is not what stops the search for others."""
        if path not in seen.tags:
            try:
                seen.tags[path] = find_tags(self.read_text(path))
            except BadInputError as error:
                seen.tags[path] = frozenset()
                seen.unread[path] = error.message
        return seen.tags[path]

    def _list(self, folder: Path) -> Inventory:
        if self._seen is None:
            return self._walk(folder)
        if folder not in self._seen.listings:
            self._seen.listings[folder] = self._walk(folder)
        return self._seen.listings[folder]

    def _walk(self, folder: Path) -> Inventory:
        """Every file below a folder but hidden ones and links that leave the vault.

        A link that leads nowhere is listed, and is an error when it is read.
        """
        files: list[str] = []
        links: list[str] = []
        for parent, folders, names in os.walk(folder, onerror=self._refuse_folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            links += [self._vault_path(place) for name in folders if _is_link(place := Path(parent) / name)]
            for name in names:
                file = Path(parent) / name
                if name.startswith("."):
                    continue
                if self._stays(file):
                    files.append(self._vault_path(file))
                elif is_note(name):
                    links.append(self._vault_path(file))
        return make_inventory(files, links)

    def _stays(self, file: Path) -> bool:
        # The walk enters no linked folder, so only a link can lead out; following every path costs ten times more.
        try:
            return not file.is_symlink() or file.resolve().is_relative_to(self._root)
        except (OSError, RuntimeError):
            return True

    def _vault_path(self, file: Path) -> str:
        name = os.fsencode(file.relative_to(self._root).as_posix())
        try:
            return name.decode()
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(f"The name of the file {name!r} is not UTF-8.", hint="Rename it.") from error

    def _refuse_folder(self, error: OSError) -> None:
        raise _unreadable(str(error.filename or self._root.name), error) from error

    def _suggest(self, path: str) -> str:
        near = get_close_matches(path, self._list(self._root).files, n=3) if len(path) <= _LONGEST_GUESS else []
        return f"Did you mean {', '.join(near)}?" if near else "Paths are relative to the vault folder."


def _is_link(place: Path) -> bool:
    try:
        return place.is_symlink()
    except OSError:
        return False  # a folder that cannot be looked at; the walk into it says why


def _unreadable(path: str, error: OSError) -> SourceUnreadableError:
    return SourceUnreadableError(
        f"{path} cannot be read: {error.strerror or error}.", hint="Check its permissions and the length of its path."
    )
