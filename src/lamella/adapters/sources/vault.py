"""A folder of notes on disk, read safely."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path, PurePosixPath

import imagesize

from lamella.adapters.sources.tags import carries_tag
from lamella.core.artifacts.embeds import embedded_images
from lamella.core.artifacts.make import make_artifact, make_image_value
from lamella.core.artifacts.model import Artifact, Image, Kind, Policy, Source
from lamella.errors import (
    BadInputError,
    NotAvailableError,
    SourceMissingError,
    SourceOutsideError,
    SourceTooLargeError,
    SourceUnreadableError,
)

MAX_FILE_BYTES = 50_000_000
_LONGEST_GUESS = 1_000
MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_TEXT_KINDS = (Kind.NOTE, Kind.ACTIVE_NOTE, Kind.CANVAS, Kind.CODE)


class Vault:
    """Notes below one folder. Hidden folders, such as ``.obsidian``, hold no notes."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise SourceMissingError(f"There is no vault folder at {root}.", hint="Check the `vault` path.")
        self._root = root.resolve()

    def read_file(self, path: str, kind: Kind, *, policy: Policy | None = None, via: str | None = None) -> Artifact:
        if kind not in _TEXT_KINDS:
            raise NotAvailableError(
                f"This version does not read {kind} files such as {path}.",
                hint="Give the attachment its `text`; reading this kind comes with a later version.",
            )
        text = self._read_text(path)
        return make_artifact(kind, text=text, source=Source(path=self._name(path), via=via), policy=policy)

    def read_image(self, path: str) -> Image:
        if PurePosixPath(path).suffix.lower() not in MEDIA_TYPES:
            raise SourceUnreadableError(
                f"{path} is not a picture that models take.", hint=f"Use one of: {', '.join(MEDIA_TYPES)}."
            )
        return parse_image(self._read_bytes(path), media_type=None, name=path)

    def read_embedded(self, note: Artifact) -> tuple[Sequence[Image], Sequence[str]]:
        images: list[Image] = []
        missing: list[str] = []
        for target in embedded_images(note.text):
            try:
                images.append(self.read_image(self._embedded_path(target, note)))
            except BadInputError as error:
                missing.append(error.message)
        return images, missing

    def list_folder(self, path: str) -> Sequence[str]:
        folder = self._locate(path)
        if not self._is(stat.S_ISDIR, folder):
            raise SourceMissingError(f"There is no folder {path} in the vault.", hint=self._suggest(path))
        return sorted(self._notes(folder))

    def list_tag(self, tag: str) -> Sequence[str]:
        return [path for path in sorted(self._notes(self._root)) if carries_tag(self._read_text(path), tag)]

    def list_left_out(self, path: str) -> Sequence[str]:
        left: list[str] = []
        for parent, folders, names in os.walk(self._locate(path)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            shown = [Path(parent) / name for name in (*folders, *names) if not name.startswith(".")]
            left += [
                self._vault_path(place)
                for place in shown
                if place.is_symlink() and (place.is_dir() or (_is_note(place.name) and not self._stays(place)))
            ]
        return sorted(left)

    def has_folder(self, path: str) -> bool:
        try:
            return self._is(stat.S_ISDIR, self._locate(path))
        except (SourceOutsideError, SourceMissingError):
            return False

    def find_note(self, name: str) -> Sequence[str]:
        notes = sorted(self._notes(self._root))
        exact = [path for path in notes if path in (name, f"{name}.md")]
        return exact or [path for path in notes if PurePosixPath(path).stem.lower() == name.lower()]

    def _embedded_path(self, target: str, note: Artifact) -> str:
        if target.startswith(("http://", "https://", "data:")):
            raise NotAvailableError(
                f"{target[:60]} is not in the vault.",
                hint="Attach the picture itself, from a file in the vault.",
            )
        beside = (PurePosixPath(note.id).parent / target).as_posix()
        for path in (beside, target):
            if self._exists(path):
                return path
        name = PurePosixPath(target).name
        found = [path for path in self._files(self._root) if PurePosixPath(path).name == name]
        if len(found) != 1:
            raise SourceMissingError(
                f"{target} is in the vault {len(found)} times.",
                hint="Embed it by a path that names one file.",
            )
        return found[0]

    def _exists(self, path: str) -> bool:
        try:
            return self._is(stat.S_ISREG, self._locate(path))
        except (SourceOutsideError, SourceMissingError):
            return False

    def _read_text(self, path: str) -> str:
        data = self._read_bytes(path)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(
                f"{path} is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
                hint="Save the file as UTF-8, or detach it.",
            ) from error

    def _read_bytes(self, path: str) -> bytes:
        file = self._locate(path)
        if not self._is(stat.S_ISREG, file):
            raise self._no_file(path, file)
        try:
            size = file.stat().st_size
            if size > MAX_FILE_BYTES:
                raise SourceTooLargeError(
                    f"{path} has {size:,} bytes; Lamella reads files of up to {MAX_FILE_BYTES:,}.",
                    hint="Attach a selection of it, or split the file.",
                )
            return file.read_bytes()
        except OSError as error:
            raise _unreadable(path, error) from error

    def _no_file(self, path: str, place: Path) -> SourceMissingError:
        if place.exists():
            return SourceMissingError(f"{path} is not a file.", hint="Attach a file, or a folder as a folder.")
        if self._on_disk(path).is_symlink():
            return SourceMissingError(f"{path} is a link to nothing.", hint="Mend the link, or remove it.")
        return SourceMissingError(f"There is no file {path} in the vault.", hint=self._suggest(path))

    def _locate(self, path: str) -> Path:
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
        return self._vault_path(self._locate(path)) if ".." in PurePosixPath(path).parts else path

    def _on_disk(self, path: str) -> Path:
        """A vault path is UTF-8 in any locale, as it is in any program that syncs a vault."""
        return self._root / os.fsdecode(path.encode())

    @staticmethod
    def _is(what: Callable[[int], bool], place: Path) -> bool:
        try:
            return what(place.stat().st_mode)
        except OSError:
            return False

    def _notes(self, folder: Path) -> Iterator[str]:
        return (path for path in self._files(folder) if _is_note(path))

    def _files(self, folder: Path) -> Iterator[str]:
        """Every file below a folder, as a vault path; hidden ones, and links that leave the vault, are left out.

        A link that leads nowhere is listed, and is an error when it is read.
        """
        for parent, folders, names in os.walk(folder, onerror=self._refuse_folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in names:
                file = Path(parent) / name
                if not name.startswith(".") and self._stays(file):
                    yield self._vault_path(file)

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
        near = get_close_matches(path, list(self._files(self._root)), n=3) if len(path) <= _LONGEST_GUESS else []
        return f"Did you mean {', '.join(near)}?" if near else "Paths are relative to the vault folder."


def _unreadable(path: str, error: OSError) -> SourceUnreadableError:
    return SourceUnreadableError(
        f"{path} cannot be read: {error.strerror or error}.", hint="Check its permissions and the length of its path."
    )


def parse_image(data: bytes, *, media_type: str | None, name: str) -> Image:
    """A picture with its size; an error if its bytes are no picture that models take, or not of the type given."""
    found = next((kind for kind, signature in _SIGNATURES.items() if signature.match(data)), None)
    width, height = imagesize.get(BytesIO(data)) if found else (0, 0)
    if found is None or width <= 0 or height <= 0:
        raise SourceUnreadableError(
            f"{name} is not a picture that models take ({len(data):,} bytes).",
            hint=f"Use one of: {', '.join(_SIGNATURES)}.",
        )
    if media_type not in (None, found):
        raise SourceUnreadableError(
            f"{name} is given as {media_type}, and its bytes are {found}.", hint=f"Give it the media type {found}."
        )
    return make_image_value(data, media_type=found, width=int(width), height=int(height))


def _is_note(name: str) -> bool:
    return name.lower().endswith(".md")
