"""Read a branch from the log: its turns with contents, the compactions before each, and its model calls.

``read_turns`` returns complete turns; ``read_turns_in_batches`` is the fast path for continuing after them.
``read_branch_model_calls`` returns the calls made for each question. ``iter_invalid_receipts`` finds stored
compactions that cannot be applied as recorded.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from lamella.core.artifacts.kinds import goes_to_library
from lamella.core.artifacts.model import Artifact
from lamella.core.log.call import ModelCall
from lamella.core.log.compactions import NO_COMPACTIONS, ActiveCompactions
from lamella.core.log.events.artifact import ContentsByHash
from lamella.core.log.events.call import AuxiliaryCallEvent, to_auxiliary_model_calls, to_model_call
from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.compaction import CompactionEvent, read_receipt
from lamella.core.log.events.kinds import EventKind, EventRecord, referenced_content_hashes
from lamella.core.log.events.message import (
    read_early_outputs,
    read_question_artifacts,
    read_round,
    resolve_turn_settings,
    to_model_reply,
    turn_from_event,
)
from lamella.core.log.receipts import CompactionReceipt, CompactionStepName, is_stage_data_id
from lamella.core.log.turn import AttachmentMode, ReplyEvent, Turn, TurnBatch, TurnSettings
from lamella.core.log.turn_records import (
    DECODING_ERRORS,
    MessageNode,
    TurnRecord,
    TurnRecordBatch,
    TurnRecordPart,
    damaged_record_error,
    round_result_ids,
    unpack_branch_parts,
)
from lamella.core.messages import ModelReply, ToolOutput, ToolRound
from lamella.core.values import replace

_DEFAULT_TURN_SETTINGS = TurnSettings()


def branch_content_hashes(records: Iterable[TurnRecordPart]) -> tuple[str, ...]:
    """Return every content hash that a branch refers to."""
    hashes: dict[str, None] = {}
    for turn in unpack_branch_parts(records):
        if isinstance(turn, TurnRecordBatch):
            hashes.update(
                dict.fromkeys(
                    [
                        name
                        for refs in turn.attached_by_turn.values()
                        for ref in refs
                        for name in ref.iter_content_hashes()
                    ]
                )
            )
            continue
        named = referenced_content_hashes(turn.message.event)
        if named:
            hashes.update(dict.fromkeys(named))
        rounds = turn.open_rounds if turn.reply is None else turn.reply.rounds
        if rounds:
            hashes.update(dict.fromkeys(name for one in rounds for name in one.iter_content_hashes()))
    return tuple(hashes)


def read_turns(
    records: Iterable[TurnRecord],
    contents: ContentsByHash,
    active_compactions: ActiveCompactions = NO_COMPACTIONS,
    *,
    defaults: TurnSettings,
) -> list[Turn]:
    """Return a branch's turns with contents, replies and the compactions before each.

    ``defaults`` are the turn settings for turns that were stored without any.
    """
    before = active_compactions.by_next_question
    turns: list[Turn] = []
    for one in records:
        turn = read_question_turn(one.message, contents, defaults=defaults, reply=one.reply)
        if before and one.message.id in before:
            turn = replace(turn, receipts=read_receipts(before[one.message.id], contents))
        if one.reply is not None:
            turn = replace(turn, rounds=read_rounds(one, contents)) if one.reply.rounds else turn
        elif one.open_rounds:
            turn = replace(turn, rounds=read_rounds(one, contents)[: len(one.completed_rounds)])
        turns.append(turn)
    return turns


def read_turns_in_batches(
    records: Iterable[TurnRecordPart],
    contents: ContentsByHash,
    active_compactions: ActiveCompactions = NO_COMPACTIONS,
    *,
    defaults: TurnSettings,
) -> list[Turn | TurnBatch]:
    """Return the same turns for continuing after them, with plain turns in batches.

    Batches leave out the fingerprints of past requests, which are not needed to continue.
    """
    past: list[Turn | TurnBatch] = []
    for part in unpack_branch_parts(records):
        if isinstance(part, TurnRecord):
            past += read_turns((part,), contents, active_compactions, defaults=defaults)
        else:
            past += _read_batch(part, contents, active_compactions.by_next_question, defaults=defaults)
    return past


def _read_batch(
    batch: TurnRecordBatch,
    contents: ContentsByHash,
    compactions_by_question: Mapping[str, tuple[CompactionEvent, ...]],
    *,
    defaults: TurnSettings,
) -> Iterator[Turn | TurnBatch]:
    """Yield the turns of a batch as batches, with single turns where one needs a closer look.

    Single turns are those with a compaction before them, and those whose attachments have images, are sticky, never
    enter the library, or were partly erased.
    """
    turn_settings = resolve_turn_settings(batch.shared_event, defaults)
    brought = {at: read_question_artifacts(refs, contents) for at, refs in batch.attached_by_turn.items()}
    sticks = turn_settings.attachments is AttachmentMode.STICKY
    plain = {
        at: one
        for at, (one, warnings) in brought.items()
        if not sticks and not warnings and _all_go_to_library_without_images(one)
    }
    whole = TurnBatch(turn_settings, batch.message_ids, batch.texts, batch.layout_plans, plain)
    compacted = (
        [at for at, name in enumerate(batch.message_ids[::2]) if name in compactions_by_question]
        if compactions_by_question
        else []
    )
    start = 0
    for at in sorted({*(brought.keys() - plain.keys()), *compacted}):
        part = whole.get_range(start, at)
        if part is not None:
            yield part
        attached, warnings = brought.get(at, ((), ()))
        events = compactions_by_question.get(batch.message_ids[2 * at], ())
        yield replace(
            whole.get_turn(at), attached=attached, warnings=warnings, receipts=read_receipts(events, contents)
        )
        start = at + 1
    part = whole.get_range(start, None) if start else whole
    if part is not None:
        yield part


def _all_go_to_library_without_images(attached: Sequence[Artifact]) -> bool:
    """Return whether all attachments enter the library after their turn and none has images."""
    return all(goes_to_library(one) and not one.images for one in attached)


def read_rounds(record: TurnRecord, contents: ContentsByHash) -> tuple[ToolRound, ...]:
    """Return a turn's tool rounds, including one that waits for results; erased outputs say so."""
    node, rounds = (record.message, record.open_rounds) if record.reply is None else (record.reply, record.reply.rounds)
    try:
        left = _without_erased_contents(node.erased, contents) if node.erased else contents
        return tuple(
            # Ids that follow from the content are derived later, where they are needed.
            read_round(
                one, left, result_ids=round_result_ids(record.message.id, at, one) if node.erased or one.names else ()
            )
            for at, one in enumerate(rounds)
        )
    except DECODING_ERRORS as error:
        raise damaged_record_error(f"The message {node.id}", error) from error


def read_pending_reply(
    record: TurnRecord, contents: ContentsByHash
) -> tuple[ModelReply, tuple[ToolOutput, ...]] | None:
    """Return the model's reply whose tool calls still wait for outputs, with the outputs that are there, or None."""
    waiting = record.pending_round
    if waiting is None:
        return None
    try:
        erased = record.message.erased
        left = _without_erased_contents(erased, contents) if erased else contents
        return to_model_reply(waiting, left), read_early_outputs(waiting, left)
    except DECODING_ERRORS as error:
        raise damaged_record_error(f"The message {record.message.id}", error) from error


def read_model_calls(record: TurnRecord) -> tuple[ModelCall, ...]:
    """Return the model calls of a turn so far: those of its tool rounds, then those of its reply."""
    node = record.message if record.reply is None else record.reply
    rounds = record.open_rounds if record.reply is None else record.reply.rounds
    own = node.event.calls if isinstance(node.event, ReplyEvent) else ()
    try:
        return tuple(map(to_model_call, (*(call for one in rounds for call in one.model_calls), *own)))
    except DECODING_ERRORS as error:
        raise damaged_record_error(f"The message {node.id}", error) from error


def read_branch_model_calls(
    records: Sequence[TurnRecord],
    nodes: Iterable[MessageNode],
    open_auxiliary_calls: Mapping[str, tuple[AuxiliaryCallEvent, ...]],
) -> list[tuple[ModelCall, ...]]:
    """Return the model calls made for each question of a branch, those of replies on other branches first.

    Auxiliary calls come before the reply that they were made for. Those after the last message belong to the last turn
    until there is a next one.
    """
    replies: dict[str, list[MessageNode]] = {turn.message.id: [] for turn in records}
    for node in nodes:
        if isinstance(node.event, ReplyEvent) and node.parent in replies:
            replies[node.parent].append(node)
    on_the_way = auxiliary_events_by_question(records, open_auxiliary_calls)
    calls: list[tuple[ModelCall, ...]] = []
    for turn in records:
        chosen = None if turn.reply is None else turn.reply.id
        others = sorted((one for one in replies[turn.message.id] if one.id != chosen), key=lambda one: one.event_number)
        # A reply kept on a branch of its own and the empty reply beside it share their rounds. Count those once.
        seen = [turn.completed_rounds]
        made: list[ModelCall] = []
        for one in others:
            bare = replace(one, rounds=()) if one.rounds in seen else one
            seen.append(one.rounds)
            made += (
                *read_auxiliary_calls(one.auxiliary_calls),
                *read_model_calls(TurnRecord(message=turn.message, reply=bare)),
            )
        calls.append((*made, *read_auxiliary_calls(on_the_way[turn.message.id]), *read_model_calls(turn)))
    if calls and records[-1].reply is not None:
        calls[-1] = (*calls[-1], *read_auxiliary_calls(open_auxiliary_calls.get(records[-1].reply.id, ())))
    return calls


def auxiliary_events_by_question(
    records: Sequence[TurnRecord], open_auxiliary_calls: Mapping[str, tuple[AuxiliaryCallEvent, ...]]
) -> dict[str, tuple[AuxiliaryCallEvent, ...]]:
    """Return the auxiliary calls for the reply to each question; ``open_auxiliary_calls`` have no reply yet."""
    found: dict[str, tuple[AuxiliaryCallEvent, ...]] = {}
    before = ""
    for turn in records:
        question, reply = turn.message.id, turn.reply
        found[question] = (
            *open_auxiliary_calls.get(before, ()),
            *(reply.auxiliary_calls if reply else ()),
            *open_auxiliary_calls.get(question, ()),
        )
        before = question if reply is None else reply.id
    return found


def read_auxiliary_calls(events: Sequence[AuxiliaryCallEvent]) -> tuple[ModelCall, ...]:
    """Return auxiliary calls as model calls; raises ``StoreCorruptedError`` if one cannot be read."""
    try:
        return to_auxiliary_model_calls(events)
    except DECODING_ERRORS as error:
        raise damaged_record_error("A call on the way to an answer", error) from error


def placeholder_text_hashes(active_compactions: ActiveCompactions) -> tuple[str, ...]:
    """Return the hashes of the placeholder texts of a branch's compactions."""
    return tuple(dict.fromkeys(name for event in active_compactions.events for name in event.iter_content_hashes()))


def read_receipts(events: Iterable[CompactionEvent], contents: ContentsByHash) -> tuple[CompactionReceipt, ...]:
    """Return compaction receipts with their placeholder texts."""
    try:
        return tuple(read_receipt(event, contents) for event in events)
    except DECODING_ERRORS as error:
        raise damaged_record_error("A compaction", error) from error


def read_question_turn(
    node: MessageNode, contents: ContentsByHash, *, defaults: TurnSettings, reply: MessageNode | None = None
) -> Turn:
    """Return the turn of a question, with its reply if given."""
    question = node.event
    if isinstance(question, ReplyEvent):
        raise damaged_record_error(f"The message {node.id}", ValueError("it is a reply"))
    answer = reply.event if reply is not None and isinstance(reply.event, ReplyEvent) else None
    try:
        left = _without_erased_contents(node.erased, contents) if node.erased else contents
        return turn_from_event(question, left, defaults=defaults, reply=answer)
    except DECODING_ERRORS as error:
        raise damaged_record_error(f"The message {node.id}", error) from error


def validate_message_node(node: MessageNode) -> None:
    """Read everything in a message except its contents; raises ``StoreCorruptedError`` if it is unusable."""
    if isinstance(node.event, ReplyEvent):
        read_model_calls(TurnRecord(message=node, reply=node))
        read_auxiliary_calls(node.auxiliary_calls)
    else:
        read_question_turn(node, {}, defaults=_DEFAULT_TURN_SETTINGS)
    parse_message_time(node)


def parse_message_time(node: MessageNode) -> datetime | None:
    """Return the time of a message, or None if it was not recorded.

    Raises ``StoreCorruptedError`` if it cannot be read.
    """
    return _parse_time(node.at, f"The time of the message {node.id}")


def parse_event_time(record: EventRecord) -> datetime | None:
    """Return the time of an event, or None if it was not recorded.

    Raises ``StoreCorruptedError`` if it cannot be read.
    """
    return _parse_time(record.at, "The time of an event")


def _parse_time(at: str, what: str) -> datetime | None:
    try:
        return datetime.fromisoformat(at) if at else None
    except ValueError as error:
        raise damaged_record_error(what, error) from error


def _without_erased_contents(erased: tuple[str, ...], contents: ContentsByHash) -> ContentsByHash:
    """Return the contents without those erased from a message.

    The same content may be attached again elsewhere and then be available. It still stays erased for this message.
    """
    return {name: data for name, data in contents.items() if name not in erased}


# Validation of stored compaction receipts.

# These steps remove artifacts; all others remove messages.
_ARTIFACT_STEPS = (CompactionStepName.PREVIEW, CompactionStepName.HANDLE, CompactionStepName.TOOL_RESULTS)


def iter_invalid_receipts(
    records: Iterable[EventRecord], *, message_ids: Container[str], contents: ContentsByHash
) -> Iterator[tuple[int, str]]:
    """Yield the event number and the problem of each compaction that cannot be applied as recorded.

    ``message_ids`` are the ids of all messages. ``contents`` are the available texts, without erased ones.
    """
    for number, record in enumerate(records, start=1):
        if record.kind is EventKind.COMPACTION:
            fault = _find_receipt_problem(record, message_ids=message_ids, contents=contents)
            if fault is not None:
                yield number, fault


def _find_receipt_problem(record: EventRecord, *, message_ids: Container[str], contents: ContentsByHash) -> str | None:
    try:
        event = decode_event(record)
        assert isinstance(event, CompactionEvent)
        receipt = read_receipt(event, contents)
    except ValueError as error:
        return f"cannot be read: {error}"
    if unlisted := set(event.iter_content_hashes()).symmetric_difference(record.contents):
        return f"names other texts than it lists: {min(unlisted)}"
    messages = (name for step in receipt.steps if step.name not in _ARTIFACT_STEPS for name in step.removed)
    removed_ids = (name for name in messages if not is_stage_data_id(name))
    named = (*removed_ids, *((receipt.parent,) if receipt.parent else ()))
    unknown = next((name for name in named if name not in message_ids), None)
    return None if unknown is None else f"names a message that was never said: {unknown}"
