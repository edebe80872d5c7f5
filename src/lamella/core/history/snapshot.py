"""Snapshots: what the events of a conversation fold to, as bytes, so that opening it folds only the newest of them.

A snapshot holds the messages of the events since the snapshot before it, and everything else as it stands after them.
It is derived from the events and never believed over them: one that is damaged, or that another version of the fold
wrote, is not used.
"""

from collections.abc import Iterable
from hashlib import sha256

from msgspec import DecodeError, Struct
from msgspec.msgpack import Decoder, Encoder

from lamella.core.history.log import Log, Node
from lamella.core.values import replace

# What a log folds to, and how it is written. Whoever changes either changes this, so that older snapshots are not used.
_FORMAT = b"lamella log 1\n"
_DIGEST = sha256().digest_size


class Snapshot(Struct, frozen=True, kw_only=True):
    """A log without its messages, those of them that came ``after`` so many events, and the token counts with them."""

    after: int
    log: Log
    nodes: tuple[Node, ...]
    counts: bytes


_ENCODER = Encoder()
_DECODER = Decoder(Snapshot)


def write_snapshot(log: Log, *, after: int, counts: bytes) -> bytes | None:
    """A snapshot as bytes; none where an event holds what they cannot say, such as a number of forty digits."""
    nodes = tuple(node for node in log.nodes.values() if node.number >= after)
    snapshot = Snapshot(after=after, log=replace(log, nodes={}), nodes=nodes, counts=counts)
    try:
        data = _ENCODER.encode(snapshot)
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return _FORMAT + sha256(data).digest() + data


def read_snapshots(written: Iterable[bytes], conversation: str) -> tuple[Log, bytes]:
    """The log that snapshots come to, without those that do not follow the ones before them, and their counts."""
    log, nodes, counts = Log(conversation), dict[str, Node](), list[bytes]()
    for data in written:
        snapshot = _read(data)
        if snapshot is None or (snapshot.log.conversation, snapshot.after) != (conversation, log.version):
            continue
        log = snapshot.log
        nodes.update([(node.id, node) for node in snapshot.nodes])
        counts.append(snapshot.counts)
    log.nodes = nodes
    return log, b"".join(counts)


def _read(data: bytes) -> Snapshot | None:
    """The snapshot that the bytes hold, or none where they are not whole or of another format."""
    start = len(_FORMAT) + _DIGEST
    written = memoryview(data)[start:]
    if data[:start] != _FORMAT + sha256(written).digest():
        return None
    try:
        return _DECODER.decode(written)
    except (DecodeError, RecursionError):
        return None
