"""The index of a vault: brought up to date, searched, and mended by itself when its file is damaged."""

import sqlite3
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from lamella.adapters.retrieval.answers import Finder
from lamella.adapters.retrieval.database import IndexFile, is_damage
from lamella.adapters.retrieval.files import VaultFiles
from lamella.adapters.retrieval.refreshing import Refresher, Tell
from lamella.holdings import IndexReport, NoteHit
from lamella.ports import Look

_Result = TypeVar("_Result")


class VaultIndex:
    """What is known of the notes in one folder. It lasts in a file that any number of processes may use at once."""

    def __init__(self, file: Path, *, vault: Path, look: Look) -> None:
        self._files = VaultFiles(vault, look)
        self._file = IndexFile(file)
        self._refresher = Refresher(self._file, self._files)
        self._finder = Finder(self._file)

    @property
    def file(self) -> Path:
        return self._file.path

    def refresh(
        self, *, tell: Tell | None = None, only: Collection[str] | None = None, anew: bool = False
    ) -> IndexReport:
        """Take in what changed in the vault since the last time."""
        if anew:
            self._mended(lambda: self._file.make_anew("it was asked for"))
        # One that was made anew is empty: then whatever was named is not all there is to read.
        wanted = None if self._file.rebuilt else only
        report = self._mended(lambda: self._refresher.refresh(tell=tell, only=None if self._file.rebuilt else wanted))
        why, self._file.rebuilt = self._file.rebuilt, None
        return IndexReport(
            read=report.read, removed=report.removed, files=report.files, unread=report.unread, rebuilt=why
        )

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        """The passages that fit best: one of every note that fits before the second of any."""
        return self._mended(lambda: self._finder.search(query, now=now, limit=limit), fill=True)

    def rank_notes(self, question: str, *, among: Sequence[str]) -> Sequence[str]:
        """All of these paths, those first that fit the question best."""
        return self._mended(lambda: self._finder.rank_notes(question, among), fill=True)

    def close(self) -> None:
        self._file.close()

    def _mended(self, work: Callable[[], _Result], *, fill: bool = False) -> _Result:
        """What work gives; where the file turns out to be damaged, once more with a new one."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._file.make_anew(f"it was damaged ({error})", damaged=True)
        if fill:
            self._refresher.refresh()
        return work()
