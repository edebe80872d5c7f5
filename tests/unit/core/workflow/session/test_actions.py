"""Stage actions are checked: an invalid one is refused with names, numbers and a hint."""

import pytest
from tests.unit.core.workflow.working import TINY, Desk

from lamella.core.log.events.compaction import WorkflowStageAction
from lamella.core.workflow.session import (
    StageStatus,
    approve_stage_event,
    request_changes_event,
    rewind_event,
    start_workflow_event,
    submit_stage_event,
    undo_event,
    write_fields_event,
)
from lamella.errors import WorkflowError


def test_missing_fields_are_named() -> None:
    desk = Desk().write(what="Desks", why="  ")
    with pytest.raises(WorkflowError, match=r"idea has 1 of 2 fields .*missing: why\.") as raised:
        submit_stage_event(desk.session, after_message="")
    assert "Write down why" in raised.value.hint


def test_workflow_is_started_once() -> None:
    with pytest.raises(WorkflowError, match="works by tiny already, at stage 1"):
        start_workflow_event(Desk().session, TINY, after_message="")


def test_only_submitted_stage_is_approved_and_once() -> None:
    desk = Desk().write(what="a", why="b")
    with pytest.raises(WorkflowError, match="not submitted: its status is drafting"):
        approve_stage_event(desk.session, decision="", after_message="")
    with pytest.raises(WorkflowError, match="submitted already"):
        submit_stage_event(desk.submit().session, after_message="")


def test_finished_workflow_refuses_actions() -> None:
    desk = Desk()
    for _ in TINY.stages:
        desk.finish()
    for deed in (
        submit_stage_event,
        lambda session, after_message: write_fields_event(session, {"a": "b"}, after_message=after_message),
    ):
        with pytest.raises(WorkflowError, match="All 5 stages of tiny are approved"):
            deed(desk.session, after_message="")


def test_rewind_accepts_only_finished_stages() -> None:
    desk = Desk().finish()
    with pytest.raises(WorkflowError, match="'text' of tiny is not done yet") as raised:
        rewind_event(desk.session, "text", after_message="")
    assert raised.value.hint == "Go back to one of: idea."
    with pytest.raises(WorkflowError, match="'nowhere' of tiny is not known"):
        rewind_event(desk.session, "nowhere", after_message="")
    with pytest.raises(WorkflowError) as first:
        rewind_event(Desk().session, "idea", after_message="")
    assert "first stage" in first.value.hint


def test_fields_have_names_and_there_are_some() -> None:
    with pytest.raises(WorkflowError, match="nothing to write down"):
        write_fields_event(Desk().session, {}, after_message="")
    for name in ("", " ", "two\nlines"):
        with pytest.raises(WorkflowError, match="A field is called"):
            write_fields_event(Desk().session, {name: "x"}, after_message="")


def test_digest_without_decision_uses_stage_data() -> None:
    told = Desk().write(what="Desks", why="By hand.", references=["https://example.org/a"]).submit()
    assert approve_stage_event(told.session, decision=" ", after_message="").decision == "Desks · By hand."
    summed = Desk().write(what="Desks", why="By hand.", summary="Book desks online.").submit()
    assert approve_stage_event(summed.session, decision="", after_message="").decision == "Book desks online."


def test_decision_is_cut_at_a_word_within_200_characters() -> None:
    desk = Desk().write(what="a", why="b").submit()
    decision = approve_stage_event(desk.session, decision="careful " * 60, after_message="").decision
    assert len(decision) <= 200
    assert decision.removesuffix("…").split() == ["careful"] * 25


def test_every_action_names_stage_and_preceding_message() -> None:
    desk = Desk()
    deeds = [write_fields_event(desk.session, {"what": "a"}, after_message="m1")]
    desk.write(what="a", why="b")
    deeds.append(submit_stage_event(desk.session, after_message="m2"))
    desk.submit()
    deeds += [
        approve_stage_event(desk.session, decision="Yes.", after_message="m3"),
        rewind_event(desk.session, "idea", after_message="m4"),
    ]
    assert [(deed.stage, deed.after) for deed in deeds] == [("idea", f"m{number}") for number in range(1, 5)]
    begun = start_workflow_event(None, TINY, after_message="m0")
    assert (begun.action, begun.after) == (WorkflowStageAction.NEW, "m0")


def test_undo_keeps_what_is_to_change() -> None:
    desk = Desk().write(what="Desks", why="By hand.").submit()
    desk.do(request_changes_event(desk.session, "Shorten it.", after_message=""))
    desk.do(undo_event(desk.session, after_message=""))
    assert desk.session.data.get("idea", {}) == {}
    assert (desk.session.status, desk.session.change_request) == (StageStatus.REVISION, "Shorten it.")
