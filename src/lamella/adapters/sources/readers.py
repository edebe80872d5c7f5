"""Readers of what has to be converted: documents of a vault, pages and videos."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lamella.adapters.sources.conversion.model import FileForm
from lamella.core.artifacts.kinds import KINDS, Medium
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Source
from lamella.core.artifacts.wanted import Wanted

if TYPE_CHECKING:
    from lamella.adapters.sources.cache.entry import CacheEntry
    from lamella.adapters.sources.conversions import Conversions

# What converts pages, PDFs and office files, made when somebody reads the first of them.
OpenConversions = Callable[[], "Conversions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReader:
    """Reads PDFs and office files. ``locate`` finds a path that may be read, ``read_bytes`` reads it within bounds."""

    conversions: OpenConversions
    locate: Callable[[str], Path]
    read_bytes: Callable[[str], bytes]

    def read(self, wanted: Wanted) -> Artifact:
        place = self.locate(wanted.name)
        found = self.conversions().read_document(
            place,
            name=wanted.name,
            read_bytes=lambda: self.read_bytes(wanted.name),
            form=FileForm.PDF if KINDS[wanted.kind].medium is Medium.PDF else None,
            fresh=wanted.fresh,
        )
        source = Source(path=self._name(wanted.name, place), via=wanted.via, read=True)
        # What a document calls itself is often what another was called that it was made from; files have names.
        return _make(wanted, found, source, title=wanted.title)

    def _name(self, path: str, place: Path) -> str:
        """The path as an id: one that goes up and down again is the same file as without the detour."""
        return place.relative_to(self.locate(".")).as_posix() if ".." in PurePosixPath(path).parts else path


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReader:
    """Reads pages and videos; what has to be said of them is told."""

    conversions: OpenConversions
    tell: Callable[[str], None]

    def read(self, wanted: Wanted) -> Artifact:
        if KINDS[wanted.kind].medium is Medium.VIDEO:
            found = self.conversions().read_video(wanted.kind, wanted.name, fresh=wanted.fresh, tell=self.tell)
        else:
            found = self.conversions().read_page(wanted.kind, wanted.name, fresh=wanted.fresh, tell=self.tell)
        source = Source(url=wanted.name, via=wanted.via, read=True)
        return _make(wanted, found, source, title=wanted.title or found.title)


def _make(wanted: Wanted, found: "CacheEntry", source: Source, *, title: str) -> Artifact:
    return make_artifact(wanted.kind, text=found.text or "", source=source, title=title, policy=wanted.policy)
