"""Snapshots: what the events of a conversation fold to, as bytes, so that opening it folds only the newest of them.

A snapshot holds the messages of the events since the snapshot before it, and everything else as it stands after them.
It is derived from the events and never believed over them: one that is damaged, or that another version of the fold
wrote, is not used.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from zlib import crc32

from msgspec import DecodeError, Raw, Struct
from msgspec.msgpack import Decoder, Encoder

from lamella.core.log.log import FORMAT, Log
from lamella.core.log.nodes import Node
from lamella.core.log.snapshots.columns import NOTHING_APART, ApartColumns, Columns, PackedNodes, pack_nodes
from lamella.core.log.tree import Nodes
from lamella.core.values import replace

_FAMILY = b"lamella log "
_HEADER = _FAMILY + b"%d\n" % FORMAT
# Against damage, not against malice: whoever can write here can write any digest as well. One that nobody can make up
# took as long as reading the bytes (2026-11-18).
_DIGEST = 4
# SQLite takes no value of more than 10**9 bytes, PostgreSQL none of more than 2**30.
_LARGEST = 2**29

# The place of a snapshot: whose events they are, after how many of them it comes, and with how many it ends.
SnapshotPlace = tuple[str, int, int]


class Snapshot(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A log without its messages, those of them that came ``after`` so many events, and what was counted for them.

    ``told`` is the log of so many events, its ``version``, as bytes where it was read; of many snapshots only the
    newest is asked for it, and the others are left without. ``tokens`` are the messages' own, in their order, by who
    counted; ``counts`` are those of other texts. ``state`` is what the active branch came to, as bytes, where that is
    known and this is the newest. ``blocks`` are those by hash that states name and no snapshot before this one has.
    """

    after: int
    version: int
    conversation: str
    told: Log | Raw | None
    nodes: Sequence[Node]
    tokens: Mapping[int, Sequence[int]] = {}
    counts: bytes = b""
    state: bytes = b""
    blocks: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self._said == other._said

    def __ne__(self, other: object) -> bool:
        # As of a record: a struct does not derive this from ``==``.
        return not self == other

    @property
    def _said(self) -> tuple[object, ...]:
        placed = self.after, self.version, self.conversation, self.log, self.nodes
        return *placed, self.tokens, self.counts, self.state, self.blocks

    @cached_property
    def log(self) -> Log | None:
        """The log without its messages, or none where it is not told, or not what the snapshot says of it."""
        if self.told is None or isinstance(self.told, Log):
            return self.told
        try:
            log = _LOG_DECODER.decode(self.told)
        except (DecodeError, RecursionError, ValueError):
            return None
        return log if (log.version, log.conversation) == (self.version, self.conversation) else None


_ENCODER = Encoder()
_DECODER = Decoder(tuple[int, int, str, Raw, Columns, dict[int, list[int]], bytes, bytes, dict[str, str]])
_APART_DECODER = Decoder(tuple[SnapshotPlace, ApartColumns])
_NOT_TOLD = _ENCODER.encode(None)
_LOG_DECODER = Decoder(Log)


def make_snapshot(log: Log, *, after: int) -> Snapshot:
    """What a log has now, for who has it as it was after so many events."""
    nodes = log.nodes
    since = nodes.since(after) if isinstance(nodes, Nodes) else [one for one in nodes.values() if one.number >= after]
    told = replace(log, nodes={})
    return Snapshot(after=after, version=log.version, conversation=log.conversation, told=told, nodes=tuple(since))


def join_snapshots(snapshots: Iterable[Snapshot], log: Log) -> tuple[Log, tuple[Snapshot, ...]]:
    """The log that snapshots lead to from an empty one, and those of them that do, oldest first.

    Several writers may each have made their own. Whichever follow one another furthest are taken.
    """
    reached: dict[int, Snapshot] = {}
    for snapshot in sorted(snapshots, key=lambda one: one.version):
        follows = snapshot.after in reached or snapshot.after == log.version
        if follows and snapshot.after < snapshot.version and snapshot.conversation == log.conversation:
            reached[snapshot.version] = snapshot
    version = next((at for at in sorted(reached, reverse=True) if reached[at].log is not None), log.version)
    joined: list[Snapshot] = []
    while version in reached:
        joined.append(reached[version])
        version = reached[version].after
    joined.reverse()
    newest = joined[-1].log if joined else None
    if newest is None:
        return log, ()
    newest.nodes = Nodes([snapshot.nodes for snapshot in joined], until=newest.version)
    return newest, tuple(joined)


def write_snapshot(snapshot: Snapshot, *, largest: int = _LARGEST) -> bytes | None:
    """A snapshot as bytes; none where an event holds what they cannot say, such as a number of forty digits.

    None as well where there are more of them than a store may take in one piece.
    """
    try:
        columns = pack_nodes(snapshot.nodes)
        head = (snapshot.after, snapshot.version, snapshot.conversation)
        counted = (snapshot.tokens, snapshot.counts)
        data = _ENCODER.encode((*head, snapshot.told, columns, *counted, snapshot.state, snapshot.blocks))
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return _seal(data) if len(data) <= largest else None


def write_apart(apart: ApartColumns, place: SnapshotPlace) -> bytes:
    """What is kept apart from the snapshot at a place, as bytes; none where there is nothing."""
    return b"" if apart == NOTHING_APART else _seal(_ENCODER.encode((place, apart)))


def settle_log(snapshot: Snapshot) -> Snapshot:
    """A snapshot as it is written: the log that it was made of goes on, and is one with its own."""
    return replace(snapshot, told=Raw(_ENCODER.encode(snapshot.told))) if isinstance(snapshot.told, Log) else snapshot


def _seal(data: bytes) -> bytes:
    return _HEADER + _digest(data) + data


def _digest(data: bytes | memoryview) -> bytes:
    return crc32(data).to_bytes(_DIGEST, "big")


def _unseal(data: bytes) -> memoryview | None:
    """What was written, or none where it is not whole or of another format."""
    start = len(_HEADER) + _DIGEST
    written = memoryview(data)[start:]
    return written if data[:start] == _HEADER + _digest(written) else None


def read_snapshot(
    data: bytes, *, find_apart: Callable[[SnapshotPlace, Columns], ApartColumns] | None = None
) -> Snapshot | None:
    """The snapshot that the bytes hold, or none where they are not whole or of another format.

    What is kept apart from it is found by its place, once somebody asks for it. Nothing of it holds on to the bytes:
    the next snapshot may take their place in memory.
    """
    written = _unseal(data)
    if written is None:
        return None
    try:
        after, version, conversation, told, columns, tokens, counts, state, blocks = _DECODER.decode(written)
    except (DecodeError, RecursionError, ValueError):
        return None
    columns = columns._replace(rest=columns.rest.copy())
    return Snapshot(
        after=after,
        version=version,
        conversation=conversation,
        told=None if bytes(told) == _NOT_TOLD else told.copy(),
        nodes=PackedNodes(columns, None if find_apart is None else partial(find_apart, (conversation, after, version))),
        tokens=tokens,
        counts=counts,
        state=state,
        blocks=blocks,
    )


def read_apart(data: bytes, place: SnapshotPlace) -> ApartColumns | None:
    """What was kept apart from the snapshot at a place, or none where the bytes are not whole or of another."""
    written = _unseal(data)
    if written is None:
        return None
    try:
        found, (texts, rest) = _APART_DECODER.decode(written)
    except (DecodeError, RecursionError, ValueError):
        return None
    return (texts, rest.copy()) if found == place else None


def is_of_another_format(data: bytes) -> bool:
    """Whether another version of the fold wrote the bytes: they are not used, and not damaged."""
    return data.startswith(_FAMILY) and not data.startswith(_HEADER)
