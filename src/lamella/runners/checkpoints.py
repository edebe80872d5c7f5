"""Checkpoints: a snapshot of a conversation's log now and then, so that opening it folds only the newest events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lamella.core.history.log import Log
from lamella.core.history.records import Checkpoint
from lamella.core.history.snapshot import Snapshot, join_snapshots, make_snapshot, read_snapshot, write_snapshot
from lamella.core.values import replace
from lamella.errors import LamellaError
from lamella.ports import Store
from lamella.runners.counting import UNCOUNTED, are_whole, split_counts

# Folding so many events takes about as long as reading a snapshot of a thousand.
_EVENTS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A log as far as it was kept, the token counts of its messages by who counted, and those of other texts."""

    log: Log
    texts: Mapping[int, Mapping[str, int]]
    counts: bytes


class Checkpoints:
    """Those of one conversation: what they come to when it is opened, and the next one once it is due."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._version = 0
        self._counts: list[bytes] = []

    def restore(self) -> Restored:
        """Read what was kept."""
        kept = self._store.read_checkpoints(self._conversation)
        found = (read_snapshot(checkpoint.data) for checkpoint in kept)
        log, snapshots = join_snapshots([one for one in found if one is not None], Log(self._conversation))
        self._version = log.version
        counts = b"".join(snapshot.counts for snapshot in snapshots)
        return Restored(log=log, texts=_weigh(snapshots), counts=counts)

    def count(self, counts: Iterable[bytes]) -> None:
        """Take in the token counts that came with events since."""
        self._counts += [some for some in counts if some and are_whole(some)]

    def keep(self, log: Log) -> None:
        """Keep a snapshot of a log whose events are all written, if there were many since the last."""
        if log.version - self._version < _EVENTS:
            return
        snapshot = make_snapshot(log, after=self._version)
        tokens, counts = split_counts(b"".join(self._counts), [node.text for node in snapshot.nodes])
        self._version, self._counts = log.version, []
        data = write_snapshot(replace(snapshot, tokens=tokens, counts=counts))
        if data is None:
            return
        try:
            self._store.keep_checkpoint(self._conversation, Checkpoint(version=log.version, data=data))
        except LamellaError:
            # The events are written and acknowledged. Without a snapshot they are folded again, as they always can be.
            return


def _weigh(snapshots: Sequence[Snapshot]) -> dict[int, dict[str, int]]:
    texts: dict[int, dict[str, int]] = {}
    for snapshot in snapshots:
        for who, tokens in snapshot.tokens.items():
            pairs = zip(snapshot.nodes, tokens, strict=False)
            texts.setdefault(who, {}).update([(node.text, count) for node, count in pairs if count != UNCOUNTED])
    return texts
