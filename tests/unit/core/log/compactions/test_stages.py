"""Stage events of a branch, in order; a deletion carries the later ones."""

from lamella.core.log.compactions import list_branch_stage_events, reassign_stage_events_after_deletion
from lamella.core.log.events.compaction import StageEvent, WorkflowStageAction


def done(after: str, stage: str = "s") -> StageEvent:
    return StageEvent(action=WorkflowStageAction.SUBMIT, after=after, stage=stage)


def test_branch_has_stage_events_before_next_message() -> None:
    entries = [(0, done("", "first")), (3, done("m2", "second")), (9, done("m2", "late")), (4, done("x1", "elsewhere"))]
    path = {"m1": 1, "m2": 2, "m3": 5}
    assert [(at, one.stage) for at, one in list_branch_stage_events(entries, path)] == [(0, "first"), (2, "second")]
    assert [one.stage for _, one in list_branch_stage_events(entries, {"m1": 1, "m2": 2})] == [
        "first",
        "second",
        "late",
    ]


def test_stage_event_before_first_message_applies_to_empty_branch() -> None:
    assert [one.stage for _, one in list_branch_stage_events([(0, done(""))], {})] == ["s"]


def test_stage_events_follow_message_order() -> None:
    entries = [(8, done("m4", "two")), (9, done("m2", "one"))]
    path = {"m1": 1, "m2": 2, "m3": 10, "m4": 11}
    assert [(at, one.stage) for at, one in list_branch_stage_events(entries, path)] == [(2, "one"), (4, "two")]


def test_turn_is_never_divided() -> None:
    entries = [(2, done("m1"))]
    assert [at for at, _ in list_branch_stage_events(entries, {"m1": 1})] == [1]
    assert [at for at, _ in list_branch_stage_events(entries, {"m1": 1, "m2": 3})] == [2]


def test_deletion_carries_later_stage_events() -> None:
    entries = ((1, done("", "begun")), (3, done("m2", "kept")), (6, done("m4", "moved")), (9, done("m6", "last")))
    before = {"m1": 1, "m2": 2, "m3": 4, "m4": 5, "m5": 7, "m6": 8}
    now = {"m1": 1, "m2": 2, "n5": 20, "n6": 20}
    carried = reassign_stage_events_after_deletion(
        entries, before, now, new_ids={"m5": "n5", "m6": "n6"}, event_number=20
    )
    # What was done after the deleted answer was done after the message before it.
    assert [(one.stage, one.after) for _, one in carried[4:]] == [("moved", "m2"), ("last", "n6")]
    assert [(at, one.stage) for at, one in list_branch_stage_events(carried, now)] == [
        (0, "begun"),
        (2, "kept"),
        (2, "moved"),
        (4, "last"),
    ]
    # The branch that was left is as it was.
    assert [one.stage for _, one in list_branch_stage_events(carried, before)] == ["begun", "kept", "moved", "last"]
