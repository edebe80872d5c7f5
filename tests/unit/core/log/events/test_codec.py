"""The codec: every event is written with the bytes it always had, read back as it was, and refused where it is not."""

import json
from pathlib import Path

import pytest
from tests.unit.core.log.events.samples import (
    AT,
    BARE_CALL,
    CALL,
    FULL,
    RECEIPT,
    SETTINGS,
    TURNS,
)

from lamella.core.log.call import CallTiming
from lamella.core.log.events.artifact import PendingCommandsEvent
from lamella.core.log.events.codec import (
    build_compaction_batch,
    build_erasure_batch,
    build_event_batch,
    build_question_batch,
    build_reply_batch,
    decode_event,
    encode_event,
    merge_batches,
)
from lamella.core.log.events.compaction import StageEvent, UndoEvent
from lamella.core.log.events.kinds import (
    EVENT_CLASSES,
    DeleteEvent,
    ErasureEvent,
    EventBatch,
    EventKind,
    EventRecord,
    ForkEvent,
    IgnoredEvent,
    RenameEvent,
    SettingsEvent,
    SwitchEvent,
)
from lamella.core.log.events.message import make_unplaced_question_event
from lamella.core.text.content import canonical_json
from lamella.core.values import replace
from lamella.errors import ArtifactError

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))


def recorded(name: str) -> EventRecord:
    """An event as it was written before events had classes."""
    told = RECORDED[name]
    return EventRecord(kind=EventKind(told["kind"]), at=AT, body=told["body"], contents=tuple(told["contents"]))


WRITTEN = {
    **{
        f"message: {name}": build_question_batch(turn, message_id="m", parent="p", timestamp=AT)
        for name, turn in TURNS.items()
    },
    "edit": build_question_batch(FULL, message_id="m", parent="p", timestamp=AT, edited_message="old"),
    "reply": build_reply_batch("Yes — 🦉", message_id="a", parent="m", timestamp=AT),
    "reply: calls": build_reply_batch("", message_id="a", parent="m", timestamp=AT, model_calls=[CALL, BARE_CALL]),
    "settings": build_event_batch(SettingsEvent(values=SETTINGS), timestamp=AT),
    "delete": build_event_batch(DeleteEvent(target="m"), timestamp=AT),
    "fork": build_event_batch(ForkEvent(head=""), timestamp=AT),
    "switch": build_event_batch(SwitchEvent(head="m"), timestamp=AT),
    "rename": build_event_batch(RenameEvent(title='A "title" \u2013 🦉'), timestamp=AT),
    "compaction": build_compaction_batch(RECEIPT, timestamp=AT),
    "compaction: before": build_compaction_batch(RECEIPT, timestamp=AT, resent_message="q3"),
    "undo": build_event_batch(UndoEvent(receipt="r1"), timestamp=AT),
    "erasure": build_erasure_batch("a.md", ["sha256:a", "sha256:b"], timestamp=AT),
    "message: open": build_event_batch(replace(make_unplaced_question_event(FULL), id="m", parent="p"), timestamp=AT),
}


@pytest.mark.parametrize("name", RECORDED)
def test_event_has_the_bytes_that_were_recorded(name: str) -> None:
    (record,) = WRITTEN[name].records
    # What was a switch then is a choice by now.
    body = record.body.replace('"image_notes":"text"', '"image_notes":true')
    assert replace(record, body=body) == recorded(name)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_events_round_trip(name: str) -> None:
    record = recorded(name)
    assert encode_event(decode_event(record), timestamp=AT, contents=record.contents) == record


def test_every_written_kind_is_recorded_or_newer() -> None:
    kinds = {EventKind(told["kind"]) for told in RECORDED.values()}
    later = {EventKind.AUXILIARY_CALL, EventKind.ATTACHMENT, EventKind.CALLS, EventKind.RESULTS, EventKind.STAGE}
    assert {kind for kind, made in EVENT_CLASSES.items() if made is not IgnoredEvent} == kinds | later
    assert set(EVENT_CLASSES) == set(EventKind)


def test_obsolete_events_are_read_and_ignored() -> None:
    assert decode_event(EventRecord(kind=EventKind.FOLD, at=AT, body='{"number":3}')) == IgnoredEvent()
    assert decode_event(EventRecord(kind=EventKind.ATTACHMENT, at=AT, body='{"number":3}')) == PendingCommandsEvent()
    assert decode_event(EventRecord(kind=EventKind.STAGE, at=AT, body='{"number":3}')) == StageEvent()


def test_erasure_lists_contents_and_body_names_artifact() -> None:
    event = ErasureEvent(artifact="a.md", contents=("sha256:a",))
    (record,) = build_event_batch(event, timestamp=AT).records
    assert (record.body, record.contents) == ('{"artifact":"a.md"}', ("sha256:a",))
    assert decode_event(record) == event


def test_contents_accompany_record_that_lists_them() -> None:
    contents = {"sha256:a": b"A"}
    batch = build_event_batch(RenameEvent(title="x"), timestamp=AT, contents=contents)
    assert (batch.records[0].contents, batch.contents) == (("sha256:a",), contents)


def test_events_of_one_append_keep_order_and_contents() -> None:
    joined = merge_batches(WRITTEN["delete"], WRITTEN["message: full"], WRITTEN["compaction"])
    assert [record.kind for record in joined.records] == [EventKind.DELETE, EventKind.MESSAGE, EventKind.COMPACTION]
    assert joined.contents == {**WRITTEN["message: full"].contents, **WRITTEN["compaction"].contents}
    assert merge_batches() == EventBatch(records=())


WRONG: dict[EventKind, list[tuple[str, str]]] = {
    EventKind.MESSAGE: [("{", "truncated"), ("[]", "object"), ('{"parent":"","text":"x"}', "`id`")],
    EventKind.EDIT: [('{"id":"m","parent":"","text":"x"}', "`target`")],
    EventKind.REPLY: [
        ('{"id":"m","parent":"","text":1}', "text"),
        ('{"id":"m","parent":"","text":"","calls":3}', "calls"),
    ],
    EventKind.CALLS: [('{"parent":"q","text":"","calls":[["c"]]}', "calls"), ('{"parent":"q","calls":[]}', "`text`")],
    EventKind.RESULTS: [('{"parent":"q","results":[["c","h"]]}', "results"), ('{"results":[]}', "`parent`")],
    EventKind.SETTINGS: [("[]", "object"), ('"x"', "object")],
    EventKind.DELETE: [('{"target":["m"]}', "target"), ("{}", "`target`")],
    EventKind.FORK: [('{"head":null}', "head")],
    EventKind.SWITCH: [("{}", "`head`")],
    EventKind.RENAME: [('{"title":null}', "title")],
    EventKind.COMPACTION: [('{"id":"r","parent":"m"}', "`steps`"), ("3", "object")],
    EventKind.UNDO: [('{"receipt":3}', "receipt")],
    EventKind.ERASURE: [('{"artifact":3}', "artifact")],
    EventKind.STAGE: [("[]", "object")],
    EventKind.ATTACHMENT: [("[]", "object"), ('{"attached":[{"id":"a.md"}]}', "kind"), ('{"drop":"a"}', "drop")],
    EventKind.AUXILIARY_CALL: [
        ('{"parent":"m","purpose":"planner"}', "`call`"),
        ('{"parent":"m","purpose":3}', "purpose"),
    ],
    EventKind.FOLD: [("3", "object")],
}


def test_every_kind_of_damage_is_covered() -> None:
    assert set(WRONG) == set(EventKind)


@pytest.mark.parametrize(("kind", "body", "what"), [(kind, *one) for kind, wrong in WRONG.items() for one in wrong])
def test_invalid_event_is_reported_with_path(kind: EventKind, body: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        decode_event(EventRecord(kind=kind, at=AT, body=body))


def test_unknown_later_field_is_ignored() -> None:
    body = canonical_json({"id": "m", "parent": "", "text": "x", "mood": "good"})
    record = EventRecord(kind=EventKind.MESSAGE, at=AT, body=body)
    assert decode_event(record) == decode_event(replace(record, body='{"id":"m","parent":"","text":"x"}'))


@pytest.mark.parametrize("seconds", [0.0, 5e-05, 1e-07, 0.00012, 0.25, 12345.678, 1e16, 2.5e22])
def test_numbers_are_encoded_as_before(seconds: float) -> None:
    call = replace(CALL, timing=CallTiming(build=seconds, first=None, total=seconds))
    text = 'A line that looks like numbers: [0.00001,1e16,null] "0.00001",'
    body = build_reply_batch(text, message_id="a", parent="m", timestamp=AT, model_calls=[call]).records[0].body
    assert body == canonical_json(json.loads(body))
    assert f'"total":{seconds!r}' in body
    assert json.loads(body)["text"] == text


def test_nan_is_never_written() -> None:
    call = replace(CALL, timing=CallTiming(total=float("nan")))
    with pytest.raises(ArtifactError, match="cannot be written as JSON"):
        build_reply_batch("", message_id="a", parent="m", timestamp=AT, model_calls=[call])
