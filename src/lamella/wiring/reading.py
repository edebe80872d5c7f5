"""Reading: what fetches and converts, within the bounds that settings give it, and files as people name them."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.sources.naming import NamedFiles
from lamella.errors import LamellaError, SettingError
from lamella.settings.configuration import Configuration
from lamella.settings.model import Settings
from lamella.wiring.services import Services, read_services

if TYPE_CHECKING:
    from lamella.adapters.sources.conversions import Conversions
    from lamella.adapters.sources.web.addresses import Admission
    from lamella.adapters.sources.web.fetching import Fetcher

# What a project's file may not say, since it may be somebody else's: which private network is reached, and where what
# was read and the words of notes are written.
OWN = ("private_addresses", "conversions", "index_folder")
_POSITIVE = ("page_bytes", "page_seconds", "document_seconds", "document_memory")
_CACHE = "conversions"
# What a bare Python takes to start, and a converter beside it.
_LEAST_MEMORY = 200_000_000


def open_files(vault: Path | None, services: Services | None = None) -> NamedFiles:
    """Files and pages as people name them; settings are read when the first of them has to be converted."""
    return NamedFiles(vault, cache(lambda: open_conversions(services or read_services())))


def open_conversions(services: Services) -> "Conversions":
    """What reads pages, videos, PDFs and office files, and keeps what it read."""
    from lamella.adapters.clocks.system import SystemClock
    from lamella.adapters.sources.cache.conversions import ConversionCache
    from lamella.adapters.sources.cache.folder import CacheFolder
    from lamella.adapters.sources.conversion.converter import Converter
    from lamella.adapters.sources.conversion.model import ConversionLimits
    from lamella.adapters.sources.conversions import Conversions

    for error in find_reading_faults(services.found):
        raise error
    settings = services.settings
    folder = CacheFolder(_place_cache(settings.conversions), limit=settings.conversions_bytes)
    limits = ConversionLimits(seconds=settings.document_seconds, memory=settings.document_memory)
    languages = tuple(filter(None, map(str.strip, settings.video_languages.split(","))))
    return Conversions(
        cache=ConversionCache(folder, now=SystemClock().now),
        converter=Converter(limits),
        open_fetcher=cache(lambda: _open_fetcher(services)),
        languages=languages,
    )


def find_reading_faults(found: Configuration) -> list[LamellaError]:
    """Whatever of these settings means nothing, or stands where it does not count."""
    faults: list[LamellaError] = [*found.find_overreach(OWN)]
    settings = found.settings
    for name in _POSITIVE:
        if getattr(settings, name) <= 0:
            faults.append(SettingError(f"{name} is {getattr(settings, name)}.", hint="Give a number above 0."))
    if 0 < settings.document_memory < _LEAST_MEMORY:
        faults.append(
            SettingError(
                f"document_memory is {settings.document_memory:,}.",
                hint=f"Nothing starts in less than {_LEAST_MEMORY:,}.",
            )
        )
    if settings.conversions_bytes < 0:
        faults.append(
            SettingError(
                f"conversions_bytes is {settings.conversions_bytes}.", hint="Give a number, or 0 to keep none."
            )
        )
    try:
        _admit(settings)
    except LamellaError as error:
        faults.append(error)
    return faults


def _admit(settings: Settings) -> "Admission":
    from lamella.adapters.sources.web.addresses import read_admission

    return read_admission(filter(None, map(str.strip, (settings.private_addresses or "").split(","))))


def _open_fetcher(services: Services) -> "Fetcher":
    from lamella.adapters.sources.web.fetching import Fetcher, FetchLimits

    settings = services.settings
    limits = FetchLimits(size=settings.page_bytes, seconds=settings.page_seconds)
    return Fetcher(limits, admission=_admit(settings))


def _place_cache(given: str | None) -> Path:
    """The folder that was named, else one in what the system keeps for caches."""
    if given:
        return Path(given).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("lamella", appauthor=False) / _CACHE
