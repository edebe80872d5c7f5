"""Archives: conversations as markdown, with the vault that their notes are in."""

from pathlib import Path

from lamella.adapters.archive.markdown import load_archive as load
from lamella.adapters.archive.markdown import save_archive as save
from lamella.adapters.sources.nowhere import Nowhere
from lamella.adapters.sources.vault import Vault
from lamella.core.log.chronicle import Chronicle
from lamella.engine.keeping import Keeper


def save_archive(chronicle: Chronicle, folder: Path, *, vault: Path | None = None) -> Path:
    """Write a conversation as markdown; its id decides the file.

    Only notes that the vault has just as they were are left to be read from it; without a vault every text rides.
    """
    return save(chronicle, folder, sources=Vault(vault) if vault is not None else Nowhere())


def load_archive(path: Path, *, vault: Path | None = None, keeper: Keeper | None = None) -> Chronicle:
    """Read a conversation from markdown; its notes from what a store already holds of it, else from a vault."""
    return load(path, Vault(vault) if vault is not None else None, held=keeper.read_contents if keeper else None)
