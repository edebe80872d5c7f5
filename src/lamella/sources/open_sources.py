"""Open the source readers, with or without a vault, and read project folders.

``open_sources`` returns a function that opens all readers; each call gives a new snapshot of the vault.
``read_project`` returns the source files of a project folder and its instructions and memory files.
"""

import os
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

from lamella.core.artifacts.kinds import KINDS, SourceMedium, kind_of_file
from lamella.core.text.content import normalize_line_ends
from lamella.errors import BadInputError
from lamella.files import read_regular_file
from lamella.ports import CodeReader, OpenSources, ProjectFolder, SourceReader, SourceReaders
from lamella.sources.images import ImageReader
from lamella.sources.readers import OpenConversions, PageReader
from lamella.sources.vault import Vault


def make_source_opener(
    vault: Path | None,
    conversions: OpenConversions | None = None,
    *,
    follows_embeds: bool = True,
    today: Callable[[], date] | None = None,
    code: CodeReader | None = None,
) -> OpenSources:
    """Return a function that opens all source readers; each call gives a new snapshot of the vault.

    Without ``conversions`` only plain text files and images are read, and nothing is fetched from the web. ``today``
    is the day that Dataview queries see; without it, queries that depend on the day stay unanswered text. ``code``
    selects files from codebases in the vault. With ``follows_embeds=False``, embeds and queries in notes are left as
    they are.

    Raises:
        SourceNotFoundError: A vault is given and its folder does not exist.
    """
    if vault is None:
        return partial(_readers_without_vault, conversions)
    return Vault(vault, conversions, follows_embeds=follows_embeds, today=today, code=code).open_readers


def _readers_without_vault(conversions: OpenConversions | None) -> SourceReaders:
    """Return the readers that need no vault: images given as bytes, and web pages if there are conversions."""
    readers: dict[SourceMedium, SourceReader] = {SourceMedium.PICTURE: ImageReader()}
    warnings: list[str] = []
    if conversions is not None:
        pages = PageReader(conversions=conversions, on_warning=warnings.append)
        pictures = ImageReader(fetch=lambda url: conversions().read_image(url, report=warnings.append))
        readers |= {SourceMedium.PAGE: pages, SourceMedium.VIDEO: pages, SourceMedium.PICTURE: pictures}
    return SourceReaders(readers=readers, warnings=warnings)


# Project folders.

# Walks skip hidden folders, so these two files are never listed as sources.
INSTRUCTIONS_FILE = ".lamella/instructions.md"
MEMORY_FILE = ".lamella/memory.md"
# The size limit of each of the two files, in bytes. Both are part of every request.
MAX_PROJECT_FILE_BYTES = 50_000


def read_project(root: Path) -> ProjectFolder:
    """Return the current content of a project folder.

    Images and files that the vault's ignore rules hide are not listed as sources.
    """
    found = root.resolve()
    warnings: list[str] = []
    sources = {
        path: _latest_change_time(found / path) for path in Vault(root).snapshot().list_files() if _is_source_file(path)
    }
    folders = {str(Path(path).parent) for path in sources} | {"."}
    return ProjectFolder(
        name=found.name,
        source_mtimes=sources,
        folders={folder: _latest_change_time(found / folder) for folder in sorted(folders)},
        instructions=_read_project_file(found, INSTRUCTIONS_FILE, warnings),
        memory=_read_project_file(found, MEMORY_FILE, warnings),
        warnings=tuple(warnings),
    )


def _is_source_file(path: str) -> bool:
    kind = kind_of_file(path)
    return kind is None or KINDS[kind].medium is not SourceMedium.PICTURE


def _latest_change_time(path: Path) -> float:
    """Return the later of a file's modification and change times; 0 if the file is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0.0
    # Moving an old file into the folder changes only st_ctime, so st_mtime alone would miss it.
    return max(found.st_mtime, found.st_ctime)


def _read_project_file(root: Path, name: str, warnings: list[str]) -> str:
    """Return the text of one of the project's own files; empty if it does not exist or cannot be used.

    Warnings are appended to ``warnings``. A link that leads out of the project folder is not followed.
    """
    path = root / name
    if not os.path.lexists(path):
        return ""
    if not path.resolve().is_relative_to(root):
        warnings.append(f"{name} leads out of the project's folder and is left out.")
        return ""
    try:
        return normalize_line_ends(read_regular_file(path, limit=MAX_PROJECT_FILE_BYTES, name=name).decode()).strip()
    except BadInputError as error:
        warnings.append(f"Left out: {error.message}")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        warnings.append(f"{name} cannot be read and is left out: {why}.")
    return ""
