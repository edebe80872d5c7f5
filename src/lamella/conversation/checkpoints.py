"""Checkpoints of a conversation's log, so that opening a conversation folds only the newest events.

``Checkpoints`` restores the log on opening and saves the next checkpoint when it is due. ``CheckpointPartReader``
loads separately stored parts on first use, because opening does not need them. ``OldCheckpoints`` removes from
checkpoints that no longer grow what opening does not need. ``iter_damaged_checkpoints`` finds those that do not match
their events.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamella.conversation.token_counts import (
    CountedTexts,
    CountEntry,
    are_counts_intact,
    build_count_entries,
    decode_count_entries,
    encode_joined_counts,
    split_counts_by_tokenizer,
)
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import (
    Snapshot,
    SnapshotKey,
    decode_separate_columns,
    decode_snapshot,
    encode_separate_columns,
    encode_snapshot,
    has_other_format_version,
    make_snapshot,
    restore_log,
    with_encoded_log,
)
from lamella.core.log.tree import (
    MessageColumns,
    PackedMessages,
    SeparateColumns,
    list_texts,
    pack_messages,
    split_columns,
)
from lamella.core.log.turn_records import damaged_record_error
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import LamellaError, StoreCorruptedError
from lamella.ports import Checkpoint, Store, StoreProblem

# Loads the separately stored part of a snapshot's columns.
LoadSeparateColumns = Callable[[SnapshotKey, MessageColumns], SeparateColumns]


def decode_checkpoint(checkpoint: Checkpoint, load_columns: LoadSeparateColumns | None = None) -> Snapshot | None:
    """Decode a checkpoint; return None if it is damaged or its version does not match its content.

    ``load_columns`` loads the separate part if the checkpoint does not come with it or it cannot be read.
    """
    version, came_along = checkpoint.version, checkpoint.separate_data

    def find(place: SnapshotKey, columns: MessageColumns) -> SeparateColumns:
        apart = _decode_matching_part(came_along, place, columns)
        if apart is not None:
            return apart
        if load_columns is None:
            raise damaged_record_error(
                f"What is apart from checkpoint {version}", ValueError("it does not belong there")
            )
        return load_columns(place, columns)

    snapshot = decode_snapshot(checkpoint.data, load_separate_columns=find)
    return snapshot if snapshot is not None and snapshot.version == version else None


class CheckpointPartReader:
    """Loads the separately stored parts of one conversation's checkpoints.

    Parts that are gone are derived from the events again.
    """

    def __init__(self, store: Store, conversation_key: str) -> None:
        self._store = store
        self._conversation_key = conversation_key
        # The snapshots that were read, their separate parts from the store, and parts derived from the events.
        self._positions: list[SnapshotKey] = []
        self._stored_parts: dict[int, bytes] | None = None
        self._derived_parts: dict[SnapshotKey, PackedMessages] = {}

    def decode(self, checkpoint: Checkpoint) -> Snapshot | None:
        """Decode a checkpoint; its separate part is loaded on first use."""
        snapshot = decode_checkpoint(checkpoint, self.load_columns)
        if snapshot is not None:
            self._positions.append((self._conversation_key, snapshot.after, snapshot.version))
        return snapshot

    def load_columns(self, position: SnapshotKey, columns: MessageColumns) -> SeparateColumns:
        """Return the separate part of a snapshot; the first call reads the parts of all snapshots."""
        # No lock here: a lock shared by all conversations would be held during store access.
        if self._stored_parts is None:
            self._stored_parts = self._load_stored_parts()
        found = _decode_matching_part(self._stored_parts.pop(position[-1], b""), position, columns)
        return self._derive_columns(position, columns) if found is None else found

    def _load_stored_parts(self) -> dict[int, bytes]:
        try:
            return dict(
                self._store.read_checkpoints(
                    self._conversation_key, _version_and_separate_data, with_separate_data=True
                )
            )
        except StoreCorruptedError:
            return {}

    def _derive_columns(self, position: SnapshotKey, columns: MessageColumns) -> SeparateColumns:
        """Derive a separate part from the events.

        This is needed if another process replaced the checkpoint, or if an erasure removed all of them.
        """
        if position not in self._derived_parts:
            self._derived_parts = dict(self._iter_derived_parts())
        folded = self._derived_parts.get(position)
        if folded is None or folded.columns.message_ids != columns.message_ids:
            raise damaged_record_error(
                f"A snapshot of {self._conversation_key}", ValueError("its events say something else")
            )
        return dict(enumerate(folded.texts)), folded.encoded_rest

    def _iter_derived_parts(self) -> Iterator[tuple[SnapshotKey, PackedMessages]]:
        """Derive the parts of all snapshots that were read: a caller that needs one mostly needs the others too."""
        log, records = FoldedLog(self._conversation_key), self._store.load(self._conversation_key)
        for place in sorted(self._positions, key=lambda one: one[-1]):
            _, after, version = place
            log.extend(records[log.version : version])
            yield place, pack_messages(make_snapshot(log, after=after).nodes)


def _version_and_separate_data(checkpoint: Checkpoint) -> tuple[int, bytes]:
    return checkpoint.version, checkpoint.separate_data


def _decode_matching_part(data: bytes, position: SnapshotKey, columns: MessageColumns) -> SeparateColumns | None:
    """Decode a separate part; return None unless it has everything that is missing from these columns."""
    apart = decode_separate_columns(data, position)
    missing = {at for at, text in enumerate(columns.texts) if text is None}
    return apart if apart is not None and missing <= apart[0].keys() else None


# Older checkpoints.

# An older checkpoint keeps its log if that takes at most this many bytes. If the newest one is damaged, folding starts
# from there.
_MAX_KEPT_LOG_BYTES = 2**11
# Older checkpoints are written again without unused blocks and texts once these exceed this share of all bytes. Each
# byte is then written only a few times, however long a conversation gets.
_MIN_UNNEEDED_SHARE = 1 / 8


class BranchCheckpoint(NamedTuple):
    """The encoded state of a branch, the blocks it refers to by hash, and the messages whose text it needs.

    ``full_text_message_ids`` are the ids of those messages, or None if they are unknown.
    """

    state: bytes
    blocks: Mapping[str, str]
    full_text_message_ids: Collection[str] | None


EMPTY_BRANCH_CHECKPOINT = BranchCheckpoint(b"", {}, None)


class _CheckpointSizes(NamedTuple):
    """The sizes of a checkpoint's parts: message texts, blocks, and the whole.

    A length is None if the text is stored separately. ``message_ids`` and ``text_lengths`` are empty if the messages of
    the checkpoint cannot be stored separately.
    """

    message_ids: Sequence[str]
    text_lengths: Sequence[int | None]
    block_sizes: Mapping[str, int]
    total_size: int


class OldCheckpoints:
    """The checkpoints of one conversation that no longer grow."""

    def __init__(self, store: Store, conversation_key: str) -> None:
        self._store = store
        self._conversation_key = conversation_key
        self._sizes_by_version: dict[int, _CheckpointSizes] = {}
        # The newest of them while it still contains the log and the state, which only the newest checkpoint needs.
        self._full_snapshot: Snapshot | None = None
        # The sizes after the last ``build_shrunk_checkpoints``; they apply once the store has saved its result.
        self._shrunk_sizes: dict[int, _CheckpointSizes] = {}

    def add(self, snapshot: Snapshot, size: int, *, is_full: bool) -> None:
        """Add a checkpoint of ``size`` bytes that no longer grows.

        ``is_full`` says that it still contains the log and the state, which only the newest checkpoint needs.
        """
        packed = pack_messages(snapshot.nodes)
        self._sizes_by_version[snapshot.version] = _measure_parts(packed.columns, snapshot.blocks, size)
        if is_full:
            self._full_snapshot = replace(with_encoded_log(snapshot), nodes=packed)

    def list_block_hashes(self) -> set[str]:
        """Return the hashes of all blocks in these checkpoints."""
        return {name for one in self._sizes_by_version.values() for name in one.block_sizes}

    def build_shrunk_checkpoints(self, branch: BranchCheckpoint) -> tuple[Checkpoint, ...]:
        """Return the checkpoints that must be written again in a smaller form.

        This is the newest of them. If unused data exceeds its allowed share, it is all of them. After a compaction
        every opening would read text that is no longer in the prompt; after an undo it would need text that is stored
        separately.
        """
        snapshots = {} if self._full_snapshot is None else {self._full_snapshot.version: self._full_snapshot}
        shrunk = _encode_small_checkpoints(
            snapshots.values(), block_hashes=None, full_text_message_ids=branch.full_text_message_ids
        )
        self._shrunk_sizes = {**self._sizes_by_version, **{one.version: parts for one, parts in shrunk}}
        sizes = self._shrunk_sizes.values()
        if not branch.state or _count_unneeded_bytes(sizes, branch) <= _MIN_UNNEEDED_SHARE * sum(
            [one.total_size for one in sizes]
        ):
            return tuple([one for one, _ in shrunk])
        stored = self._load_by_version()
        reader = CheckpointPartReader(self._store, self._conversation_key)
        readable = {one.version: snapshot for one in stored.values() if (snapshot := reader.decode(one)) is not None}
        shrunk = _encode_small_checkpoints(
            {**readable, **snapshots}.values(),
            block_hashes=branch.blocks,
            full_text_message_ids=branch.full_text_message_ids,
        )
        # Forget checkpoints that could not be shrunk or are gone. Otherwise this would be tried again each time.
        self._shrunk_sizes = {one.version: parts for one, parts in shrunk}
        return tuple([one for one, _ in shrunk if stored.get(one.version) != one])

    def mark_saved(self) -> None:
        """Record that the store saved the result of the last ``build_shrunk_checkpoints``."""
        self._sizes_by_version, self._shrunk_sizes, self._full_snapshot = self._shrunk_sizes, {}, None

    def _load_by_version(self) -> dict[int, Checkpoint]:
        try:
            stored = self._store.read_checkpoints(self._conversation_key, lambda one: one, with_separate_data=True)
        except StoreCorruptedError:
            return {}
        return {one.version: one for one in stored if one.version in self._sizes_by_version}


def _measure_parts(columns: MessageColumns, blocks: Mapping[str, str], size: int) -> _CheckpointSizes:
    sizes = {name: len(block) for name, block in blocks.items()}
    if columns.consecutive_start is None:
        return _CheckpointSizes((), (), sizes, size)
    lengths = [None if text is None else len(text) for text in columns.texts]
    return _CheckpointSizes(columns.message_ids, lengths, sizes, size)


def _count_unneeded_bytes(checkpoint_sizes: Collection[_CheckpointSizes], branch: BranchCheckpoint) -> int:
    """Return the size of blocks and texts in the wrong place.

    These are parts of the checkpoints that the state does not need, and separately stored texts that it does need. The
    length of a separately stored text is estimated by the average of the others.
    """
    idle = sum(
        [size for one in checkpoint_sizes for name, size in one.block_sizes.items() if name not in branch.blocks]
    )
    if branch.full_text_message_ids is None:
        return idle
    lengths = [length for one in checkpoint_sizes for length in one.text_lengths]
    known = [length for length in lengths if length is not None]
    usual = sum(known) // len(known) if known else 0
    for names, sizes, _, _ in checkpoint_sizes:
        for name, length in zip(names, sizes, strict=True):
            if (length is None) is (name in branch.full_text_message_ids):
                idle += usual if length is None else length
    return idle


def _encode_small_checkpoints(
    snapshots: Iterable[Snapshot],
    *,
    block_hashes: Collection[str] | None,
    full_text_message_ids: Collection[str] | None,
) -> list[tuple[Checkpoint, _CheckpointSizes]]:
    """Return the checkpoints that can be encoded in a smaller form, with the sizes of their parts."""
    found = [
        _shrink_checkpoint(one, block_hashes=block_hashes, full_text_message_ids=full_text_message_ids)
        for one in snapshots
    ]
    return [one for one in found if one is not None]


def _shrink_checkpoint(
    snapshot: Snapshot, *, block_hashes: Collection[str] | None, full_text_message_ids: Collection[str] | None
) -> tuple[Checkpoint, _CheckpointSizes] | None:
    """Return a checkpoint without the state and, if it is long, without the log; with its part sizes.

    It keeps only the blocks in ``block_hashes``, or all of them if that is None. Returns None if the checkpoint cannot
    be read or written.
    """
    try:
        nodes, separate_columns = split_columns(snapshot.nodes, full_text_message_ids)
    except StoreCorruptedError:
        return None
    blocks = {name: block for name, block in snapshot.blocks.items() if block_hashes is None or name in block_hashes}
    shrunk = replace(snapshot, nodes=nodes, blocks=blocks, encoded_state=b"")
    whole, without = encode_snapshot(shrunk), encode_snapshot(replace(shrunk, raw_log=None))
    if whole is None or without is None:
        return None
    data = whole if len(whole) - len(without) <= _MAX_KEPT_LOG_BYTES else without
    separate_data = encode_separate_columns(separate_columns, (snapshot.conversation, snapshot.after, snapshot.version))
    return Checkpoint(version=snapshot.version, data=data, separate_data=separate_data), _measure_parts(
        nodes.columns, blocks, len(data)
    )


# Writing and restoring.

# The number of events after which a new snapshot starts, and the number of new events after which the current one is
# written again until then. Folding these takes about as long as reading a snapshot of about 250 events.
EVENTS_PER_CHECKPOINT = 128
EVENTS_PER_UPDATE = 32
# The maximum length in characters of one block in a snapshot, and of all its blocks. Reading longer texts takes equally
# long from anywhere, so a snapshot gains nothing by containing them.
_MAX_BLOCK_LENGTH = 2**16
_MAX_BLOCKS_LENGTH = 2**20


class RestoredEventLog(Struct, frozen=True, kw_only=True):
    """A log restored from checkpoints, with the token counts of its messages and of other texts.

    ``message_counts`` has the counts of messages by tokenizer. ``state`` is the encoded state of the active branch.
    """

    log: FoldedLog
    message_token_counts: Mapping[int, Sequence[CountedTexts]]
    encoded_other_token_counts: bytes
    state: bytes


class Checkpoints:
    """The checkpoints of one conversation: restores them on opening, and saves the next one when it is due.

    The newest snapshot grows: it is written again with more events until it has ``events_per_checkpoint`` events.
    """

    def __init__(
        self, store: Store, conversation_key: str, *, events_per_checkpoint: int = EVENTS_PER_CHECKPOINT
    ) -> None:
        self._store = store
        self._conversation_key = conversation_key
        self._events_per_checkpoint = events_per_checkpoint
        self._events_per_update = (
            EVENTS_PER_UPDATE if events_per_checkpoint == EVENTS_PER_CHECKPOINT else events_per_checkpoint
        )
        self._start_without_checkpoints()

    def _start_without_checkpoints(self) -> None:
        # Event numbers: where the growing snapshot starts, where it ended when last saved, and when one was last due.
        self._snapshot_start = self._saved_version = self._checked_version = 0
        # Token counts of the growing snapshot's events, without those it had when it was read.
        self._counts: list[bytes] = []
        # The growing snapshot as it was read; its counts are merged when it is written next.
        self._growing_snapshot: Snapshot | None = None
        self._old_checkpoints = OldCheckpoints(self._store, self._conversation_key)
        # Versions of stored checkpoints that cannot be used. They are removed with the next save; otherwise every
        # opening would read them in vain.
        self._obsolete_versions: tuple[int, ...] = ()
        # Blocks of the snapshots that were read, until ``release_checkpoint_blocks`` takes them.
        self.blocks: Mapping[str, str] = {}

    def restore(self) -> RestoredEventLog:
        """Restore the log from the stored checkpoints.

        Damaged checkpoints are ignored: all of their data can be derived from the events.
        """
        self._start_without_checkpoints()
        stored = self._load_stored()
        readable = [snapshot for _, _, snapshot in stored if snapshot is not None]
        log, snapshots = restore_log(readable, FoldedLog(self._conversation_key))
        used = {snapshot.version for snapshot in snapshots}
        self._obsolete_versions = tuple(version for version, _, _ in stored if version not in used)
        self._snapshot_start = self._saved_version = self._checked_version = log.version
        self.blocks = {name: block for snapshot in snapshots for name, block in snapshot.blocks.items()}
        sizes = {version: size for version, size, _ in stored}
        for snapshot in snapshots:
            newest = snapshot is snapshots[-1]
            if newest and log.version - snapshot.after < self._events_per_checkpoint:
                # It continues to grow. Otherwise a conversation of short sessions would get one snapshot for each.
                self._snapshot_start, self._growing_snapshot = snapshot.after, snapshot
            else:
                self._old_checkpoints.add(snapshot, sizes[snapshot.version], is_full=newest)
        counts = b"".join(snapshot.text_token_counts for snapshot in snapshots)
        state = snapshots[-1].encoded_state if snapshots else b""
        return RestoredEventLog(
            log=log,
            message_token_counts=_counts_by_tokenizer(snapshots),
            encoded_other_token_counts=counts,
            state=state,
        )

    def _load_stored(self) -> Sequence[tuple[int, int, Snapshot | None]]:
        """Return the version, the length and the decoded snapshot of each stored checkpoint."""
        reader = CheckpointPartReader(self._store, self._conversation_key)

        def read(checkpoint: Checkpoint) -> tuple[int, int, Snapshot | None]:
            return checkpoint.version, len(checkpoint.data), reader.decode(checkpoint)

        try:
            return self._store.read_checkpoints(self._conversation_key, read)
        except StoreCorruptedError:
            return ()

    def collect_token_counts(self, records: Iterable[EventRecord]) -> None:
        """Add new events: collect their token counts, and discard everything after an erasure."""
        for record in records:
            if record.kind is EventKind.ERASURE:
                # An erasure removes all checkpoints, and the counts collected so far may be of erased text.
                self._start_without_checkpoints()
            elif record.counts and are_counts_intact(record.counts):
                self._counts.append(record.counts)

    def save_if_due(self, log: FoldedLog, encode_checkpoint: Callable[[], BranchCheckpoint]) -> None:
        """Save a snapshot of the log if enough events came since the last one; all events must be written.

        ``encode_checkpoint`` encodes the state of the active branch. It is called only if a snapshot is due.
        """
        since, waits = log.version - self._checked_version, bool(log.head) and log.head == log.last_question
        # With an open question, wait for one more event: only complete turns can be read back as a batch.
        if since < self._events_per_update or (
            since == self._events_per_update < self._events_per_checkpoint and waits
        ):
            return
        # Set before the attempt, so that a snapshot that cannot be saved is not tried again at every event.
        self._checked_version = log.version
        try:
            branch = encode_checkpoint()
            snapshot = self._build_snapshot(log, branch)
            data = encode_snapshot(snapshot)
            if data is None or not self._store_snapshot(data, log.version, branch):
                return
        except LamellaError:
            # The events are written and acknowledged. Without a snapshot they are folded again on opening.
            return
        self._saved_version, self._obsolete_versions = log.version, ()
        if log.version - self._snapshot_start >= self._events_per_checkpoint:
            self._snapshot_start, self._counts, self._growing_snapshot = log.version, [], None
            self._old_checkpoints.add(snapshot, len(data), is_full=True)

    def _build_snapshot(self, log: FoldedLog, branch: BranchCheckpoint) -> Snapshot:
        """Build the growing snapshot."""
        snapshot = make_snapshot(log, after=self._snapshot_start)
        if self._growing_snapshot is not None:
            last, self._growing_snapshot = self._growing_snapshot, None
            self._counts.insert(
                0, encode_joined_counts(last.message_token_counts, list_texts(last.nodes), last.text_token_counts)
            )
        tokens, counts = split_counts_by_tokenizer(b"".join(self._counts), list_texts(snapshot.nodes))
        blocks = _choose_blocks_to_store(branch.blocks, self._old_checkpoints.list_block_hashes())
        return replace(
            snapshot, message_token_counts=tokens, text_token_counts=counts, encoded_state=branch.state, blocks=blocks
        )

    def _store_snapshot(self, data: bytes, version: int, branch: BranchCheckpoint) -> bool:
        """Save the growing snapshot over its earlier version; return whether the store accepted it."""
        replaced = (self._saved_version,) if self._saved_version > self._snapshot_start else ()
        checkpoint = Checkpoint(
            version=version, data=data, earlier=self._old_checkpoints.build_shrunk_checkpoints(branch)
        )
        is_saved = self._store.save_checkpoint(
            self._conversation_key, checkpoint, replaced_versions=(*self._obsolete_versions, *replaced)
        )
        if is_saved:
            self._old_checkpoints.mark_saved()
        return is_saved


def _choose_blocks_to_store(blocks: Mapping[str, str], stored_hashes: Collection[str]) -> dict[str, str]:
    """Return the blocks to store with a state: those that no other snapshot has and that are not too long."""
    chosen: dict[str, str] = {}
    room = _MAX_BLOCKS_LENGTH
    for name, block in blocks.items():
        if name not in stored_hashes and len(block) <= min(_MAX_BLOCK_LENGTH, room):
            chosen[name] = block
            room -= len(block)
    return chosen


def _counts_by_tokenizer(snapshots: Sequence[Snapshot]) -> dict[int, list[CountedTexts]]:
    counts: dict[int, list[CountedTexts]] = {}
    for snapshot in snapshots:
        for tokenizer, tokens in snapshot.message_token_counts.items():
            counts.setdefault(tokenizer, []).append((pack_messages(snapshot.nodes), tokens))
    return counts


# Verification.

_OMITTED_BY_COPY = "a copy of the store leaves it behind"
_UNREADABLE = "cannot be read and is not used; the next one replaces it"


def iter_damaged_checkpoints(
    conversation_key: str, records: Sequence[EventRecord], checkpoints: Iterable[Checkpoint]
) -> Iterator[StoreProblem]:
    """Yield a problem for each checkpoint that differs from what its events fold to."""
    log = FoldedLog(conversation_key)
    counted: set[CountEntry] = set()
    whole = True
    for checkpoint in checkpoints:
        if checkpoint.version > len(records):
            # Another process has added events since these were loaded.
            return
        new = records[log.version : checkpoint.version]
        log.extend(new)
        counted |= decode_count_entries(record.counts for record in new)
        # Damaged counts cannot be used to check those of a checkpoint.
        whole = whole and all(are_counts_intact(record.counts) for record in new)
        what = _checkpoint_problem(checkpoint, log, counted if whole else None)
        if what is not None:
            yield StoreProblem(
                conversation=conversation_key, location=f"checkpoint {checkpoint.version}", description=what
            )


def _checkpoint_problem(checkpoint: Checkpoint, log: FoldedLog, counted: set[CountEntry] | None) -> str | None:
    if has_other_format_version(checkpoint.data):
        return None
    snapshot = decode_checkpoint(checkpoint)
    if snapshot is None or (snapshot.log is None and snapshot.raw_log is not None):
        return _UNREADABLE
    derived = make_snapshot(log, after=snapshot.after)
    stored, expected = pack_messages(snapshot.nodes), pack_messages(derived.nodes)
    try:
        same = stored == expected and (stored.batches, stored.columns.consecutive_start) == (
            expected.batches,
            expected.columns.consecutive_start,
        )
    except StoreCorruptedError:
        return "has separate data that cannot be read; the events have it too"
    if snapshot.log is not None:
        same = same and snapshot.log == derived.log and snapshot.log.list_branch_heads() == log.list_branch_heads()
    if not same or any(hash_text(block) != name for name, block in snapshot.blocks.items()):
        return f"is not what its events come to; {_OMITTED_BY_COPY}"
    counts = decode_count_entries([snapshot.text_token_counts]) | build_count_entries(
        snapshot.message_token_counts, stored.texts
    )
    if counted is not None and not counts <= counted:
        return f"has counts that no event has; {_OMITTED_BY_COPY}"
    return None
