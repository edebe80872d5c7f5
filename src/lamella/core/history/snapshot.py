"""Snapshots: what the events of a conversation fold to, as bytes, so that opening it folds only the newest of them.

A snapshot holds the messages of the events since the snapshot before it, and everything else as it stands after them.
It is derived from the events and never believed over them: one that is damaged, or that another version of the fold
wrote, is not used.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import DecodeError, Struct
from msgspec.msgpack import Decoder, Encoder

from lamella.core.history.log import Log
from lamella.core.history.nodes import Node
from lamella.core.values import replace

# What a log folds to, and how it is written. Whoever changes either changes this, so that older snapshots are not used.
_FORMAT = b"lamella log 1\n"
_DIGEST = sha256().digest_size


class Snapshot(Struct, frozen=True, kw_only=True):
    """A log without its messages, those of them that came ``after`` so many events, and what was counted for them.

    ``tokens`` are the messages' own, in their order, by who counted; ``counts`` are those of other texts.
    """

    after: int
    log: Log
    nodes: tuple[Node, ...]
    tokens: Mapping[int, Sequence[int]] = {}
    counts: bytes = b""


_ENCODER = Encoder()
_DECODER = Decoder(Snapshot)


def make_snapshot(log: Log, *, after: int) -> Snapshot:
    """What a log has now, for who has it as it was after so many events."""
    nodes = tuple(node for node in log.nodes.values() if node.number >= after)
    return Snapshot(after=after, log=replace(log, nodes={}), nodes=nodes)


def join_snapshots(snapshots: Iterable[Snapshot], log: Log) -> tuple[Log, tuple[Snapshot, ...]]:
    """The log that snapshots lead to from an empty one, and those of them that follow one another."""
    nodes: dict[str, Node] = {}
    joined: list[Snapshot] = []
    for snapshot in snapshots:
        if (snapshot.log.conversation, snapshot.after) == (log.conversation, log.version):
            log = snapshot.log
            nodes.update([(node.id, node) for node in snapshot.nodes])
            joined.append(snapshot)
    log.nodes = nodes
    return log, tuple(joined)


def write_snapshot(snapshot: Snapshot) -> bytes | None:
    """A snapshot as bytes; none where an event holds what they cannot say, such as a number of forty digits."""
    try:
        data = _ENCODER.encode(snapshot)
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return _FORMAT + sha256(data).digest() + data


def read_snapshot(data: bytes) -> Snapshot | None:
    """The snapshot that the bytes hold, or none where they are not whole or of another format."""
    start = len(_FORMAT) + _DIGEST
    written = memoryview(data)[start:]
    if data[:start] != _FORMAT + sha256(written).digest():
        return None
    try:
        return _DECODER.decode(written)
    except (DecodeError, RecursionError):
        return None
