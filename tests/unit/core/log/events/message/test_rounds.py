"""Tool rounds in the log: they belong to the answer they led to, on its branch; every call has its result."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.log.events.samples import CALL
from tests.unit.core.log.log_writer import AT, Scribe, check, say
from tests.unit.hypothesis_profile import steady

from lamella.core.log.branch import branch_content_hashes, read_model_calls, read_pending_reply, read_turns
from lamella.core.log.events.codec import build_erasure_batch, build_event_batch, decode_event, encode_event
from lamella.core.log.events.kinds import DeleteEvent, ForkEvent, SwitchEvent, referenced_content_hashes
from lamella.core.log.events.message import (
    ERASED_OUTPUT,
    ToolCallsEvent,
    ToolResultsEvent,
    copy_round_events,
    make_tool_calls_event,
    make_tool_results_event,
)
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import Snapshot, decode_snapshot, encode_snapshot, make_snapshot, restore_log
from lamella.core.log.turn import TurnSettings, round_result_id
from lamella.core.log.turn_records import tool_result_hashes
from lamella.core.messages import ModelReply, ProviderReply, StopReason, ToolCall, ToolOutput, ToolRound
from lamella.core.text.content import hash_text
from lamella.errors import StoreCorruptedError


@pytest.fixture
def scribe() -> Scribe:
    return Scribe()


def rounds(scribe: Scribe, head: str | None = None) -> list[list[tuple[str, str]]]:
    """For each turn of a branch what was called and what it gave."""
    turns = read_turns(scribe.log.branch_records(head), scribe.contents, defaults=TurnSettings())
    return [[(one.call, one.output) for done in turn.rounds for one in done.outputs] for turn in turns]


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_calls = st.lists(st.builds(ToolCall, id=_texts, name=_texts, arguments=_texts), max_size=3).map(tuple)
_replies = st.builds(
    ModelReply,
    text=_texts,
    stop=st.just(StopReason.TOOL_CALLS),
    calls=_calls,
    provider_reply=st.none() | st.builds(ProviderReply, format=_texts, json=_texts),
)
_outputs = st.lists(st.builds(ToolOutput, call=_texts, output=_texts, failed=st.booleans()), max_size=3)


@steady
@given(_replies, _outputs)
def test_calls_and_results_round_trip(reply: ModelReply, outputs: list[ToolOutput]) -> None:
    for event, contents in (make_tool_calls_event(reply, parent="q"), make_tool_results_event(outputs, parent="q")):
        (record,) = build_event_batch(event, timestamp=AT, contents=contents).records
        assert decode_event(record) == event
        assert encode_event(event, timestamp=AT, contents=record.contents) == record
        assert set(referenced_content_hashes(event)) == set(record.contents) == set(contents)


def test_calls_and_results_are_stored_compactly() -> None:
    scribe = Scribe()
    question = scribe.ask("q")
    scribe.call("look", text="Let me see.", native="[1]")
    scribe.give(("look", "!none"))
    calls, results = scribe.records[1:]
    assert calls.body == (
        f'{{"calls":[["look","look","{{\\"of\\":\\"look\\"}}"]],"carried":["wire","{hash_text("[1]")}"],'
        f'"parent":"{question}","text":"Let me see."}}'
    )
    assert results.body == f'{{"parent":"{question}","results":[["look","{hash_text("!none")}",true]]}}'
    assert (calls.contents, results.contents) == ((hash_text("[1]"),), (hash_text("!none"),))


def test_reply_includes_rounds_of_its_question(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.call("one", "two", text="Both.", native="[]", made=[CALL])
    scribe.give(("one", "1"), ("two", "!2"))
    scribe.run("three", "3")
    scribe.reply("a1", [CALL])
    say(scribe, 1)
    (record, _) = scribe.log.branch_records()
    (turn, later) = read_turns(scribe.log.branch_records(), scribe.contents, defaults=TurnSettings())
    assert turn.rounds[0] == ToolRound(
        text="Both.",
        calls=tuple(ToolCall(id=n, name=n, arguments=f'{{"of":"{n}"}}') for n in ("one", "two")),
        outputs=(ToolOutput(call="one", output="1"), ToolOutput(call="two", output="!2", failed=True)),
        provider_reply=ProviderReply(format="wire", json="[]"),
        tokens=CALL.usage.output,
    )
    assert [len(turn.rounds), len(later.rounds), scribe.log.open_rounds] == [2, 0, {}]
    assert set(branch_content_hashes(scribe.log.branch_records())) == set(scribe.contents)
    assert read_model_calls(record) == (CALL, CALL)
    check(scribe)


def test_open_question_includes_its_rounds(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.run("one", "1")
    assert rounds(scribe) == [[("one", "1")]]
    assert scribe.log.branch_records()[-1].pending_round is None
    (record,) = scribe.log.branch_records()
    assert read_pending_reply(record, scribe.contents) is None


def test_message_ids_do_not_depend_on_rounds(scribe: Scribe) -> None:
    other = Scribe()
    scribe.ask("q1")
    scribe.run("one", "1")
    scribe.reply("a1")
    assert list(scribe.log.nodes) == say(other, 1)


def test_after_a_crash_between_calls_and_results_the_calls_are_pending(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.run("one", "1")
    scribe.call("two", text="And this.", native="{}", made=[CALL])
    again = FoldedLog("chat")
    again.extend(scribe.records)
    assert again.branch_records()[-1].pending_round is not None
    (record,) = again.branch_records()
    reply = ModelReply(
        text="And this.",
        stop=StopReason.TOOL_CALLS,
        calls=(ToolCall(id="two", name="two", arguments='{"of":"two"}'),),
        usage=CALL.usage,
        provider_reply=ProviderReply(format="wire", json="{}"),
    )
    assert read_pending_reply(record, scribe.contents) == (reply, ())
    assert read_model_calls(record) == (CALL,)
    assert hash_text("{}") in branch_content_hashes([record])
    assert rounds(scribe) == [[("one", "1")]], "a call without its result is in no round"
    scribe.give(("two", "2"))
    assert rounds(scribe) == [[("one", "1"), ("two", "2")]]


def test_rounds_copied_to_other_question_are_equal(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.call("one", text="Look.", native="[]", made=[CALL])
    scribe.give(("one", "!1"))
    scribe.call("two")
    (record,) = scribe.log.branch_records()
    other = Scribe()
    question = other.ask("q2")
    made = list(copy_round_events(record.open_rounds, parent=question))
    assert [event.parent for event in made] == [question] * 3
    for event in made:
        other.do(event)
    assert other.log.open_rounds == {question: record.open_rounds}


def test_abandoned_calls_are_in_no_round(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.run("one", "1")
    scribe.call("two")
    scribe.reply("")
    scribe.ask("q2")
    assert rounds(scribe) == [[("one", "1")], []]
    assert scribe.log.branch_records()[-1].pending_round is None
    check(scribe)


def test_repeated_calls_replace_those_without_results(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.call("lost")
    scribe.run("one", "1")
    assert rounds(scribe) == [[("one", "1")]]


def test_regenerated_question_starts_without_rounds_and_old_answer_keeps_them(scribe: Scribe) -> None:
    question = scribe.ask("q1")
    scribe.run("one", "1")
    first = scribe.reply("a1")
    scribe.do(SwitchEvent(head=question))
    assert rounds(scribe) == [[]]
    scribe.run("two", "2")
    scribe.reply("a2")
    assert (rounds(scribe), rounds(scribe, first)) == ([[("two", "2")]], [[("one", "1")]])
    check(scribe)


def test_abandoned_regeneration_leaves_no_rounds(scribe: Scribe) -> None:
    question = scribe.ask("q1")
    first = scribe.reply("a1")
    scribe.do(SwitchEvent(head=question))
    scribe.run("two", "2")
    scribe.do(SwitchEvent(head=first))
    scribe.do(SwitchEvent(head=question))
    assert (rounds(scribe), scribe.log.open_rounds) == ([[]], {})


def test_repeated_equal_answer_keeps_rounds(scribe: Scribe) -> None:
    question = scribe.ask("q1")
    scribe.run("one", "1")
    scribe.reply("a1")
    scribe.do(SwitchEvent(head=question))
    scribe.run("two", "2")
    scribe.reply("a1")
    assert rounds(scribe) == [[("one", "1")]]
    check(scribe)


def test_abandoned_open_question_continues_with_its_rounds(scribe: Scribe) -> None:
    names = say(scribe, 1)
    question = scribe.ask("q2")
    scribe.run("one", "1")
    scribe.call("two")
    scribe.do(ForkEvent(head=names[1]))
    scribe.ask("elsewhere")
    scribe.do(SwitchEvent(head=question))
    assert scribe.log.branch_records()[-1].pending_round is not None
    scribe.give(("two", "2"))
    scribe.reply("a2")
    assert rounds(scribe) == [[], [("one", "1"), ("two", "2")]]
    check(scribe)


def test_fork_after_answer_keeps_its_rounds(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.run("one", "1")
    answer = scribe.reply("a1")
    say(scribe, 2)
    scribe.do(ForkEvent(head=answer))
    scribe.ask("other")
    assert rounds(scribe) == [[("one", "1")], []]


def test_deleted_turn_keeps_rounds_of_later_ones(scribe: Scribe) -> None:
    first = scribe.ask("q1")
    scribe.reply("a1")
    scribe.ask("q2")
    scribe.run("one", "1")
    old = scribe.reply("a2")
    scribe.ask("q3")
    scribe.run("two", "2")
    scribe.call("three")
    scribe.do(DeleteEvent(target=first))
    assert rounds(scribe) == [[("one", "1")], [("two", "2")]]
    assert scribe.log.branch_records()[-1].pending_round is not None
    assert rounds(scribe, old) == [[], [("one", "1")]]
    scribe.give(("three", "3"))
    scribe.reply("a3")
    assert rounds(scribe)[-1] == [("two", "2"), ("three", "3")]
    check(scribe)


def test_deleted_answer_removes_its_rounds(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.run("one", "1")
    scribe.do(DeleteEvent(target=scribe.reply("a1")))
    assert rounds(scribe) == [[]]


def test_edited_question_starts_without_rounds(scribe: Scribe) -> None:
    question = scribe.ask("q1")
    scribe.run("one", "1")
    answer = scribe.reply("a1")
    scribe.ask("q1, better", edits=question)
    assert (rounds(scribe), rounds(scribe, answer)) == ([[]], [[("one", "1")]])
    scribe.ask("q1, better", edits=scribe.log.head)
    scribe.run("two", "2")
    scribe.ask("q1, better", edits=scribe.log.head)
    assert rounds(scribe) == [[]], "asked anew it starts anew"
    check(scribe)


def test_erased_output_is_marked_and_call_kept(scribe: Scribe) -> None:
    question = scribe.ask("q1")
    scribe.call("one", "two", native="[]")
    scribe.give(("one", "secret"), ("two", "2"))
    scribe.reply("a1")
    name = round_result_id(
        question,
        position=(0, 0),
        call=ToolCall(id="one", name="one", arguments='{"of":"one"}'),
        output=ToolOutput(call="one", output="secret"),
    )
    nodes, waits = scribe.log.nodes.values(), scribe.log.open_rounds
    assert tool_result_hashes(nodes, waits, name) == (hash_text("secret"),)
    assert tool_result_hashes(nodes, waits, "tool:one:other") == ()
    scribe.write(build_erasure_batch(name, [hash_text("secret"), hash_text("[]")], timestamp=AT))
    (turn,) = read_turns(scribe.log.branch_records(), scribe.contents, defaults=TurnSettings())
    assert [one.output for one in turn.rounds[0].outputs] == [ERASED_OUTPUT, "2"]
    assert turn.rounds[0].provider_reply is None
    check(scribe)


def test_erasure_in_open_question_applies_to_its_answer(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.run("one", "secret")
    scribe.write(build_erasure_batch("x", [hash_text("secret")], timestamp=AT))
    assert rounds(scribe) == [[("one", ERASED_OUTPUT)]]
    scribe.run("two", "secret")
    scribe.reply("a1")
    assert {output for _, output in rounds(scribe)[0]} == {ERASED_OUTPUT}
    check(scribe)


def test_snapshots_keep_rounds_at_any_event(scribe: Scribe) -> None:
    names = say(scribe, 1)
    scribe.ask("q2")
    scribe.call("one", native="[]", made=[CALL])
    scribe.give(("one", "1"))
    scribe.call("two")
    scribe.do(ForkEvent(head=names[1]))
    scribe.ask("q3")
    scribe.run("three", "3")
    scribe.reply("a3")
    for cut in range(1, len(scribe.records)):
        log, _ = restore_log(
            [_snap(scribe, cut, after=0), _snap(scribe, len(scribe.records), after=cut)], FoldedLog("chat")
        )
        assert log == scribe.log


def _snap(scribe: Scribe, version: int, *, after: int) -> Snapshot:
    log = FoldedLog("chat")
    log.extend(scribe.records[:version])
    data = encode_snapshot(make_snapshot(log, after=after))
    assert data is not None
    snapshot = decode_snapshot(data)
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (ToolCallsEvent(parent="nobody", text="", calls=()), "not the question that waits"),
        (ToolResultsEvent(parent="nobody", results=()), "waits for none"),
    ],
)
def test_rounds_without_question_are_damage(
    scribe: Scribe, event: ToolCallsEvent | ToolResultsEvent, what: str
) -> None:
    scribe.ask("q1")
    with pytest.raises(StoreCorruptedError, match=f"Event 2 of chat .*{what}"):
        scribe.do(event)


def test_calls_for_a_question_that_is_answered_are_damage(scribe: Scribe) -> None:
    question, answer = say(scribe, 1)
    for parent in (question, answer):
        with pytest.raises(StoreCorruptedError, match="not the question that waits"):
            scribe.do(ToolCallsEvent(parent=parent, text="", calls=()))


def test_results_that_are_not_one_for_each_call_are_damage(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.call("one", "two")
    for wrong in ([], [("one", "1"), ("one", "1")], [("one", "1"), ("two", "2"), ("three", "3")]):
        with pytest.raises(StoreCorruptedError, match="not one for each call"):
            scribe.give(*wrong)
    scribe.give(("two", "2"), ("one", "1"))
    with pytest.raises(StoreCorruptedError, match="waits for none"):
        scribe.give(("two", "2"), ("one", "1"))


def test_results_in_several_events_follow_call_order(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.call("one", "two", "three")
    scribe.give(("three", "3"))
    scribe.give(("one", "1"))
    (record,) = scribe.log.branch_records()
    pending = read_pending_reply(record, scribe.contents)
    assert pending is not None
    assert [(output.call, output.output) for output in pending[1]] == [("three", "3"), ("one", "1")]
    assert record.completed_rounds == ()
    assert {hash_text("1"), hash_text("3")} <= set(branch_content_hashes([record]))
    restored, _ = restore_log([_snap(scribe, len(scribe.records), after=0)], FoldedLog("chat"))
    assert list(restored.branch_records()) == [record]
    scribe.give(("two", "2"))
    assert rounds(scribe) == [[("one", "1"), ("two", "2"), ("three", "3")]]


@pytest.mark.parametrize("again", [[("one", "2")], [("one", "1"), ("two", "2")]])
def test_second_result_of_a_call_is_damage(scribe: Scribe, again: list[tuple[str, str]]) -> None:
    scribe.ask("q1")
    scribe.call("one", "two")
    scribe.give(("one", "1"))
    with pytest.raises(StoreCorruptedError, match="not one for each call"):
        scribe.give(*again)


def test_early_results_are_copied_with_their_round(scribe: Scribe) -> None:
    scribe.ask("q1")
    scribe.call("one", "two")
    scribe.give(("two", "2"))
    (record,) = scribe.log.branch_records()
    calls, results = copy_round_events(record.open_rounds, parent="other")
    assert isinstance(calls, ToolCallsEvent)
    assert isinstance(results, ToolResultsEvent)
    assert [result.call for result in results.results] == ["two"]
