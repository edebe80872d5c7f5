"""The messages of the tree, and the turn records that a branch of them consists of."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, overload

from msgspec import Struct

from lamella.core.log.call import IncompleteReplyReason
from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.call import AuxiliaryCallEvent
from lamella.core.log.events.kinds import referenced_content_hashes
from lamella.core.log.events.message import EditEvent, QuestionEvent, StoredRound, TurnOverrides, round_content_hashes
from lamella.core.log.turn import (
    LayoutPlan,
    MessageAuthor,
    ReplyEvent,
    StoredCitation,
    compute_message_id,
    compute_reply_id,
    tool_result_id,
)
from lamella.core.messages import TextsById
from lamella.core.values import CachedProperty, replace
from lamella.errors import StoreCorruptedError

# The exceptions that reading a damaged event can raise.
DECODING_ERRORS = (LookupError, TypeError, ValueError)
# Module-level names, because looking up an enum member is slow and happens thousands of times: see
# docs/decisions/frozen-values.md.
_USER, _REPLY = MessageAuthor.USER, MessageAuthor.REPLY


class MessageNode(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """One message of the tree: a question, or a reply with the tool rounds that led to it.

    ``event_number`` is the number of events before the one that added the message last. Sending the same question again
    after a compaction therefore counts as sending it after the compaction. ``erased`` are the contents of the message
    that were erased since. They stay erased for this message, even if the same content is attached again.
    ``auxiliary_calls`` are auxiliary model calls made for a reply.
    """

    event: QuestionEvent | EditEvent | ReplyEvent
    at: str = ""
    event_number: int = 0
    rounds: tuple[StoredRound, ...] = ()
    erased: tuple[str, ...] = ()
    auxiliary_calls: tuple[AuxiliaryCallEvent, ...] = ()

    @property
    def id(self) -> str:
        return self.event.id

    @property
    def parent(self) -> str:
        return self.event.parent

    @property
    def text(self) -> str:
        return self.event.text

    @property
    def role(self) -> MessageAuthor:
        return _REPLY if isinstance(self.event, ReplyEvent) else _USER

    @property
    def question_event(self) -> QuestionEvent | None:
        """The event of a question, or None for a reply."""
        return None if isinstance(self.event, ReplyEvent) else self.event

    @property
    def typed(self) -> str:
        """The text as typed, before template expansion."""
        typed = None if isinstance(self.event, ReplyEvent) else self.event.typed
        return self.event.text if typed is None else typed


class TurnRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One stored turn of a branch: the question, and the reply if there is one.

    ``open_rounds`` are the tool rounds of a question without a reply. The last of them may still wait for its results.
    """

    message: MessageNode
    reply: MessageNode | None
    open_rounds: tuple[StoredRound, ...] = ()

    @property
    def completed_rounds(self) -> tuple[StoredRound, ...]:
        """The tool rounds of the turn that have their results."""
        return completed_rounds(self.open_rounds) if self.reply is None else self.reply.rounds

    @property
    def sources(self) -> tuple[StoredCitation, ...]:
        """The citations of the reply: the first is ``[^1]``, and so on."""
        event = None if self.reply is None else self.reply.event
        return event.sources if isinstance(event, ReplyEvent) else ()

    @property
    def cut_reason(self) -> IncompleteReplyReason | None:
        """Why the reply is shorter than the model's answer, or None."""
        return get_cut_reason(self.reply)

    @property
    def pending_round(self) -> StoredRound | None:
        """The tool round that still waits for its results, or None."""
        return self.open_rounds[-1] if self.open_rounds and self.open_rounds[-1].results is None else None


def get_cut_reason(reply: MessageNode | None) -> IncompleteReplyReason | None:
    """Return why a reply is shorter than the model's answer, or None if it is whole or there is none."""
    event = None if reply is None else reply.event
    if not isinstance(event, ReplyEvent) or not event.calls or event.calls[-1].stop not in tuple(IncompleteReplyReason):
        return None
    return IncompleteReplyReason(event.calls[-1].stop)


def completed_rounds(rounds: tuple[StoredRound, ...]) -> tuple[StoredRound, ...]:
    """Return the rounds that have their results; only the last round of a turn can lack them."""
    return rounds[:-1] if rounds and rounds[-1].results is None else rounds


class TurnRecordBatch(NamedTuple):
    """Consecutive answered turns with the same settings, which may have attachments but nothing else.

    ``message_ids`` and ``texts`` alternate: question, reply, question, reply. ``shared_event`` is the part that all
    questions share. ``attached_by_turn`` are the attachments by turn index. ``layout_plans`` are the layout plans, if
    they were chosen by cost.
    """

    shared_event: QuestionEvent
    parent: str
    message_ids: tuple[str, ...]
    texts: tuple[str, ...]
    attached_by_turn: Mapping[int, tuple[StoredArtifact, ...]]
    layout_plans: tuple[LayoutPlan, ...] = ()

    def split_after(self, turns: int) -> tuple["TurnRecordBatch", "TurnRecordBatch"]:
        """Split into the first ``turns`` turns and the rest."""
        end, brought = 2 * turns, self.attached_by_turn
        first = {at: refs for at, refs in brought.items() if at < turns}
        rest = {at - turns: refs for at, refs in brought.items() if at >= turns}
        return (
            self._replace(
                message_ids=self.message_ids[:end],
                texts=self.texts[:end],
                attached_by_turn=first,
                layout_plans=self.layout_plans[:turns],
            ),
            self._replace(
                parent=self.message_ids[end - 1],
                message_ids=self.message_ids[end:],
                texts=self.texts[end:],
                attached_by_turn=rest,
                layout_plans=self.layout_plans[turns:],
            ),
        )


class PackedTurnRecords:
    """Consecutive turns whose ids and texts alone are unpacked; everything else is read on access.

    ``parent`` is the message before the first turn. ``model`` is the last model that one of the turns names.
    """

    def __init__(
        self,
        message_ids: Sequence[str],
        texts: Sequence[str | TextsById],
        *,
        parent: str,
        model: str | None,
        load: Callable[[], Sequence[TurnRecord | TurnRecordBatch]],
    ) -> None:
        self.message_ids = message_ids
        self.texts = texts
        self.parent = parent
        self.model = model
        self._load = load

    @CachedProperty
    def parts(self) -> Sequence[TurnRecord | TurnRecordBatch]:
        """The turns, as records and batches."""
        return self._load()


# One turn of a branch, or several in one value.
TurnRecordPart = TurnRecord | TurnRecordBatch | PackedTurnRecords


class BranchTurnRecords(Sequence[TurnRecord]):
    """The turn records of a branch; batches and packed records are unpacked on access."""

    def __init__(self, parts: Sequence[TurnRecordPart], nodes: Mapping[str, MessageNode]) -> None:
        self.parts = parts
        self._nodes = nodes
        self._length = sum([_count_turns(part) for part in parts])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[TurnRecord]:
        for part in self.parts:
            yield from self._unpack_part(part)

    def __reversed__(self) -> Iterator[TurnRecord]:
        for part in reversed(self.parts):
            yield from reversed(self._unpack_part(part))

    def _unpack_part(self, part: TurnRecordPart) -> Sequence[TurnRecord]:
        if isinstance(part, TurnRecord):
            return (part,)
        if isinstance(part, PackedTurnRecords):
            return [record for one in part.parts for record in self._unpack_part(one)]
        nodes = [self._nodes[name] for name in part.message_ids]
        return [TurnRecord(message=asked, reply=reply) for asked, reply in zip(nodes[::2], nodes[1::2], strict=True)]

    @overload
    def __getitem__(self, index: int) -> TurnRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[TurnRecord]: ...
    def __getitem__(self, index: int | slice) -> TurnRecord | list[TurnRecord]:
        within = range(self._length)[index]
        if isinstance(within, int):
            return self._get_from_end(self.parts, self._length - 1 - within)
        # Most callers ask for the last turns, so unpack from the end.
        last = list(islice(reversed(self), self._length - min(within, default=self._length)))
        return [last[self._length - 1 - at] for at in within]

    def _get_from_end(self, parts: Sequence[TurnRecordPart], records_after: int) -> TurnRecord:
        """Return the record that is followed by ``records_after`` others, without unpacking any other."""
        for part in reversed(parts):
            if records_after < _count_turns(part):
                break
            records_after -= _count_turns(part)
        if isinstance(part, TurnRecord):
            return part
        if isinstance(part, PackedTurnRecords):
            return self._get_from_end(part.parts, records_after)
        asked, reply = [self._nodes[name] for name in part.message_ids[-2 * records_after - 2 :][:2]]
        return TurnRecord(message=asked, reply=reply)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def _count_turns(part: TurnRecordPart) -> int:
    return 1 if isinstance(part, TurnRecord) else len(part.message_ids) // 2


def list_branch_parts(records: Iterable[TurnRecordPart]) -> Sequence[TurnRecordPart]:
    """Return the parts of a branch, with batches and packed records as they are."""
    return records.parts if isinstance(records, BranchTurnRecords) else tuple(records)


def unpack_branch_parts(records: Iterable[TurnRecordPart]) -> list[TurnRecord | TurnRecordBatch]:
    """Return the parts of a branch, with batches as they are and packed records opened."""
    parts: list[TurnRecord | TurnRecordBatch] = []
    for part in list_branch_parts(records):
        parts += part.parts if isinstance(part, PackedTurnRecords) else (part,)
    return parts


def branch_message_ids(records: Iterable[TurnRecordPart]) -> tuple[str, ...]:
    """Return the ids of a branch's questions and replies, in order."""
    names: list[str] = []
    for part in list_branch_parts(records):
        if not isinstance(part, TurnRecord):
            names += part.message_ids
        else:
            names += [node.event.id for node in (part.message, part.reply) if node is not None]
    return tuple(names)


def split_records(records: Iterable[TurnRecordPart], turns: int) -> tuple[list[TurnRecordPart], list[TurnRecordPart]]:
    """Split a branch after the first ``turns`` turns, unpacking as little as possible."""
    before: list[TurnRecordPart] = []
    rest: list[TurnRecordPart] = []
    for part in list_branch_parts(records):
        length = _count_turns(part)
        if not isinstance(part, TurnRecord) and 0 < turns < length:
            first, second = (
                part.split_after(turns) if isinstance(part, TurnRecordBatch) else split_records(part.parts, turns)
            )
            before += [first] if isinstance(first, TurnRecordBatch) else first
            rest += [second] if isinstance(second, TurnRecordBatch) else second
        else:
            (before if turns > 0 else rest).append(part)
        turns -= length
    return before, rest


def message_ids_and_texts(records: Iterable[TurnRecordPart]) -> tuple[tuple[str, ...], tuple[str | TextsById, ...]]:
    """Return the ids of a branch's questions and replies in order, and their texts.

    Texts that are not loaded yet are given as a mapping that loads them on access.
    """
    texts: list[str | TextsById] = []
    for part in list_branch_parts(records):
        if not isinstance(part, TurnRecord):
            texts += part.texts
        else:
            texts += [node.event.text for node in (part.message, part.reply) if node is not None]
    return branch_message_ids(records), tuple(texts)


def list_artifact_ids(node: MessageNode) -> tuple[str, ...]:
    """Return the ids of the artifacts of a message: tool results, attachments, and notes included in instructions."""
    question = node.question_event
    return () if question is None else tuple(dict.fromkeys(ref.id for ref in question.artifacts()))


def result_ids_and_hashes(question_id: str, rounds: Iterable[StoredRound]) -> Iterator[tuple[str, str]]:
    """Yield the id and the output hash of each tool result in the rounds of a question."""
    for number, one in enumerate(rounds):
        hashes = (result.output for result in one.results or ())
        yield from zip(round_result_ids(question_id, number, one), hashes, strict=True)


def tool_result_hashes(
    nodes: Iterable[MessageNode], open_rounds: Mapping[str, tuple[StoredRound, ...]], artifact_id: str
) -> tuple[str, ...]:
    """Return the hashes of all tool outputs with this artifact id, in any turn.

    ``open_rounds`` are the rounds of questions without a reply.
    """
    answered = ((node.parent, node.rounds) for node in nodes if node.rounds)
    found = (
        output
        for question, rounds in (*answered, *open_rounds.items())
        for name, output in result_ids_and_hashes(question, rounds)
        if name == artifact_id
    )
    return tuple(dict.fromkeys(found))


def round_result_ids(question_id: str, round_index: int, tool_round: StoredRound) -> tuple[str, ...]:
    """Return the ids of the results of one round of a question."""
    calls = {call.id: (call.name, call.arguments) for call in tool_round.calls}
    return tool_round.names or tuple(
        tool_result_id(question_id, position=(round_index, at), call=calls[result.call], output_hash=result.output)
        for at, result in enumerate(tool_round.results or ())
    )


def derive_message_id(conversation_key: str, event: QuestionEvent | ReplyEvent) -> str:
    """Return the id of a message, derived from its content and its parent."""
    if isinstance(event, ReplyEvent):
        return compute_reply_id(conversation_key, parent=event.parent, text=event.text, rounds_hash=event.rounds_hash)
    attached = [(ref.id, ref.hash) for ref in (*event.results, *event.attached)]
    return compute_message_id(conversation_key, parent=event.parent, role=_USER, text=event.text, attached=attached)


def damaged_record_error(item: str, error: Exception) -> StoreCorruptedError:
    """Return the error for a stored item that cannot be read."""
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return StoreCorruptedError(
        f"{item} cannot be read: {why}.", hint=lambda hints: f"Use {hints.verify_store_hint()} to see what is damaged."
    )


def validate_position(node: MessageNode, nodes: Mapping[str, MessageNode]) -> None:
    """Raise ``ValueError`` if a message does not fit at the position that it claims."""
    parent, same = nodes.get(node.parent), nodes.get(node.id, node)
    if node.parent and parent is None:
        raise ValueError(f"message {node.id} follows {node.parent}, which is not there")
    if node.role is _REPLY and (parent is None or parent.role is not _USER):
        raise ValueError(f"reply {node.id} answers no message")
    if (same.parent, same.role, same.text) != (node.parent, node.role, node.text):
        raise ValueError(f"message {node.id} is there already, and says something else")


def is_same_question_resent(earlier: MessageNode | None, later: MessageNode) -> bool:
    """Return whether a question is the waiting one, sent again with what was found for it meanwhile."""
    asked, more = None if earlier is None else earlier.question_event, later.question_event
    if earlier is None or asked is None or more is None or isinstance(more, EditEvent) or earlier.id == later.id:
        return False
    return (earlier.parent, earlier.typed) == (later.parent, later.typed) and set(
        asked.artifacts_in_erasure_order
    ) <= set(more.artifacts_in_erasure_order)


def merge_replies(earlier: MessageNode, reply: MessageNode) -> MessageNode:
    """Merge two identical replies to the same question: the model calls of both count.

    Later questions were built on the tool rounds of the first reply, so the merged reply keeps those.
    """
    if not isinstance(earlier.event, ReplyEvent) or not isinstance(reply.event, ReplyEvent):
        return reply
    sources = reply.event.sources or earlier.event.sources
    event = replace(reply.event, calls=(*earlier.event.calls, *reply.event.calls), sources=sources)
    auxiliary_calls = (*earlier.auxiliary_calls, *reply.auxiliary_calls)
    return replace(reply, event=event, rounds=earlier.rounds, erased=earlier.erased, auxiliary_calls=auxiliary_calls)


def mark_nodes_with_erased_contents(
    nodes: Mapping[str, MessageNode],
    hashes: frozenset[str],
    *,
    question_versions: Iterable[QuestionEvent | EditEvent],
    open_rounds: Mapping[str, tuple[StoredRound, ...]],
) -> dict[str, MessageNode]:
    """Return the messages that refer to erased contents, each with its list of lost contents.

    ``question_versions`` are earlier versions of questions, ``open_rounds`` the rounds of questions without a reply.
    """
    before: dict[str, set[str]] = {}
    for event in question_versions:
        before.setdefault(event.id, set()).update(referenced_content_hashes(event))
    marked: dict[str, MessageNode] = {}
    for name, node in nodes.items():
        rounds = (*open_rounds.get(name, ()), *node.rounds)
        erased = hashes.intersection(
            {*referenced_content_hashes(node.event), *before.get(name, ()), *round_content_hashes(rounds)}
        )
        if erased:
            marked[name] = replace(node, erased=tuple(sorted(erased.union(node.erased))))
    return marked


def copy_event_under_parent(
    event: QuestionEvent | EditEvent | ReplyEvent, parent: str, overrides: TurnOverrides, *, new_ids: Mapping[str, str]
) -> QuestionEvent | ReplyEvent:
    """Return the event with another parent.

    A question keeps the settings ``overrides`` by a deleted question unless it sets its own. ``new_ids`` maps pinned
    message ids to their new ids.
    """
    event = replace(event, parent=parent)
    if isinstance(event, ReplyEvent):
        return event
    merged_overrides = event.overrides.merged_over(overrides)
    pins = (
        None if merged_overrides.pinned is None else tuple([new_ids.get(one, one) for one in merged_overrides.pinned])
    )
    return replace(
        event,
        system=merged_overrides.system,
        tools=merged_overrides.tools,
        model=merged_overrides.model,
        pinned=pins,
        rules=merged_overrides.rules,
    )
