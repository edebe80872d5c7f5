"""Asides: calls on the way to an answer are events that name a message, and stay with the turn they were made for."""

import pytest
from tests.unit.core.log.events.samples import AT, BARE_CALL, CALL
from tests.unit.core.log.log_writer import CHAT, Scribe, check, say

from lamella.core.log.branch import auxiliary_events_by_question, read_branch_model_calls
from lamella.core.log.call import ModelCall
from lamella.core.log.events.call import AuxiliaryCallEvent, StoredModelCall, to_auxiliary_model_calls
from lamella.core.log.events.codec import build_auxiliary_call_batch, decode_event
from lamella.core.log.events.kinds import DeleteEvent, EventBatch, SwitchEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import decode_snapshot, encode_snapshot, make_snapshot, restore_log
from lamella.core.values import replace
from lamella.errors import StoreCorruptedError

SUMMARY = replace(CALL, purpose="summary")
PLAN = replace(BARE_CALL, purpose="planner")


@pytest.fixture
def scribe() -> Scribe:
    return Scribe()


def note(scribe: Scribe, call: ModelCall = PLAN, *, after: str | None = None) -> None:
    scribe.write(build_auxiliary_call_batch(call, parent=scribe.log.head if after is None else after, timestamp=AT))


def purposes(scribe: Scribe) -> list[list[str]]:
    """For each turn of the active branch, what its calls were made for."""
    log = scribe.log
    return [
        [call.purpose for call in calls]
        for calls in read_branch_model_calls(log.branch_records(), log.nodes.values(), log.auxiliary_calls)
    ]


def test_auxiliary_call_event_round_trips() -> None:
    (record,) = build_auxiliary_call_batch(SUMMARY, parent="m", timestamp=AT).records
    event = decode_event(record)
    assert isinstance(event, AuxiliaryCallEvent)
    assert (event.parent, event.purpose, record.contents) == ("m", "summary", ())
    assert to_auxiliary_model_calls([event]) == (SUMMARY,)


def test_auxiliary_call_during_open_question_belongs_to_it(scribe: Scribe) -> None:
    scribe.ask("q1")
    note(scribe)
    assert purposes(scribe) == [["planner"]]
    scribe.reply("a1", [CALL])
    assert purposes(scribe) == [["planner", "answer"]]
    assert scribe.log.auxiliary_calls == {}, "it went with the reply, so that snapshots hold it once"
    check(scribe)


def test_auxiliary_call_between_turns_belongs_to_next(scribe: Scribe) -> None:
    say(scribe, 1)
    note(scribe, SUMMARY)
    assert purposes(scribe) == [["summary"]]
    scribe.ask("q2")
    assert purposes(scribe) == [[], ["summary"]]
    scribe.reply("a2")
    scribe.ask("q3")
    assert purposes(scribe) == [[], ["summary"], []]
    check(scribe)


def test_auxiliary_call_before_first_message_belongs_to_first_turn(scribe: Scribe) -> None:
    note(scribe)
    assert purposes(scribe) == []
    scribe.ask("q1")
    assert purposes(scribe) == [["planner"]]


def test_edit_has_own_auxiliary_calls(scribe: Scribe) -> None:
    _, first, *_ = say(scribe, 1)
    note(scribe, SUMMARY)
    question = scribe.ask("q2")
    scribe.reply("a2")
    note(scribe, after=first)
    scribe.ask("other", edits=question)
    assert purposes(scribe) == [[], ["planner"]]
    scribe.do(SwitchEvent(head=question))
    assert purposes(scribe) == [[], ["summary"]]
    check(scribe)


def test_regenerated_answer_keeps_auxiliary_calls_of_both_attempts(scribe: Scribe) -> None:
    question = scribe.ask("q1")
    note(scribe)
    scribe.reply("a1")
    scribe.do(SwitchEvent(head=question))
    note(scribe, SUMMARY)
    scribe.reply("a1")
    assert purposes(scribe) == [["planner", "summary"]]
    scribe.do(SwitchEvent(head=question))
    note(scribe)
    scribe.reply("another")
    assert purposes(scribe) == [["planner", "summary", "planner"]]
    check(scribe)


def test_branch_without_earlier_turn_keeps_calls_of_remaining_ones(scribe: Scribe) -> None:
    first, *_ = say(scribe, 1)
    scribe.ask("q2")
    note(scribe)
    scribe.reply("a2")
    scribe.ask("q3")
    note(scribe, SUMMARY)
    scribe.do(DeleteEvent(target=first))
    assert purposes(scribe) == [["planner"], ["summary"]]
    check(scribe)


def test_snapshot_has_auxiliary_calls_with_and_without_reply(scribe: Scribe) -> None:
    scribe.ask("q1")
    note(scribe)
    scribe.reply("a1")
    note(scribe, SUMMARY)
    snapshot = decode_snapshot(encode_snapshot(make_snapshot(scribe.log, after=0)) or b"")
    assert snapshot is not None
    log, _ = restore_log([snapshot], FoldedLog(CHAT))
    assert log == scribe.log
    assert [
        len(events) for events in auxiliary_events_by_question(log.branch_records(), log.auxiliary_calls).values()
    ] == [1]


def test_auxiliary_call_after_missing_message_is_damage(scribe: Scribe) -> None:
    with pytest.raises(StoreCorruptedError, match="a model was called after nobody, which is not there"):
        note(scribe, after="nobody")


def test_auxiliary_call_with_invalid_cost_is_damage(scribe: Scribe) -> None:
    scribe.ask("q1")
    (record,) = build_auxiliary_call_batch(SUMMARY, parent=scribe.log.head, timestamp=AT).records
    odd = replace(record, body=record.body.replace('"12.50"', '"NaN"'))
    scribe.write(EventBatch(records=(odd,)))
    with pytest.raises(StoreCorruptedError, match="on the way to an answer"):
        purposes(scribe)


def test_stored_call_has_no_purpose_field() -> None:
    assert "purpose" not in StoredModelCall.__struct_fields__
