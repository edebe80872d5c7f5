"""Stages give compaction their ranges and the form of summaries."""

from tests.unit.core.compaction.stories import make_rules
from tests.unit.core.workflow.working import STAGES, Desk

from lamella.core.compaction.rules import CompactionConfig, SummaryConfig
from lamella.core.log.events.compaction import WorkflowSpec
from lamella.core.values import replace
from lamella.core.workflow.session import completed_stage_ranges, with_completed_stages


def path_of(desk: Desk) -> list[str]:
    return [f"m{number}" for number in range(1, desk.path + 1)]


def test_last_three_that_are_done_are_recent() -> None:
    desk = Desk().finish().finish().finish().finish().talk(2)
    found = completed_stage_ranges(desk.session, path_of(desk))
    assert [(one.stage, one.first, one.last, one.recent) for one in found] == [
        ("idea", "m1", "m2", False),
        ("plan", "m3", "m4", True),
        ("text", "m5", "m6", True),
        ("title", "m7", "m8", True),
    ]


def test_stage_range_ends_with_last_message() -> None:
    desk = Desk().talk(4).finish()
    (found,) = completed_stage_ranges(desk.session, path_of(desk))
    assert (found.first, found.last) == ("m1", "m6")


def test_void_and_empty_stages_have_no_range() -> None:
    desk = Desk().finish().finish().rewind("plan")
    desk.submit().approve("at once")
    assert [one.stage for one in completed_stage_ranges(desk.session, path_of(desk))] == ["idea"]


def test_compaction_config_has_stages_and_start_of_current_one() -> None:
    desk = Desk().finish().talk(2)
    settings = replace(make_rules(), runner_configs={"agent": CompactionConfig(protects_current_stage=True)})
    staged = with_completed_stages(settings, desk.session, path_of(desk))
    for config in (staged.compaction_config, staged.runner_configs["agent"]):
        assert [one.stage for one in config.stages] == ["idea"]
        assert config.current_stage_after == "m2"
    assert staged.runner_configs["agent"].protects_current_stage
    assert with_completed_stages(settings, Desk().session, []).compaction_config.current_stage_after == ""


def test_workflow_sets_summary_language_and_form_by_default() -> None:
    workflow = WorkflowSpec(name="w", stages=STAGES, summary_language="Indonesian", summary_form="5 bullets")
    session = Desk(workflow).session
    told = with_completed_stages(make_rules(), session, []).compaction_config.summary
    assert (told.language, told.form) == ("Indonesian", "5 bullets")
    own = make_rules(CompactionConfig(summary=SummaryConfig(language="German", form="one line")))
    kept = with_completed_stages(own, session, []).compaction_config.summary
    assert (kept.language, kept.form) == ("German", "one line")
