"""Locks between processes: who reads a file and writes it again is alone for that long."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lamella.adapters.files.writing import PRIVATE_FILE


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among the processes of this machine; where a system has no such locks, not alone."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
