"""Compaction is told the ranges of the stages that are done, and how summaries are written."""

from tests.unit.core.compaction.talking import make_rules
from tests.unit.core.workflow.working import STAGES, Desk

from lamella.core.compaction.rules import ChainRules, SummaryRules
from lamella.core.log.events.stage import WorkflowSpec
from lamella.core.values import replace
from lamella.core.workflow.ranges import build_ranges, with_stages


def path_of(desk: Desk) -> list[str]:
    return [f"m{number}" for number in range(1, desk.path + 1)]


def test_the_last_three_that_are_done_are_recent() -> None:
    desk = Desk().finish().finish().finish().finish().talk(2)
    found = build_ranges(desk.session, path_of(desk))
    assert [(one.stage, one.first, one.last, one.recent) for one in found] == [
        ("idea", "m1", "m2", False),
        ("plan", "m3", "m4", True),
        ("text", "m5", "m6", True),
        ("title", "m7", "m8", True),
    ]


def test_a_range_ends_with_the_last_message_of_its_stage_however_many_it_has() -> None:
    desk = Desk().talk(4).finish()
    (found,) = build_ranges(desk.session, path_of(desk))
    assert (found.first, found.last) == ("m1", "m6")


def test_void_ranges_and_stages_without_a_message_are_none() -> None:
    desk = Desk().finish().finish().rewind("plan")
    desk.submit().approve("at once")
    assert [one.stage for one in build_ranges(desk.session, path_of(desk))] == ["idea"]


def test_every_chain_knows_the_stages_and_where_the_current_one_begins() -> None:
    desk = Desk().finish().talk(2)
    rules = replace(make_rules(), chains={"agent": ChainRules(keep_stage=True)})
    staged = with_stages(rules, desk.session, path_of(desk))
    for chain in (staged.chain, staged.chains["agent"]):
        assert [one.stage for one in chain.stages] == ["idea"]
        assert chain.stage_after == "m2"
    assert staged.chains["agent"].keep_stage
    assert with_stages(rules, Desk().session, []).chain.stage_after == ""


def test_summaries_are_written_as_the_workflow_says_where_settings_say_nothing() -> None:
    workflow = WorkflowSpec(name="w", stages=STAGES, summary_language="Indonesian", summary_form="5 bullets")
    session = Desk(workflow).session
    told = with_stages(make_rules(), session, []).chain.summary
    assert (told.language, told.form) == ("Indonesian", "5 bullets")
    own = make_rules(ChainRules(summary=SummaryRules(language="German", form="one line")))
    kept = with_stages(own, session, []).chain.summary
    assert (kept.language, kept.form) == ("German", "one line")
