"""Retrieval: the index of a vault, opened where settings say."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.clocks.system import SystemClock
from lamella.errors import CallError, UsageError
from lamella.wiring.services import Services, read_services

if TYPE_CHECKING:
    from lamella.adapters.retrieval.index import VaultIndex
    from lamella.engine.notes import NoteIndex

_MARK = ".obsidian"


def open_notes(vault: Path, *, services: Services | None = None) -> "NoteIndex":
    """The notes of a vault, ready to be searched; an error if there is no such folder."""
    from lamella.engine.notes import NoteIndex

    retriever = _open_retriever(vault, services or read_services())
    return NoteIndex(retriever, file=lambda: retriever.file, clock=SystemClock())


def defer_notes(vault: Path, *, services: Services) -> "NoteIndex":
    """The same, opened by whoever searches first."""
    from lamella.adapters.retrieval.deferred import DeferredIndex
    from lamella.adapters.retrieval.placing import place_index
    from lamella.engine.notes import NoteIndex

    retriever = DeferredIndex(lambda: _open_retriever(vault, services))
    return NoteIndex(retriever, file=lambda: place_index(vault, find_index_folder(services)), clock=SystemClock())


def _open_retriever(vault: Path, services: Services) -> "VaultIndex":
    from lamella.adapters.retrieval.index import VaultIndex
    from lamella.adapters.retrieval.placing import place_index
    from lamella.adapters.sources.opening import open_sources

    look = open_sources(vault, lambda: services.conversions)
    return VaultIndex(place_index(vault, find_index_folder(services)), vault=vault, look=look)


def open_index(vault: str | PathLike[str]) -> "NoteIndex":
    """The notes of a vault, to be searched: an index that lasts is made or brought up to date when they are."""
    from lamella.engine.checks import check_folder

    root = check_folder(vault)
    if root is None:
        raise CallError("vault is None, not a folder.", hint="Give the folder that the notes are in.")
    return open_notes(root)


def find_vault(named: Path | None) -> Path:
    """The vault that is meant: the one that was named, else the one that the working folder is in."""
    if named is not None:
        return named
    try:
        here = Path.cwd()
        found = next((folder for folder in _list_up(here) if (folder / _MARK).is_dir()), None)
    except OSError:
        found = None
    if found is None:
        # Whatever folder somebody stands in may hold all of a disk.
        raise UsageError(
            "No vault is named, and the working folder is in none.",
            hint=lambda door: f"Name a folder of notes with {door.option('vault')}.",
        )
    return found


def _list_up(folder: Path) -> Sequence[Path]:
    return (folder, *folder.parents)


def find_index_folder(services: Services) -> str | None:
    """Where indexes are kept; somebody else's project does not say where the words of notes are written."""
    for error in services.found.find_overreach(("index_folder",)):
        raise error
    return services.settings.index_folder
