"""Checkpoints: a snapshot of a conversation's log now and then, so that opening it folds only the newest events."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lamella.core.log.log import Log
from lamella.core.log.records import EventKind, Record
from lamella.core.log.snapshot import (
    Snapshot,
    is_of_another_format,
    join_snapshots,
    make_snapshot,
    read_snapshot,
    write_snapshot,
)
from lamella.core.log.tree import PackedNodes, list_texts, pack_nodes
from lamella.core.text.content import encode_text, hash_bytes
from lamella.core.values import replace
from lamella.engine.keeping.counting import (
    Counted,
    CountedTexts,
    are_whole,
    join_counts,
    list_counts,
    list_tokens,
    split_counts,
)
from lamella.errors import LamellaError, StoreDamagedError
from lamella.holdings import Checkpoint, Damage
from lamella.ports import Store

# How many events a snapshot grows to before the next begins, and after how many more it is written anew until then:
# folding these takes about as long as reading a snapshot of a quarter of a thousand.
EVENTS = 128
GROWS_BY = 32
# So much of what a state names is kept with it, in characters: each content, and those of one snapshot. What is longer
# takes as long to be read wherever it is.
_LONG = 2**16
_TOGETHER = 2**20
_SHORT = 2**11
# Snapshots that are done are written anew without contents that stand nowhere any more once these are so many of all
# their bytes: then each byte is written anew a few times at most, however long a conversation gets.
_WORTH = 1 / 8
_LEAVE = "a copy of the store leaves it behind"

# What a branch came to, as bytes, and the contents that it names by hash.
KeptBranch = tuple[bytes, Mapping[str, str]]
NOTHING_KEPT: KeptBranch = (b"", {})


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
        # How many events there were before the one that grows, after its last event, and when one was last due.
        self._start = self._kept = self._due = 0
        # What came with the events since it began, but for those that it had when it was read.
        self._counts: list[bytes] = []
        self._last: Snapshot | None = None
        # What is left of the one before it once that is not the newest any more, and how much all before it are.
        self._before: Checkpoint | None = None
        self._size = 0
        # Those that lead nowhere, as far as is known; they would be read in vain at every opening.
        self._unused: tuple[int, ...] = ()
        # Contents that those before the one that grows have, by hash, and how long they are; and all that were read,
        # until they were used.
        self._held: dict[str, int] = {}
        self.contents: Mapping[str, bytes] = {}

    def restore(self) -> RestoredLog:
        """Read what was kept. Where it is damaged nothing was: the events tell all of it."""
        kept = self._read_kept()
        found = {checkpoint.version: _read(checkpoint) for checkpoint in kept}
        whole = [snapshot for snapshot in found.values() if snapshot is not None]
        log, snapshots = join_snapshots(whole, Log(self._conversation))
        used = {snapshot.version for snapshot in snapshots}
        self._unused = tuple(version for version in found if version not in used)
        self._start = self._kept = self._due = log.version
        self._counts, self._last, self._before = [], None, None
        self.contents = {name: data for snapshot in snapshots for name, data in snapshot.contents.items()}
        self._held = {name: len(data) for name, data in self.contents.items()}
        sizes = {checkpoint.version: len(checkpoint.data) for checkpoint in kept if checkpoint.version in used}
        self._size = sum(sizes.values())
        if snapshots and log.version - snapshots[-1].after < self._every:
            # It goes on growing: a conversation of short sittings would have one for each of them.
            self._start, self._last = snapshots[-1].after, snapshots[-1]
            self._held = {name: size for name, size in self._held.items() if name not in snapshots[-1].contents}
            self._size -= sizes[snapshots[-1].version]
        elif snapshots:
            self._before = _lessen(snapshots[-1])
        counts = b"".join(snapshot.counts for snapshot in snapshots)
        state = snapshots[-1].state if snapshots else b""
        return RestoredLog(log=log, said=_list_counted(snapshots), counts=counts, state=state)

    def _read_kept(self) -> Sequence[Checkpoint]:
        try:
            return self._store.read_checkpoints(self._conversation)
        except StoreDamagedError:
            return ()

    def take(self, records: Iterable[Record]) -> None:
        """Take in what came with events since: their token counts, and whether one of them erased something."""
        for record in records:
            if record.kind is EventKind.ERASURE:
                # No checkpoint is left to go on from, and what was counted until now may be of what is gone.
                self._start = self._kept = self._due = 0
                self._counts, self._unused, self._last, self._before = [], (), None, None
                self._held, self._size, self.contents = {}, 0, {}
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
        snapshot = self._save(log, *find_state())
        if snapshot is not None:
            self._kept, self._unused, self._before = log.version, (), None
            if log.version - self._start >= self._every:
                self._start, self._counts, self._last = log.version, [], None
                self._before = _lessen(snapshot)
                self._size += 0 if self._before is None else len(self._before.data)
                self._held |= {name: len(data) for name, data in snapshot.contents.items()}

    def _save(self, log: Log, state: bytes, named: Mapping[str, str]) -> Snapshot | None:
        """Write the one that grows, in place of itself where it was written before; none if it was not kept."""
        snapshot = make_snapshot(log, after=self._start)
        if self._last is not None:
            last, self._last = self._last, None
            self._counts.insert(0, join_counts(last.tokens, list_texts(last.nodes), last.counts))
        tokens, counts = split_counts(b"".join(self._counts), list_texts(snapshot.nodes))
        contents = _choose(named, self._held)
        snapshot = replace(snapshot, tokens=tokens, counts=counts, state=state, contents=contents)
        data = write_snapshot(snapshot)
        if data is None:
            return None
        idle = self._find_idle(named) if state else {}
        grown = (self._kept,) if self._kept > self._start else ()
        try:
            checkpoint = Checkpoint(version=log.version, data=data, before=self._lessen_all(idle))
            kept = self._store.keep_checkpoint(self._conversation, checkpoint, instead_of=(*self._unused, *grown))
        except LamellaError:
            # The events are written and acknowledged. Without a snapshot they are folded again, as they always can be.
            return None
        if not kept:
            return None
        self._held = {name: size for name, size in self._held.items() if name not in idle}
        self._size -= sum(idle.values())
        return snapshot

    def _find_idle(self, named: Mapping[str, str]) -> dict[str, int]:
        """Contents that earlier ones have and no state needs now, if they are worth the trouble, and how long they are.

        After a compaction they would be read at every opening.
        """
        idle = {name: size for name, size in self._held.items() if name not in named}
        return idle if sum(idle.values()) > _WORTH * self._size else {}

    def _lessen_all(self, idle: Collection[str]) -> tuple[Checkpoint, ...]:
        """Earlier ones that hold less from now on: the last of them, and those that have contents that are idle."""
        fewer = {} if self._before is None else {self._before.version: self._before}
        if not idle:
            return tuple(fewer.values())
        for one in self._read_kept():
            less = _leave_out(fewer.get(one.version, one), idle)
            if one.version <= self._start and less is not one:
                fewer[one.version] = less
        return tuple(fewer.values())


def _read(checkpoint: Checkpoint) -> Snapshot | None:
    """What a checkpoint holds, of the version that it is filed under: of another one nobody looked for the event."""
    snapshot = read_snapshot(checkpoint.data)
    return snapshot if snapshot is not None and snapshot.version == checkpoint.version else None


def _lessen(snapshot: Snapshot) -> Checkpoint | None:
    """A checkpoint without what is asked of the newest alone: its log, and the state that its branch came to."""
    lessened = replace(snapshot, state=b"")
    whole, without = write_snapshot(lessened), write_snapshot(replace(lessened, told=None))
    if whole is None or without is None:
        return None
    # One that says little keeps its log: should the next be damaged, the events are folded from here.
    data = whole if len(whole) - len(without) <= _SHORT else without
    return Checkpoint(version=snapshot.version, data=data)


def _leave_out(checkpoint: Checkpoint, idle: Collection[str]) -> Checkpoint:
    """A checkpoint without some contents; one that cannot be read stays as it is."""
    snapshot = _read(checkpoint)
    if snapshot is None or snapshot.contents.keys().isdisjoint(idle):
        return checkpoint
    contents = {name: data for name, data in snapshot.contents.items() if name not in idle}
    data = write_snapshot(replace(snapshot, contents=contents))
    return checkpoint if data is None else replace(checkpoint, data=data)


def _choose(named: Mapping[str, str], held: Collection[str]) -> dict[str, bytes]:
    """Of what a state names what is kept with it: no other snapshot has it, and it is not too long."""
    chosen: dict[str, bytes] = {}
    room = _TOGETHER
    for name, text in named.items():
        if name not in held and len(text) <= min(_LONG, room):
            chosen[name] = encode_text(text)
            room -= len(text)
    return chosen


def _list_counted(snapshots: Sequence[Snapshot]) -> dict[int, list[CountedTexts]]:
    said: dict[int, list[CountedTexts]] = {}
    for snapshot in snapshots:
        for who, tokens in snapshot.tokens.items():
            said.setdefault(who, []).append((list_texts(snapshot.nodes), tokens))
    return said


def find_damaged_checkpoints(
    conversation: str, records: Sequence[Record], kept: Iterable[Checkpoint]
) -> Iterator[Damage]:
    """Checkpoints that their events do not come to, when these are folded again."""
    log = Log(conversation)
    counted: set[Counted] = set()
    whole = True
    for checkpoint in kept:
        if checkpoint.version > len(records):
            # Someone else has gone on meanwhile.
            return
        new = records[log.version : checkpoint.version]
        log.extend(new)
        counted |= list_counts(record.counts for record in new)
        # Against counts that are damaged themselves nothing can be held.
        whole = whole and all(are_whole(record.counts) for record in new)
        what = _find_fault(checkpoint, log, counted if whole else None)
        if what is not None:
            yield Damage(conversation=conversation, place=f"checkpoint {checkpoint.version}", what=what)


def _find_fault(checkpoint: Checkpoint, log: Log, counted: set[Counted] | None) -> str | None:
    if is_of_another_format(checkpoint.data):
        return None
    snapshot = _read(checkpoint)
    if snapshot is None or (snapshot.log is None and snapshot.told is not None):
        return "cannot be read and is not used; the next one replaces it"
    derived = make_snapshot(log, after=snapshot.after)
    kept, told = PackedNodes(pack_nodes(snapshot.nodes)), PackedNodes(pack_nodes(derived.nodes))
    same = kept == told and (kept.runs, kept.columns.line) == (told.runs, told.columns.line)
    if snapshot.log is not None:
        same = same and snapshot.log == derived.log and snapshot.log.branches() == log.branches()
    if not same or any(hash_bytes(data) != name for name, data in snapshot.contents.items()):
        return f"is not what its events come to; {_LEAVE}"
    texts = list_texts(snapshot.nodes)
    if counted is not None and not (list_counts([snapshot.counts]) | list_tokens(snapshot.tokens, texts)) <= counted:
        return f"has counts that no event has; {_LEAVE}"
    return None
