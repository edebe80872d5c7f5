"""Archives: conversations as markdown, with the vault that their notes are in."""

from pathlib import Path

from lamella.adapters.archive.markdown import load_archive as load
from lamella.adapters.archive.markdown import save_archive as save
from lamella.adapters.sources.opening import open_sources
from lamella.engine.keeping.conversations import Conversations
from lamella.holdings import Chronicle
from lamella.ports import Held, Sources


class MarkdownArchive:
    """Conversations as markdown files."""

    def save(self, chronicle: Chronicle, folder: Path, *, vault: Path | None = None) -> Path:
        return save(chronicle, folder, sources=open_sources(vault)() if vault is not None else Sources())

    def load(self, path: Path, *, vault: Path | None = None, held: Held | None = None) -> Chronicle:
        return load(path, open_sources(vault)() if vault is not None else None, held=held)


def save_archive(chronicle: Chronicle, folder: Path, *, vault: Path | None = None) -> Path:
    """Write a conversation as markdown; its id decides the file.

    Only notes that the vault has just as they were are left to be read from it; without a vault every text rides.
    """
    return MarkdownArchive().save(chronicle, folder, vault=vault)


def load_archive(path: Path, *, vault: Path | None = None, conversations: Conversations | None = None) -> Chronicle:
    """Read a conversation from markdown; its notes from what a store already holds of it, else from a vault."""
    return MarkdownArchive().load(path, vault=vault, held=conversations.read_contents if conversations else None)
