"""File access for the rest of Lamella: paths, limited reads, atomic writes, locks and permissions.

``resolve_path`` returns a canonical path, so that two spellings compare equal. ``read_regular_file`` reads within a
size limit, and ``FileCache`` keeps results as long as a file does not change. ``write_new_file`` and ``replace_file``
write atomically, so that a reader never finds a partial file. ``file_lock`` locks a file against other processes.
Files with conversations are private to their owner.
"""

import errno
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import mkstemp
from threading import Lock
from time import time_ns
from typing import BinaryIO, Generic, NamedTuple, TypeVar

from lamella.errors import SettingError, SourceTooLargeError


def resolve_path(path: str | Path) -> Path:
    """Return the absolute path of a file with ``~`` and symbolic links resolved; the file need not exist.

    Raises ``SettingError`` if the path cannot be resolved.
    """
    try:
        return Path(path).expanduser().resolve()
    except (RuntimeError, OSError, ValueError) as error:
        # The user has no home folder, the links form a loop, or the path contains an illegal character.
        reason = str(error).rstrip(".")
        raise SettingError(f"{str(path)!r} leads to no file: {reason}.", hint="Write the whole path.") from error


# Reading, within a size limit.

# Size limits: for a file in a conversation, and for a settings file.
MAX_FILE_BYTES = 500_000_000
MAX_SETTINGS_BYTES = 10_000_000

_TOO_LARGE_HINT = "Name a smaller file, or split this one."
_SPECIAL_FILE_TYPES = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
# O_NONBLOCK, because a pipe may replace the file between the check and the opening. Opening a pipe would block.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
# Some file systems store times in steps of two seconds. A file that was modified just now may change again within one
# step, and its times would be the same.
_SETTLE_TIME_NS = 2_000_000_000

Value = TypeVar("Value")


def read_regular_file(
    path: Path, *, limit: int = MAX_FILE_BYTES, name: str | None = None, hint: str = _TOO_LARGE_HINT
) -> bytes:
    """Return the bytes of a regular file.

    Raises ``OSError`` if it is no regular file or cannot be read, and ``SourceTooLargeError`` if it has more than
    ``limit`` bytes. At most ``limit + 1`` bytes are read.
    """
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise _too_large_error(name or str(path), f"{size:,}", limit=limit, hint=hint)
        return read_stream(file, limit=limit, name=name or str(path), hint=hint)


def read_first_bytes(path: Path, *, limit: int) -> bytes:
    """Return the first ``limit`` bytes of a regular file; raises ``OSError`` as ``read_regular_file`` does."""
    with open_regular_file(path) as file:
        return file.read(limit)


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading in parts; raises ``OSError`` as ``read_regular_file`` does."""
    # Checked before the opening, so that no device or pipe is opened, and again afterwards, because another file may
    # have replaced it in between.
    _check_regular_file(path, path.stat())
    file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    try:
        _check_regular_file(path, os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def read_stream(stream: BinaryIO, *, limit: int = MAX_FILE_BYTES, name: str, hint: str = _TOO_LARGE_HINT) -> bytes:
    """Return everything that an open file or a pipe contains.

    Raises ``SourceTooLargeError`` if that is more than ``limit`` bytes.
    """
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise _too_large_error(name, f"more than {limit:,}", limit=limit, hint=hint)
    return data


def _check_regular_file(path: Path, stat_result: os.stat_result) -> None:
    """Raise ``OSError`` for a folder, pipe, device or socket; ``/dev/null`` is allowed."""
    if stat.S_ISDIR(stat_result.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for is_other, what in _SPECIAL_FILE_TYPES:
        if is_other(stat_result.st_mode) and not _is_null_device(stat_result):
            raise OSError(errno.EINVAL, f"it is {what}, not a file", str(path))


def _is_null_device(stat_result: os.stat_result) -> bool:
    """Return whether a file is the null device, which users name to say that there is no file."""
    return stat.S_ISCHR(stat_result.st_mode) and stat_result.st_rdev == Path(os.devnull).stat().st_rdev


def _too_large_error(name: str, size: str, *, limit: int, hint: str) -> SourceTooLargeError:
    return SourceTooLargeError(f"{name} has {size} bytes; Lamella reads files of up to {limit:,} bytes.", hint=hint)


class FileStat(NamedTuple):
    """Size, times (in ns) and identity of a file; if they are unchanged, its bytes are unchanged.

    This is true only for a settled state; see ``is_settled``.
    """

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    device: int

    def is_settled(self, now_ns: int) -> bool:
        """Return whether the last change is old enough that any later change gives another state."""
        return max(self.modified_ns, self.changed_ns) < now_ns - _SETTLE_TIME_NS

    @property
    def persistent_fields(self) -> tuple[int, int, int, int]:
        """Return the fields that survive a restart of the machine; the device number may change."""
        return self.size, self.modified_ns, self.changed_ns, self.inode


def to_file_stat(stat_result: os.stat_result) -> FileStat:
    """Return the state of a file from the result of ``stat``."""
    return FileStat(
        stat_result.st_size, stat_result.st_mtime_ns, stat_result.st_ctime_ns, stat_result.st_ino, stat_result.st_dev
    )


class FileCache(Generic[Value]):
    """An LRU cache of values computed from files, safe for threads.

    A value is stored only if the file was settled when it was read. ``get_weight`` returns the share of ``max_weight``
    that a value takes. When the limit is exceeded, the least recently used values are removed first.
    """

    def __init__(
        self,
        *,
        max_weight: int,
        get_weight: Callable[[Value], int] = lambda _value: 1,
        now_ns: Callable[[], int] = time_ns,
    ) -> None:
        self._max_weight, self._get_weight, self._now_ns = max_weight, get_weight, now_ns
        self._entries: OrderedDict[Hashable, tuple[FileStat, Value]] = OrderedDict()
        self._total_weight = 0
        self._try_to_lock = Lock()

    def get_or_compute(
        self,
        key: Hashable,
        file: Path,
        compute: Callable[[], Value],
        *,
        is_cacheable: Callable[[Value], bool] | None = None,
    ) -> Value:
        """Return the cached value for a key, or compute it with ``compute``.

        The cached value is used as long as ``file`` is unchanged. A new value is stored unless ``is_cacheable`` returns
        False for it.
        """
        # The state is taken before the value is computed. If the file changes meanwhile, the stored state is outdated
        # and the next call computes the value again.
        try:
            state = to_file_stat(file.stat())
        except OSError:
            return compute()
        with self._try_to_lock:
            kept = self._entries.get(key)
            if kept is not None and kept[0] == state:
                self._entries.move_to_end(key)
                return kept[1]
        value = compute()
        if state.is_settled(self._now_ns()) and (is_cacheable is None or is_cacheable(value)):
            self._store(key, state, value)
        return value

    def _store(self, key: Hashable, state: FileStat, value: Value) -> None:
        with self._try_to_lock:
            before = self._entries.pop(key, None)
            self._total_weight += self._get_weight(value) - (0 if before is None else self._get_weight(before[1]))
            self._entries[key] = (state, value)
            while self._total_weight > self._max_weight:
                _, (_, forgotten) = self._entries.popitem(last=False)
                self._total_weight -= self._get_weight(forgotten)


# Conversations are readable for their owner only, unless the owner changes the permissions.
PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE = 0o600, 0o700
_TEMP_PREFIX, _TEMP_SUFFIX = ".lamella-", ".tmp"

# Age in seconds after which a temporary file is removed even if it cannot be locked.
_STALE_TEMP_SECONDS = 3_600


def make_data_folder(folder: Path) -> None:
    """Create a folder for conversations; an existing folder keeps its permissions.

    Temporary files that killed processes left in it are removed.
    """
    folder.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    _remove_stale_drafts(folder)


def write_new_file(path: Path, data: bytes, *, mode: int = PRIVATE_FILE_MODE) -> None:
    """Create a file with this content; raises ``FileExistsError`` if the path exists.

    If several processes write the same path, exactly one succeeds.
    """
    with _temporary_file(path.parent, data, mode=mode) as draft:
        try:
            _publish_draft(draft, path)
        except FileExistsError:
            raise
        except OSError:
            # This file system has no hard links.
            _replace_reserved(path, draft)
    _sync_folder(path.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Replace the content of an existing file; after a crash it has either the old or the new content.

    A symbolic link stays, and its target is replaced. The file keeps its permissions.
    """
    target = path.resolve()
    _remove_stale_drafts(target.parent)
    with _temporary_file(target.parent, data, mode=stat.S_IMODE(target.stat().st_mode)) as draft:
        # A draft without a name cannot be renamed. It is linked to a temporary name first, because a link cannot
        # replace an existing file.
        fresh = draft if _has_file_name(draft) else target.parent / f"{_TEMP_PREFIX}{token_hex(8)}{_TEMP_SUFFIX}"
        try:
            if fresh != draft:
                _publish_draft(draft, fresh)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def _temporary_file(folder: Path, data: bytes, *, mode: int) -> Iterator[Path]:
    """Yield a temporary file that contains the data and is synced to disk.

    It has no name where the system supports that, so a killed process leaves nothing behind.
    """
    handle, draft = _open_temporary_file(folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if os.name == "posix":
                os.fchmod(handle, mode)
            os.fsync(handle)
            if os.name != "posix":
                # Windows cannot rename an open file.
                file.close()
            yield draft
    finally:
        if _has_file_name(draft):
            draft.unlink(missing_ok=True)


def _open_temporary_file(folder: Path) -> tuple[int, Path]:
    """Open an unnamed file (``O_TMPFILE``) where the system supports it, otherwise a named temporary file."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):
            handle = os.open(folder, os.O_TMPFILE | os.O_WRONLY, PRIVATE_FILE_MODE)
            draft = Path(f"/proc/self/fd/{handle}")
            # Without /proc the unnamed file could not be linked to a name later.
            if draft.exists():
                _try_to_lock(handle)
                return handle, draft
            os.close(handle)
    handle, name = mkstemp(dir=folder, prefix=_TEMP_PREFIX, suffix=_TEMP_SUFFIX)
    _try_to_lock(handle)
    return handle, Path(name)


def _try_to_lock(handle: int) -> bool:
    """Try to lock an open file until it is closed, and return whether that worked.

    False means that another process has the lock, or that the system has no such locks.
    """
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _has_file_name(draft: Path) -> bool:
    return draft.name.startswith(_TEMP_PREFIX)


def _publish_draft(draft: Path, path: Path) -> None:
    """Give a draft a name that does not exist yet; raises ``FileExistsError`` if it does."""
    if _has_file_name(draft):
        os.link(draft, path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Python passes the flag that follows the /proc link to the file only if a folder descriptor is given.
        os.link(draft, path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _replace_reserved(path: Path, draft: Path) -> None:
    """Reserve a name with an empty file, then replace that file by the draft."""
    path.open("xb").close()
    try:
        draft.replace(path)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Sync a folder so that a new name in it survives a crash; systems that cannot open folders need no sync."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale_drafts(folder: Path) -> None:
    """Remove temporary files that were left by processes killed between two steps."""
    for left in folder.glob(f"{_TEMP_PREFIX}*{_TEMP_SUFFIX}"):
        with suppress(OSError):
            if _is_stale(left):
                left.unlink()


def _is_stale(draft: Path) -> bool:
    """Return whether no process is writing a temporary file any more.

    A writer keeps its file locked. Where files cannot be locked, only the age decides. A young empty file is never
    removed: its writer may be about to lock it.
    """
    found = draft.stat()
    if found.st_mtime < time.time() - _STALE_TEMP_SECONDS:
        return True
    if not found.st_size:
        return False
    handle = os.open(draft, os.O_RDONLY)
    try:
        return _try_to_lock(handle)
    finally:
        os.close(handle)


# Locks between processes, for code that reads a file, changes it and writes it back.


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file against other processes of this machine.

    The file is created if it does not exist. On systems without ``fcntl`` (Windows) there is no lock.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        # Closing the descriptor releases the lock, also after an error.
        os.close(handle)


# Private files, for conversations and for the list of trusted places.


def make_private_folder(folder: Path) -> None:
    """Create a folder that only Lamella uses, and remove other users' access if it exists already."""
    make_data_folder(folder)
    _remove_permission_bits(folder, PRIVATE_FOLDER_MODE)


def make_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read, unless the file exists.

    Errors are ignored here. Opening the file afterwards reports them.
    """
    # The path is resolved because O_EXCL does not follow a symbolic link. Without this, a program that opens a dangling
    # link later would create its target with default permissions, readable for everybody.
    with suppress(OSError):
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE_MODE))


def remove_access_of_other_users(path: Path) -> None:
    """Remove the access of other users to a file, if the file exists."""
    _remove_permission_bits(path, PRIVATE_FILE_MODE)


def _remove_permission_bits(path: Path, mode: int) -> None:
    # A file of another user, or on a file system without modes, keeps the permissions it has.
    """Remove all permission bits that are not in ``mode``; never add any."""
    with suppress(OSError):
        found = path.stat().st_mode & 0o777
        if found & ~mode:
            path.chmod(found & mode)
