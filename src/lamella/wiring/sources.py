"""Readers of web pages and documents, files by the names that users type, and the index of a vault.

``open_named_files`` resolves names of files and pages, ``open_document_converter`` converts documents with the
configured limits, and ``open_note_index`` opens the searchable notes of a vault.
"""

from collections.abc import Callable, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.clocks import SystemClock
from lamella.errors import InvalidOperationError, LamellaError, SettingError, UsageError
from lamella.settings.loading import ResolvedSettings
from lamella.settings.model import Settings
from lamella.sources.mentions import AttachmentResolver
from lamella.wiring.services import ServiceContainer, read_services

if TYPE_CHECKING:
    from lamella.conversation.note_index import NoteIndex
    from lamella.retrieval.index import VaultIndex
    from lamella.sources.converted_files import CachedSourceReader
    from lamella.sources.web import AddressAllowlist, Fetcher

# Settings that a project file may not set, because it may come from another author: which private
# networks can be reached, and where converted documents and the words of notes are written.
USER_ONLY_SETTINGS = ("private_addresses", "conversions", "index_folder")
_POSITIVE_SETTINGS = ("page_bytes", "page_seconds", "document_seconds", "document_memory")
_CACHE_FOLDER_NAME = "conversions"
# A bare Python and a converter need this much to start.
_MIN_DOCUMENT_MEMORY = 200_000_000


def open_attachment_resolver(vault: Path | None, services: ServiceContainer | None = None) -> AttachmentResolver:
    """Return a resolver for files and pages as users name them; settings are read only when one must be converted."""
    return AttachmentResolver(vault, cache(lambda: open_document_converter(services or read_services())))


def open_document_converter(services: ServiceContainer) -> "CachedSourceReader":
    """Return the converter for web pages, videos, PDFs and office files, with its cache."""
    from lamella.clocks import SystemClock
    from lamella.sources.conversion_process import Converter
    from lamella.sources.converted_files import CachedSourceReader, ConversionCache, SizeLimitedCacheFolder
    from lamella.sources.converters import ConversionLimits

    for error in list_source_setting_errors(services.resolved):
        raise error
    settings = services.settings
    folder = SizeLimitedCacheFolder(_cache_folder(settings.conversions), max_bytes=settings.conversions_bytes)
    limits = ConversionLimits(seconds=settings.document_seconds, memory=settings.document_memory)
    languages = tuple(filter(None, map(str.strip, settings.video_languages.split(","))))
    return CachedSourceReader(
        cache=ConversionCache(folder, now=SystemClock().now),
        converter=Converter(limits),
        open_fetcher=cache(lambda: _open_fetcher(services)),
        languages=languages,
    )


def list_source_setting_errors(resolved: ResolvedSettings) -> list[LamellaError]:
    """Return all errors in the settings for reading sources, including those that the project file may not set."""
    faults: list[LamellaError] = [*resolved.errors_for_project_settings(USER_ONLY_SETTINGS)]
    settings = resolved.settings
    for name in _POSITIVE_SETTINGS:
        if getattr(settings, name) <= 0:
            faults.append(SettingError(f"Invalid {name}: {getattr(settings, name)}", hint="Give a number above 0."))
    if 0 < settings.document_memory < _MIN_DOCUMENT_MEMORY:
        faults.append(
            SettingError(
                f"Invalid document_memory: {settings.document_memory:,}",
                hint=f"Nothing starts in less than {_MIN_DOCUMENT_MEMORY:,}.",
            )
        )
    if settings.conversions_bytes < 0:
        faults.append(
            SettingError(
                f"Invalid conversions_bytes: {settings.conversions_bytes}", hint="Give a number, or 0 to keep none."
            )
        )
    try:
        _address_allowlist(settings)
    except LamellaError as error:
        faults.append(error)
    return faults


def _address_allowlist(settings: Settings) -> "AddressAllowlist":
    from lamella.sources.web import parse_allowlist

    return parse_allowlist(filter(None, map(str.strip, (settings.private_addresses or "").split(","))))


def _open_fetcher(services: ServiceContainer) -> "Fetcher":
    from lamella.sources.web import Fetcher, FetchLimits

    settings = services.settings
    limits = FetchLimits(max_bytes=settings.page_bytes, max_seconds=settings.page_seconds)
    return Fetcher(limits, allowlist=_address_allowlist(settings))


def _cache_folder(configured: str | None) -> Path:
    """Return the configured cache folder, or one in the system's folder for caches."""
    if configured:
        return Path(configured).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("lamella", appauthor=False) / _CACHE_FOLDER_NAME


# The index of a vault.

_VAULT_MARKER = ".obsidian"


def open_note_index(vault: Path, *, services: ServiceContainer | None = None) -> "NoteIndex":
    """Open the searchable notes of a vault; raises an error if the folder does not exist."""
    from lamella.conversation.note_index import NoteIndex

    retriever = _open_retriever(vault, services or read_services())
    return NoteIndex(retriever, find_file=lambda: retriever.file, clock=SystemClock())


def open_note_index_lazily(
    vault: Path, *, services: ServiceContainer, on_progress: Callable[[int, int], None] | None = None
) -> "NoteIndex":
    """Return the searchable notes of a vault; the index is opened by the first search."""
    from lamella.conversation.note_index import NoteIndex
    from lamella.retrieval.chunks import get_index_path
    from lamella.retrieval.index import DeferredIndex

    retriever = DeferredIndex(lambda: _open_retriever(vault, services))
    return NoteIndex(
        retriever,
        find_file=lambda: get_index_path(vault, get_index_folder(services)),
        clock=SystemClock(),
        on_progress=on_progress,
    )


def _open_retriever(vault: Path, services: ServiceContainer) -> "VaultIndex":
    from lamella.retrieval.chunks import get_index_path
    from lamella.retrieval.index import VaultIndex
    from lamella.sources.open_sources import make_source_opener

    sources = make_source_opener(vault, lambda: services.document_converter)
    return VaultIndex(get_index_path(vault, get_index_folder(services)), vault=vault, open_readers=sources)


def open_index(vault: str | PathLike[str]) -> "NoteIndex":
    """Open the searchable notes of a vault; each search creates or updates the index, which is kept between runs."""
    from lamella.conversation.validation import to_folder_path

    root = to_folder_path(vault)
    if root is None:
        raise InvalidOperationError("vault is None, not a folder.", hint="Give the folder that the notes are in.")
    return open_note_index(root)


def resolve_vault_path(vault: Path | None) -> Path:
    """Return the named vault, or else the vault that contains the working folder.

    Raises ``UsageError`` if there is neither.
    """
    if vault is not None:
        return vault
    try:
        here = Path.cwd()
        found = next((folder for folder in _list_folder_and_parents(here) if (folder / _VAULT_MARKER).is_dir()), None)
    except OSError:
        found = None
    if found is None:
        # The working folder itself is no fallback: it may contain a whole disk.
        raise UsageError(
            "No vault is named, and the working folder is in none.",
            hint=lambda hints: f"Name a folder of notes with {hints.option_hint('vault')}.",
        )
    return found


def _list_folder_and_parents(folder: Path) -> Sequence[Path]:
    return (folder, *folder.parents)


def get_index_folder(services: ServiceContainer) -> str | None:
    """Return the configured folder for indexes, or None; raises if only the project file sets it.

    An index contains the words of notes. The project file may come from another author, so it may not decide where
    they are written.
    """
    for error in services.resolved.errors_for_project_settings(("index_folder",)):
        raise error
    return services.settings.index_folder
