"""Snapshots: the folded state of a log as bytes, so that opening a conversation folds only newer events.

A snapshot has the messages since the previous snapshot, and everything else as of its last event. It is derived from
the events, which always take precedence. Lamella ignores a snapshot that is damaged or has another format version.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from zlib import crc32

from msgspec import DecodeError, Raw, Struct
from msgspec.msgpack import Decoder, Encoder

from lamella.core.log.log import SNAPSHOT_FORMAT, FoldedLog
from lamella.core.log.tree import (
    NO_SEPARATE_COLUMNS,
    MessageColumns,
    MessageTree,
    PackedMessages,
    SeparateColumns,
    pack_columns,
)
from lamella.core.log.turn_records import MessageNode
from lamella.core.values import replace

_MAGIC = b"lamella log "
_HEADER = _MAGIC + b"%d\n" % SNAPSHOT_FORMAT
# The checksum detects damage, not manipulation: a process that can write here could also write a matching digest. A
# cryptographic digest took as long as reading the bytes (2026-11-18).
_CHECKSUM_BYTES = 4
# SQLite accepts no value over 10**9 bytes, PostgreSQL none over 2**30.
_MAX_SNAPSHOT_BYTES = 2**29

# Identifies a snapshot: the conversation, the number of events before it, and the number of events at its end.
SnapshotKey = tuple[str, int, int]


class Snapshot(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """The state of a log at ``version`` events, with the messages added after the first ``after`` events.

    - ``raw_log``: the log without its messages, as encoded bytes if it was read. Only the newest of many snapshots
      needs it; the others have None.
    - ``message_token_counts``: the token counts of the messages in order, by tokenizer.
    - ``text_token_counts``: the token counts of other texts.
    - ``encoded_state``: the encoded prompt state of the active branch, if it is known and this snapshot is the newest.
    - ``blocks``: blocks by hash that prompt states refer to and no earlier snapshot has.
    """

    after: int
    version: int
    conversation: str
    raw_log: FoldedLog | Raw | None
    nodes: Sequence[MessageNode]
    message_token_counts: Mapping[int, Sequence[int]] = {}
    text_token_counts: bytes = b""
    encoded_state: bytes = b""
    blocks: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self._comparison_key == other._comparison_key

    def __ne__(self, other: object) -> bool:
        # msgspec structs define ``!=`` themselves, so Python does not derive it from ``__eq__`` above.
        return not self == other

    @property
    def _comparison_key(self) -> tuple[object, ...]:
        placed = self.after, self.version, self.conversation, self.log, self.nodes
        return *placed, self.message_token_counts, self.text_token_counts, self.encoded_state, self.blocks

    @cached_property
    def log(self) -> FoldedLog | None:
        """The log without its messages, or None if it is missing, unreadable, or of another version or conversation."""
        if self.raw_log is None or isinstance(self.raw_log, FoldedLog):
            return self.raw_log
        try:
            log = _LOG_DECODER.decode(self.raw_log)
        except (DecodeError, RecursionError, ValueError):
            return None
        return log if (log.version, log.conversation) == (self.version, self.conversation) else None


_ENCODER = Encoder()
_DECODER = Decoder(tuple[int, int, str, Raw, MessageColumns, dict[int, list[int]], bytes, bytes, dict[str, str]])
_SEPARATE_COLUMNS_DECODER = Decoder(tuple[SnapshotKey, SeparateColumns])
_ENCODED_NONE = _ENCODER.encode(None)
_LOG_DECODER = Decoder(FoldedLog)


def make_snapshot(log: FoldedLog, *, after: int) -> Snapshot:
    """Build a snapshot of a log with the messages added after the first ``after`` events."""
    nodes = log.nodes
    since = (
        nodes.changed_since(after)
        if isinstance(nodes, MessageTree)
        else [one for one in nodes.values() if one.event_number >= after]
    )
    header = replace(log, nodes={})
    return Snapshot(after=after, version=log.version, conversation=log.conversation, raw_log=header, nodes=tuple(since))


def restore_log(snapshots: Iterable[Snapshot], empty_log: FoldedLog) -> tuple[FoldedLog, tuple[Snapshot, ...]]:
    """Return the log that a chain of snapshots leads to, and the snapshots of that chain, oldest first.

    Several processes may each have written their own snapshots. The chain that reaches the furthest is used. Without a
    usable chain it returns the given empty log and no snapshots.
    """
    reached: dict[int, Snapshot] = {}
    for snapshot in sorted(snapshots, key=lambda one: one.version):
        follows = snapshot.after in reached or snapshot.after == empty_log.version
        if follows and snapshot.after < snapshot.version and snapshot.conversation == empty_log.conversation:
            reached[snapshot.version] = snapshot
    version = next((at for at in sorted(reached, reverse=True) if reached[at].log is not None), empty_log.version)
    joined: list[Snapshot] = []
    while version in reached:
        joined.append(reached[version])
        version = reached[version].after
    joined.reverse()
    newest = joined[-1].log if joined else None
    if newest is None:
        return empty_log, ()
    newest.nodes = MessageTree([snapshot.nodes for snapshot in joined], snapshot_version=newest.version)
    return newest, tuple(joined)


def encode_snapshot(snapshot: Snapshot, *, max_bytes: int = _MAX_SNAPSHOT_BYTES) -> bytes | None:
    """Encode a snapshot, or return None if it cannot be encoded or is larger than ``max_bytes`` bytes.

    MessagePack cannot encode some values that events may contain, such as a number of forty digits. Stores limit the
    size of a value.
    """
    try:
        columns = pack_columns(snapshot.nodes)
        head = (snapshot.after, snapshot.version, snapshot.conversation)
        counted = (snapshot.message_token_counts, snapshot.text_token_counts)
        data = _ENCODER.encode((*head, snapshot.raw_log, columns, *counted, snapshot.encoded_state, snapshot.blocks))
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return _add_header(data) if len(data) <= max_bytes else None


def encode_separate_columns(separate_columns: SeparateColumns, key: SnapshotKey) -> bytes:
    """Encode the separately stored columns of the snapshot at ``key``; empty bytes if there are none."""
    return b"" if separate_columns == NO_SEPARATE_COLUMNS else _add_header(_ENCODER.encode((key, separate_columns)))


def with_encoded_log(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its log encoded, because the log object keeps changing after this."""
    return (
        replace(snapshot, raw_log=Raw(_ENCODER.encode(snapshot.raw_log)))
        if isinstance(snapshot.raw_log, FoldedLog)
        else snapshot
    )


def _add_header(data: bytes) -> bytes:
    return _HEADER + _checksum(data) + data


def _checksum(data: bytes | memoryview) -> bytes:
    return crc32(data).to_bytes(_CHECKSUM_BYTES, "big")


def _check_and_strip_header(data: bytes) -> memoryview | None:
    """Return the payload, or None if the bytes are damaged or have another format version."""
    start = len(_HEADER) + _CHECKSUM_BYTES
    written = memoryview(data)[start:]
    return written if data[:start] == _HEADER + _checksum(written) else None


def decode_snapshot(
    data: bytes, *, load_separate_columns: Callable[[SnapshotKey, MessageColumns], SeparateColumns] | None = None
) -> Snapshot | None:
    """Decode a snapshot, or return None if the bytes are damaged or have another format version.

    ``load_separate_columns`` loads the separately stored columns when they are first needed. The result keeps no
    reference to ``data``, so that the memory can be reused for the next snapshot.
    """
    written = _check_and_strip_header(data)
    if written is None:
        return None
    try:
        after, version, conversation, header, columns, tokens, counts, state, blocks = _DECODER.decode(written)
    except (DecodeError, RecursionError, ValueError):
        return None
    # msgspec ``Raw`` values are views of the input; ``copy`` lets the input go.
    columns = columns._replace(rest=columns.rest.copy())
    return Snapshot(
        after=after,
        version=version,
        conversation=conversation,
        raw_log=None if bytes(header) == _ENCODED_NONE else header.copy(),
        nodes=PackedMessages(
            columns,
            None if load_separate_columns is None else partial(load_separate_columns, (conversation, after, version)),
        ),
        message_token_counts=tokens,
        text_token_counts=counts,
        encoded_state=state,
        blocks=blocks,
    )


def decode_separate_columns(data: bytes, key: SnapshotKey) -> SeparateColumns | None:
    """Decode separately stored columns, or return None if they are damaged or belong to another snapshot."""
    written = _check_and_strip_header(data)
    if written is None:
        return None
    try:
        found, (texts, rest) = _SEPARATE_COLUMNS_DECODER.decode(written)
    except (DecodeError, RecursionError, ValueError):
        return None
    return (texts, rest.copy()) if found == key else None


def has_other_format_version(data: bytes) -> bool:
    """Return whether the bytes have another format version; they are not used, but not damaged either."""
    return data.startswith(_MAGIC) and not data.startswith(_HEADER)
