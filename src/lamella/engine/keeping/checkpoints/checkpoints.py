"""Checkpoints: a snapshot of a conversation's log now and then, so that opening it folds only the newest events."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from lamella.core.log.log import Log
from lamella.core.log.records import EventKind, Record
from lamella.core.log.snapshots.columns import keep_packed, list_texts
from lamella.core.log.snapshots.snapshot import Snapshot, join_snapshots, make_snapshot, write_snapshot
from lamella.core.values import replace
from lamella.engine.keeping.checkpoints.earlier import EarlierCheckpoints, KeptBranch
from lamella.engine.keeping.checkpoints.reading import ApartReader
from lamella.engine.keeping.counting import CountedTexts, are_whole, join_counts, split_counts
from lamella.errors import LamellaError, StoreDamagedError
from lamella.holdings import Checkpoint
from lamella.ports import Store

# How many events a snapshot grows to before the next begins, and after how many more it is written anew until then:
# folding these takes about as long as reading a snapshot of a quarter of a thousand.
EVENTS = 128
GROWS_BY = 32
# So much of what a state names is kept with it, in characters: each block, and those of one snapshot. What is longer
# takes as long to be read wherever it is.
_LONG = 2**16
_TOGETHER = 2**20


class RestoredLog(Struct, frozen=True, kw_only=True):
    """A log as far as it was kept, the token counts of its messages by who counted, and those of other texts.

    ``state`` is what its active branch came to, as bytes.
    """

    log: Log
    said: Mapping[int, Sequence[CountedTexts]]
    counts: bytes
    state: bytes


class Checkpoints:
    """Those of one conversation: what they come to when it is opened, and the next one once it is due."""

    def __init__(self, store: Store, conversation: str, *, every: int = EVENTS) -> None:
        self._store = store
        self._conversation = conversation
        self._every = every
        self._grows_by = GROWS_BY if every == EVENTS else every
        self._forget()

    def _forget(self) -> None:
        # How many events there were before the one that grows, after its last event, and when one was last due.
        self._start = self._kept = self._due = 0
        # What came with the events since it began, but for those that it had when it was read.
        self._counts: list[bytes] = []
        self._last: Snapshot | None = None
        self._earlier = EarlierCheckpoints(self._store, self._conversation)
        # Those that lead nowhere, as far as is known; they would be read in vain at every opening.
        self._unused: tuple[int, ...] = ()
        # Blocks that were read, until they were used.
        self.blocks: Mapping[str, str] = {}

    def restore(self) -> RestoredLog:
        """Read what was kept. Where it is damaged nothing was: the events tell all of it."""
        self._forget()
        kept = self._read_kept()
        whole = [snapshot for _, _, snapshot in kept if snapshot is not None]
        log, snapshots = join_snapshots(whole, Log(self._conversation))
        used = {snapshot.version for snapshot in snapshots}
        self._unused = tuple(version for version, _, _ in kept if version not in used)
        self._start = self._kept = self._due = log.version
        self.blocks = {name: block for snapshot in snapshots for name, block in snapshot.blocks.items()}
        sizes = {version: size for version, size, _ in kept}
        for snapshot in snapshots:
            newest = snapshot is snapshots[-1]
            if newest and log.version - snapshot.after < self._every:
                # It goes on growing: a conversation of short sittings would have one for each of them.
                self._start, self._last = snapshot.after, snapshot
            else:
                self._earlier.put(snapshot, sizes[snapshot.version], whole=newest)
        counts = b"".join(snapshot.counts for snapshot in snapshots)
        state = snapshots[-1].state if snapshots else b""
        return RestoredLog(log=log, said=_list_counted(snapshots), counts=counts, state=state)

    def _read_kept(self) -> Sequence[tuple[int, int, Snapshot | None]]:
        """Version and length of each that was kept, and what it holds."""
        reader = ApartReader(self._store, self._conversation)

        def read(checkpoint: Checkpoint) -> tuple[int, int, Snapshot | None]:
            return checkpoint.version, len(checkpoint.data), reader.read(checkpoint)

        try:
            return self._store.read_checkpoints(self._conversation, read)
        except StoreDamagedError:
            return ()

    def take(self, records: Iterable[Record]) -> None:
        """Take in what came with events since: their token counts, and whether one of them erased something."""
        for record in records:
            if record.kind is EventKind.ERASURE:
                # No checkpoint is left to go on from, and what was counted until now may be of what is gone.
                self._forget()
            elif record.counts and are_whole(record.counts):
                self._counts.append(record.counts)

    def keep(self, log: Log, find_state: Callable[[], KeptBranch]) -> None:
        """Keep a snapshot of a log whose events are all written, if there were many since the last.

        What its active branch came to is found only then.
        """
        since, waits = log.version - self._due, bool(log.head) and log.head == log.last_asked
        # One that ends with an answer has whole turns, and these are told together.
        if since < self._grows_by or (since == self._grows_by < self._every and waits):
            return
        # One that cannot be kept is not tried again at every event, and the next one goes on from where this did.
        self._due = log.version
        try:
            branch = find_state()
            snapshot = self._make(log, branch)
            data = write_snapshot(snapshot)
            if data is None or not self._save(data, log.version, branch):
                return
        except LamellaError:
            # The events are written and acknowledged. Without a snapshot they are folded again, as they always can be.
            return
        self._kept, self._unused = log.version, ()
        if log.version - self._start >= self._every:
            self._start, self._counts, self._last = log.version, [], None
            self._earlier.put(snapshot, len(data), whole=True)

    def _make(self, log: Log, branch: KeptBranch) -> Snapshot:
        """The one that grows."""
        snapshot = make_snapshot(log, after=self._start)
        if self._last is not None:
            last, self._last = self._last, None
            self._counts.insert(0, join_counts(last.tokens, list_texts(last.nodes), last.counts))
        tokens, counts = split_counts(b"".join(self._counts), list_texts(snapshot.nodes))
        blocks = _choose(branch.blocks, self._earlier.list_blocks())
        return replace(snapshot, tokens=tokens, counts=counts, state=branch.state, blocks=blocks)

    def _save(self, data: bytes, version: int, branch: KeptBranch) -> bool:
        """Write it, in place of itself where it was written before, and say whether it was kept."""
        grown = (self._kept,) if self._kept > self._start else ()
        checkpoint = Checkpoint(version=version, data=data, before=self._earlier.lessen(branch))
        kept = self._store.keep_checkpoint(self._conversation, checkpoint, instead_of=(*self._unused, *grown))
        if kept:
            self._earlier.settle()
        return kept


def _choose(named: Mapping[str, str], held: Collection[str]) -> dict[str, str]:
    """Of the blocks that a state names those that are kept with it: no other snapshot has them, none is too long."""
    chosen: dict[str, str] = {}
    room = _TOGETHER
    for name, block in named.items():
        if name not in held and len(block) <= min(_LONG, room):
            chosen[name] = block
            room -= len(block)
    return chosen


def _list_counted(snapshots: Sequence[Snapshot]) -> dict[int, list[CountedTexts]]:
    said: dict[int, list[CountedTexts]] = {}
    for snapshot in snapshots:
        for who, tokens in snapshot.tokens.items():
            said.setdefault(who, []).append((keep_packed(snapshot.nodes), tokens))
    return said
