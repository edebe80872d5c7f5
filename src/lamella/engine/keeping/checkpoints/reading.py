"""Reading checkpoints: what is kept apart from them is read once somebody asks for it, which opening does not."""

from collections.abc import Callable, Iterator

from lamella.core.log.log import Log
from lamella.core.log.nodes import damaged
from lamella.core.log.snapshots.columns import ApartColumns, Columns, PackedNodes, keep_packed
from lamella.core.log.snapshots.snapshot import Snapshot, SnapshotPlace, make_snapshot, read_apart, read_snapshot
from lamella.errors import StoreDamagedError
from lamella.holdings import Checkpoint
from lamella.ports import Store

# What finds that which is kept apart from columns at a place among the events.
FindApart = Callable[[SnapshotPlace, Columns], ApartColumns]


def read_checkpoint(checkpoint: Checkpoint, find_apart: FindApart | None = None) -> Snapshot | None:
    """What a checkpoint holds, of the version that it is filed under: of another one nobody looked for the event.

    What is apart from it is found elsewhere where it did not come along, or cannot be read.
    """
    version, came_along = checkpoint.version, checkpoint.apart

    def find(place: SnapshotPlace, columns: Columns) -> ApartColumns:
        apart = _match(came_along, place, columns)
        if apart is not None:
            return apart
        if find_apart is None:
            raise damaged(f"What is apart from checkpoint {version}", ValueError("it does not belong there"))
        return find_apart(place, columns)

    snapshot = read_snapshot(checkpoint.data, find_apart=find)
    return snapshot if snapshot is not None and snapshot.version == version else None


class ApartReader:
    """Finds what is apart from the checkpoints of one conversation. Where it is gone, the events tell it."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        # Where checkpoints are of which something may be asked, what the store has for them, and what events told.
        self._places: list[SnapshotPlace] = []
        self._kept: dict[int, bytes] | None = None
        self._folded: dict[SnapshotPlace, PackedNodes] = {}

    def read(self, checkpoint: Checkpoint) -> Snapshot | None:
        """What a checkpoint holds; what is apart from it is found once somebody asks."""
        snapshot = read_checkpoint(checkpoint, self.find)
        if snapshot is not None:
            self._places.append((self._conversation, snapshot.after, snapshot.version))
        return snapshot

    def find(self, place: SnapshotPlace, columns: Columns) -> ApartColumns:
        """What belongs to the columns of one; that of all is read the first time, and given once."""
        # Without a lock: one that all conversations share would be held while a store is waited for.
        if self._kept is None:
            self._kept = self._read_kept()
        found = _match(self._kept.pop(place[-1], b""), place, columns)
        return self._fold(place, columns) if found is None else found

    def _read_kept(self) -> dict[int, bytes]:
        try:
            return dict(self._store.read_checkpoints(self._conversation, _take_apart, apart=True))
        except StoreDamagedError:
            return {}

    def _fold(self, place: SnapshotPlace, columns: Columns) -> ApartColumns:
        """The same from the events: others may have replaced a checkpoint, and any erasure removes all of them."""
        if place not in self._folded:
            self._folded = dict(self._fold_all())
        folded = self._folded.get(place)
        if folded is None or folded.columns.names != columns.names:
            raise damaged(f"A snapshot of {self._conversation}", ValueError("its events say something else"))
        return dict(enumerate(folded.texts)), folded.rest

    def _fold_all(self) -> Iterator[tuple[SnapshotPlace, PackedNodes]]:
        """What all checkpoints have that may be asked for: whoever needs one of them mostly needs the others."""
        log, records = Log(self._conversation), self._store.load(self._conversation)
        for place in sorted(self._places, key=lambda one: one[-1]):
            _, after, version = place
            log.extend(records[log.version : version])
            yield place, keep_packed(make_snapshot(log, after=after).nodes)


def _take_apart(checkpoint: Checkpoint) -> tuple[int, bytes]:
    return checkpoint.version, checkpoint.apart


def _match(data: bytes, place: SnapshotPlace, columns: Columns) -> ApartColumns | None:
    """What the bytes hold, if it is all that is missing from these columns."""
    apart = read_apart(data, place)
    missing = {at for at, text in enumerate(columns.texts) if text is None}
    return apart if apart is not None and missing <= apart[0].keys() else None
