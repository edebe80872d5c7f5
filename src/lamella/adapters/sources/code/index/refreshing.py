"""Refreshing: what changed in a repository is put into its index, and nothing else is read."""

from collections.abc import Callable, Sequence
from time import time_ns
from typing import Any, NamedTuple

from lamella.adapters.retrieval.words import extend
from lamella.adapters.sources.code.index.symbols import find_symbols
from lamella.adapters.sources.code.index.tables import CodeTables
from lamella.adapters.sources.code.repository.contents import FindSecrets, find_content_fault, hash_content
from lamella.adapters.sources.code.repository.files import CodeFiles, CodeListing, CodeState, read_code

Tell = Callable[[int, int], None]
# In characters: a batch takes about a second, and that is what an interruption costs.
_BATCH = 8_000_000
_LEAST = 2_000
_FILE = "INSERT INTO files (path, state, settled, hash, fault) VALUES (?, ?, ?, ?, ?)"
_WORDS = "INSERT INTO words (rowid, path, symbols, body, extra) VALUES (?, ?, ?, ?, ?)"


class _CodeEntry(NamedTuple):
    """A file made ready for the index: its words, or why it is left out."""

    path: str
    state: CodeState
    hash: bytes
    words: tuple[str, str, str, str] | None
    fault: str | None


class CodeRefresher:
    """Brings one index up to what is there. ``anchors`` and ``find`` tell a secret."""

    def __init__(
        self,
        tables: CodeTables,
        files: CodeFiles,
        *,
        anchors: Sequence[str],
        find: FindSecrets,
        now_ns: Callable[[], int] = time_ns,
    ) -> None:
        self._tables, self._files, self._now_ns = tables, files, now_ns
        self._anchors, self._find = anchors, find

    def refresh(self, *, tell: Tell | None = None) -> CodeListing:
        """What can be chosen now, and why the rest cannot."""
        listing = self._files.survey(now=self._now_ns())
        known = {path: rest for path, *rest in self._tables.run("SELECT path, id, state, settled, fault FROM files")}
        gone = [known[path][0] for path in known if path not in listing.states]
        stale = [path for path, state in listing.states.items() if not _is_same(known.get(path), state)]
        self._remove(gone)
        self._put_in(stale, listing, known, tell=tell)
        faults = self._tables.run("SELECT path, fault FROM files WHERE fault IS NOT NULL")
        bad = {path for path, _ in faults}
        states = {path: state for path, state in listing.states.items() if path not in bad}
        return CodeListing(states, tuple(sorted((*listing.left_out, *map(tuple, faults)))), listing.told)

    def _put_in(
        self, stale: Sequence[str], listing: CodeListing, known: dict[str, list[Any]], *, tell: Tell | None
    ) -> None:
        batch: list[_CodeEntry] = []
        size = 0
        for done, path in enumerate(stale, start=1):
            entry = self._prepare(path, listing.states[path])
            batch.append(entry)
            size += _LEAST + (len(entry.words[2]) if entry.words else 0)
            if size > _BATCH:
                self._write(batch, known)
                batch, size = [], 0
            if tell is not None:
                tell(done, len(stale))
        self._write(batch, known)

    def _prepare(self, path: str, state: CodeState) -> _CodeEntry:
        data, fault = read_code(self._files, path)
        if fault is not None:
            # Who may read it is told by no state of the file that would change.
            return _CodeEntry(path, CodeState(state.stamp, settled=False), b"", None, fault)
        text, fault = find_content_fault(data, anchors=self._anchors, find=self._find)
        words = None if fault is not None else make_words(path, text)
        return _CodeEntry(path, state, hash_content(data), words, fault)

    def _write(self, batch: Sequence[_CodeEntry], known: dict[str, list[Any]]) -> None:
        if not batch:
            return
        with self._tables.writing():
            for entry in batch:
                # Somebody else may have put it in meanwhile: whoever comes last has read it last.
                for (number,) in self._tables.run("SELECT id FROM files WHERE path = ?", (entry.path,)):
                    self._delete(number)
                told = (entry.path, entry.state.stamp, entry.state.settled, entry.hash, entry.fault)
                number = self._tables.insert(_FILE, told)
                if entry.words is not None:
                    self._tables.run(_WORDS, (number, *entry.words))

    def _remove(self, gone: Sequence[int]) -> None:
        if gone:
            with self._tables.writing():
                for number in gone:
                    self._delete(number)

    def _delete(self, number: int) -> None:
        self._tables.run("DELETE FROM words WHERE rowid = ?", (number,))
        self._tables.run("DELETE FROM files WHERE id = ?", (number,))


def make_words(path: str, text: str) -> tuple[str, str, str, str]:
    """What a file is found by: its path, the names it defines, its text, and the parts of names in that."""
    symbols = " ".join(find_symbols(text))
    place = path.rpartition(".")[0] or path
    return f"{path} {extend(place)}", f"{symbols} {extend(symbols)}", text, extend(text)


def _is_same(known: list[Any] | None, state: CodeState) -> bool:
    return known is not None and known[1] == state.stamp and bool(known[2])
