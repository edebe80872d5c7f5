"""A vault: a folder of notes on disk, read and searched as of one moment, never beyond its root."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePosixPath
from posixpath import normpath

from lamella.core.artifacts.kinds import KINDS, EmbedHandling, SourceMedium, kind_of_file, make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, UnresolvedAttachment
from lamella.core.text.content import normalize_line_ends
from lamella.errors import BadInputError, PathOutsideVaultError, SourceNotFoundError, SourceUnreadableError
from lamella.files import read_regular_file
from lamella.ports import CodeReader, NoteList, SourceReader, SourceReaders
from lamella.sources.dataview.blocks import (
    MAY_CONTAIN_QUERY,
    RESULT_LANGUAGE,
    CatalogFiles,
    QueryReader,
    expand_queries,
)
from lamella.sources.dataview.results import DataviewCache, DataviewEngine, QueryAnswer
from lamella.sources.images import ImageReader, read_attachment_folder, resolve_embed
from lamella.sources.inventory import FileInventory, normalize_name, vault_path, walk_vault
from lamella.sources.markdown import has_tag
from lamella.sources.obsidian import (
    IGNORE_FILE,
    IGNORE_RULE_FILES,
    EmbedExpander,
    IgnoreRules,
    read_ignore_rules,
    render_canvas,
)
from lamella.sources.readers import DocumentReader, OpenConversions, PageReader, VaultFileCache

MAX_FILE_BYTES = 50_000_000
_MAX_SUGGESTION_PATH_LENGTH = 1_000


@dataclass(slots=True)
class _VaultView:
    """The state of one vault snapshot: ignore rules, folder listings, unreadable notes, query answers, aliases."""

    rules: IgnoreRules
    listings: dict[Path, FileInventory] = field(default_factory=dict)
    read_errors: dict[str, str] = field(default_factory=dict)
    answers: DataviewEngine | None = None
    aliases: dict[str, list[str]] | None = None


class Vault:
    """The notes and other files below one folder. Hidden folders such as ``.obsidian`` contain no notes.

    ``conversions`` reads files that are not plain text. ``follows_embeds`` says whether embeds and Dataview queries of
    a note are expanded. ``memory`` caches what was read from files. ``today`` is the day that queries see.
    """

    def __init__(
        self,
        root: Path,
        conversions: OpenConversions | None = None,
        *,
        follows_embeds: bool = True,
        file_cache: VaultFileCache | None = None,
        today: Callable[[], date] | None = None,
        code: CodeReader | None = None,
    ) -> None:
        if not root.is_dir():
            raise SourceNotFoundError(f"There is no vault folder at {root}.", hint="Check the `vault` path.")
        self._root = root.resolve()
        self._follows_embeds = follows_embeds
        self._today = today
        self._file_cache = file_cache or VaultFileCache()
        self._dataview_cache = DataviewCache()
        self._view: _VaultView | None = None
        self._conversions = conversions
        self._code = code

    def open_readers(self) -> SourceReaders:
        """Return readers for everything that can be read of the vault at this moment."""
        glance = self.snapshot()
        warnings: list[str] = []
        pictures = ImageReader(read_bytes=glance.read_bytes)
        readers: dict[SourceMedium, SourceReader] = {
            SourceMedium.FILE: glance,
            SourceMedium.PICTURE: pictures,
            SourceMedium.QUERY: QueryReader(answer_query=glance._answer_query),
        }
        if self._conversions is not None:
            open_them = self._conversions
            documents = DocumentReader(conversions=open_them, locate=self.locate, read_bytes=self.read_bytes)
            pages = PageReader(conversions=open_them, on_warning=warnings.append)
            readers |= {
                SourceMedium.PDF: documents,
                SourceMedium.OFFICE: documents,
                SourceMedium.PAGE: pages,
                SourceMedium.VIDEO: pages,
            }
            readers[SourceMedium.PICTURE] = replace(
                pictures, fetch=lambda url: open_them().read_image(url, report=warnings.append)
            )
        return SourceReaders(readers=readers, catalog=glance, code=self._code, warnings=warnings)

    def snapshot(self) -> "Vault":
        """Return a snapshot of the vault, which lists and searches each folder at most once."""
        # A turn sees one state of the vault, and resolving a link must not walk all folders each time. The snapshot
        # does not check that the folder still exists, because a turn may read nothing from it.
        glance = copy(self)
        glance._view = _VaultView(self._read_rules())
        return glance

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        """Return a file as an artifact: a note with its embeds, a canvas as text, source code unchanged."""
        path = self._normalized_path(attachment.name)
        file = self.get_regular_file(path)
        # Only texts without embeds and queries are cached. The others depend on further files, which may have changed.
        return self._file_cache.artifacts.get_or_compute(
            (file, attachment),
            file,
            partial(self._read_artifact, attachment, path, file),
            is_cacheable=_comes_from_one_file,
        )

    def _read_artifact(self, attachment: UnresolvedAttachment, path: str, file: Path) -> Artifact:
        text = _decode_utf8_text(_read_file(file, path), path)
        embedded: tuple[str, ...] = ()
        if attachment.kind is ArtifactKind.CANVAS:
            text = render_canvas(text, path)
        elif KINDS[attachment.kind].embed_handling is not EmbedHandling.NONE and MAY_CONTAIN_QUERY.search(text):
            text = self._answer_queries(text, path)
        if self._follows_embeds and KINDS[attachment.kind].embed_handling is not EmbedHandling.NONE and "![" in text:
            expansion = EmbedExpander(path, find_notes=self.resolve_link, read_text=self._read_embedded)
            plain = normalize_line_ends(text)
            shown = expansion.expand(plain)
            # Keep the original text if nothing was expanded: ``make_artifact`` normalises once more, and normalising
            # twice would lose a carriage return before the end of a line.
            text = text if shown == plain else shown
            embedded = tuple(expansion.sources)
        source = ArtifactSource(path=path, via=attachment.via, is_rereadable=True, embedded_notes=embedded)
        return make_artifact(
            attachment.kind, text=text, source=source, title=attachment.title, policy=attachment.policy
        )

    def _read_embedded(self, path: str) -> str:
        text = self._file_cache.text(self.get_regular_file(path), lambda: normalize_line_ends(self.read_text(path)))
        return self._answer_queries(text, path) if MAY_CONTAIN_QUERY.search(text) else text

    def _answer_queries(self, text: str, path: str) -> str:
        """Return a note's text with the answers of its queries."""
        return expand_queries(text, lambda query: self._answer_query(query, path))

    def _answer_query(self, query: str, path: str) -> QueryAnswer:
        """Return the answer of a query that is written in the note at ``path``."""
        if not self._follows_embeds:
            return QueryAnswer(error="there is no vault to ask.")
        seen = self._view or _VaultView(self._read_rules())
        if seen.answers is None:
            seen.answers = DataviewEngine(CatalogFiles(self), self._dataview_cache, self._today)
        return seen.answers.answer(query, path=PurePosixPath(path).as_posix())

    def list_notes(self, kind: ArtifactKind, name: str) -> NoteList:
        if KINDS[kind].medium is SourceMedium.TAG:
            return self._list_tagged_notes(name)
        if not self.has_folder(name):
            self.locate(name)
            raise SourceNotFoundError(f"There is no folder {name} in the vault.", hint=self._make_suggestion_hint(name))
        found = self._list_folder(self.locate(name))
        return NoteList(
            paths=self._without_archives(found.notes), skipped_links=found.unfollowed_symlinks, left_out=found.left_out
        )

    def _list_tagged_notes(self, tag: str) -> NoteList:
        seen = self._view or _VaultView(IgnoreRules())
        found = self._list_folder(self._root)
        tagged = tuple(path for path in found.notes if has_tag(self._read_note_tags(path, seen), tag))
        paths = self._without_archives(tagged)
        return NoteList(
            paths=paths,
            skipped_links=found.unfollowed_symlinks,
            unreadable=tuple(seen.read_errors.values()),
            left_out=found.left_out,
        )

    def _without_archives(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the notes that are no archived conversations.

        An archive repeats the notes that its questions attached. It is read only if it is named by its path.
        """
        return tuple(path for path in paths if not self._file_cache.is_archive(self._path_on_disk(path)))

    def list_all_note_paths(self) -> Sequence[str]:
        """Return the paths of all notes of the vault, sorted."""
        return self._list_folder(self._root).notes

    def list_tags(self) -> Sequence[str]:
        """Return the normalised tags of all notes, sorted; unreadable notes have none."""
        seen = self._view or _VaultView(IgnoreRules())
        return sorted({tag for path in self._list_folder(self._root).notes for tag in self._read_note_tags(path, seen)})

    def list_files(self) -> Sequence[str]:
        """Return the paths of all files of the vault, sorted."""
        return self._list_folder(self._root).files

    def has_folder(self, path: str) -> bool:
        return self._has_entry(stat.S_ISDIR, path)

    def has_file(self, path: str) -> bool:
        return self._has_entry(stat.S_ISREG, path)

    def find_notes_named(self, name: str) -> Sequence[str]:
        return self._list_folder(self._root).find_notes_named(name) or self._list_aliases().get(
            normalize_name(name), []
        )

    def resolve_link(self, target: str, note_path: str) -> Sequence[str]:
        """Return the notes that a link in the note ``note_path`` can mean.

        The link is tried relative to that note, from the root, by name, and by alias. If several notes have the name,
        a single one in the same folder wins.
        """
        folder = PurePosixPath(note_path).parent
        for path in (folder / target, PurePosixPath(target.lstrip("/"))):
            plain = normpath(path.as_posix())
            if any(part.startswith(".") for part in plain.split("/")):
                continue
            exact = [
                name
                for name in (plain, f"{plain}.md")
                if kind_of_file(name) is ArtifactKind.NOTE and self.has_file(name)
            ]
            if exact:
                return exact[:1]
        notes = self.find_notes_named(target)
        nearby = [path for path in notes if PurePosixPath(path).parent == folder]
        return nearby if len(nearby) == 1 else notes

    def find_identical_files(self, artifact: Artifact) -> Sequence[str]:
        """Return the files of an artifact's kind that have exactly its text."""
        return tuple(path for path in self._list_folder(self._root).files if self._has_same_text(path, artifact))

    def resolve_embed_path(self, target: str, *, note_path: str) -> str:
        return resolve_embed(
            target,
            note_path=note_path,
            has_file=self.has_file,
            find_files_named=lambda name: self._list_folder(self._root).find_other_files_named(name),
            get_attachment_folder=lambda: read_attachment_folder(self.read_text),
        )

    def read_text(self, path: str) -> str:
        """Return a file's text.

        Raises:
            SourceUnreadableError: The file is not UTF-8 or cannot be read.
        """
        return _decode_utf8_text(self.read_bytes(path), path)

    def read_bytes(self, path: str) -> bytes:
        """Return a file's bytes; an error says why they cannot be read."""
        return _read_file(self.get_regular_file(path), path)

    def stat_file(self, path: str) -> os.stat_result:
        """Return the disk status of a file that a walk found; ``OSError`` if the file is gone."""
        return self._path_on_disk(path).stat()

    def locate(self, path: str) -> Path:
        """Return the file that a relative path names, after following links.

        Raises:
            PathOutsideVaultError: The path is absolute or leads out of the vault.
            SourceNotFoundError: The path is not usable, or is a link to itself.
        """
        try:
            disk_path = self._path_on_disk(path).resolve()
            # resolve() accepts some unusable paths, such as too long names. exists() raises OSError for them.
            disk_path.exists()
        except RuntimeError as error:
            raise SourceNotFoundError(f"{path} is a link to itself.", hint="Mend the link, or remove it.") from error
        except (OSError, ValueError) as error:
            raise SourceNotFoundError(f"{path!r} is not a usable path.", hint="Check the path.") from error
        if PurePosixPath(path).is_absolute() or not disk_path.is_relative_to(self._root):
            raise PathOutsideVaultError(
                f"{path} is outside the vault {self._root.name}.",
                hint="Use a path relative to the vault that does not leave it, also not through a link.",
            )
        return disk_path

    def get_regular_file(self, path: str) -> Path:
        """Return the regular file at a path; an error says why there is none or why it is hidden."""
        file = self.locate(path)
        if not _has_file_type(stat.S_ISREG, file):
            raise self._file_not_found_error(path, file)
        if self._is_hidden(path, file):
            raise SourceNotFoundError(
                f"{path} is left out of this vault by {IGNORE_FILE}.", hint="Change the rule there to have it read."
            )
        return file

    def _has_entry(self, is_type: Callable[[int], bool], path: str) -> bool:
        """Return whether a path has an entry of this type and no rule hides it.

        ``is_type`` is a test of the mode such as ``stat.S_ISDIR``.
        """
        try:
            disk_path = self.locate(path)
        except (PathOutsideVaultError, SourceNotFoundError):
            return False
        return _has_file_type(is_type, disk_path) and not self._is_hidden(path, disk_path)

    def _is_hidden(self, path: str, file: Path) -> bool:
        rules = self._view.rules if self._view is not None else self._read_rules()
        if rules.spec is None:
            return False
        mark = "/" if file.is_dir() else ""
        named = PurePosixPath(path).as_posix()
        # Check the link's own path and its target: a rule for either hides the file.
        return rules.is_hidden(named + mark) or rules.is_hidden(vault_path(file, self._root) + mark)

    def _read_rules(self) -> IgnoreRules:
        has_rules = any((self._root / name).exists() for name in IGNORE_RULE_FILES)
        return read_ignore_rules(self._root) if has_rules else IgnoreRules()

    def _file_not_found_error(self, path: str, file: Path) -> SourceNotFoundError:
        if file.exists():
            return SourceNotFoundError(f"{path} is not a file.", hint="Attach a file, or a folder as a folder.")
        if self._path_on_disk(path).is_symlink():
            return SourceNotFoundError(f"{path} is a link to nothing.", hint="Mend the link, or remove it.")
        return SourceNotFoundError(f"There is no file {path} in the vault.", hint=self._make_suggestion_hint(path))

    def _normalized_path(self, path: str) -> str:
        """Return the path used as id, without detours: ``a/../b.md`` and ``b.md`` are the same note.

        A name that has several Unicode forms is converted to the form on disk.
        """
        named = vault_path(self.locate(path), self._root) if ".." in PurePosixPath(path).parts else path
        if path.isascii() or self.has_file(named):
            return named
        same = self._list_folder(self._root).find_files_at(named)
        return same[0] if len(same) == 1 else named

    def _path_on_disk(self, path: str) -> Path:
        """Return the path on disk, before links are followed.

        File names are UTF-8 in every locale, as sync programs write them.
        """
        return self._root / os.fsdecode(path.encode())

    def _list_aliases(self) -> dict[str, list[str]]:
        """Return the notes by their normalised aliases. Unreadable notes have none."""
        if self._view is not None and self._view.aliases is not None:
            return self._view.aliases
        found: dict[str, list[str]] = {}
        for path in self._list_folder(self._root).notes:
            with suppress(OSError):
                for alias in {normalize_name(alias) for alias in self._file_cache.aliases(self._path_on_disk(path))}:
                    found.setdefault(alias, []).append(path)
        if self._view is not None:
            self._view.aliases = found
        return found

    def _read_note_tags(self, path: str, view: _VaultView) -> frozenset[str]:
        """Return the tags of a note. An unreadable note has none and does not stop the search in other notes."""
        if path in view.read_errors:
            return frozenset()
        try:
            return self._file_cache.tags(self._path_on_disk(path), lambda: self.read_text(path))
        except BadInputError as error:
            view.read_errors[path] = error.message
            return frozenset()

    def _has_same_text(self, path: str, artifact: Artifact) -> bool:
        if kind_of_file(path) is not artifact.kind:
            return False
        try:
            # Most files differ in size, which is cheap to compare. The size says nothing about an artifact that
            # contains embeds, query answers or a rendered canvas.
            size = self.stat_file(path).st_size
            whole = (
                not artifact.source.embedded_notes
                and RESULT_LANGUAGE not in artifact.text
                and artifact.kind is not ArtifactKind.CANVAS
            )
            if whole and not _could_contain_text(size, artifact.text):
                return False
            return self.read(UnresolvedAttachment(kind=artifact.kind, name=path)).hash == artifact.hash
        except (BadInputError, OSError):
            return False

    def _list_folder(self, folder: Path) -> FileInventory:
        if self._view is None:
            return walk_vault(self._root, folder, self._read_rules())
        if folder not in self._view.listings:
            self._view.listings[folder] = walk_vault(self._root, folder, self._view.rules)
        return self._view.listings[folder]

    def _make_suggestion_hint(self, path: str) -> str:
        similar = (
            get_close_matches(path, self._list_folder(self._root).files, n=3)
            if len(path) <= _MAX_SUGGESTION_PATH_LENGTH
            else []
        )
        return f"Did you mean {', '.join(similar)}?" if similar else "Paths are relative to the vault folder."


def _comes_from_one_file(artifact: Artifact) -> bool:
    """Return whether all of an artifact's text comes from one file.

    Embeds that were expanded no longer show as ``![`` in the text, so the recorded sources are checked too.
    """
    return (
        not artifact.source.embedded_notes and "![" not in artifact.text and not MAY_CONTAIN_QUERY.search(artifact.text)
    )


def _could_contain_text(size: int, text: str) -> bool:
    """Return whether a file of this size can have this text.

    Normalisation removes a byte order mark (3 bytes) and the carriage return of each line, so the file may be longer.
    """
    least = len(text.encode())
    return least <= size <= least + 3 + text.count("\n")


def _has_file_type(is_type: Callable[[int], bool], path: Path) -> bool:
    try:
        return is_type(path.stat().st_mode)
    except OSError:
        return False


def _read_file(file: Path, path: str) -> bytes:
    try:
        hint = "Attach a selection of it, or split the file."
        return read_regular_file(file, limit=MAX_FILE_BYTES, name=path, hint=hint)
    except OSError as error:
        raise SourceUnreadableError(
            f"{path} cannot be read: {error.strerror or error}.",
            hint="Check its permissions and the length of its path.",
        ) from error


def _decode_utf8_text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SourceUnreadableError(
            f"{path} is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
            hint="Save the file as UTF-8, or detach it.",
        ) from error
