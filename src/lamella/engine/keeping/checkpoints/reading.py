"""Reading checkpoints: what is kept apart from them is read once somebody asks for it, which opening does not."""

from collections.abc import Callable, Mapping

from lamella.core.log.log import Log
from lamella.core.log.nodes import damaged
from lamella.core.log.snapshots.columns import ApartColumns, Columns, keep_packed
from lamella.core.log.snapshots.snapshot import Snapshot, SnapshotPlace, make_snapshot, read_apart, read_snapshot
from lamella.errors import StoreDamagedError
from lamella.holdings import Checkpoint
from lamella.ports import Store

# What finds that which is kept apart from columns at a place among the events.
FindApart = Callable[[SnapshotPlace, Columns], ApartColumns]


def read_checkpoint(checkpoint: Checkpoint, find_apart: FindApart | None = None) -> Snapshot | None:
    """What a checkpoint holds, of the version that it is filed under: of another one nobody looked for the event.

    What is kept apart from it came along where nobody else finds it.
    """

    def find(place: SnapshotPlace, columns: Columns) -> ApartColumns:
        apart = _match(checkpoint.apart, place, columns)
        if apart is None:
            raise damaged(f"What is apart from checkpoint {checkpoint.version}", ValueError("it does not belong there"))
        return apart

    snapshot = read_snapshot(checkpoint.data, find_apart=find_apart or find)
    return snapshot if snapshot is not None and snapshot.version == checkpoint.version else None


class ApartReader:
    """Finds what is apart from the checkpoints of one conversation. Where it is gone, the events tell it."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._kept: Mapping[int, bytes] | None = None

    def find(self, place: SnapshotPlace, columns: Columns) -> ApartColumns:
        """What belongs to the columns of one; that of all is read the first time."""
        # Without a lock: one that all conversations share would be held while a store is waited for.
        if self._kept is None:
            self._kept = self._read()
        _, version = place
        found = _match(self._kept.get(version, b""), place, columns)
        return self._fold(place, columns) if found is None else found

    def _read(self) -> dict[int, bytes]:
        try:
            return dict(self._store.read_checkpoints(self._conversation, _take_apart, apart=True))
        except StoreDamagedError:
            return {}

    def _fold(self, place: SnapshotPlace, columns: Columns) -> ApartColumns:
        """The same from the events: others may have replaced a checkpoint, and any erasure removes all of them."""
        after, version = place
        log = Log(self._conversation)
        log.extend(self._store.load(self._conversation)[:version])
        folded = keep_packed(make_snapshot(log, after=after).nodes)
        if folded.columns.names != columns.names:
            raise damaged(f"A snapshot of {self._conversation}", ValueError("its events say something else"))
        return dict(enumerate(folded.texts)), folded.rest


def _take_apart(checkpoint: Checkpoint) -> tuple[int, bytes]:
    return checkpoint.version, checkpoint.apart


def _match(data: bytes, place: SnapshotPlace, columns: Columns) -> ApartColumns | None:
    """What the bytes hold, if it is all that is missing from these columns."""
    apart = read_apart(data, place)
    missing = {at for at, text in enumerate(columns.texts) if text is None}
    return apart if apart is not None and missing <= apart[0].keys() else None
