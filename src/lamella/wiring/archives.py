"""Archives: conversations as markdown, with the vault that their notes are in."""

from pathlib import Path

from lamella.adapters.archive.markdown import load_archive, save_archive
from lamella.adapters.private import close_file, make_own_folder
from lamella.adapters.sources.opening import open_sources
from lamella.holdings import Chronicle
from lamella.ports import Archive, Held, Sources


class MarkdownArchive:
    """Conversations as markdown files."""

    def save(self, chronicle: Chronicle, folder: Path, *, vault: Path | None = None) -> Path:
        known = frozenset(folder.iterdir()) if folder.is_dir() else None
        saved = save_archive(chronicle, folder, sources=open_sources(vault)() if vault is not None else Sources())
        # Whoever opened a file or folder of theirs to others meant it.
        if known is None:
            make_own_folder(folder)
        if known is None or saved not in known:
            close_file(saved)
        return saved

    def load(self, path: Path, *, vault: Path | None = None, held: Held | None = None) -> Chronicle:
        return load_archive(path, open_sources(vault)() if vault is not None else None, held=held)


def open_archive() -> Archive:
    """Where conversations are written as files, and read from them.

    Only notes that the vault has just as they were are left to be read from it; without a vault every text rides.
    """
    return MarkdownArchive()
