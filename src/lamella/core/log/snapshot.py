"""Snapshots: what the events of a conversation fold to, as bytes, so that opening it folds only the newest of them.

A snapshot holds the messages of the events since the snapshot before it, and everything else as it stands after them.
It is derived from the events and never believed over them: one that is damaged, or that another version of the fold
wrote, is not used.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import DecodeError, Struct
from msgspec.msgpack import Decoder, Encoder

from lamella.core.log.log import FORMAT, Log
from lamella.core.log.nodes import Node
from lamella.core.log.tree import Columns, Nodes, PackedNodes, pack_nodes
from lamella.core.values import replace

_FAMILY = b"lamella log "
_HEADER = _FAMILY + b"%d\n" % FORMAT
_DIGEST = sha256().digest_size
# SQLite takes no value of more than 10**9 bytes, PostgreSQL none of more than 2**30.
_LARGEST = 2**29


class Snapshot(Struct, frozen=True, kw_only=True):
    """A log without its messages, those of them that came ``after`` so many events, and what was counted for them.

    ``tokens`` are the messages' own, in their order, by who counted; ``counts`` are those of other texts.
    """

    after: int
    log: Log
    nodes: Sequence[Node]
    tokens: Mapping[int, Sequence[int]] = {}
    counts: bytes = b""


_ENCODER = Encoder()
_DECODER = Decoder(tuple[int, Log, Columns, dict[int, list[int]], bytes])


def make_snapshot(log: Log, *, after: int) -> Snapshot:
    """What a log has now, for who has it as it was after so many events."""
    nodes = log.nodes
    since = nodes.since(after) if isinstance(nodes, Nodes) else [one for one in nodes.values() if one.number >= after]
    return Snapshot(after=after, log=replace(log, nodes={}), nodes=tuple(since))


def join_snapshots(snapshots: Iterable[Snapshot], log: Log) -> tuple[Log, tuple[Snapshot, ...]]:
    """The log that snapshots lead to from an empty one, and those of them that do, oldest first.

    Several writers may each have made their own. Whichever follow one another furthest are taken.
    """
    reached: dict[int, Snapshot] = {}
    for snapshot in sorted(snapshots, key=lambda one: one.log.version):
        follows = snapshot.after in reached or snapshot.after == log.version
        if follows and snapshot.after < snapshot.log.version and snapshot.log.conversation == log.conversation:
            reached[snapshot.log.version] = snapshot
    joined: list[Snapshot] = []
    version = max(reached, default=log.version)
    while version in reached:
        joined.append(reached[version])
        version = reached[version].after
    joined.reverse()
    if joined:
        log = joined[-1].log
        log.nodes = Nodes([snapshot.nodes for snapshot in joined], until=log.version)
    return log, tuple(joined)


def write_snapshot(snapshot: Snapshot, *, largest: int = _LARGEST) -> bytes | None:
    """A snapshot as bytes; none where an event holds what they cannot say, such as a number of forty digits.

    None as well where there are more of them than a store may take in one piece.
    """
    try:
        columns = pack_nodes(snapshot.nodes)
        data = _ENCODER.encode((snapshot.after, snapshot.log, columns, snapshot.tokens, snapshot.counts))
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return _HEADER + sha256(data).digest() + data if len(data) <= largest else None


def read_snapshot(data: bytes) -> Snapshot | None:
    """The snapshot that the bytes hold, or none where they are not whole or of another format."""
    start = len(_HEADER) + _DIGEST
    written = memoryview(data)[start:]
    if data[:start] != _HEADER + sha256(written).digest():
        return None
    try:
        after, log, columns, tokens, counts = _DECODER.decode(written)
    except (DecodeError, RecursionError, ValueError):
        return None
    return Snapshot(after=after, log=log, nodes=PackedNodes(columns), tokens=tokens, counts=counts)


def is_of_another_format(data: bytes) -> bool:
    """Whether another version of the fold wrote the bytes: they are not used, and not damaged."""
    return data.startswith(_FAMILY) and not data.startswith(_HEADER)
