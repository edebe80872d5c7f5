"""A project: a folder whose sources are listed, and the two files in it that say how to work on it."""

import os
from pathlib import Path

from lamella.adapters.files.reading import read_plain
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.kinds import KINDS, Medium, kind_of_file
from lamella.core.text.content import normalise
from lamella.errors import BadInputError
from lamella.holdings import ProjectFolder

# Hidden from walks through the folder, so that they are no sources.
INSTRUCTIONS = ".lamella/instructions.md"
MEMORY = ".lamella/memory.md"
# Of each of them, in bytes: they stand in every request.
LARGEST = 50_000


def look_at_project(root: Path) -> ProjectFolder:
    """The folder as it is now. What the vault's rules hide is no source, and pictures are none."""
    found = root.resolve()
    told: list[str] = []
    sources = {path: _find_time(found / path) for path in Vault(root).glance().list_files() if _is_source(path)}
    folders = {str(Path(path).parent) for path in sources} | {"."}
    return ProjectFolder(
        name=found.name,
        sources=sources,
        folders={folder: _find_time(found / folder) for folder in sorted(folders)},
        instructions=_read_own(found, INSTRUCTIONS, told),
        memory=_read_own(found, MEMORY, told),
        told=tuple(told),
    )


def _is_source(path: str) -> bool:
    kind = kind_of_file(path)
    return kind is None or KINDS[kind].medium is not Medium.PICTURE


def _find_time(place: Path) -> float:
    """When a file was written, or came to be where it is."""
    try:
        found = place.stat()
    except OSError:
        return 0.0
    return max(found.st_mtime, found.st_ctime)


def _read_own(root: Path, name: str, told: list[str]) -> str:
    """What a file of the project says of itself; nothing where there is none, or it leads out of the folder."""
    place = root / name
    if not os.path.lexists(place):
        return ""
    if not place.resolve().is_relative_to(root):
        told.append(f"{name} leads out of the project's folder and is left out.")
        return ""
    try:
        return normalise(read_plain(place, limit=LARGEST, name=name).decode()).strip()
    except BadInputError as error:
        told.append(f"Left out: {error.message}")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        told.append(f"{name} cannot be read and is left out: {why}.")
    return ""
