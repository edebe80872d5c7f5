"""Compactions of a log: committed after a message, in force on every branch that goes on from it, until undone."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.receipt import find_voided

NEVER_UNDONE = float("inf")


class CompactionsInForce(Struct, frozen=True, kw_only=True):
    """The compactions of a branch: by the message that was asked after them, and those since the last one."""

    before: Mapping[str, tuple[CompactionEvent, ...]] = {}
    since: tuple[CompactionEvent, ...] = ()

    @property
    def events(self) -> tuple[CompactionEvent, ...]:
        return (*(event for events in self.before.values() for event in events), *self.since)


NONE_IN_FORCE = CompactionsInForce()


class _Entry(Struct):
    event: CompactionEvent
    at: int
    undone_at: float = NEVER_UNDONE


class Compactions(Struct):
    """What was compacted and undone. Moments are counted in events: how many the log had."""

    _entries: list[_Entry] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def commit(self, event: CompactionEvent, *, at: int) -> None:
        """A compaction after the message that it names."""
        self._entries.append(_Entry(event, at))

    def undo(self, receipt: str, *, path: Mapping[str, int], at: int) -> None:
        """Void a compaction and all later ones of the branch."""
        branch = [entry for entry, _ in self._along(path) if entry.undone_at == NEVER_UNDONE]
        found = find_voided([entry.event.id for entry in branch], receipt)
        if found is None:
            raise ValueError(f"there is no compaction {receipt} to undo")
        for entry in branch[found:]:
            entry.undone_at = at

    def was_undone(self, since: int, *, until: int | None = None) -> bool:
        """Whether one that was in force at a moment of the past is so no more, or was not at a later one."""
        return any(_in_force(entry, since) and not _in_force(entry, until) for entry in self._entries)

    def on(self, path: Mapping[str, int], *, until: int | None = None) -> CompactionsInForce:
        """Those in force on a branch, given when each of its messages was said; ``until`` a moment of the past."""
        before: dict[str, tuple[CompactionEvent, ...]] = {}
        since: tuple[CompactionEvent, ...] = ()
        for entry, child in self._along(path):
            if not _in_force(entry, until):
                continue
            if child is None:
                since = (*since, entry.event)
            else:
                before[child] = (*before.get(child, ()), entry.event)
        return CompactionsInForce(before=before, since=since)

    def _along(self, path: Mapping[str, int]) -> Iterator[tuple[_Entry, str | None]]:
        """Every compaction that a branch went on from, undone or not, with the message asked next, if there is one."""
        # Nothing goes before the first question but what was compacted to send it.
        following = dict(pairwise(("", *path, "")))
        for entry in self._entries:
            child = following.get(entry.event.parent)
            if child == "":
                yield entry, None
            elif child is not None and (path[child] >= entry.at or entry.event.before == child):
                # What was asked before a compaction is not built under it, unless it was made to send that again.
                yield entry, child


def _in_force(entry: _Entry, until: int | None) -> bool:
    if until is None:
        return entry.undone_at == NEVER_UNDONE
    return entry.at <= until < entry.undone_at
