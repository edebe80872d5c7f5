"""The files of a vault as queries ask for them: what is listed, what each is on disk, and where links lead."""

import os
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Protocol

from lamella.adapters.sources.dataview.notes.records import FileState
from lamella.core.artifacts.model import Kind
from lamella.ports import NoteList


class NoteCatalog(Protocol):
    """A vault at one moment."""

    def list_notes(self, kind: Kind, name: str) -> NoteList: ...

    def find_note(self, name: str) -> Sequence[str]: ...

    def stat_file(self, path: str) -> os.stat_result: ...

    def read_text(self, path: str) -> str: ...


class CatalogFiles:
    """The notes of a catalog."""

    def __init__(self, catalog: NoteCatalog) -> None:
        self._catalog = catalog

    def list_states(self) -> Sequence[FileState]:
        return [self._state(path) for path in self._catalog.list_notes(Kind.FOLDER, ".").paths]

    def _state(self, path: str) -> FileState:
        try:
            found = self._catalog.stat_file(path)
        except OSError:
            # A link to nothing, or a file that is just being removed: reading it says why.
            return FileState(path=path, size=0, mtime_ns=0)
        return FileState(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def read_text(self, path: str) -> str:
        return self._catalog.read_text(path)

    def find_link(self, target: str, *, beside: str) -> str | None:
        """The note of that path or name; of several the one beside the link, else the one that is least deep."""
        found = self._catalog.find_note(target.removesuffix(".md"))
        folder = PurePosixPath(beside).parent

        def far(path: str) -> tuple[bool, int, str]:
            place = PurePosixPath(path)
            return place.parent != folder, len(place.parts), path

        return min(found, key=far, default=None)
