"""Readers for sources that have to be converted to text, and the cache of vault files.

``DocumentReader`` reads PDFs and office files, ``PageReader`` web pages and videos. ``VaultFileCache`` has texts,
tags, aliases and artifacts of vault files; they are valid while the files are unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import time_ns
from typing import TYPE_CHECKING

from lamella.core.artifacts.kinds import KINDS, SourceMedium, make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactSource, UnresolvedAttachment
from lamella.files import FileCache, read_first_bytes
from lamella.plugins import KindReader, PluginGroup, ReadText, find_plugin, open_with_plugin
from lamella.sources.converters import FileFormat
from lamella.sources.markdown import (
    find_front_matter,
    is_conversation_archive,
    normalize_tag,
    parse_front_matter,
    parse_note,
    read_aliases,
)

if TYPE_CHECKING:
    from lamella.sources.converted_files import CachedSourceReader, ConversionEntry

_WEB_SCHEMES = ("http", "https")
# Makes the object that converts pages, PDFs and office files. It is called only when the first of them is read, since
# importing the converters takes time.
OpenConversions = Callable[[], "CachedSourceReader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReader:
    """Reads PDFs and office files of a vault.

    ``locate`` resolves a path and refuses one outside the vault. ``read_bytes`` reads a file within the size limit.
    """

    conversions: OpenConversions
    locate: Callable[[str], Path]
    read_bytes: Callable[[str], bytes]

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        path = self.locate(attachment.name)
        found = self.conversions().read_document(
            path,
            name=attachment.name,
            read_bytes=lambda: self.read_bytes(attachment.name),
            form=FileFormat.PDF if KINDS[attachment.kind].medium is SourceMedium.PDF else None,
            fresh=attachment.read_again,
        )
        source = ArtifactSource(
            path=self._normalized_path(attachment.name, path), via=attachment.via, is_rereadable=True
        )
        # Use the file name as title. The title inside a document is often that of the document it was copied from.
        return _to_artifact(attachment, found, source, title=attachment.title)

    def _normalized_path(self, path: str, file: Path) -> str:
        """Return the path used as id, without detours: ``a/../b.pdf`` and ``b.pdf`` are the same file."""
        return file.relative_to(self.locate(".")).as_posix() if ".." in PurePosixPath(path).parts else path


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReader:
    """Reads web pages and videos; warnings about them are passed to ``on_warning``."""

    conversions: OpenConversions
    on_warning: Callable[[str], None]

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        kind, _, name = attachment.name.partition(":")
        reader: KindReader | None = find_plugin(PluginGroup.KINDS, kind)
        if reader is not None and kind not in _WEB_SCHEMES:
            return _read_with_plugin(reader, attachment, kind=kind, name=name)
        if KINDS[attachment.kind].medium is SourceMedium.VIDEO:
            found = self.conversions().read_video(
                attachment.kind, attachment.name, fresh=attachment.read_again, report=self.on_warning
            )
        else:
            found = self.conversions().read_page(
                attachment.kind, attachment.name, fresh=attachment.read_again, report=self.on_warning
            )
        source = ArtifactSource(url=attachment.name, via=attachment.via, is_rereadable=True)
        return _to_artifact(attachment, found, source, title=attachment.title or found.title)


def _read_with_plugin(reader: KindReader, attachment: UnresolvedAttachment, *, kind: str, name: str) -> Artifact:
    """Return what a plugin reads; its errors name it, and nothing is attached."""
    found = open_with_plugin(
        PluginGroup.KINDS, kind, lambda: reader(name), is_right=lambda given: isinstance(given, ReadText)
    )
    return make_artifact(
        attachment.kind,
        text=found.text,
        source=ArtifactSource(url=attachment.name, via=attachment.via, is_rereadable=True),
        title=attachment.title or found.title,
        policy=attachment.policy,
    )


def _to_artifact(
    attachment: UnresolvedAttachment, found: "ConversionEntry", source: ArtifactSource, *, title: str
) -> Artifact:
    return make_artifact(attachment.kind, text=found.text or "", source=source, title=title, policy=attachment.policy)


# The cache of vault files.

_MAX_CACHED_CHARACTERS = 64_000_000
_MAX_CACHED_NOTES = 200_000
# How much of a note is read to find its front matter, in bytes. Most front matter ends within the first size. Front
# matter that does not end within the second is ignored.
_HEAD_SIZES = (4_096, 200_000)


class VaultFileCache:
    """Artifacts, texts, tags and aliases by file.

    Artifacts and texts are limited to 64 million characters each; the least recently used go first.
    """

    def __init__(self, *, now_ns: Callable[[], int] = time_ns) -> None:
        self.artifacts: FileCache[Artifact] = FileCache(
            max_weight=_MAX_CACHED_CHARACTERS, get_weight=lambda made: len(made.text), now_ns=now_ns
        )
        self._texts: FileCache[str] = FileCache(max_weight=_MAX_CACHED_CHARACTERS, get_weight=len, now_ns=now_ns)
        self._tags: FileCache[frozenset[str]] = FileCache(max_weight=_MAX_CACHED_NOTES, now_ns=now_ns)
        self._aliases: FileCache[tuple[str, ...]] = FileCache(max_weight=_MAX_CACHED_NOTES, now_ns=now_ns)
        self._archives: FileCache[bool] = FileCache(max_weight=_MAX_CACHED_NOTES, now_ns=now_ns)

    def text(self, file: Path, read_text: Callable[[], str]) -> str:
        """Return the text of a note that other notes embed."""
        return self._texts.get_or_compute(file, file, read_text)

    def tags(self, file: Path, read_text: Callable[[], str]) -> frozenset[str]:
        """Return the normalised tags of a note."""
        return self._tags.get_or_compute(
            file, file, lambda: frozenset(map(normalize_tag, parse_note(read_text()).tags))
        )

    def is_archive(self, file: Path) -> bool:
        """Return whether a note is an archived conversation, reading only its beginning; false if it is unreadable."""
        try:
            return self._archives.get_or_compute(file, file, lambda: _is_archive(file))
        except OSError:
            return False

    def aliases(self, file: Path) -> tuple[str, ...]:
        """Return the aliases of a note, reading only its front matter; ``OSError`` if it cannot be read."""
        return self._aliases.get_or_compute(file, file, lambda: _read_aliases(file))


def _is_archive(file: Path) -> bool:
    return is_conversation_archive(read_first_bytes(file, limit=_HEAD_SIZES[0]).decode(errors="replace"))


def _read_aliases(file: Path) -> tuple[str, ...]:
    for limit in _HEAD_SIZES:
        head = read_first_bytes(file, limit=limit).decode(errors="replace")
        if not head.removeprefix("\ufeff").startswith("---"):
            return ()
        begin, end, body = find_front_matter(head)
        if body:
            block = head[begin:end]
            return tuple(read_aliases(parse_front_matter(block)[0])) if "alias" in block.casefold() else ()
    return ()
