"""The state of a file: what a disk tells of it, and from when on that tells one content from another."""

import os
from typing import NamedTuple

# Some file systems write times in steps of two seconds: a file that was touched just now may change again within one.
_UNSETTLED_NS = 2_000_000_000


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
