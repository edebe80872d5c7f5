"""Writing a file whole or not at all, so that nobody ever finds half of one, or an empty one."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import mkstemp

# Conversations are nobody else's, unless their owner says otherwise.
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_PREFIX, _SUFFIX = ".lamella-", ".tmp"
_LEFT_BEHIND = 3_600


def make_folder(folder: Path) -> None:
    """A folder for conversations; one that is there stays as it is."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    _sweep(folder)


def write_new(path: Path, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """Make a file that is not there yet; ``FileExistsError`` if there is one. Whoever is first has the name."""
    with _drafted(path.parent, data, mode=mode) as draft:
        try:
            _link(draft, path)
        except FileExistsError:
            raise
        except OSError:
            # This disk knows no second names for a file.
            _claim(path, draft)
    _sync_folder(path.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Put a new text in place of a file, also one behind a link: after a crash it is the old one or the new one."""
    target = path.resolve()
    _sweep(target.parent)
    with _drafted(target.parent, data, mode=stat.S_IMODE(target.stat().st_mode)) as draft:
        fresh = draft if _is_named(draft) else target.parent / f"{_PREFIX}{token_hex(8)}{_SUFFIX}"
        try:
            if fresh != draft:
                _link(draft, fresh)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def _drafted(folder: Path, data: bytes, *, mode: int) -> Iterator[Path]:
    """The data as a file that lasts and that nobody sees: a process that is killed leaves nothing of it behind."""
    handle, draft = _open_draft(folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if os.name == "posix":
                os.fchmod(handle, mode)
            os.fsync(handle)
            if os.name != "posix":
                # Some systems move no file that is open.
                file.close()
            yield draft
    finally:
        if _is_named(draft):
            draft.unlink(missing_ok=True)


def _open_draft(folder: Path) -> tuple[int, Path]:
    """A file without a name where the system has such files, else one with a name of ours."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):
            handle = os.open(folder, os.O_TMPFILE | os.O_WRONLY, PRIVATE_FILE)
            draft = Path(f"/proc/self/fd/{handle}")
            if draft.exists():
                _lock(handle)
                return handle, draft
            os.close(handle)
    handle, name = mkstemp(dir=folder, prefix=_PREFIX, suffix=_SUFFIX)
    _lock(handle)
    return handle, Path(name)


def _lock(handle: int) -> bool:
    """Whether an open file is now locked by this process, until it ends at the latest; some systems lock nothing."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _is_named(draft: Path) -> bool:
    return draft.name.startswith(_PREFIX)


def _link(draft: Path, path: Path) -> None:
    """Give a draft a name that nothing has yet."""
    if _is_named(draft):
        os.link(draft, path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Only with a folder's handle does Python ask the system to follow the link that leads to the file.
        os.link(draft, path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _claim(path: Path, draft: Path) -> None:
    """Take a name by an empty file, then put the text there."""
    path.open("xb").close()
    try:
        draft.replace(path)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Make the new name last as well; systems that open no folders do so by themselves."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what a process left that was killed between two steps, and that is nobody's any more."""
    for left in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):
            if _is_left(left):
                left.unlink()


def _is_left(draft: Path) -> bool:
    """Whether nobody writes a draft: a writer holds it locked; where nothing can be locked, some time has gone by.

    One that is empty may have been made a moment ago and be locked in the next.
    """
    found = draft.stat()
    if found.st_mtime < time.time() - _LEFT_BEHIND:
        return True
    if not found.st_size:
        return False
    handle = os.open(draft, os.O_RDONLY)
    try:
        return _lock(handle)
    finally:
        os.close(handle)
