"""Markdown archives of conversations, opened with the vault that contains their notes."""

from collections.abc import Callable
from pathlib import Path

from lamella.archive.markdown import load_archive, save_archive
from lamella.ports import Archive, ConversationExport, ReadContents, SourceReaders
from lamella.sources.open_sources import make_source_opener


class MarkdownArchive:
    """Reads and writes conversations as markdown files."""

    def save(
        self, export: ConversationExport, folder: Path, *, file: str | None = None, vault: Path | None = None
    ) -> Path:
        sources = make_source_opener(vault)() if vault is not None else SourceReaders()
        return save_archive(export, folder, file=file, sources=sources)

    def load(
        self,
        path: Path,
        *,
        vault: Path | None = None,
        read_contents: ReadContents | None = None,
        is_erased: Callable[[str], bool] | None = None,
    ) -> ConversationExport:
        sources = make_source_opener(vault)() if vault is not None else None
        return load_archive(path, sources, read_contents=read_contents, is_erased=is_erased)


def open_archive() -> Archive:
    """Return the archive that writes conversations to files and reads them back.

    Notes that the vault has in identical form are not copied into the archive. Without a vault every text is included.
    """
    return MarkdownArchive()
