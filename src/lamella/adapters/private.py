"""Private files and folders: what holds conversations, or says whom somebody trusts, is read by nobody else."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner enters; one that is there stays as it is."""
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)


def make_own_folder(folder: Path) -> None:
    """The same for a folder that nobody but Lamella has a use for: one that others could enter is closed to them."""
    make_folder(folder)
    _close(folder, _FOLDER_MODE)


def make_file(path: Path) -> None:
    """Make an empty file that only its owner reads, unless there is one; what is wrong with it is told on opening."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE))


def close_file(path: Path) -> None:
    """Let nobody but its owner read or write a file, if it is there."""
    _close(path, _FILE_MODE)


def write_private(path: Path, text: str) -> None:
    """Replace a file, or leave it as it was. One that was not there is read by its owner only."""
    handle, name = mkstemp(dir=path.parent, prefix=".lamella-", suffix=".tmp")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, fresh)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _close(path: Path, mode: int) -> None:
    # What is somebody else's, or on a disk without modes, is as they made it.
    with suppress(OSError):
        found = path.stat().st_mode & 0o777
        if found & ~mode:
            path.chmod(found & mode)
