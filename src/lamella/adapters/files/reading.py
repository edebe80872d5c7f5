"""Reading a file that somebody names: a plain one, no more of it than it may have, not twice if it stays as it is."""

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from time import time_ns
from typing import BinaryIO, Generic, NamedTuple, TypeVar

from lamella.errors import SourceTooLargeError

# What a conversation may have as one file, and what settings may.
MAX_BYTES = 500_000_000
MAX_SETTINGS_BYTES = 10_000_000

_SPLIT = "Name a smaller file, or split this one."
_OTHERS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
# A pipe that takes another's place in between would be waited for when it is opened.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
# Some file systems write times in steps of two seconds: a file that was touched just now may change again within one.
_UNSETTLED_NS = 2_000_000_000

Value = TypeVar("Value")


def read_plain(path: Path, *, limit: int = MAX_BYTES, name: str | None = None, hint: str = _SPLIT) -> bytes:
    """The bytes of a plain file. ``OSError`` says that it is none, or why it cannot be read.

    One with more bytes than the ``limit`` is ``source_too_large``; of such a file no more than that is read.
    """
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise _too_large(name or str(path), f"{size:,}", limit=limit, hint=hint)
        return read_stream(file, limit=limit, name=name or str(path), hint=hint)


def read_head(path: Path, *, limit: int) -> bytes:
    """The first bytes of a plain file, as many as the limit. ``OSError`` as above."""
    with open_plain(path) as file:
        return file.read(limit)


def open_plain(path: Path) -> BinaryIO:
    """A plain file, to be read in parts. ``OSError`` as above."""
    _check_plain(path, path.stat())
    file = os.fdopen(os.open(path, _FLAGS), "rb")
    try:
        _check_plain(path, os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def read_stream(stream: BinaryIO, *, limit: int = MAX_BYTES, name: str, hint: str = _SPLIT) -> bytes:
    """All that an open file or a pipe has, if that is not more than the limit."""
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise _too_large(name, f"more than {limit:,}", limit=limit, hint=hint)
    return data


def _check_plain(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for is_other, what in _OTHERS:
        if is_other(found.st_mode) and not _is_null(found):
            raise OSError(errno.EINVAL, f"it is {what}, not a file", str(path))


def _is_null(found: os.stat_result) -> bool:
    """Whether it is the device that is always empty: people name it to say that there is no file."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev


def _too_large(name: str, size: str, *, limit: int, hint: str) -> SourceTooLargeError:
    return SourceTooLargeError(f"{name} has {size} bytes; Lamella reads files of up to {limit:,} bytes.", hint=hint)


class DiskState(NamedTuple):
    """A file as a disk tells it: as long as this is the same, so are its bytes, once it is settled. Times are in ns."""

    size: int
    modified: int
    changed: int
    number: int
    device: int

    def is_settled(self, now: int) -> bool:
        """Whether the file was left alone for so long that whatever changes it from now on changes its state."""
        return max(self.modified, self.changed) < now - _UNSETTLED_NS

    @property
    def lasting(self) -> tuple[int, int, int, int]:
        """What is the same tomorrow: the number of a device may be another once the machine was started again."""
        return self.size, self.modified, self.changed, self.number


def make_state(found: os.stat_result) -> DiskState:
    """The state that a disk told."""
    return DiskState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


class FileMemory(Generic[Value]):
    """What was made of files. Of two states that look alike one is trusted only when the file was left alone for long.

    ``weigh`` says how much of the ``limit`` a value takes; what was not asked for longest is forgotten first.
    """

    def __init__(
        self, *, limit: int, weigh: Callable[[Value], int] = lambda _value: 1, now_ns: Callable[[], int] = time_ns
    ) -> None:
        self._limit, self._weigh, self._now_ns = limit, weigh, now_ns
        self._kept: OrderedDict[Hashable, tuple[DiskState, Value]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def get(
        self, key: Hashable, file: Path, make: Callable[[], Value], *, keeps: Callable[[Value], bool] | None = None
    ) -> Value:
        """What was made of a file under a key, or is made now; ``keeps`` says of something new whether it is kept."""
        # Before it is made: whatever changes meanwhile has another state the next time.
        try:
            state = make_state(file.stat())
        except OSError:
            return make()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == state:
                self._kept.move_to_end(key)
                return kept[1]
        value = make()
        if state.is_settled(self._now_ns()) and (keeps is None or keeps(value)):
            self._keep(key, state, value)
        return value

    def _keep(self, key: Hashable, state: DiskState, value: Value) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._weight += self._weigh(value) - (0 if before is None else self._weigh(before[1]))
            self._kept[key] = (state, value)
            while self._weight > self._limit:
                _, (_, forgotten) = self._kept.popitem(last=False)
                self._weight -= self._weigh(forgotten)
