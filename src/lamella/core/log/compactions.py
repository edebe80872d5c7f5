"""Compactions of a log: committed after a message, in force on every branch that goes on from it, until undone."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from lamella.core.log.events import Body

NEVER_UNDONE = float("inf")


class Committed(Struct, frozen=True, kw_only=True):
    """The receipts of a branch as bodies: by the message that was asked after them, and those since the last one."""

    before: Mapping[str, tuple[Body, ...]] = {}
    since: tuple[Body, ...] = ()

    @property
    def bodies(self) -> tuple[Body, ...]:
        return (*(body for bodies in self.before.values() for body in bodies), *self.since)


NONE_COMMITTED = Committed()


class _Entry(Struct):
    body: Body
    at: int
    undone_at: float = NEVER_UNDONE

    @property
    def parent(self) -> object:
        return self.body["parent"]


class Compactions(Struct):
    """What was compacted and undone. Moments are counted in events: how many the log had."""

    _entries: list[_Entry] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def commit(self, body: Body, *, at: int) -> None:
        """A compaction after the message that its body names."""
        if not isinstance(body["id"], str) or not isinstance(body["parent"], str):
            raise ValueError("a compaction names no message")
        self._entries.append(_Entry(body, at))

    def undo(self, receipt: object, *, path: Mapping[str, int], at: int) -> None:
        """Void a compaction and all later ones of the branch."""
        branch = [entry for entry, _ in self._along(path) if entry.undone_at == NEVER_UNDONE]
        found = next((index for index, entry in enumerate(branch) if entry.body["id"] == receipt), None)
        if found is None:
            raise ValueError(f"there is no compaction {receipt} to undo")
        for entry in branch[found:]:
            entry.undone_at = at

    def on(self, path: Mapping[str, int], *, until: int | None = None) -> Committed:
        """Those in force on a branch, given when each of its messages was said; ``until`` a moment of the past."""
        before: dict[str, tuple[Body, ...]] = {}
        since: tuple[Body, ...] = ()
        for entry, child in self._along(path):
            if not _in_force(entry, until):
                continue
            if child is None:
                since = (*since, entry.body)
            else:
                before[child] = (*before.get(child, ()), entry.body)
        return Committed(before=before, since=since)

    def _along(self, path: Mapping[str, int]) -> Iterator[tuple[_Entry, str | None]]:
        """Every compaction that a branch went on from, undone or not, with the message asked next, if there is one."""
        following = dict(pairwise((*path, "")))
        for entry in self._entries:
            child = following.get(str(entry.parent))
            if child == "":
                yield entry, None
            elif child is not None and (path[child] >= entry.at or entry.body.get("before") == child):
                # What was asked before a compaction is not built under it, unless it was made to send that again.
                yield entry, child


def _in_force(entry: _Entry, until: int | None) -> bool:
    if until is None:
        return entry.undone_at == NEVER_UNDONE
    return entry.at <= until < entry.undone_at
