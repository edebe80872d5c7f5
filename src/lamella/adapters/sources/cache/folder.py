"""The folder of the cache: a private file per entry, written whole or not at all, by as many processes as there are."""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, Struct, ValidationError, json

from lamella.adapters.files.privacy import make_own_folder
from lamella.adapters.files.writing import replace_file, write_new
from lamella.adapters.sources.cache.entry import SCHEMA, CacheEntry, PlaceEntry

_Kept = TypeVar("_Kept", bound=CacheEntry | PlaceEntry)

_SUFFIX = ".json"
# What is left when the oldest have to go: as much room as keeps the next write from looking at every file again.
_LEFT = 0.9
# How much may be written before somebody looks at what all processes together have written.
_UNSEEN = 0.05


class CacheFolder:
    """Entries by their keys. What cannot be read is not there; what cannot be written is not kept."""

    def __init__(self, root: Path | None, *, limit: int) -> None:
        """Without a root nothing is kept; the ``limit`` is that of all entries together, in bytes."""
        self._root = root if root is not None and root.is_absolute() else None
        self._limit = limit
        self._unseen: float = limit

    def find(self, key: str, kind: type[_Kept]) -> _Kept | None:
        """The entry under a key, which counts as used now."""
        place = self._place(key)
        if place is None:
            return None
        try:
            found = json.decode(place.read_bytes(), type=kind)
        except (OSError, DecodeError, ValidationError, RecursionError, UnicodeError):
            return None
        if found.key != key or found.schema != SCHEMA:
            return None
        with suppress(OSError):
            os.utime(place)
        return found

    def keep(self, entry: Struct) -> None:
        """Keep an entry in place of what stands under its key."""
        place = self._place(str(getattr(entry, "key", "")))
        if place is None:
            return
        data = json.encode(entry)
        # A disk that is full or may not be written to keeps nobody from reading.
        with suppress(OSError):
            make_own_folder(place.parent.parent)
            make_own_folder(place.parent)
            _write(place, data)
            self._unseen += len(data)
            if self._unseen >= self._limit * _UNSEEN:
                self._unseen = 0
                self._drop_oldest()

    def _place(self, key: str) -> Path | None:
        name = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return None if self._root is None else self._root / name[:2] / f"{name}{_SUFFIX}"

    def _drop_oldest(self) -> None:
        assert self._root is not None, "whoever keeps something has a place for it"
        found: list[tuple[float, int, Path]] = []
        for place in self._root.glob(f"??/*{_SUFFIX}"):
            with suppress(OSError):
                state = place.stat()
                found.append((state.st_mtime, state.st_size, place))
        total = sum(size for _, size, _ in found)
        if total <= self._limit:
            return
        for _, size, place in sorted(found):
            if total <= self._limit * _LEFT:
                return
            with suppress(OSError):
                place.unlink()
                total -= size


def _write(place: Path, data: bytes) -> None:
    try:
        write_new(place, data)
    except FileExistsError:
        replace_file(place, data)
