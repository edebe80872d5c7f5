"""Path resolvers: turn the names that users write into files of a vault or of the current folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from lamella.attach import Attachment, Code, Folder, Image, Note, Tag, attachment_for_path
from lamella.core.artifacts.model import Artifact, ArtifactKind, UnresolvedAttachment
from lamella.core.values import replace
from lamella.errors import PathOutsideVaultError, SourceNotFoundError, SourceUnreadableError
from lamella.sources.open_sources import make_source_opener
from lamella.sources.readers import OpenConversions
from lamella.sources.vault import Vault

# A word in a message attaches a larger folder only if it ends in a slash: it may be a person's handle.
_MAX_MENTIONED_NOTES = 50


class PathResolver(Protocol):
    """Resolves names to files, folders, notes and tags."""

    def has_file(self, name: str) -> bool: ...

    def has_folder(self, name: str) -> bool: ...

    def check_mentioned_folder(self, name: str) -> None:
        """Raise ``SourceNotFoundError`` if a folder is too large for a word in a message to attach it.

        In a vault every folder may be attached, because the user chose the vault.
        """
        ...

    def find_notes_named(self, name: str) -> Sequence[str]:
        """Return the notes of this name, which is written without ``.md``: by path, or else in any folder."""
        ...

    def display_path(self, path: str) -> str:
        """Return the path under which a file is attached and shown."""
        ...

    def get_file_attachment(self, path: str) -> Attachment: ...

    def get_folder_attachments(self, name: str) -> tuple[Sequence[Attachment], int]:
        """Return the attachments for the notes of a folder, and the number of notes."""
        ...

    def attach_tag(self, name: str) -> tuple[Sequence[Attachment], int]:
        """Return the attachments for the notes with a tag, and the number of notes."""
        ...

    def list_tags(self) -> Sequence[str]:
        """Return the tags of all notes, sorted; empty without a vault."""
        ...

    def read_text(self, path: str) -> str: ...

    def list_suggestion_candidates(self, path: PurePosixPath) -> Sequence[str]:
        """Return files that the user may have meant by a path, for suggestions."""
        ...

    def not_found_error(self, path: str) -> SourceNotFoundError | PathOutsideVaultError:
        """Return the error that says why a path names nothing here."""
        ...


class VaultPathResolver:
    """Resolves names in a vault.

    Paths are relative to the vault. A note is also found by its name alone. Attachments are references that are read
    again with each turn.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._vault = Vault(root).snapshot()

    def has_file(self, name: str) -> bool:
        return self._vault.has_file(self.display_path(name))

    def has_folder(self, name: str) -> bool:
        return self._vault.has_folder(self.display_path(name))

    def check_mentioned_folder(self, name: str) -> None:
        """Do nothing: the user chose the vault, however large it is."""

    def find_notes_named(self, name: str) -> Sequence[str]:
        try:
            return self._vault.find_notes_named(name)
        except SourceUnreadableError:
            return ()  # an unreadable folder must not reject a message that mentions a person as @jo

    def display_path(self, path: str) -> str:
        """Return the path relative to the vault.

        A path relative to the current folder is accepted too, because shells complete paths from there.
        """
        try:
            if (self._root / path).exists() and not Path(path).is_absolute():
                return path
            return Path(path).resolve().relative_to(self._root.resolve()).as_posix()
        except (OSError, RuntimeError, ValueError):
            return path

    def get_file_attachment(self, path: str) -> Attachment:
        described = attachment_for_path(self.display_path(path))
        if isinstance(described, Note | Code):
            # The file is read again with each turn. Read it now too, so that an unreadable file is reported at once.
            self.read_text(path)
        return described

    def get_folder_attachments(self, name: str) -> tuple[Sequence[Attachment], int]:
        return self._attach_notes(Folder(path=self.display_path(name.rstrip("/"))))

    def attach_tag(self, name: str) -> tuple[Sequence[Attachment], int]:
        return self._attach_notes(Tag(tag=name))

    def _attach_notes(self, notes: Folder | Tag) -> tuple[Sequence[Attachment], int]:
        attachment = notes.to_artifact()
        return [notes], len(self._vault.list_notes(attachment.kind, attachment.name).paths)

    def list_tags(self) -> Sequence[str]:
        return self._vault.list_tags()

    def read_text(self, path: str) -> str:
        return self._vault.read_text(self.display_path(path))

    def list_suggestion_candidates(self, path: PurePosixPath) -> Sequence[str]:
        return self._vault.list_all_note_paths()

    def not_found_error(self, path: str) -> SourceNotFoundError | PathOutsideVaultError:
        try:
            self._vault.get_regular_file(self.display_path(path))
        except (SourceNotFoundError, PathOutsideVaultError) as error:
            return error
        return SourceNotFoundError(
            f"There is no file {path} in the vault.", hint="Paths are relative to the vault folder."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderNote(Note):
    """A note that was attached as part of a folder.

    The folder is recorded as the artifact's origin (``via``), so that it can be named if not all of its notes fit.
    """

    folder: str

    def to_artifact(self) -> Artifact | UnresolvedAttachment:
        # ``slots=True`` makes a second class object, so ``super()`` without arguments would refer to the wrong one.
        made = super(FolderNote, self).to_artifact()
        if isinstance(made, UnresolvedAttachment):
            return made
        via = f"{ArtifactKind.FOLDER}:{self.folder.rstrip('/') or '/'}"
        return replace(made, source=replace(made.source, via=via))


class VaultlessPathResolver:
    """Resolves names without a vault.

    Paths are relative to the current folder. Files are read at once and attached with their text, under the path as
    typed.
    """

    def __init__(self, conversions: OpenConversions | None = None) -> None:
        self._conversions = conversions

    def has_file(self, name: str) -> bool:
        try:
            path = Path(name)
            return bool(name) and path.exists() and not path.is_dir()
        except (OSError, ValueError):
            return False

    def has_folder(self, name: str) -> bool:
        try:
            return bool(name) and Path(name).is_dir()
        except (OSError, ValueError):
            return False

    def check_mentioned_folder(self, name: str) -> None:
        if Path.cwd().is_relative_to(Path(name).resolve()):
            raise SourceNotFoundError(
                f"{name} holds the current folder.",
                hint=lambda hints: f"Name a folder in it, or have it as a vault with {hints.option_hint('vault')}.",
            )
        if name.endswith("/"):
            return
        count = len(Vault(Path(name)).snapshot().list_notes(ArtifactKind.FOLDER, ".").paths)
        if count > _MAX_MENTIONED_NOTES:
            raise SourceNotFoundError(
                f"{name} is a folder with {count:,} notes.",
                hint=lambda hints: (
                    f"Write @{name}/ to attach all of them, or have it as a vault with {hints.option_hint('vault')}."
                ),
            )

    def find_notes_named(self, name: str) -> Sequence[str]:
        return [path] if self.has_file(path := f"{name}.md") else []

    def display_path(self, path: str) -> str:
        return path

    def get_file_attachment(self, path: str) -> Attachment:
        described = attachment_for_path(path)
        file = Path(path)
        # Do not follow embeds or queries. They would be searched below a folder that the user did not choose as a
        # vault and that may contain the whole disk.
        opened = make_source_opener(file.parent, self._conversions, follows_embeds=False)
        read = opened().read(type(described)(path=file.name).to_unresolved())
        if isinstance(described, Image):
            image = read.images[0]
            return Image(data=image.data, media_type=image.media_type, path=path)
        return type(described)(path=path, text=read.text)

    def attach_tag(self, name: str) -> tuple[Sequence[Attachment], int]:
        # Do not search the current folder for a tag: it may contain the whole disk. A vault is chosen by the user.
        raise SourceNotFoundError(
            f"There is no vault to look for {name} in.",
            hint=lambda hints: f"Name one with {hints.option_hint('vault')}.",
        )

    def get_folder_attachments(self, name: str) -> tuple[Sequence[Attachment], int]:
        vault = Vault(Path(name)).snapshot()
        notes = [
            FolderNote(path=(PurePosixPath(name) / path).as_posix(), text=vault.read_text(path), folder=name)
            for path in vault.list_notes(ArtifactKind.FOLDER, ".").paths
        ]
        return notes, len(notes)

    def list_tags(self) -> Sequence[str]:
        return ()

    def read_text(self, path: str) -> str:
        return make_source_opener(Path(path).parent)().read(Code(path=Path(path).name).to_unresolved()).text

    def list_suggestion_candidates(self, path: PurePosixPath) -> Sequence[str]:
        beside = sorted(Path(path.parent).iterdir())
        return [(path.parent / entry.name).as_posix() for entry in beside if entry.is_file()]

    def not_found_error(self, path: str) -> SourceNotFoundError | PathOutsideVaultError:
        home_hint = " Write a home out: ~ is one for a shell." if path.startswith("~") else ""
        return SourceNotFoundError(
            f"There is no file {path}.", hint=f"Paths are relative to the current folder.{home_hint}"
        )


def make_path_resolver(vault: Path | None, conversions: OpenConversions | None = None) -> PathResolver:
    """Return the path resolver of a vault, or of the current folder if there is no vault.

    ``conversions`` reads PDFs and office files; only the resolver without a vault uses it, as it reads files at once.
    """
    return VaultlessPathResolver(conversions) if vault is None else VaultPathResolver(vault)
