"""Earlier checkpoints: what is left of those that grow no more, and what none of them needs to hold any longer."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lamella.core.log.snapshots.columns import Columns, keep_packed, set_apart
from lamella.core.log.snapshots.snapshot import Snapshot, settle_log, write_apart, write_snapshot
from lamella.core.values import replace
from lamella.engine.keeping.checkpoints.reading import read_checkpoint
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
    """What one of them has: columns of messages, blocks by hash and how long they are, and how long all of it is."""

    columns: Columns
    blocks: Mapping[str, int]
    size: int


class EarlierCheckpoints:
    """Those of one conversation, but for the one that grows."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._holdings: dict[int, _HeldParts] = {}
        # The last of them, until it was left without what only the newest needs.
        self._whole: Snapshot | None = None
        # What they have once what was lessened last is kept.
        self._lessened: dict[int, _HeldParts] = {}

    def put(self, snapshot: Snapshot, size: int, *, whole: bool) -> None:
        """Take in one of so many bytes that grows no more; a whole one still has what only the newest needs."""
        packed = keep_packed(snapshot.nodes)
        self._holdings[snapshot.version] = _weigh(packed.columns, snapshot.blocks, size)
        if whole:
            self._whole = replace(settle_log(snapshot), nodes=packed)

    def held(self) -> set[str]:
        """The hashes of blocks that they have."""
        return {name for one in self._holdings.values() for name in one.blocks}

    def lessen(self, branch: KeptBranch) -> tuple[Checkpoint, ...]:
        """Those that hold less from now on: the last of them, and all that have what stands nowhere, if that is much.

        After a compaction that would be read at every opening.
        """
        snapshots = {} if self._whole is None else {self._whole.version: self._whole}
        fewer = _lessen_each(snapshots.values(), named=None, standing=branch.standing)
        holdings = {**self._holdings, **{checkpoint.version: holding for checkpoint, holding in fewer}}.values()
        if branch.state and _weigh_idle(holdings, branch) > _WORTH * sum([one.size for one in holdings]):
            snapshots = {**self._read(), **snapshots}
            fewer = _lessen_each(snapshots.values(), named=branch.blocks, standing=branch.standing)
        self._lessened = {checkpoint.version: holding for checkpoint, holding in fewer}
        return tuple([checkpoint for checkpoint, _ in fewer])

    def settle(self) -> None:
        """What was lessened last is kept."""
        self._holdings |= self._lessened
        self._whole, self._lessened = None, {}

    def _read(self) -> dict[int, Snapshot]:
        try:
            found = self._store.read_checkpoints(self._conversation, lambda one: one, apart=True)
        except StoreDamagedError:
            return {}
        snapshots = [read_checkpoint(one) for one in found if one.version in self._holdings]
        return {one.version: one for one in snapshots if one is not None}


def _weigh(columns: Columns, blocks: Mapping[str, str], size: int) -> _HeldParts:
    return _HeldParts(columns, {name: len(block) for name, block in blocks.items()}, size)


def _weigh_idle(holdings: Iterable[_HeldParts], branch: KeptBranch) -> int:
    """How long blocks and texts are that are held and that no state needs now."""
    idle = 0
    for columns, blocks, _ in holdings:
        idle += sum([size for name, size in blocks.items() if name not in branch.blocks])
        if branch.standing is not None and columns.line is not None:
            said = zip(columns.names, columns.texts, strict=True)
            idle += sum([len(text) for name, text in said if text is not None and name not in branch.standing])
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
    kept = write_apart(apart, (snapshot.after, snapshot.version))
    return Checkpoint(version=snapshot.version, data=data, apart=kept), _weigh(nodes.columns, blocks, len(data))
