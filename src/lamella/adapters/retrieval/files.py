"""The files of a vault that are searched, each with the state by which it is known to have changed or not."""

import os
import stat
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from lamella.adapters.files.reading import make_state
from lamella.adapters.sources.vault import Vault
from lamella.attach import describe_file
from lamella.core.artifacts.kinds import KINDS, Medium, kind_of_file
from lamella.core.artifacts.model import Kind
from lamella.ports import Look

# Kinds of files with prose in them; what pictures show and what programs say is not searched.
_MEDIA = (Medium.PDF, Medium.OFFICE)
_FILES = (Kind.NOTE, Kind.CANVAS)
# The walk through a vault enters no linked folder, so that only a file itself can be a link: this does not open one.
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_QUICK_BYTES = 1_000_000


class FileSight(Struct, frozen=True, gc=False):
    """A file as it was when it was looked at: what tells one state from another, when it was last changed.

    There is one for every file of a vault: the garbage collector need not walk through them again and again.
    """

    stamp: str
    modified: int
    settled: bool


class FileText(NamedTuple):
    """A file that was read: the hash of what is in it, and what gives its text, which may take long."""

    hash: bytes
    read: Callable[[], str]
    markdown: bool


class VaultFiles:
    """The files of one vault. Notes are read as they are; of other files their readers give the text."""

    def __init__(self, root: Path, look: Look) -> None:
        self._root = root.resolve()
        self._vault = Vault(root)
        self._look = look

    def survey(self, *, now: int) -> Mapping[str, FileSight]:
        """Every file that is searched, in the order of paths. ``now`` is the time in nanoseconds."""
        found = {}
        for path in self._vault.glance().list_files():
            if is_searched(path):
                state = self.look_at(path, now=now)
                if state is not None:
                    found[path] = state
        return found

    def look_at(self, path: str, *, now: int) -> FileSight | None:
        """One of them as it is now; none if it is not there."""
        try:
            found = make_state(os.stat(self._on_disk(path)))  # noqa: PTH116 - a path of our own for each of many files takes long
        except (OSError, ValueError):
            return None
        return FileSight(
            stamp=" ".join(map(str, found.lasting)),
            modified=found.modified,
            settled=found.is_settled(now),
        )

    def open(self, path: str) -> FileText:
        """A file and what it holds; an error says why it cannot be had."""
        data = self._read(path)
        if _is_note(path):
            return FileText(_hash(data), lambda: self._decode(path, data), markdown=True)
        return FileText(_hash(data), lambda: self._convert(path), markdown=False)

    def _read(self, path: str) -> bytes:
        """The bytes of a file. Links and whatever else is odd go the vault's careful way, which takes longer."""
        place = self._on_disk(path)
        try:
            handle = os.open(place, _PLAIN)
        except (OSError, ValueError):
            return self._vault.read_bytes(path)
        try:
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_size <= _QUICK_BYTES:
                data = os.read(handle, found.st_size + 1)
                if len(data) == found.st_size:
                    return data
        except OSError:
            pass  # the careful way says what is wrong
        finally:
            os.close(handle)
        return self._vault.read_bytes(path)

    def _decode(self, path: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return self._vault.read_text(path)  # which says what is wrong with it

    def _on_disk(self, path: str) -> str:
        """A vault path is UTF-8 in any locale."""
        return f"{self._root}{os.sep}{os.fsdecode(path.encode())}"

    def _convert(self, path: str) -> str:
        return self._look().read(describe_file(path).wanted()).text


def is_searched(path: str) -> bool:
    """Whether a file of this name is among those that are searched."""
    kind = kind_of_file(path)
    return kind is not None and (kind in _FILES or KINDS[kind].medium in _MEDIA)


def _is_note(path: str) -> bool:
    return kind_of_file(path) is Kind.NOTE


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
