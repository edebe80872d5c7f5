"""Grounds: where a name is looked for. A vault, which nothing leads out of; or, without one, the current folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from lamella.adapters.sources.opening import open_sources
from lamella.adapters.sources.readers import OpenConversions
from lamella.adapters.sources.vault import Vault
from lamella.attach import Attachment, Code, Folder, Note, Picture, Tag, describe_file
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.core.values import replace
from lamella.errors import SourceMissingError, SourceOutsideError, SourceUnreadableError


class Ground(Protocol):
    """Where names mean something."""

    def has_file(self, name: str) -> bool: ...

    def has_folder(self, name: str) -> bool: ...

    def surrounds(self, name: str) -> bool:
        """Whether a folder is where one stands or above it, and nobody said how far that may reach."""
        ...

    def find_note(self, name: str) -> Sequence[str]:
        """The notes of this name, which has no ending: by their path, else wherever they are."""
        ...

    def name(self, path: str) -> str:
        """What a path is called here."""
        ...

    def attach_file(self, path: str) -> Attachment: ...

    def attach_folder(self, name: str) -> tuple[Sequence[Attachment], int]:
        """What brings the notes of a folder along, and how many they are."""
        ...

    def attach_tag(self, name: str) -> tuple[Sequence[Attachment], int]:
        """What brings the notes with a tag along, and how many they are."""
        ...

    def read_text(self, path: str) -> str: ...

    def list_near(self, path: PurePosixPath) -> Sequence[str]:
        """Files that somebody may have meant by a path."""
        ...

    def miss(self, path: str) -> SourceMissingError | SourceOutsideError:
        """Why a path names nothing here."""
        ...


class VaultGround:
    """A vault: paths are relative to it, and read with each turn; notes are found by their names alone, too."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._vault = Vault(root).glance()

    def has_file(self, name: str) -> bool:
        return self._vault.has_file(self.name(name))

    def has_folder(self, name: str) -> bool:
        return self._vault.has_folder(self.name(name))

    def surrounds(self, name: str) -> bool:
        return False  # a vault was named, and is as large as it is

    def find_note(self, name: str) -> Sequence[str]:
        try:
            return self._vault.find_note(name)
        except SourceUnreadableError:
            return ()  # a folder that cannot be looked into is no reason to refuse a message that calls somebody @jo

    def name(self, path: str) -> str:
        """The path in the vault; one that a shell completed, from the current folder, is meant too."""
        try:
            if (self._root / path).exists() and not Path(path).is_absolute():
                return path
            return Path(path).resolve().relative_to(self._root.resolve()).as_posix()
        except (OSError, RuntimeError, ValueError):
            return path

    def attach_file(self, path: str) -> Attachment:
        described = describe_file(self.name(path))
        if isinstance(described, Note | Code):
            # It is read with each turn; what cannot be read then is not to be called attached now.
            self.read_text(path)
        return described

    def attach_folder(self, name: str) -> tuple[Sequence[Attachment], int]:
        return self._attach_notes(Folder(path=self.name(name.rstrip("/"))))

    def attach_tag(self, name: str) -> tuple[Sequence[Attachment], int]:
        return self._attach_notes(Tag(tag=name))

    def _attach_notes(self, notes: Folder | Tag) -> tuple[Sequence[Attachment], int]:
        wanted = notes.attachment()
        return [notes], len(self._vault.list_notes(wanted.kind, wanted.name).paths)

    def read_text(self, path: str) -> str:
        return self._vault.read_text(self.name(path))

    def list_near(self, path: PurePosixPath) -> Sequence[str]:
        return self._vault.list_notes(Kind.FOLDER, ".").paths

    def miss(self, path: str) -> SourceMissingError | SourceOutsideError:
        try:
            self._vault.find_plain(self.name(path))
        except (SourceMissingError, SourceOutsideError) as error:
            return error
        return SourceMissingError(
            f"There is no file {path} in the vault.", hint="Paths are relative to the vault folder."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderNote(Note):
    """A note that came with a folder, which is named when not all of its notes fit."""

    folder: str

    def attachment(self) -> Artifact | Wanted:
        made = super(FolderNote, self).attachment()
        if isinstance(made, Wanted):
            return made
        via = f"{Kind.FOLDER}:{self.folder.rstrip('/') or '/'}"
        return replace(made, source=replace(made.source, via=via))


class LooseGround:
    """No vault: paths lead from the current folder, and what they name is read at once, under the path as typed."""

    def __init__(self, conversions: OpenConversions | None = None) -> None:
        self._conversions = conversions

    def has_file(self, name: str) -> bool:
        try:
            place = Path(name)
            return bool(name) and place.exists() and not place.is_dir()
        except (OSError, ValueError):
            return False

    def has_folder(self, name: str) -> bool:
        try:
            return bool(name) and Path(name).is_dir()
        except (OSError, ValueError):
            return False

    def surrounds(self, name: str) -> bool:
        return Path.cwd().is_relative_to(Path(name).resolve())

    def find_note(self, name: str) -> Sequence[str]:
        return [path] if self.has_file(path := f"{name}.md") else []

    def name(self, path: str) -> str:
        return path

    def attach_file(self, path: str) -> Attachment:
        described = describe_file(path)
        place = Path(path)
        # What a note embeds or asks would be looked for below a folder that nobody named: it may hold all of a disk.
        look = open_sources(place.parent, self._conversions, follows_embeds=False)
        read = look().read(type(described)(path=place.name).wanted())
        if isinstance(described, Picture):
            image = read.images[0]
            return Picture(data=image.data, media_type=image.media_type, path=path)
        return type(described)(path=path, text=read.text)

    def attach_tag(self, name: str) -> tuple[Sequence[Attachment], int]:
        # Whatever folder somebody stands in may hold all of a disk; a vault is a folder that was named.
        raise SourceMissingError(
            f"There is no vault to look for {name} in.", hint=lambda door: f"Name one with {door.option('vault')}."
        )

    def attach_folder(self, name: str) -> tuple[Sequence[Attachment], int]:
        vault = Vault(Path(name)).glance()
        notes = [
            FolderNote(path=(PurePosixPath(name) / path).as_posix(), text=vault.read_text(path), folder=name)
            for path in vault.list_notes(Kind.FOLDER, ".").paths
        ]
        return notes, len(notes)

    def read_text(self, path: str) -> str:
        return open_sources(Path(path).parent)().read(Code(path=Path(path).name).wanted()).text

    def list_near(self, path: PurePosixPath) -> Sequence[str]:
        beside = sorted(Path(path.parent).iterdir())
        return [(path.parent / place.name).as_posix() for place in beside if place.is_file()]

    def miss(self, path: str) -> SourceMissingError | SourceOutsideError:
        home = " Write a home out: ~ is one for a shell." if path.startswith("~") else ""
        return SourceMissingError(f"There is no file {path}.", hint=f"Paths are relative to the current folder.{home}")


def stand_on(vault: Path | None, conversions: OpenConversions | None = None) -> Ground:
    """The ground of a vault, or of the current folder where there is none; ``conversions`` read what is read there."""
    return LooseGround(conversions) if vault is None else VaultGround(vault)
