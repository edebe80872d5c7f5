"""Private files and folders: what holds conversations, or says whom somebody trusts, is read by nobody else."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

FILE_MODE = 0o600
_FOLDER_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner enters; one of ours that others could enter is closed to them."""
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    _close(folder, _FOLDER_MODE)


def close_file(path: Path) -> None:
    """Let nobody but its owner read or write a file, if it is there and ours."""
    _close(path, FILE_MODE)


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner reads, or leave it as it was."""
    handle, name = mkstemp(dir=path.parent, prefix=".lamella-", suffix=".tmp")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _close(path: Path, mode: int) -> None:
    # Somebody else's, or on a disk without modes: whoever made it decides.
    with suppress(OSError):
        found = path.stat().st_mode & 0o777
        if found & ~mode:
            path.chmod(found & mode)
