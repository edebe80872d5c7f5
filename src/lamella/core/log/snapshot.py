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
        log.nodes = {node.event.id: node for snapshot in joined for node in snapshot.nodes}
    return log, tuple(joined)


def write_snapshot(snapshot: Snapshot, *, largest: int = _LARGEST) -> bytes | None:
    """A snapshot as bytes; none where an event holds what they cannot say, such as a number of forty digits.

    None as well where there are more of them than a store may take in one piece.
    """
    try:
        data = _ENCODER.encode(snapshot)
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
        return _DECODER.decode(written)
    except (DecodeError, RecursionError, ValueError):
        return None


def is_of_another_format(data: bytes) -> bool:
    """Whether another version of the fold wrote the bytes: they are not used, and not damaged."""
    return data.startswith(_FAMILY) and not data.startswith(_HEADER)
