"""Private files and folders: what holds conversations, or says whom somebody trusts, is read by nobody else."""

import os
from contextlib import suppress
from pathlib import Path

from lamella.adapters.files.writing import PRIVATE_FILE, PRIVATE_FOLDER, make_folder


def make_own_folder(folder: Path) -> None:
    """A folder that only Lamella has a use for: one that is there and that others could enter is closed to them."""
    make_folder(folder)
    _close(folder, PRIVATE_FOLDER)


def make_file(path: Path) -> None:
    """Make an empty file that only its owner reads, unless there is one; what is wrong with it is told on opening."""
    # Through a link that leads nowhere yet, others would make it for everybody to read.
    with suppress(OSError):
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))


def close_file(path: Path) -> None:
    """Let nobody but its owner read or write a file, if it is there."""
    _close(path, PRIVATE_FILE)


def _close(path: Path, mode: int) -> None:
    # What is somebody else's, or on a disk without modes, is as they made it.
    with suppress(OSError):
        found = path.stat().st_mode & 0o777
        if found & ~mode:
            path.chmod(found & mode)
