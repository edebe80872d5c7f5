"""The log: editing, regenerating, deleting and forking make branches; no message is lost or renamed."""

import pytest
from tests.unit.core.log.log_writer import AT, CHAT, Scribe, check, say, texts
from tests.unit.raw_events import write_raw

from lamella.core.artifacts.kinds import make_artifact, make_tool_definition
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.branch import branch_content_hashes, read_model_calls, read_turns
from lamella.core.log.call import CacheOutcome, CacheVerdict, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.log.events.codec import build_erasure_batch, build_question_batch, build_reply_batch
from lamella.core.log.events.compaction import CompactionEvent, UndoEvent
from lamella.core.log.events.kinds import (
    DeleteEvent,
    EventKind,
    EventRecord,
    ForkEvent,
    RenameEvent,
    SettingsEvent,
    SwitchEvent,
)
from lamella.core.log.events.message import NO_OVERRIDES, TurnOverrides
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import (
    HistoryChangeReason,
    MessageAuthor,
    SystemParts,
    Turn,
    TurnSettings,
    compute_message_id,
    question_id,
)
from lamella.core.log.turn_records import branch_message_ids
from lamella.core.messages import Usage
from lamella.errors import StoreCorruptedError


@pytest.fixture
def scribe() -> Scribe:
    return Scribe()


def test_messages_form_one_branch(scribe: Scribe) -> None:
    names = say(scribe)
    assert texts(scribe.log) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert scribe.log.list_branch_heads() == (names[-1],)
    assert (scribe.log.version, scribe.log.created) == (6, AT)
    check(scribe)


def test_log_without_events_has_no_branches() -> None:
    assert FoldedLog(CHAT).list_branch_heads() == ()
    assert FoldedLog(CHAT).branch_records() == []


def test_message_id_depends_on_attachments(scribe: Scribe) -> None:
    note = make_artifact(ArtifactKind.NOTE, text="A", source=ArtifactSource(path="a.md"))
    name = scribe.ask("q", attached=(note,))
    assert name != question_id(CHAT, "", Turn(text="q"))
    assert branch_content_hashes(scribe.log.branch_records()) == (note.hash,)
    (past,) = read_turns(scribe.log.branch_records(), {note.hash: b"A"}, defaults=TurnSettings())
    assert (past.id, past.attached, past.reply) == (name, (note,), None)
    check(scribe)


@pytest.mark.parametrize(
    ("at", "left"),
    [
        (0, ["q2", "a2", "q3", "a3"]),
        (1, ["q1", "q2", "a2", "q3", "a3"]),
        (2, ["q1", "a1", "q3", "a3"]),
        (3, ["q1", "a1", "q2", "q3", "a3"]),
        (4, ["q1", "a1", "q2", "a2"]),
        (5, ["q1", "a1", "q2", "a2", "q3"]),
    ],
)
def test_deleting_message_makes_branch_without_it(scribe: Scribe, at: int, left: list[str]) -> None:
    names = say(scribe)
    scribe.do(DeleteEvent(target=names[at]))
    assert texts(scribe.log) == left
    assert texts(scribe.log, names[-1]) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert scribe.log.history_rewrite is HistoryChangeReason.HISTORY_EDITED
    assert scribe.log.list_branch_heads() == (names[-1], scribe.log.head)
    check(scribe)


def test_repeated_deletion_continues_same_branch(scribe: Scribe) -> None:
    names = say(scribe, 2)
    scribe.do(DeleteEvent(target=names[0]))
    shorter = scribe.log.head
    scribe.do(SwitchEvent(head=names[-1]))
    assert scribe.log.list_branch_heads() == (shorter, names[-1])
    more = [scribe.ask("q3"), scribe.reply("a3")]
    scribe.do(DeleteEvent(target=names[0]))
    assert texts(scribe.log) == ["q2", "a2", "q3", "a3"]
    assert scribe.log.list_branch_heads() == (more[-1], scribe.log.head), "the shorter one ends nowhere now"
    check(scribe)


def test_messages_before_deleted_one_keep_ids(scribe: Scribe) -> None:
    names = say(scribe)
    scribe.do(DeleteEvent(target=names[2]))
    records = scribe.log.branch_records()
    assert [records[0].message.id, records[0].reply.id if records[0].reply else ""] == names[:2]
    assert records[1].message.id not in names


def test_deleting_everything_leaves_an_empty_branch_and_the_old_one(scribe: Scribe) -> None:
    names = say(scribe, 1)
    scribe.do(DeleteEvent(target=names[0]))
    assert (scribe.log.head, texts(scribe.log), scribe.log.list_branch_heads()) == ("", [], (names[1],))
    scribe.ask("anew")
    assert texts(scribe.log) == ["anew"]
    check(scribe)


def test_editing_makes_branch_at_edited_message(scribe: Scribe) -> None:
    names = say(scribe)
    edited = scribe.ask("q2, better", edits=names[2])
    assert texts(scribe.log) == ["q1", "a1", "q2, better"]
    assert scribe.log.list_branch_heads() == (names[-1], edited)
    assert scribe.log.history_rewrite is None
    assert scribe.log.last_question == edited
    check(scribe)


def test_editing_to_the_same_text_names_the_same_message_and_loses_no_answer(scribe: Scribe) -> None:
    names = say(scribe, 1)
    assert scribe.ask("q1", edits=names[0]) == names[0]
    assert scribe.log.head == names[0]
    assert set(scribe.log.list_branch_heads()) == {names[0], names[1]}
    assert scribe.reply("a1") == names[1]
    assert scribe.log.list_branch_heads() == (names[1],)
    check(scribe)


def test_question_answered_again_has_both_answers(scribe: Scribe) -> None:
    names = say(scribe, 2)
    scribe.do(SwitchEvent(head=names[2]))
    assert scribe.log.history_rewrite is None
    other = scribe.reply("a2, better")
    assert scribe.log.list_branch_heads() == (names[3], other)
    assert texts(scribe.log, names[3])[-1] == "a2"
    assert texts(scribe.log)[-1] == "a2, better"
    check(scribe)


@pytest.mark.parametrize("at", range(6))
def test_continuing_from_any_message_keeps_old_branch(scribe: Scribe, at: int) -> None:
    names = say(scribe)
    scribe.do(ForkEvent(head=names[at]))
    assert texts(scribe.log) == ["q1", "a1", "q2", "a2", "q3", "a3"][: at + 1]
    assert texts(scribe.log, names[-1]) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    # Going back to the question just answered asks it again; nothing before it is another.
    assert scribe.log.history_rewrite is (None if at == 4 else HistoryChangeReason.BRANCH)
    check(scribe)


def test_abandoned_empty_branch_is_not_listed(scribe: Scribe) -> None:
    names = say(scribe)
    scribe.do(ForkEvent(head=names[1]))
    scribe.do(SwitchEvent(head=names[-1]))
    assert scribe.log.list_branch_heads() == (names[-1],)
    check(scribe)


def test_moving_within_branch_makes_no_branch(scribe: Scribe) -> None:
    names = say(scribe)
    for at in (2, 0, 3, 1):
        scribe.do(ForkEvent(head=names[at]))
    assert scribe.log.list_branch_heads() == (names[-1], names[1])
    check(scribe)


def test_switching_back_changes_no_message(scribe: Scribe) -> None:
    names = say(scribe)
    scribe.do(ForkEvent(head=names[1]))
    other = scribe.ask("elsewhere")
    scribe.do(SwitchEvent(head=names[-1]))
    assert (scribe.log.head, scribe.log.history_rewrite) == (names[-1], HistoryChangeReason.BRANCH)
    assert set(scribe.log.list_branch_heads()) == {names[-1], other}
    scribe.do(SwitchEvent(head=other))
    assert texts(scribe.log) == ["q1", "a1", "elsewhere"]
    check(scribe)


def test_new_message_clears_history_rewrite(scribe: Scribe) -> None:
    names = say(scribe)
    scribe.do(ForkEvent(head=names[1]))
    scribe.ask("elsewhere")
    assert scribe.log.history_rewrite is None
    scribe.write(build_erasure_batch("a.md", [], timestamp=AT))
    assert scribe.log.history_rewrite is HistoryChangeReason.HISTORY_EDITED


def test_last_title_and_settings_apply(scribe: Scribe) -> None:
    scribe.do(RenameEvent(title="One"))
    scribe.do(SettingsEvent(values={"layout": "library", "window": 9}))
    scribe.do(RenameEvent(title="Two"))
    scribe.do(SettingsEvent(values={"layout": "in_place"}))
    assert (scribe.log.title, scribe.log.settings) == ("Two", {"layout": "in_place", "window": 9})


def test_ignored_events_change_no_branch(scribe: Scribe) -> None:
    names = say(scribe)
    for kind in (EventKind.ATTACHMENT, EventKind.FOLD, EventKind.STAGE):
        scribe.write(write_raw(kind, AT, number=3))
    assert scribe.log.list_branch_heads() == (names[-1],)
    assert scribe.log.version == 9


SYSTEM = SystemParts(base="B.")
TOOLS = (make_tool_definition("search", description="", parameters={}),)


def test_settings_of_deleted_question_pass_to_next(scribe: Scribe) -> None:
    first = scribe.ask("q1", system=SYSTEM, tools=TOOLS, model="m1")
    scribe.reply("a1")
    scribe.ask("q2", model="m2")
    scribe.do(DeleteEvent(target=first))
    (past,) = read_turns(scribe.log.branch_records(), {}, defaults=TurnSettings())
    assert (past.system, past.tools, past.model) == (SYSTEM, TOOLS, "m2")
    assert scribe.log.overrides == NO_OVERRIDES
    check(scribe)


def test_settings_of_last_question_are_kept_for_next(scribe: Scribe) -> None:
    say(scribe, 1)
    third = scribe.ask("q2", model="m2")
    scribe.reply("a2")
    last = scribe.ask("q3", model="m3", tools=())
    scribe.do(DeleteEvent(target=last))
    scribe.do(DeleteEvent(target=third))
    assert scribe.log.overrides == TurnOverrides(model="m3", tools=())
    scribe.ask("q4")
    assert scribe.log.overrides == NO_OVERRIDES


def test_settings_of_deleted_question_stay_on_its_branch(scribe: Scribe) -> None:
    names = say(scribe, 1)
    scribe.do(DeleteEvent(target=scribe.ask("q2", model="m2")))
    scribe.do(ForkEvent(head=names[0]))
    assert scribe.log.overrides == TurnOverrides(model="m2"), "asking the question again is no other branch"
    scribe.do(SwitchEvent(head=names[1]))
    assert scribe.log.overrides == NO_OVERRIDES


def test_model_is_from_settings_until_first_turn(scribe: Scribe) -> None:
    scribe.do(SettingsEvent(values={"layout": "library"}))
    assert not scribe.log.is_model_chosen
    scribe.do(SettingsEvent(values={"model": "m"}))
    scribe.do(SettingsEvent(values={"layout": "in_place"}))
    assert scribe.log.is_model_chosen
    scribe.ask("q1")
    assert not scribe.log.is_model_chosen


def test_undo_voids_named_compaction_and_later_ones(scribe: Scribe) -> None:
    names = say(scribe, 2)
    for receipt in ("r1", "r2"):
        scribe.do(
            CompactionEvent(id=receipt, parent=names[-1], steps=(), skipped=(), tokens=(2, 1), target=1, automatic=True)
        )
    assert [event.id for event in scribe.log.active_compactions(scribe.log.branch_records()).after_last_message] == [
        "r1",
        "r2",
    ]
    scribe.ask("under both")
    scribe.do(UndoEvent(receipt="r1"))
    assert scribe.log.active_compactions(scribe.log.branch_records()).events == ()
    assert scribe.log.undo_changes_next_prefix()
    check(scribe)


def test_question_after_undo_of_sent_compaction_moved_prefix(scribe: Scribe) -> None:
    names = say(scribe, 2)
    compaction = CompactionEvent(
        id="r", parent=names[-1], steps=(), skipped=(), tokens=(2, 1), target=1, automatic=True
    )
    scribe.do(compaction)
    under = scribe.ask("under it")
    scribe.reply("yes")
    scribe.do(UndoEvent(receipt="r"))
    after = scribe.ask("after it")
    assert scribe.log.undo_changed_prefix(after)
    assert not any(map(scribe.log.undo_changed_prefix, (names[0], under)))
    scribe.reply("no")
    assert not scribe.log.undo_changed_prefix(scribe.ask("later"))


def test_undo_before_sending_moved_nothing(scribe: Scribe) -> None:
    scribe.do(RenameEvent(title="Plans"))
    scribe.do(CompactionEvent(id="r", parent="", steps=(), skipped=(), tokens=(2, 1), target=1, automatic=True))
    scribe.do(UndoEvent(receipt="r"))
    assert not scribe.log.undo_changed_prefix(scribe.ask("q"))


def test_erasure_covers_earlier_versions_of_question(scribe: Scribe) -> None:
    note = make_artifact(ArtifactKind.NOTE, text="A", source=ArtifactSource(path="a.md"))
    system = SystemParts(instructions="Use A.", inlined=(note,), typed_instructions="Use {[[a]]}.")
    question = scribe.ask("q", system=system)
    scribe.reply("a1")
    assert scribe.ask("q", edits=question, model="other") == question
    scribe.reply("a2")
    scribe.write(build_erasure_batch("a.md", [note.hash], timestamp=AT))
    assert scribe.log.nodes[question].erased == (note.hash,)


def test_find_question_uses_active_branch_and_excludes_replies(scribe: Scribe) -> None:
    names = say(scribe, 2)
    found = scribe.log.find_question(names[2])
    assert found is not None
    assert (found.id, found.text) == (names[2], "q2")
    scribe.do(SwitchEvent(head=names[1]))
    assert scribe.log.find_question(names[2]) == found
    assert scribe.log.find_question(names[1]) is None
    assert scribe.log.find_question("nobody's") is None


def test_each_answer_keeps_its_version_of_question(scribe: Scribe) -> None:
    question = scribe.ask("q", model="one")
    first = scribe.reply("a1")
    assert scribe.ask("q", edits=question, model="other") == question
    second = scribe.reply("a2")
    for head, model in ((first, "one"), (question, "one"), (second, "other"), (question, "other"), (first, "one")):
        scribe.do(SwitchEvent(head=head))
        assert read_turns(scribe.log.branch_records(), {}, defaults=TurnSettings())[0].model == model
        check(scribe)


def test_late_answer_ends_own_branch(scribe: Scribe) -> None:
    names = say(scribe, 2)
    late = compute_message_id(CHAT, parent=names[0], role=MessageAuthor.REPLY, text="late")
    scribe.write(build_reply_batch("late", message_id=late, parent=names[0], timestamp=AT, on_own_branch=True))
    assert (scribe.log.head, scribe.log.list_branch_heads()) == (names[-1], (late, names[-1]))
    assert texts(scribe.log, late) == ["q1", "late"]
    check(scribe)


def test_pending_question_extended_by_retrieval_ends_no_branch(scribe: Scribe) -> None:
    names = say(scribe, 1)
    scribe.ask("q2")
    turn = Turn(
        text="q2",
        typed="q2",
        attached=(make_artifact(ArtifactKind.NOTE, text="A", source=ArtifactSource(path="a.md")),),
    )
    more = question_id(CHAT, names[-1], turn)
    scribe.write(build_question_batch(turn, message_id=more, parent=names[-1], timestamp=AT))
    assert scribe.log.list_branch_heads() == (more,)


def test_undo_of_unsent_compaction_moves_nothing(scribe: Scribe) -> None:
    names = say(scribe, 2)
    scribe.do(CompactionEvent(id="r", parent=names[-1], steps=(), skipped=(), tokens=(2, 1), target=1, automatic=True))
    scribe.do(UndoEvent(receipt="r"))
    assert scribe.log.undone_since_last_question
    assert not scribe.log.undo_changes_next_prefix()
    check(scribe)


def test_last_sent_is_last_asked_or_shrunk_question(scribe: Scribe) -> None:
    names = say(scribe, 2)
    assert scribe.log.last_sent == (names[2], 2)
    assert branch_message_ids(scribe.log.records_at_last_request()) == (*names,)
    scribe.do(SwitchEvent(head=names[0]))
    assert branch_message_ids(scribe.log.records_at_last_request()) == (*names[:3],), (
        "no event says that it was sent again"
    )
    smaller = CompactionEvent(
        id="r", parent="", before=names[0], steps=(), skipped=(), tokens=(2, 1), target=1, automatic=True
    )
    scribe.do(smaller)
    assert scribe.log.last_sent == (names[0], 5)
    records = scribe.log.records_at_last_request()
    assert branch_message_ids(records) == (names[0],)
    assert [event.id for event in scribe.log.active_compactions(records, as_of_event=5).events] == ["r"]
    assert scribe.log.active_compactions(records, as_of_event=4).events == ()
    other = scribe.reply("a1, better")
    assert branch_message_ids(scribe.log.records_at_last_request()) == (names[0], other)
    scribe.do(SwitchEvent(head=names[1]))
    assert branch_message_ids(scribe.log.records_at_last_request()) == (names[0],), "that answer is an older one"


def test_message_ids_include_empty_answers(scribe: Scribe) -> None:
    names = say(scribe, 1)
    left = scribe.ask("q2")
    empty = (compute_message_id(CHAT, parent=name, role=MessageAuthor.REPLY, text="") for name in (names[0], left))
    assert scribe.log.all_message_ids() == {*names, left, *empty}


def test_message_with_two_parents_is_damage(scribe: Scribe) -> None:
    name = scribe.ask("q1")
    with pytest.raises(StoreCorruptedError, match=f"Event 2 of chat .* message {name} is there already"):
        scribe.log.extend(write_raw(EventKind.MESSAGE, AT, id=name, parent="", text="something else").records)
    with pytest.raises(StoreCorruptedError, match="is there already"):
        scribe.log.extend(write_raw(EventKind.MESSAGE, AT, id=name, parent=name, text="q1").records)
    assert texts(scribe.log) == ["q1"]


def test_reply_to_a_reply_is_damage(scribe: Scribe) -> None:
    say(scribe, 1)
    with pytest.raises(StoreCorruptedError, match="answers no message"):
        scribe.reply("again")


def test_same_answer_given_twice_keeps_the_calls_of_both(scribe: Scribe) -> None:
    question = scribe.ask("one")
    for outcome in (CacheOutcome.FIRST, CacheOutcome.HIT):
        verdict = CacheVerdict(outcome=outcome, prefix_change=PrefixChange(cause=PrefixChangeCause.NONE))
        scribe.reply("same", [ModelCall(model=None, verdict=verdict, usage=Usage())])
        scribe.do(SwitchEvent(head=question))
    scribe.reply("same")
    assert [call.verdict.outcome for call in read_model_calls(scribe.log.branch_records()[0])] == [
        CacheOutcome.FIRST,
        CacheOutcome.HIT,
    ]
    check(scribe)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EventKind.MESSAGE, "{"),
        (EventKind.MESSAGE, '{"id":"m","parent":"nobody","text":"hi"}'),
        (EventKind.MESSAGE, '{"attached":1,"id":"m","parent":"","text":"hi"}'),
        (EventKind.REPLY, '{"id":"m","parent":"","text":"hi"}'),
        (EventKind.REPLY, '{"id":"m","parent":"nobody","text":"hi"}'),
        (EventKind.FORK, '{"head":"nobody"}'),
        (EventKind.UNDO, '{"receipt":"none"}'),
        (EventKind.CALLS, '{"calls":[],"parent":"","text":""}'),
        (EventKind.RESULTS, '{"parent":"","results":[]}'),
    ],
)
def test_unreadable_event_is_named_by_number(kind: EventKind, body: str) -> None:
    log = FoldedLog(CHAT)
    log.extend(write_raw(EventKind.RENAME, AT, title="good").records)
    with pytest.raises(StoreCorruptedError, match="Event 2 of chat cannot be read") as caught:
        log.extend([EventRecord(kind=kind, at=AT, body=body)])
    assert "`engine.verify()`" in caught.value.hint
    assert log.version == 1
    assert log.nodes == {}
