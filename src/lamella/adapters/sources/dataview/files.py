"""The files of a vault as queries ask for them: what is listed, and what each is on disk."""

import os
from collections.abc import Callable, Sequence
from time import time_ns
from typing import Protocol

from lamella.adapters.files.reading import make_state
from lamella.adapters.sources.dataview.notes.records import FileState
from lamella.core.artifacts.model import Kind
from lamella.holdings import NoteList


class NoteCatalog(Protocol):
    """A vault at one moment."""

    def list_notes(self, kind: Kind, name: str) -> NoteList: ...

    def stat_file(self, path: str) -> os.stat_result: ...

    def read_text(self, path: str) -> str: ...


class CatalogFiles:
    """The notes of a catalog; ``now`` tells in nanoseconds whether one was written just now."""

    def __init__(self, catalog: NoteCatalog, now: Callable[[], int] = time_ns) -> None:
        self._catalog, self._now = catalog, now

    def list_states(self) -> Sequence[FileState]:
        now = self._now()
        return [self._state(path, now) for path in self._catalog.list_notes(Kind.FOLDER, ".").paths]

    def list_left_out(self) -> Sequence[str]:
        return self._catalog.list_notes(Kind.FOLDER, ".").left_out

    def _state(self, path: str, now: int) -> FileState:
        try:
            found = self._catalog.stat_file(path)
        except OSError:
            # A link to nothing, or a file that is just being removed: reading it says why.
            return FileState(path=path, is_settled=False)
        disk = make_state(found)
        return FileState(path=path, disk=disk, is_settled=disk.is_settled(now))

    def read_text(self, path: str) -> str:
        return self._catalog.read_text(path)
