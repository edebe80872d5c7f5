"""Checkpoints: a snapshot of a conversation's log now and then, so that opening it folds only the newest events."""

from collections.abc import Iterable

from lamella.core.history.log import Log
from lamella.core.history.records import Checkpoint
from lamella.core.history.snapshot import read_snapshots, write_snapshot
from lamella.errors import LamellaError
from lamella.ports import Store
from lamella.runners.counting import are_whole

# Folding so many events takes about as long as reading the snapshot of as many that are folded already.
_EVENTS = 128


class Checkpoints:
    """Those of one conversation: what they come to when it is opened, and the next one once it is due."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._version = 0
        self._counts: list[bytes] = []

    def restore(self) -> tuple[Log, bytes]:
        """The log as far as it was kept, and the token counts that came with its events."""
        kept = self._store.read_checkpoints(self._conversation)
        log, counts = read_snapshots([checkpoint.data for checkpoint in kept], self._conversation)
        self._version = log.version
        return log, counts

    def count(self, counts: Iterable[bytes]) -> None:
        """Take in the token counts that came with events since."""
        self._counts += [some for some in counts if some and are_whole(some)]

    def keep(self, log: Log) -> None:
        """Keep a snapshot of a log whose events are all written, if there were many since the last."""
        if log.version - self._version < _EVENTS:
            return
        data = write_snapshot(log, after=self._version, counts=b"".join(self._counts))
        self._version, self._counts = log.version, []
        if data is None:
            return
        try:
            self._store.keep_checkpoint(self._conversation, Checkpoint(version=log.version, data=data))
        except LamellaError:
            # The events are written and acknowledged. Without a snapshot they are folded again, as they always can be.
            return
