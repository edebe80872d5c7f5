"""Stages: their ranges are resolved on the whole log, their messages leave, and nothing is added for them."""

from tests.unit.core.compaction.stories import NOW, QUARTERS, Story, make_rules, names, removed

from lamella.core.compaction.rules import CompactionConfig, CompletedStage, current_stage_messages, resolve_stages
from lamella.core.log.receipts import STEP_ORDER, CompactionStep, CompactionStepName
from lamella.core.log.turn import SystemParts, TurnSettings
from lamella.core.prompt.receipts import apply_step
from lamella.core.values import replace

PATH = [f"m{number}" for number in range(1, 7)]


def stage(name: str, first: str, last: str, *, recent: bool = False) -> CompletedStage:
    return CompletedStage(stage=name, label=name.title(), first=first, last=last, recent=recent)


def staged(
    *recent: int,
    steps: tuple[CompactionStepName, ...] = (CompactionStepName.OLDEST_STAGES, CompactionStepName.RECENT_STAGES),
) -> Story:
    """Three stages of three turns each, those named are recent, and two turns after them."""
    story = Story()
    for number in range(11):
        story.say(f"Question {number}?", f"Answer {number}. " + "because " * 40)
    ranges = [
        stage(name, story.path[6 * index], story.path[6 * index + 5], recent=index in recent)
        for index, name in enumerate(("idea", "topic", "outline"))
    ]
    story.rules = make_rules(CompactionConfig(steps=steps, stages=tuple(ranges)))
    return story


def test_stage_range_has_all_messages_from_first_to_last() -> None:
    ((found, messages),), missing = resolve_stages([stage("a", "m2", "m4")], PATH)
    assert found == stage("a", "m2", "m4")
    assert messages == ("m2", "m3", "m4")
    assert missing == ()
    ((_, alone),), _ = resolve_stages([stage("a", "m2", "m2")], PATH)
    assert alone == ("m2",)


def test_stage_with_a_missing_or_turned_boundary_is_skipped_with_a_word() -> None:
    for first, last, why in (
        ("m2", "gone", "its last message, gone, is not in this branch"),
        ("lost", "m4", "its first message, lost, is not in this branch"),
        ("m4", "m2", "its first message comes after its last"),
    ):
        stages, missing = resolve_stages([stage("idea", first, last), stage("topic", "m5", "m6")], PATH)
        assert [one.stage for one, _ in stages] == ["topic"]
        assert [(one.stage, said) for one, said in missing] == [("idea", f"the stage Idea stays: {why}")]


def test_oldest_stage_is_removed_first_one_at_a_time() -> None:
    story = staged()
    receipt = story.plan(goal=story.tokens() - 10).receipt
    assert names(receipt) == ["oldest_stages"]
    assert removed(receipt, "oldest_stages") == story.path[:6]
    both = story.plan(goal=story.tokens() - 400).receipt
    assert names(both) == ["oldest_stages"]
    assert removed(both, "oldest_stages") == story.path[:12]


def test_messages_removed_with_stage_leave_no_notice() -> None:
    story = staged()
    receipt = story.compact(goal=0)
    sent = story.sent()
    assert "Question 8" not in sent
    assert "Question 9" in sent
    assert "<stage_digest>" not in sent
    assert [step.text for step in receipt.steps] == [None]


SHOWN = SystemParts(workflow="# All of it. " * 20, workflow_brief="# Short.", workflow_detail="stage:a:1 stage:b:1")


def test_data_of_recent_stages_is_shortened_before_messages() -> None:
    story = staged(1, 2)
    story.state = replace(story.state, system=SHOWN)
    plan = story.plan(goal=0)
    assert removed(plan.receipt, "recent_stages") == ["stage:a:1", "stage:b:1", *story.path[6:18]]
    assert plan.receipt is not None
    story.apply(plan.receipt)
    assert story.state.system == SystemParts(workflow="# Short.")
    assert story.state.compaction_step == "recent_stages"
    enough = staged(1, 2, steps=(CompactionStepName.RECENT_STAGES,))
    enough.state = replace(enough.state, system=SHOWN)
    assert removed(enough.plan(goal=enough.tokens() - 10).receipt, "recent_stages") == ["stage:a:1", "stage:b:1"]


def test_data_of_current_turn_is_shortened_and_rest_kept() -> None:
    story = staged(1, 2, steps=(CompactionStepName.RECENT_STAGES,))
    turn = replace(NOW, system=SHOWN)
    receipt = story.plan(goal=story.tokens(turn) - 10, turn=turn).receipt
    assert receipt is not None
    assert story.prompt(replace(turn, receipts=(receipt,))).system.workflow == "# Short."
    other = replace(SHOWN, workflow_detail="stage:b:1 stage:c:1")
    assert story.prompt(replace(NOW, system=other, receipts=(receipt,))).system == other


def test_short_stage_data_gives_no_step() -> None:
    story = staged()
    story.state = replace(story.state, system=SystemParts(workflow="# Short.", workflow_detail=""))
    story.rules = make_rules(CompactionConfig(steps=(CompactionStepName.RECENT_STAGES,)))
    assert story.plan(goal=0).receipt is None


def test_current_stage_starts_after_last_earlier_message() -> None:
    assert current_stage_messages(None, PATH) is None
    assert current_stage_messages("", PATH) == frozenset(PATH)
    assert current_stage_messages("m4", PATH) == frozenset({"m5", "m6"})
    assert current_stage_messages("m6", PATH) == frozenset()
    assert current_stage_messages("gone", PATH) == frozenset(PATH)


def test_kept_stage_is_not_expendable() -> None:
    story = staged()
    steps = (CompactionStepName.EXPENDABLE,)
    after = story.path[5]
    story.rules = make_rules(CompactionConfig(steps=steps, current_stage_after=after, protects_current_stage=True))
    # Each step takes replies to a line before it takes turns.
    assert set(removed(story.plan(goal=0).receipt, "expendable")) == set(story.path[:6])
    story.rules = make_rules(CompactionConfig(steps=steps, current_stage_after=after))
    assert set(removed(story.plan(goal=0).receipt, "expendable")) == set(story.path[:20])


def test_recent_stages_wait_for_their_own_step() -> None:
    story = staged(1, 2)
    receipt = story.plan(goal=0).receipt
    assert names(receipt) == ["oldest_stages", "recent_stages"]
    assert removed(receipt, "oldest_stages") == story.path[:6]
    only_old = staged(1, 2, steps=(CompactionStepName.OLDEST_STAGES,))
    assert removed(only_old.plan(goal=0).receipt, "oldest_stages") == only_old.path[:6]


def test_missing_stage_boundary_is_reported_and_chain_continues() -> None:
    story = staged()
    ranges = (stage("lost", "nowhere", story.path[3]), *story.rules.compaction_config.stages[1:])
    story.rules = make_rules(replace(story.rules.compaction_config, stages=ranges))
    receipt = story.plan(goal=0).receipt
    assert receipt is not None
    assert [(one.name.value, "Lost" in one.why) for one in receipt.skipped] == [("oldest_stages", True)]
    assert removed(receipt, "oldest_stages") == story.path[6:18]


def test_missing_stage_is_reported_by_its_step() -> None:
    story = staged()
    lost = (stage("old", "nowhere", story.path[3]), stage("new", story.path[3], "nowhere", recent=True))
    story.rules = make_rules(replace(story.rules.compaction_config, stages=lost, steps=STEP_ORDER))
    receipt = story.plan(goal=0).receipt
    assert receipt is not None
    said = {one.name.value: one.why for one in receipt.skipped if "stays" in one.why}
    assert list(said) == ["oldest_stages", "recent_stages"]
    assert "Old" in said["oldest_stages"]
    assert "New" in said["recent_stages"]


def test_missing_stage_is_not_reported_by_unreached_step() -> None:
    story = staged()
    lost = (*story.rules.compaction_config.stages, stage("new", story.path[3], "nowhere", recent=True))
    story.rules = make_rules(replace(story.rules.compaction_config, stages=lost))
    receipt = story.plan(goal=story.tokens() - 10).receipt
    assert receipt is not None
    assert receipt.skipped == ()
    story.rules = make_rules(replace(story.rules.compaction_config, steps=(CompactionStepName.OLDEST_STAGES,)))
    receipt = story.plan(goal=0).receipt
    assert receipt is not None
    assert receipt.skipped == ()


def test_removed_stage_boundary_is_still_found() -> None:
    # The topic begins with an acknowledgement, and another ends the idea: both leave before their stages do.
    yes = "so be it and on we go with the next of all these many points"
    story = Story()
    for typed in ("Question?", yes, yes, yes, "Question?", "Question?", "Question?", "Question?"):
        story.say(typed, "Answer. " + "because " * 40)
    ranges = (stage("idea", story.path[0], story.path[3]), stage("topic", story.path[4], story.path[9]))
    steps = (CompactionStepName.CHITCHAT, CompactionStepName.OLDEST_STAGES)
    story.rules = make_rules(CompactionConfig(steps=steps, stages=ranges, extra_acknowledgements=frozenset({yes})))
    receipt = story.compact(goal=0)
    assert names(receipt) == ["chitchat", "oldest_stages"]
    left = [turn.question.id for turn in story.state.history.turns]
    assert left == [story.path[10], story.path[12], story.path[14]]


def test_last_exchange_of_finished_stage_is_kept() -> None:
    story = staged()
    ranges = (stage("all", story.path[0], story.path[-1]),)
    story.rules = make_rules(replace(story.rules.compaction_config, stages=ranges))
    story.compact(goal=0)
    assert [turn.question.text for turn in story.state.history.turns] == ["Question 10?"]


def test_messages_between_stages_stay() -> None:
    story = staged()
    ranges = (stage("idea", story.path[0], story.path[3]), stage("topic", story.path[6], story.path[9]))
    story.rules = make_rules(replace(story.rules.compaction_config, stages=ranges))
    story.compact(goal=0)
    assert [turn.question.text for turn in story.state.history.turns][:2] == ["Question 2?", "Question 5?"]


def test_old_digest_is_not_repeated_and_summary_replaces_previous() -> None:
    story = staged()
    state = story.state
    for name, text in (
        (CompactionStepName.OLDEST_STAGES, "one"),
        (CompactionStepName.OLDEST_STAGES, "one"),
        (CompactionStepName.RECENT_STAGES, "two"),
        (CompactionStepName.SUMMARY, "three"),
        (CompactionStepName.SUMMARY, "four"),
    ):
        state = apply_step(state, CompactionStep(name=name, removed=(), text=text), TurnSettings(), QUARTERS)
    assert [placeholder.text for placeholder in state.history.preamble.blocks] == ["one", "two", "four"]
