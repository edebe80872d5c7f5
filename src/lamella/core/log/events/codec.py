"""Encode events as records and decode them; build the event batches for each change of a conversation.

Bodies are canonical JSON with the fields of the event's class.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import to_builtins
from msgspec.json import Decoder, Encoder

from lamella.core.log.call import KEEP_ALIVE_PURPOSE, ModelCall
from lamella.core.log.events.call import AuxiliaryCallEvent, to_stored_call
from lamella.core.log.events.compaction import contents_of_receipt, make_compaction_event
from lamella.core.log.events.kinds import (
    EVENT_CLASSES,
    ErasureEvent,
    Event,
    EventBatch,
    EventKind,
    EventRecord,
    IgnoredEvent,
    SettingsEvent,
)
from lamella.core.log.events.message import (
    make_question_event,
    make_tool_calls_event,
    make_tool_results_event,
    question_contents,
)
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import ReplyEvent, StoredCitation, Turn
from lamella.core.messages import ModelReply, ToolOutput, ToolRound
from lamella.core.text.content import Contents, canonical_json, unencoded_contents
from lamella.core.values import replace

# A record stores the kind next to the body. Only snapshots need the tag, since nothing else distinguishes classes
# there.
_TYPE_KEY = "type"
_KIND_BY_CLASS: Mapping[type[Event], EventKind] = {
    made: kind for kind, made in EVENT_CLASSES.items() if made is not IgnoredEvent
}
_DECODERS = {kind: Decoder(made) for kind, made in EVENT_CLASSES.items()}
_SETTINGS_DECODER = Decoder(dict[str, object])
_ENCODER = Encoder(order="sorted")
# Values that Python's json writes differently: very small and very large numbers, and NaN, which it refuses to write
# (msgspec writes null).
_DIFFERENTLY_WRITTEN_VALUE = re.compile(rb"[:,\[](?:null|-?0\.0000\d*|-?\d[\d.]*e-?\d+)[,}\]]")


def decode_event(record: EventRecord) -> Event:
    """Decode the event of a record; raises ``ValueError`` that says what is wrong with the body."""
    if record.kind is EventKind.SETTINGS:
        return SettingsEvent(values=_SETTINGS_DECODER.decode(record.body))
    event = _DECODERS[record.kind].decode(record.body)
    return replace(event, contents=record.contents) if isinstance(event, ErasureEvent) else event


def build_event_batch(event: Event, *, timestamp: str, contents: Mapping[str, bytes] | None = None) -> EventBatch:
    """Return a batch with one event and the contents that it introduces."""
    given = {} if contents is None else contents
    return EventBatch(records=(encode_event(event, timestamp=timestamp, contents=tuple(given)),), contents=given)


def encode_event(event: Event, *, timestamp: str, contents: tuple[str, ...] = ()) -> EventRecord:
    """Encode an event as a record that lists these contents; an erasure lists its own."""
    listed = event.contents if isinstance(event, ErasureEvent) else contents
    body = canonical_json(event.values) if isinstance(event, SettingsEvent) else _encode_body(_event_to_dict(event))
    return EventRecord(kind=_KIND_BY_CLASS[type(event)], at=timestamp, body=body, contents=listed)


def _encode_body(body: Mapping[str, object]) -> str:
    """Return the canonical JSON of a body, byte for byte.

    For texts and ordinary numbers the msgspec encoder gives the same bytes in a fifth of the time.
    """
    try:
        written = _ENCODER.encode(body)
    except (OverflowError, UnicodeEncodeError):
        return canonical_json(body)
    return canonical_json(body) if _DIFFERENTLY_WRITTEN_VALUE.search(written) else written.decode()


def _event_to_dict(event: Event) -> Mapping[str, object]:
    body: dict[str, object] = to_builtins(event)
    body.pop(_TYPE_KEY, None)
    if isinstance(event, ErasureEvent):
        del body["contents"]
    return body


def build_question_batch(
    turn: Turn, *, message_id: str, parent: str, timestamp: str, edited_message: str | None = None
) -> EventBatch:
    """Return the batch for a new question, or for one that replaces the message ``edited_message``."""
    event = make_question_event(turn, message_id=message_id, parent=parent, edited_message=edited_message)
    return build_event_batch(event, timestamp=timestamp, contents=question_contents(turn))


def build_reply_batch(
    text: str,
    *,
    message_id: str,
    parent: str,
    timestamp: str,
    model_calls: Iterable[ModelCall] = (),
    on_own_branch: bool = False,
    sources: Iterable[StoredCitation] = (),
    rounds_hash: str = "",
) -> EventBatch:
    """Return the batch for a reply with its model calls; the log gives it the tool rounds of its question."""
    stored = tuple(map(to_stored_call, model_calls))
    event = ReplyEvent(
        id=message_id,
        parent=parent,
        text=text,
        calls=stored,
        aside=on_own_branch,
        sources=tuple(sources),
        rounds_hash=rounds_hash,
    )
    return build_event_batch(event, timestamp=timestamp)


def build_tool_calls_batch(
    reply: ModelReply | ToolRound, *, parent: str, timestamp: str, model_calls: Iterable[ModelCall] = ()
) -> EventBatch:
    """Return the batch for a reply that calls tools, to append before any tool runs.

    ``parent`` is the question that is being answered, and ``model_calls`` are the model calls. If ``reply`` is a
    recorded round, its outputs are not included; write them with ``build_tool_results_batch``.
    """
    event, contents = make_tool_calls_event(reply, parent=parent, model_calls=map(to_stored_call, model_calls))
    return build_event_batch(event, timestamp=timestamp, contents=contents)


def build_tool_results_batch(outputs: Iterable[ToolOutput], *, parent: str, timestamp: str) -> EventBatch:
    """Return the batch for outputs of the calls written last, at most one for each call."""
    event, contents = make_tool_results_event(outputs, parent=parent)
    return build_event_batch(event, timestamp=timestamp, contents=contents)


def build_auxiliary_call_batch(call: ModelCall, *, parent: str, timestamp: str) -> EventBatch:
    """Return the batch for an auxiliary model call, which gave no reply of the conversation."""
    started = timestamp if call.purpose == KEEP_ALIVE_PURPOSE else ""
    return build_event_batch(
        AuxiliaryCallEvent(parent=parent, purpose=call.purpose, call=to_stored_call(call), started=started),
        timestamp=timestamp,
    )


def build_compaction_batch(
    receipt: CompactionReceipt, *, timestamp: str, resent_message: str | None = None
) -> EventBatch:
    """Return the batch for a compaction; ``resent_message`` is an existing message that is sent again after it."""
    return build_event_batch(
        make_compaction_event(receipt, resent_message=resent_message),
        timestamp=timestamp,
        contents=contents_of_receipt(receipt),
    )


def build_erasure_batch(artifact_id: str, hashes: Sequence[str], *, timestamp: str) -> EventBatch:
    """Return the batch for the erasure of an artifact and the contents that were erased with it."""
    return build_event_batch(ErasureEvent(artifact=artifact_id, contents=tuple(hashes)), timestamp=timestamp)


def merge_batches(*batches: EventBatch) -> EventBatch:
    """Merge several batches into one, to be appended together."""
    records = tuple(record for part in batches for record in part.records)
    contents: dict[str, str | bytes] = {}
    for part in batches:
        contents.update(unencoded_contents(part.contents))
    return EventBatch(records=records, contents=Contents(contents))
