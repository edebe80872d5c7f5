"""Earlier checkpoints: what is left of those that grow no more, and what none of them needs to hold any longer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from lamella.core.log.snapshots.columns import Columns, keep_packed, set_apart
from lamella.core.log.snapshots.snapshot import Snapshot, settle_log, write_apart, write_snapshot
from lamella.core.values import replace
from lamella.engine.keeping.checkpoints.reading import ApartReader
from lamella.errors import StoreDamagedError
from lamella.holdings import Checkpoint
from lamella.ports import Store

# A log that says no more is left in those that are not the newest: should that be damaged, events are folded from here.
_SHORT = 2**11
# They are written anew without blocks and texts that stand nowhere any more once these are so many of all their
# bytes: then each byte is written anew a few times at most, however long a conversation gets.
_WORTH = 1 / 8


class KeptBranch(NamedTuple):
    """What a branch came to, as bytes, the blocks that it names by hash, and the messages whose own words stand.

    The last are none where that is not known.
    """

    state: bytes
    blocks: Mapping[str, str]
    standing: Collection[str] | None


NOTHING_KEPT = KeptBranch(b"", {}, None)


class _HeldParts(NamedTuple):
    """What one of them has: how long the texts of messages are, none where they are apart, its blocks, and all of it.

    Of messages from which nothing can be set apart nothing is told.
    """

    names: Sequence[str]
    lengths: Sequence[int | None]
    blocks: Mapping[str, int]
    size: int


class EarlierCheckpoints:
    """Those of one conversation, but for the one that grows."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._held: dict[int, _HeldParts] = {}
        # The last of them, until it was left without what only the newest needs.
        self._whole: Snapshot | None = None
        # What they have once what was lessened last is kept.
        self._lessened: dict[int, _HeldParts] = {}

    def put(self, snapshot: Snapshot, size: int, *, whole: bool) -> None:
        """Take in one of so many bytes that grows no more; a whole one still has what only the newest needs."""
        packed = keep_packed(snapshot.nodes)
        self._held[snapshot.version] = _weigh(packed.columns, snapshot.blocks, size)
        if whole:
            self._whole = replace(settle_log(snapshot), nodes=packed)

    def list_blocks(self) -> set[str]:
        """The hashes of blocks that they have."""
        return {name for one in self._held.values() for name in one.blocks}

    def lessen(self, branch: KeptBranch) -> tuple[Checkpoint, ...]:
        """Those that hold less from now on: the last of them, and all that have what stands nowhere, if that is much.

        After a compaction that would be read at every opening; after an undo, so would what is apart.
        """
        snapshots = {} if self._whole is None else {self._whole.version: self._whole}
        fewer = _lessen_each(snapshots.values(), named=None, standing=branch.standing)
        self._lessened = {**self._held, **{one.version: parts for one, parts in fewer}}
        held = self._lessened.values()
        if not branch.state or _weigh_amiss(held, branch) <= _WORTH * sum([one.size for one in held]):
            return tuple([one for one, _ in fewer])
        kept = self._read()
        reader = ApartReader(self._store, self._conversation)
        read = {one.version: snapshot for one in kept.values() if (snapshot := reader.read(one)) is not None}
        fewer = _lessen_each({**read, **snapshots}.values(), named=branch.blocks, standing=branch.standing)
        # What could not be lessened, or is not there any more, would be tried again each time.
        self._lessened = {one.version: parts for one, parts in fewer}
        return tuple([one for one, _ in fewer if kept.get(one.version) != one])

    def settle(self) -> None:
        """What was lessened last is kept."""
        self._held, self._lessened, self._whole = self._lessened, {}, None

    def _read(self) -> dict[int, Checkpoint]:
        try:
            kept = self._store.read_checkpoints(self._conversation, lambda one: one, apart=True)
        except StoreDamagedError:
            return {}
        return {one.version: one for one in kept if one.version in self._held}


def _weigh(columns: Columns, blocks: Mapping[str, str], size: int) -> _HeldParts:
    sizes = {name: len(block) for name, block in blocks.items()}
    if columns.line is None:
        return _HeldParts((), (), sizes, size)
    lengths = [None if text is None else len(text) for text in columns.texts]
    return _HeldParts(columns.names, lengths, sizes, size)


def _weigh_amiss(held: Collection[_HeldParts], branch: KeptBranch) -> int:
    """How long blocks and texts are that are at hand and that no state needs now, or the other way round.

    A text that is apart is taken to be as long as those at hand are on average.
    """
    idle = sum([size for one in held for name, size in one.blocks.items() if name not in branch.blocks])
    if branch.standing is None:
        return idle
    lengths = [length for one in held for length in one.lengths]
    known = [length for length in lengths if length is not None]
    usual = sum(known) // len(known) if known else 0
    for names, sizes, _, _ in held:
        for name, length in zip(names, sizes, strict=True):
            if (length is None) is (name in branch.standing):
                idle += usual if length is None else length
    return idle


def _lessen_each(
    snapshots: Iterable[Snapshot], *, named: Collection[str] | None, standing: Collection[str] | None
) -> list[tuple[Checkpoint, _HeldParts]]:
    found = [_lessen(one, named=named, standing=standing) for one in snapshots]
    return [one for one in found if one is not None]


def _lessen(
    snapshot: Snapshot, *, named: Collection[str] | None, standing: Collection[str] | None
) -> tuple[Checkpoint, _HeldParts] | None:
    """A checkpoint without what is asked of the newest alone, its log and the state that its branch came to.

    It keeps no block but those that are ``named``, where that is told. None where it cannot be written or read.
    """
    try:
        nodes, apart = set_apart(snapshot.nodes, standing)
    except StoreDamagedError:
        return None
    blocks = {name: block for name, block in snapshot.blocks.items() if named is None or name in named}
    lessened = replace(snapshot, nodes=nodes, blocks=blocks, state=b"")
    whole, without = write_snapshot(lessened), write_snapshot(replace(lessened, told=None))
    if whole is None or without is None:
        return None
    data = whole if len(whole) - len(without) <= _SHORT else without
    kept = write_apart(apart, (snapshot.conversation, snapshot.after, snapshot.version))
    return Checkpoint(version=snapshot.version, data=data, apart=kept), _weigh(nodes.columns, blocks, len(data))
