"""The session folds from what was done: statuses, data, attempts, ranges that never cover the current stage."""

import pytest
from tests.unit.core.workflow.working import STAGES, TINY, Desk, bare

from lamella.core.log.events.compaction import StageEvent, StageSpec, WorkflowSpec, WorkflowStageAction
from lamella.core.workflow.session import (
    MAX_DECISION_CHARS,
    StageStatus,
    attempt_message_ids,
    build_session,
    is_filled_in,
)


def test_work_begins_with_the_first_stage_as_a_draft() -> None:
    session = Desk().session
    assert session.current_stage == STAGES[0]
    assert (session.status, session.stage_start, session.approved_attempts) == (StageStatus.DRAFTING, 0, [])
    assert session.missing_fields == ("what", "why")


def test_no_events_give_no_session() -> None:
    assert build_session([]) is None
    assert build_session([(0, StageEvent()), (0, bare(WorkflowStageAction.SUBMIT, "idea"))]) is None


@pytest.mark.parametrize("ids", [(), ("a", "a"), ("a b",), ("",)])
def test_workflow_with_duplicate_stage_ids_starts_nothing(ids: tuple[str, ...]) -> None:
    flow = WorkflowSpec(name="w", stages=tuple(StageSpec(id=one) for one in ids))
    assert build_session([(0, StageEvent(action=WorkflowStageAction.NEW, workflow=flow))]) is None


def test_stage_goes_from_draft_to_pending_to_approved() -> None:
    desk = Desk().talk(4).write(what="Desks", why="By hand.")
    assert desk.submit().session.status is StageStatus.PENDING
    session = desk.approve("Desks are booked.").session
    assert session.current_stage == STAGES[1]
    assert session.status is StageStatus.DRAFTING
    assert [
        (one.stage, one.number, one.decision, one.first_message_index, one.end_message_index)
        for one in session.approved_attempts
    ] == [("idea", 1, "Desks are booked.", 0, 4)]
    assert [session.status_of(stage) for stage in STAGES[:3]] == [StageStatus.APPROVED, StageStatus.DRAFTING, None]


def test_writing_during_pending_makes_revision() -> None:
    desk = Desk().write(what="a", why="b").submit().write(why="c")
    assert desk.session.status is StageStatus.REVISION
    assert desk.session.data["idea"] == {"what": "a", "why": "c"}
    assert desk.submit().session.status is StageStatus.PENDING


def test_fields_follow_required_order_and_none_removes() -> None:
    desk = Desk().write(note="n").write(why="b").write(what="a")
    assert list(desk.session.data["idea"]) == ["what", "why", "note"]
    assert list(desk.write(note=None).session.data["idea"]) == ["what", "why"]


def test_after_the_last_stage_all_is_approved() -> None:
    desk = Desk()
    for _ in STAGES:
        desk.finish()
    assert desk.session.current_stage is None
    assert desk.session.status is StageStatus.APPROVED
    assert desk.session.missing_fields == ()


def test_rewind_voids_later_stages_and_keeps_data() -> None:
    desk = Desk().finish("first").finish("second").finish("third").talk(3)
    session = desk.rewind("plan").session
    assert session.current_stage == STAGES[1]
    assert session.status is StageStatus.DRAFTING
    assert [one.stage for one in session.approved_attempts] == ["idea"]
    assert [(one.stage, one.is_void) for one in session.attempts] == [("idea", False), ("plan", True), ("text", True)]
    assert session.data["idea"] == {"what": "idea data", "why": "idea data"}
    assert session.stage_start == desk.path


def test_reapproved_stage_has_new_attempt_and_range() -> None:
    desk = Desk().finish("first").finish("second").rewind("idea")
    assert desk.session.attempt_number("idea") == 2
    session = desk.finish("anew").session
    assert [
        (one.number, one.decision, one.first_message_index, one.end_message_index, one.is_void)
        for one in session.attempts
    ] == [
        (1, "first", 0, 2, True),
        (1, "second", 2, 4, True),
        (2, "anew", 4, 6, False),
    ]
    assert session.attempt_number("idea") == 2
    assert session.attempt_number("plan") == 2
    assert session.attempt_number("text") == 1


def test_rewind_to_pending_stage_makes_revision() -> None:
    desk = Desk().write(what="a", why="b").submit().rewind("idea")
    assert desk.session.status is StageStatus.REVISION
    assert desk.session.attempts == ()


def test_finished_workflow_can_be_rewound() -> None:
    desk = Desk()
    for _ in STAGES:
        desk.finish()
    session = desk.rewind("end").session
    assert session.current_stage == STAGES[-1]
    assert len(session.approved_attempts) == len(STAGES) - 1


def test_no_range_covers_the_current_stage() -> None:
    desk = Desk().finish().finish().talk(5).rewind("plan").talk(2)
    session = desk.session
    path = [str(number) for number in range(desk.path)]
    covered = {name for one in session.approved_attempts for name in attempt_message_ids(one, path)}
    assert covered.isdisjoint(path[session.stage_start :])


@pytest.mark.parametrize(
    "event",
    [
        bare(WorkflowStageAction.APPROVE, "idea"),
        bare(WorkflowStageAction.SUBMIT, "idea"),
        bare(WorkflowStageAction.SUBMIT, "plan"),
        bare(WorkflowStageAction.DATA, "plan"),
        bare(WorkflowStageAction.REWIND, "plan"),
        bare(WorkflowStageAction.REWIND, "idea"),
        bare(WorkflowStageAction.REWIND, "nowhere"),
        StageEvent(action=WorkflowStageAction.NEW, stage="idea", workflow=TINY),
        StageEvent(),
    ],
)
def test_inapplicable_event_changes_nothing(event: StageEvent) -> None:
    desk = Desk()
    before = desk.session
    assert desk.do(event).session == before


def test_decision_is_cut_at_a_word_and_never_empty() -> None:
    desk = Desk().write(what="a", why="b").submit()
    event = bare(WorkflowStageAction.APPROVE, "idea")
    said = build_session([*desk.events, (0, StageEvent(action=event.action, stage="idea", decision="wise " * 90))])
    assert said is not None
    assert len(said.approved_attempts[0].decision) <= MAX_DECISION_CHARS
    assert said.approved_attempts[0].decision.endswith("wise…")
    silent = build_session([*desk.events, (0, event)])
    assert silent is not None
    assert silent.approved_attempts[0].decision


@pytest.mark.parametrize(
    ("value", "given"), [("x", True), (" ", False), ("", False), (0, False), (3, True), ([], False), (None, False)]
)
def test_has_value_is_false_for_empty_values(value: object, given: bool) -> None:  # noqa: FBT001 - a table
    assert is_filled_in(value) is given


def test_stage_status_words_are_fixed() -> None:
    assert [status.value for status in StageStatus] == ["drafting", "pending", "approved", "revision"]
