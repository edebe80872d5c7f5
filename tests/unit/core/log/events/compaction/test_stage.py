"""Stage events are written and read back; older ones are empty."""

from lamella.core.log.events.codec import build_event_batch, decode_event
from lamella.core.log.events.compaction import StageEvent, StageSpec, WorkflowSpec, WorkflowStageAction

FLOW = WorkflowSpec(name="w", language="id", stages=(StageSpec(id="a", labels={"id": "Satu", "en": "One"}),))


def test_stage_event_round_trips() -> None:
    for event in (
        StageEvent(action=WorkflowStageAction.NEW, stage="a", workflow=FLOW),
        StageEvent(action=WorkflowStageAction.DATA, after="m1", stage="a", fields={"x": ["y", 2, {"z": None}]}),
        StageEvent(action=WorkflowStageAction.APPROVE, after="m1", stage="a", decision="So be it."),
        StageEvent(),
    ):
        (record,) = build_event_batch(event, timestamp="2026-11-17T10:00:00Z").records
        assert decode_event(record) == event


def test_missing_stage_fields_have_defaults() -> None:
    silent = StageEvent()
    assert (silent.action, silent.workflow) == (None, None)
    assert (silent.after, silent.stage, silent.decision, dict(silent.fields)) == ("", "", "", {})


def test_stage_label_follows_workflow_language() -> None:
    assert FLOW.label(FLOW.stages[0]) == "Satu"
    assert WorkflowSpec(name="w", language="de").label(FLOW.stages[0]) == "One"
    assert FLOW.label(StageSpec(id="bare")) == "bare"
    assert (FLOW.stage_index("a"), FLOW.stage_index("b")) == (0, None)
