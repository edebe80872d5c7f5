"""A log as its store has it: read when it is opened, appended to, its texts counted once and its folds kept."""

from collections.abc import Sequence

from lamella.core.log.records import Record, Written
from lamella.core.values import replace
from lamella.engine.keeping.checkpoints import Checkpoints
from lamella.engine.keeping.counting import CountingBook
from lamella.ports import Store, TokenCounter


class StoredLog:
    """The log of one conversation, the book that counts its texts, and its checkpoints, one after ``every`` events."""

    def __init__(self, store: Store, conversation: str, *, counter: TokenCounter, every: int) -> None:
        self._store = store
        self._checkpoints = Checkpoints(store, conversation, every=every)
        restored = self._checkpoints.restore()
        self.log = restored.log
        self.book = CountingBook(counter)
        self.book.begin_with(restored.counts, restored.texts)

    def reload(self) -> None:
        """Read what others wrote since."""
        self._take(self._store.load(self.log.conversation, after=self.log.version))

    def append(self, written: Written, *, title: str | None = None) -> None:
        """Write events down, the last of them with what was counted for them."""
        last = replace(written.records[-1], counts=self.book.write())
        counted = replace(written, records=(*written.records[:-1], last))
        self._store.append(self.log.conversation, counted, expected=self.log.version, title=title)
        self._take(counted.records)
        self._checkpoints.keep(self.log)

    def _take(self, records: Sequence[Record]) -> None:
        self.log.extend(records)
        self.book.learn([record.counts for record in records])
        self._checkpoints.take(records)
