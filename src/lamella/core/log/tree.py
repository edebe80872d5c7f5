"""The message tree of a log, and the packed columns in which snapshots store messages.

``MessageTree`` has all messages by id, and ``build_branch`` returns the turn records from the start to one message.
``PackedMessages`` are messages of a snapshot that stay packed until one of them is accessed; ``pack_messages`` packs
them.

Most messages of a long conversation are plain text. Opening it reads their ids and texts from columns, many at a time.
Times, model calls and hashes of old requests are read only on access.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple, cast, overload

from msgspec import DecodeError, Raw
from msgspec.msgpack import Decoder, Encoder

from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.message import EditEvent, QuestionEvent, StoredRound, StoredTurnSettings
from lamella.core.log.turn import LayoutPlan, ReplyEvent
from lamella.core.log.turn_records import (
    BranchTurnRecords,
    MessageNode,
    PackedTurnRecords,
    TurnRecord,
    TurnRecordBatch,
    TurnRecordPart,
    damaged_record_error,
)
from lamella.core.messages import TextsById
from lamella.core.values import CachedProperty, replace

_ENCODER = Encoder()
_ENCODED_NONE = _ENCODER.encode(None)
# zlib level. Level 6 saves another twentieth and takes half as long again (26 kB, 2026-11-17).
_ZLIB_LEVEL = 1
_DECODER = Decoder(tuple[tuple[str, ...], tuple[MessageNode, ...]])
# The fields of a question that batches store elsewhere. All other fields, including ones that are added to the class
# later, must have their defaults in a question that belongs to a batch.
_FIELDS_STORED_ELSEWHERE = {
    "id",
    "parent",
    "text",
    "attached",
    "imprint",
    "placement",
    *StoredTurnSettings.__struct_fields__,
}
_get_remaining_fields = attrgetter(
    *[name for name in QuestionEvent.__struct_fields__ if name not in _FIELDS_STORED_ELSEWHERE]
)
_DEFAULT_REMAINING_FIELDS = _get_remaining_fields(QuestionEvent(id="", parent="", text=""))

# A batch of turns as written: the shared fields of its questions, the parent of the first one, the index of that
# question among the messages, the number of turns, the attachments by turn index, and the layout plans, if chosen by
# cost.
EncodedTurnBatch = tuple[QuestionEvent, str, int, int, dict[int, tuple[StoredArtifact, ...]], tuple[LayoutPlan, ...]]


# The batches among the messages, the remaining data of messages outside them, and, compressed, of those inside.
EncodedRest = tuple[tuple[EncodedTurnBatch, ...], tuple[MessageNode, ...], bytes]
_REST_DECODER = Decoder(EncodedRest)


class MessageColumns(NamedTuple):
    """Messages as a snapshot stores them: ids, texts, event numbers, and the encoded rest.

    If the messages are complete consecutive turns, ``consecutive_start`` is the parent of the first one and the last
    model that one of them names. Such messages can be read without ``rest``. Then ``rest`` and some texts may be stored
    separately; a separate text is None here.
    """

    message_ids: tuple[str, ...]
    texts: tuple[str | None, ...]
    event_numbers: tuple[int, ...]
    consecutive_start: tuple[str, str | None] | None
    rest: Raw


# Separately stored data: texts by their index, and the rest.
SeparateColumns = tuple[dict[int, str], Raw]
NO_SEPARATE_COLUMNS: SeparateColumns = ({}, Raw(b""))


class PackedMessages(Sequence[MessageNode]):
    """Packed messages in order; accessing one message of a batch unpacks all batches together.

    Separately stored columns are read on the first access that needs them.
    """

    def __init__(
        self, columns: MessageColumns, load_separate_columns: Callable[[MessageColumns], SeparateColumns] | None = None
    ) -> None:
        self.columns = columns
        self._load_separate_columns = load_separate_columns

    @CachedProperty
    def _separate_columns(self) -> SeparateColumns:
        return NO_SEPARATE_COLUMNS if self._load_separate_columns is None else self._load_separate_columns(self.columns)

    @CachedProperty
    def texts(self) -> tuple[str, ...]:
        """The texts of all messages; loads the separate ones."""
        if None not in self.columns.texts:
            return cast(tuple[str, ...], self.columns.texts)
        separate = self._separate_columns[0]
        return tuple([separate[at] if text is None else text for at, text in enumerate(self.columns.texts)])

    @property
    def are_texts_loaded(self) -> bool:
        """Whether all texts are loaded."""
        return "texts" in vars(self) or None not in self.columns.texts

    @property
    def loaded_texts(self) -> Sequence[str | None]:
        """The texts as far as they are loaded, None for the others."""
        return self.texts if self.are_texts_loaded else self.columns.texts

    @property
    def encoded_rest(self) -> Raw:
        """The encoded data other than ids, texts and event numbers."""
        return self.columns.rest if bytes(self.columns.rest) != _ENCODED_NONE else self._separate_columns[1]

    @CachedProperty
    def loaded_or_lazy_texts(self) -> tuple[str | TextsById, ...]:
        """The loaded texts, with a mapping instead of each text that is not loaded; the mapping loads it on access."""
        texts = self.columns.texts
        if None not in texts:
            return cast(tuple[str, ...], texts)
        lazy_texts = _PackedTexts(self)
        return tuple([lazy_texts if text is None else text for text in texts])

    @CachedProperty
    def _decoded_rest(self) -> EncodedRest:
        try:
            rest: EncodedRest = _REST_DECODER.decode(self.encoded_rest)
        except (DecodeError, RecursionError, ValueError) as error:
            raise damaged_record_error(f"A snapshot with the message {self.columns.message_ids[0]}", error) from error
        return rest

    @property
    def batches(self) -> tuple[EncodedTurnBatch, ...]:
        """The batches among the messages."""
        return self._decoded_rest[0]

    @CachedProperty
    def _unbatched_nodes(self) -> dict[int, MessageNode]:
        return dict(zip(_unbatched_indexes(self.batches, len(self)), self._decoded_rest[1], strict=True))

    @CachedProperty
    def _batched_nodes(self) -> dict[int, MessageNode]:
        try:
            runs, _, packed = self._decoded_rest
            hashes, nodes = _DECODER.decode(zlib.decompress(packed))
            unpacked = {
                at: _restore_imprint_hashes(node, hashes)
                for at, node in zip(_batched_indexes(runs), nodes, strict=True)
            }
            for first, placements in [(run[2], run[5]) for run in runs]:
                for at, layout_plan in zip(range(first, len(self), 2), placements, strict=False):
                    unpacked[at] = _with_layout_plan(unpacked[at], layout_plan)
            return unpacked
        except (DecodeError, LookupError, RecursionError, ValueError, zlib.error) as error:
            raise damaged_record_error(f"A snapshot with the message {self.columns.message_ids[0]}", error) from error

    def __len__(self) -> int:
        return len(self.columns.message_ids)

    @overload
    def __getitem__(self, index: int) -> MessageNode: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MessageNode, ...]: ...
    def __getitem__(self, index: int | slice) -> MessageNode | tuple[MessageNode, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(len(self))[index]])
        at = range(len(self))[index]
        node = self._unbatched_nodes[at] if at in self._unbatched_nodes else self._batched_nodes[at]
        return replace(node, event=replace(node.event, id=self.columns.message_ids[at], text=self.texts[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.columns.message_ids)


class _PackedTexts(TextsById):
    """Texts of packed messages by id, loaded on access.

    Two instances are equal only if they are identical, so that comparing loads nothing.
    """

    def __init__(self, nodes: PackedMessages) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> str:
        names = self._nodes.columns.message_ids
        if name not in names:
            raise KeyError(name)
        return self._nodes.texts[names.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes.columns.message_ids)

    def __len__(self) -> int:
        return len(self._nodes)

    __eq__, __hash__ = object.__eq__, object.__hash__


def _batched_indexes(batches: Iterable[EncodedTurnBatch]) -> list[int]:
    """Return the indexes of messages that belong to batches."""
    return [at for _, _, first, turns, _, _ in batches for at in range(first, first + 2 * turns)]


def _unbatched_indexes(batches: Iterable[EncodedTurnBatch], length: int) -> list[int]:
    """Return the indexes of messages that belong to no batch."""
    inside = set(_batched_indexes(batches))
    return [at for at in range(length) if at not in inside]


def pack_columns(nodes: Sequence[MessageNode]) -> MessageColumns:
    """Pack messages into columns; messages that are packed already keep theirs."""
    if isinstance(nodes, PackedMessages):
        return nodes.columns
    bare = [replace(node, event=replace(node.event, id="", text="")) for node in nodes]
    runs = group_turn_batches(nodes)
    hashes: dict[str, int] = {}
    inside = [_replace_hashes_by_indexes(bare[at], hashes) for at in _batched_indexes(runs)]
    separate = tuple([bare[at] for at in _unbatched_indexes(runs, len(nodes))])
    # This data is rarely read, and opening a conversation skips it. So it is compressed as one value.
    packed = zlib.compress(_ENCODER.encode((tuple(hashes), inside)), _ZLIB_LEVEL)
    return MessageColumns(
        message_ids=tuple([node.event.id for node in nodes]),
        texts=tuple([node.event.text for node in nodes]),
        event_numbers=tuple([node.event_number for node in nodes]),
        consecutive_start=_find_start_of_single_branch(nodes),
        rest=Raw(_ENCODER.encode((runs, separate, packed))),
    )


def pack_messages(nodes: Sequence[MessageNode]) -> PackedMessages:
    """Return the messages packed."""
    return nodes if isinstance(nodes, PackedMessages) else PackedMessages(pack_columns(nodes))


def split_columns(
    nodes: Sequence[MessageNode], needed_ids: Collection[str] | None
) -> tuple[PackedMessages, SeparateColumns]:
    """Split messages into columns that opening a conversation needs and columns to store separately.

    Needed are ids, event numbers, and the texts of the messages in ``needed_ids``, or all texts if that is None.
    Messages that are not complete consecutive turns are not split.
    """
    packed = pack_messages(nodes)
    columns, texts = packed.columns, packed.texts
    if columns.consecutive_start is None:
        return packed, NO_SEPARATE_COLUMNS
    messages = list(enumerate(zip(columns.message_ids, texts, strict=True)))
    idle = {} if needed_ids is None else {at: text for at, (name, text) in messages if name not in needed_ids}
    separate = idle, packed.encoded_rest
    kept = columns._replace(
        texts=tuple([None if at in idle else text for at, (_, text) in messages]), rest=Raw(_ENCODED_NONE)
    )
    return PackedMessages(kept, lambda _: separate), separate


def _find_start_of_single_branch(nodes: Sequence[MessageNode]) -> tuple[str, str | None] | None:
    """Return the first parent and the last model named, or None unless all are complete consecutive turns."""
    asked, replies = [node.event for node in nodes[::2]], [node.event for node in nodes[1::2]]
    parents = [node.event.parent for node in nodes[1:]]
    if not nodes or len(nodes) % 2 or parents != [node.event.id for node in nodes[:-1]]:
        return None
    if any(isinstance(one, ReplyEvent) for one in asked) or not all(isinstance(one, ReplyEvent) for one in replies):
        return None
    models = [one.model for one in reversed(asked) if not isinstance(one, ReplyEvent)]
    return nodes[0].event.parent, next((model for model in models if model), None)


def _with_layout_plan(question: MessageNode, layout_plan: LayoutPlan | None) -> MessageNode:
    """Return a question with the layout plan, which the batch stores for it."""
    event = question.event
    return question if isinstance(event, ReplyEvent) else replace(question, event=replace(event, placement=layout_plan))


def _replace_hashes_by_indexes(node: MessageNode, hashes: dict[str, int]) -> MessageNode:
    """Return a message with indexes instead of the fingerprint's hashes.

    Most hashes of a request equal those of the request before it.
    """
    node = _with_layout_plan(node, None)
    if isinstance(node.event, ReplyEvent) or node.event.imprint is None:
        return node
    system, library, prefix, whole = [str(hashes.setdefault(one, len(hashes))) for one in node.event.imprint.hashes]
    fingerprint = replace(node.event.imprint, system=system, library=library, prefix=prefix, whole=whole)
    return replace(node, event=replace(node.event, imprint=fingerprint))


def _restore_imprint_hashes(node: MessageNode, hashes: Sequence[str]) -> MessageNode:
    """Return a message whose imprint has the hashes that its indexes refer to."""
    if isinstance(node.event, ReplyEvent) or node.event.imprint is None:
        return node
    system, library, prefix, whole = [hashes[int(one)] for one in node.event.imprint.hashes]
    fingerprint = replace(node.event.imprint, system=system, library=library, prefix=prefix, whole=whole)
    return replace(node, event=replace(node.event, imprint=fingerprint))


def list_texts(nodes: Sequence[MessageNode]) -> Sequence[str]:
    """Return the texts of messages without unpacking them."""
    return nodes.texts if isinstance(nodes, PackedMessages) else [node.event.text for node in nodes]


def group_turn_batches(nodes: Sequence[MessageNode]) -> tuple[EncodedTurnBatch, ...]:
    """Group messages into batches of turns, each as long as possible."""
    runs: list[EncodedTurnBatch] = []
    at = 0
    while at + 1 < len(nodes):
        question = nodes[at].event
        setup = _shared_batch_fields(nodes[at], nodes[at + 1])
        if setup is None or isinstance(question, ReplyEvent):
            at += 1
            continue
        before = runs[-1] if runs else None
        if before is None or not _continues_batch(before, setup, nodes, index=at):
            before = (setup, question.parent, at, 0, {}, ())
            runs.append(before)
        first, turns, brought, placements = before[2:]
        more = {turns: question.attached} if question.attached else {}
        placements += () if question.placement is None else (question.placement,)
        runs[-1] = (setup, before[1], first, turns + 1, {**brought, **more}, placements)
        at += 2
    return tuple(runs)


def _continues_batch(
    batch: EncodedTurnBatch, setup: QuestionEvent, nodes: Sequence[MessageNode], *, index: int
) -> bool:
    """Return whether the question at this index continues the batch ``batch``.

    It must follow the batch directly, share its settings, and have a layout plan exactly if the batch has them.
    """
    asked = nodes[index].event
    if isinstance(asked, ReplyEvent) or batch[0] != setup or batch[2] + 2 * batch[3] != index:
        return False
    return asked.parent == nodes[index - 1].id and bool(batch[5]) is (asked.placement is not None)


def _shared_batch_fields(question: MessageNode, reply: MessageNode) -> QuestionEvent | None:
    """Return the fields of a question that a batch shares, or None if the turn cannot belong to a batch.

    A turn of a batch has nothing but text, turn settings, attachments and a plain reply, and its layout plan changes
    nothing that was sent.
    """
    asked, reply_event = question.event, reply.event
    if (
        not isinstance(reply_event, ReplyEvent)
        or reply_event.parent != asked.id
        or reply.rounds
        or reply.erased
        or reply_event.aside
    ):
        return None
    if (
        isinstance(asked, ReplyEvent | EditEvent)
        or question.erased
        or not asked.id
        or _get_remaining_fields(asked) != _DEFAULT_REMAINING_FIELDS
    ):
        return None
    if asked.placement is not None and (
        asked.placement.keep_messages is not None or asked.placement.kept_alive_at is not None
    ):
        return None
    return replace(asked, id="", parent="", text="", attached=(), imprint=None, placement=None)


# The message tree. Branches read packed messages in batches.


class MessageTree(MutableMapping[str, MessageNode]):
    """Messages by id in the order of their first appearance, those from snapshots first.

    Messages from snapshots are unpacked on access.
    """

    def __init__(self, parts: Iterable[Sequence[MessageNode]], *, snapshot_version: int) -> None:
        kept = [pack_messages(part) for part in parts]
        self._parts = kept
        # The part that contains each message. A message that was sent again is taken from the last such part.
        self._part_by_id = {name: part for part in kept for name in part.columns.message_ids}
        # The number of events covered by the newest snapshot.
        self._snapshot_version = snapshot_version
        # Messages that were unpacked, and messages added since.
        self._unpacked_nodes: dict[str, MessageNode] = {}
        self._length = len(self._part_by_id)
        # Whether all messages are still as the snapshots have them.
        self.is_unchanged = True
        # A message that was sent again is in two parts. Then the order within a part proves nothing about the branch,
        # so no batches are used.
        self.batches = _batches_by_last_reply(kept) if self._length == sum(map(len, kept)) else {}

    def __getitem__(self, name: str) -> MessageNode:
        node = self._unpacked_nodes.get(name)
        if node is None:
            part = self._part_by_id[name]
            node = self._unpacked_nodes[name] = part[part.columns.message_ids.index(name)]
        return node

    def __contains__(self, name: object) -> bool:
        return name in self._unpacked_nodes or name in self._part_by_id

    def __iter__(self) -> Iterator[str]:
        yield from self._part_by_id
        # Access adds to ``_unpacked_nodes``, and other threads may access messages during the iteration. So iterate
        # over a copy.
        yield from [name for name in list(self._unpacked_nodes) if name not in self._part_by_id]

    def __len__(self) -> int:
        return self._length

    def __setitem__(self, name: str, node: MessageNode) -> None:
        if name in self._part_by_id:
            self.batches, self.is_unchanged = {}, False
        elif name not in self._unpacked_nodes:
            self._length += 1
        self._unpacked_nodes[name] = node

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"a log forgets nothing, and so not {name}")

    def changed_since(self, version: int) -> list[MessageNode]:
        """Return the messages whose last event number is at least ``version``."""
        if version < self._snapshot_version:
            return [self[name] for name in self if self.event_number(name) >= version]
        found = {name: node for name, node in list(self._unpacked_nodes.items()) if node.event_number >= version}
        if self._part_by_id.keys().isdisjoint(found):
            return list(found.values())
        return [found[name] for name in self if name in found]

    def packed_parents(self) -> dict[str, str]:
        """Return the parents of messages that snapshots contain as complete consecutive turns, without unpacking.

        Messages that were accessed already are left out.
        """
        parents: dict[str, str] = {}
        for columns in [part.columns for part in self._parts]:
            if columns.consecutive_start is not None:
                parents |= zip(columns.message_ids, (columns.consecutive_start[0], *columns.message_ids), strict=False)
        return {name: parent for name, parent in parents.items() if name not in self._unpacked_nodes}

    def event_number(self, name: str) -> int:
        """Return the event number of a message without unpacking it."""
        node = self._unpacked_nodes.get(name)
        if node is not None:
            return node.event_number
        columns = self._part_by_id[name].columns
        return columns.event_numbers[columns.message_ids.index(name)]


def _batches_by_last_reply(parts: Iterable[PackedMessages]) -> dict[str, TurnRecordBatch | PackedTurnRecords]:
    """Return batches and packed records by the id of their last reply."""
    runs: dict[str, TurnRecordBatch | PackedTurnRecords] = {}
    for part in parts:
        columns = part.columns
        if columns.consecutive_start is None:
            runs.update(_unpack_batches(part))
        else:
            parent, model = columns.consecutive_start
            read = partial(_unpack_records, part)
            span = PackedTurnRecords(
                columns.message_ids, part.loaded_or_lazy_texts, parent=parent, model=model, load=read
            )
            runs[columns.message_ids[-1]] = span
    return runs


def _unpack_batches(part: PackedMessages) -> dict[str, TurnRecordBatch]:
    names, texts = part.columns.message_ids, part.texts
    runs: dict[str, TurnRecordBatch] = {}
    for setup, parent, first, turns, brought, placements in part.batches:
        end = first + 2 * turns
        runs[names[end - 1]] = TurnRecordBatch(setup, parent, names[first:end], texts[first:end], brought, placements)
    return runs


def _unpack_records(part: PackedMessages) -> list[TurnRecord | TurnRecordBatch]:
    """Return the records of consecutive messages, with the batches among them."""
    runs, records, at = _unpack_batches(part), list[TurnRecord | TurnRecordBatch](), len(part)
    while at:
        run = runs.get(part.columns.message_ids[at - 1])
        records.append(TurnRecord(message=part[at - 2], reply=part[at - 1]) if run is None else run)
        at -= 2 if run is None else len(run.message_ids)
    records.reverse()
    return records


def build_branch(
    nodes: Mapping[str, MessageNode],
    head: str,
    *,
    open_rounds: Mapping[str, tuple[StoredRound, ...]],
    question_versions: Mapping[str, QuestionEvent],
) -> Sequence[TurnRecord]:
    """Return the turn records from the start of the conversation to the message ``head``.

    ``open_rounds`` and ``question_versions`` are the fields of the log: open tool rounds, and earlier versions of
    questions.
    """
    parts: list[TurnRecordPart] = []
    # If some question was sent again in another version, each message is looked at, and no batch is used.
    runs = nodes.batches if isinstance(nodes, MessageTree) and not question_versions else {}
    while head:
        run = runs.get(head)
        if run is not None:
            parts.append(run)
            head = run.parent
            continue
        node = nodes[head]
        if isinstance(node.event, ReplyEvent):
            reply, node = node, nodes[node.event.parent]
            parts.append(TurnRecord(message=_with_question_version(node, question_versions.get(head)), reply=reply))
        else:
            parts.append(
                TurnRecord(
                    message=_with_question_version(node, question_versions.get(head)),
                    reply=None,
                    open_rounds=open_rounds.get(head, ()),
                )
            )
        head = node.event.parent
    parts.reverse()
    return BranchTurnRecords(parts, nodes)


def _with_question_version(question: MessageNode, event: QuestionEvent | None) -> MessageNode:
    """Return a question in the version that a reply answers, or that is open again."""
    return question if event is None else replace(question, event=event)


def iter_message_parents(nodes: Mapping[str, MessageNode]) -> Iterator[tuple[str, str]]:
    """Yield every message with its parent; complete turns from snapshots are not unpacked for it."""
    kept = nodes.packed_parents() if isinstance(nodes, MessageTree) else {}
    for name in nodes:
        yield name, kept[name] if name in kept else nodes[name].parent


class EventNumbers(Mapping[str, int]):
    """Event numbers of messages, in the order of ``names``, looked up on access because few are needed."""

    def __init__(self, nodes: Mapping[str, MessageNode], message_ids: Sequence[str]) -> None:
        self._nodes = nodes
        self._message_ids = message_ids

    def __getitem__(self, name: str) -> int:
        return (
            self._nodes.event_number(name) if isinstance(self._nodes, MessageTree) else self._nodes[name].event_number
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._message_ids)

    def __len__(self) -> int:
        return len(self._message_ids)
