"""The codec: every event is written with the bytes it always had, read back as it was, and refused where it is not."""

import json
from pathlib import Path

import pytest
from tests.unit.core.log.events.told import (
    AT,
    BARE_CALL,
    CALL,
    FULL,
    RECEIPT,
    SETTINGS,
    TURNS,
)

from lamella.core.log.call import Timing
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.changes import (
    DeleteEvent,
    ErasureEvent,
    ForkEvent,
    RenameEvent,
    SettingsEvent,
    SilentEvent,
    SwitchEvent,
)
from lamella.core.log.events.codec import (
    join_written,
    make_record,
    read_event,
    write_erasure,
    write_event,
    write_message,
    write_receipt,
    write_reply,
)
from lamella.core.log.events.compaction import UndoEvent
from lamella.core.log.events.kinds import CLASSES, EventKind
from lamella.core.log.events.message import make_open_message
from lamella.core.log.events.stage import StageEvent
from lamella.core.log.records import Record, Written
from lamella.core.text.content import canonical_json
from lamella.core.values import replace
from lamella.errors import ArtifactError

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))


def recorded(name: str) -> Record:
    """An event as it was written before events had classes."""
    told = RECORDED[name]
    return Record(kind=EventKind(told["kind"]), at=AT, body=told["body"], contents=tuple(told["contents"]))


WRITTEN = {
    **{f"message: {name}": write_message(turn, message_id="m", parent="p", at=AT) for name, turn in TURNS.items()},
    "edit": write_message(FULL, message_id="m", parent="p", at=AT, edits="old"),
    "reply": write_reply("Yes — 🦉", message_id="a", parent="m", at=AT),
    "reply: calls": write_reply("", message_id="a", parent="m", at=AT, calls=[CALL, BARE_CALL]),
    "settings": write_event(SettingsEvent(values=SETTINGS), at=AT),
    "delete": write_event(DeleteEvent(target="m"), at=AT),
    "fork": write_event(ForkEvent(head=""), at=AT),
    "switch": write_event(SwitchEvent(head="m"), at=AT),
    "rename": write_event(RenameEvent(title='A "title" \u2013 🦉'), at=AT),
    "compaction": write_receipt(RECEIPT, at=AT),
    "compaction: before": write_receipt(RECEIPT, at=AT, before="q3"),
    "undo": write_event(UndoEvent(receipt="r1"), at=AT),
    "erasure": write_erasure("a.md", ["sha256:a", "sha256:b"], at=AT),
    "message: open": write_event(replace(make_open_message(FULL), id="m", parent="p"), at=AT),
}


@pytest.mark.parametrize("name", RECORDED)
def test_an_event_has_the_bytes_that_were_recorded(name: str) -> None:
    (record,) = WRITTEN[name].records
    # What was a switch then is a choice by now.
    body = record.body.replace('"image_notes":"text"', '"image_notes":true')
    assert replace(record, body=body) == recorded(name)


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_recorded_is_read_and_written_again_as_it_was(name: str) -> None:
    record = recorded(name)
    assert make_record(read_event(record), at=AT, contents=record.contents) == record


def test_every_kind_that_is_written_was_recorded_or_came_later() -> None:
    kinds = {EventKind(told["kind"]) for told in RECORDED.values()}
    later = {EventKind.ASIDE, EventKind.ATTACHMENT, EventKind.CALLS, EventKind.RESULTS, EventKind.STAGE}
    assert {kind for kind, made in CLASSES.items() if made is not SilentEvent} == kinds | later
    assert set(CLASSES) == set(EventKind)


def test_events_that_nothing_writes_are_read_and_say_nothing() -> None:
    assert read_event(Record(kind=EventKind.FOLD, at=AT, body='{"number":3}')) == SilentEvent()
    assert read_event(Record(kind=EventKind.ATTACHMENT, at=AT, body='{"number":3}')) == AttachmentEvent()
    assert read_event(Record(kind=EventKind.STAGE, at=AT, body='{"number":3}')) == StageEvent()


def test_an_erasure_lists_what_went_and_its_body_only_names_the_artifact() -> None:
    event = ErasureEvent(artifact="a.md", contents=("sha256:a",))
    (record,) = write_event(event, at=AT).records
    assert (record.body, record.contents) == ('{"artifact":"a.md"}', ("sha256:a",))
    assert read_event(record) == event


def test_contents_come_beside_the_record_that_lists_them() -> None:
    contents = {"sha256:a": b"A"}
    written = write_event(RenameEvent(title="x"), at=AT, contents=contents)
    assert (written.records[0].contents, written.contents) == (("sha256:a",), contents)


def test_events_of_one_append_keep_their_order_and_all_their_contents() -> None:
    joined = join_written(WRITTEN["delete"], WRITTEN["message: full"], WRITTEN["compaction"])
    assert [record.kind for record in joined.records] == [EventKind.DELETE, EventKind.MESSAGE, EventKind.COMPACTION]
    assert joined.contents == {**WRITTEN["message: full"].contents, **WRITTEN["compaction"].contents}
    assert join_written() == Written(records=())


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
    EventKind.ASIDE: [('{"parent":"m","purpose":"planner"}', "`call`"), ('{"parent":"m","purpose":3}', "purpose")],
    EventKind.FOLD: [("3", "object")],
}


def test_damage_of_every_kind_is_tried() -> None:
    assert set(WRONG) == set(EventKind)


@pytest.mark.parametrize(("kind", "body", "what"), [(kind, *one) for kind, wrong in WRONG.items() for one in wrong])
def test_what_is_not_as_it_was_written_is_said_with_its_place(kind: EventKind, body: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read_event(Record(kind=kind, at=AT, body=body))


def test_a_field_that_a_later_version_adds_does_no_harm() -> None:
    body = canonical_json({"id": "m", "parent": "", "text": "x", "mood": "good"})
    record = Record(kind=EventKind.MESSAGE, at=AT, body=body)
    assert read_event(record) == read_event(replace(record, body='{"id":"m","parent":"","text":"x"}'))


@pytest.mark.parametrize("seconds", [0.0, 5e-05, 1e-07, 0.00012, 0.25, 12345.678, 1e16, 2.5e22])
def test_numbers_of_every_size_are_written_as_they_always_were(seconds: float) -> None:
    call = replace(CALL, timing=Timing(build=seconds, first=None, total=seconds))
    text = 'A line that looks like numbers: [0.00001,1e16,null] "0.00001",'
    body = write_reply(text, message_id="a", parent="m", at=AT, calls=[call]).records[0].body
    assert body == canonical_json(json.loads(body))
    assert f'"total":{seconds!r}' in body
    assert json.loads(body)["text"] == text


def test_what_is_no_number_is_never_written() -> None:
    call = replace(CALL, timing=Timing(total=float("nan")))
    with pytest.raises(ArtifactError, match="cannot be written as JSON"):
        write_reply("", message_id="a", parent="m", at=AT, calls=[call])
