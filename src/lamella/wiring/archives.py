"""Archives: conversations as markdown, with the vault that their notes are in."""

from pathlib import Path

from lamella.adapters.archive.markdown import load_archive, save_archive
from lamella.adapters.sources.opening import open_sources
from lamella.holdings import Chronicle
from lamella.ports import Archive, Held, Sources


class MarkdownArchive:
    """Conversations as markdown files."""

    def save(self, chronicle: Chronicle, folder: Path, *, file: str | None = None, vault: Path | None = None) -> Path:
        sources = open_sources(vault)() if vault is not None else Sources()
        return save_archive(chronicle, folder, file=file, sources=sources)

    def load(self, path: Path, *, vault: Path | None = None, held: Held | None = None) -> Chronicle:
        return load_archive(path, open_sources(vault)() if vault is not None else None, held=held)


def open_archive() -> Archive:
    """Where conversations are written as files, and read from them.

    Only notes that the vault has just as they were are left to be read from it; without a vault every text rides.
    """
    return MarkdownArchive()
