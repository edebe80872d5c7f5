"""The chain: steps in their order, each only if it frees something, until the goal is reached."""

import pytest
from tests.unit.core.compaction.stories import (
    IN_PLACE,
    LIBRARY,
    NOW,
    Story,
    attaching,
    chat,
    make_rules,
    names,
    note,
    removed,
)

from lamella.core.compaction.chain import CompactionPlan, plan_compaction
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.steps import drop_expendable
from lamella.core.log.receipts import STEP_ORDER, CompactionStepName
from lamella.core.log.turn import TurnSettings
from lamella.core.prompt.prompt import Prompt
from lamella.core.text.rule_detection import reply_gist
from lamella.errors import SettingError

# Long enough to be worth the line that says that messages are left out.
YES = "so be it and on we go with the next of all these many points"
LONG = "# Heading\n\n" + "long words " * 2_000


def mixed(*steps: CompactionStepName, terms: TurnSettings = IN_PLACE) -> Story:
    """Talk with a long note at its beginning, acknowledgements in it and enough turns to make the note old."""
    config = CompactionConfig(steps=steps or STEP_ORDER, extra_acknowledgements=frozenset({YES}))
    story = Story(make_rules(config), terms=terms).say("Read this.", "I did. " * 40, attaching(note("long.md", LONG)))
    for number in range(8):
        story.say(YES, f"Point {number}. " + "and so on " * 60)
    return story


def test_steps_run_in_the_order_of_the_design_by_default() -> None:
    assert [step.value for step in STEP_ORDER] == [
        "chitchat",
        "handle",
        "preview",
        "tool_results",
        "oldest_stages",
        "replies",
        "summary",
        "recent_stages",
        "digest",
        "last_reply",
        "expendable",
    ]
    assert names(mixed().plan(goal=0).receipt) == ["chitchat", "handle", "replies", "digest", "expendable"]


def test_order_of_the_steps_is_a_setting() -> None:
    order = (CompactionStepName.EXPENDABLE, CompactionStepName.HANDLE, CompactionStepName.CHITCHAT)
    assert names(mixed(*order).plan(goal=0).receipt) == ["expendable", "handle"]
    assert names(mixed(*reversed(order)).plan(goal=0).receipt) == ["chitchat", "handle", "expendable"]


def test_unlisted_step_never_runs() -> None:
    story = mixed(CompactionStepName.CHITCHAT)
    receipt = story.plan(goal=0).receipt
    assert names(receipt) == ["chitchat"]
    assert receipt is not None
    assert receipt.tokens_after > 0


def test_step_listed_twice_is_refused() -> None:
    with pytest.raises(SettingError, match="twice"):
        CompactionConfig(steps=(CompactionStepName.HANDLE, CompactionStepName.HANDLE))


def test_chain_stops_at_the_goal() -> None:
    story = mixed()
    everything = story.plan(goal=0).receipt
    assert everything is not None
    after_handle = everything.steps[1].tokens_after
    receipt = story.plan(goal=after_handle).receipt
    assert names(receipt) == ["chitchat", "handle"]
    assert receipt is not None
    assert receipt.tokens_after == after_handle
    assert names(story.plan(goal=after_handle - 1).receipt) == ["chitchat", "handle", "replies"]


def test_nothing_runs_at_or_below_goal() -> None:
    story = chat(4, rules=make_rules())
    assert story.plan(goal=story.tokens()).receipt is None


def test_step_takes_no_more_than_goal_needs() -> None:
    story = chat(10)
    few = story.plan(goal=story.tokens() - 150).receipt
    many = story.plan(goal=story.tokens() - 450).receipt
    assert 0 < len(removed(few, "replies")) < len(removed(many, "replies"))


def test_step_that_frees_nothing_is_not_listed() -> None:
    # The one acknowledgement is shorter than the line that says that a message is left out.
    story = Story().say("Tell me.", "So it is. " * 50).say("ok", "And so on. " * 50).say("Why?", "Because.")
    receipt = story.plan(goal=0).receipt
    assert names(receipt) == ["replies", "expendable"]
    assert receipt is not None
    assert receipt.steps[0].tokens_before == story.draft().tokens


def test_resumed_step_is_listed_once() -> None:
    story = chat(10, words=0, rules=make_rules(CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))))
    goal = story.tokens() - story.state.history.turns[0].message_tokens
    once = drop_expendable(story.draft(goal=goal))
    receipt = story.plan(goal=goal).receipt
    assert once is not None
    assert receipt is not None
    # The line that says what is left out has tokens as well, so that more turns go than were asked for.
    (step,) = receipt.steps
    assert list(step.removed) == list(once.removed) == story.path[: len(step.removed)]
    assert len(step.removed) > 2
    assert (step.tokens_before, step.tokens_after) == (receipt.tokens_before, receipt.tokens_after)
    assert receipt.tokens_after <= goal


def test_resumed_step_keeps_outline_of_each_reply() -> None:
    story = chat(4, words=200, rules=make_rules(CompactionConfig(steps=(CompactionStepName.REPLIES,))))
    receipt = planned(story, goal=0, hard=0).receipt
    assert receipt is not None
    (step,) = receipt.steps
    replies = {one.reply.id: one.reply.text for one in story.state.history.turns}
    # The last exchange is spared until nothing is.
    assert list(step.removed) == list(replies)
    assert list(step.outlines) == [reply_gist(text) for text in replies.values()]


def test_each_step_starts_at_previous_total_and_frees_tokens() -> None:
    receipt = mixed().plan(goal=0).receipt
    assert receipt is not None
    for before, after in zip(receipt.steps, receipt.steps[1:], strict=False):
        assert before.tokens_after == after.tokens_before
    assert all(step.tokens_after < step.tokens_before for step in receipt.steps)
    assert receipt.steps[-1].tokens_after == receipt.tokens_after


def test_planned_total_matches_request() -> None:
    story = mixed()
    before = story.tokens()
    receipt = story.compact(goal=before // 2)
    assert receipt.tokens_before == before
    assert receipt.tokens_after == story.tokens() == story.ask().tokens.total


def test_second_run_changes_nothing() -> None:
    for goal in (0, 500, 3_000):
        story = mixed()
        story.compact(goal=goal)
        assert story.plan(goal=goal).receipt is None


def test_same_conversation_gives_the_same_receipt() -> None:
    one, other = mixed().plan(goal=0).receipt, mixed().plan(goal=0).receipt
    assert one == other
    assert one is not None
    assert one.parent == mixed().state.head


def test_folding_alone_can_reach_goal() -> None:
    first, second = ("line\n" * 400, "another\n" * 400)
    story = (
        Story()
        .say("Read.", "Yes.", attaching(note("a.md", first)))
        .say("Again.", "Yes.", attaching(note("a.md", second)))
    )
    receipt = story.plan(goal=story.tokens() - 300).receipt
    assert receipt is not None
    assert receipt.steps == ()
    story.compact(goal=story.tokens() - 300)
    assert story.state.compaction_step == "fold"
    assert story.sent().count("another") == 400


def test_turn_that_attaches_text_keeps_it_whole() -> None:
    story = mixed()
    again = attaching(note("long.md", LONG))
    assert "long.md" not in [
        *removed(story.plan(turn=again).receipt, "preview"),
        *removed(story.plan(turn=again).receipt, "handle"),
    ]


def test_current_question_and_last_exchange_are_never_removed() -> None:
    story = mixed()
    story.compact(goal=0)
    texts = [message.text for message in story.ask(NOW).messages]
    assert texts[-1].endswith("And now?")
    assert texts[-2].startswith("Point 7.")
    assert texts[-3].endswith(YES)


def planned(story: Story, *, goal: int, as_is: Prompt | None = None, hard: int | None = None) -> CompactionPlan:
    return plan_compaction(
        story.state,
        story.bind(NOW),
        story.rules.compaction_config,
        tokenizer=story.rules.tokenizer,
        plan_layout=story.rules.plan_layout,
        window=story.rules.budget.window,
        current_prompt=as_is or story.prompt(),
        goal_tokens=goal,
        message_ids=story.path,
        automatic=False,
        hard_limit=hard,
    )


def test_plan_has_totals_before_and_after_and_manual_flag() -> None:
    story = mixed()
    receipt = planned(story, goal=400).receipt
    assert receipt is not None
    assert (receipt.tokens_before, receipt.target, receipt.automatic) == (story.tokens(), 400, False)
    assert receipt.parent == story.state.head
    assert receipt.steps[-1].tokens_after == receipt.tokens_after
    story.apply(receipt)
    assert story.tokens() == receipt.tokens_after


def test_plan_that_saves_nothing_is_empty() -> None:
    story = mixed()
    least = planned(story, goal=0)
    assert least.receipt is not None
    assert least.prompt is not None
    assert least.prompt.total == least.receipt.tokens_after
    assert planned(story, as_is=least.prompt, goal=0) == CompactionPlan(receipt=None)


@pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
def test_planned_prompt_matches_receipt(terms: TurnSettings) -> None:
    story = mixed(terms=terms)
    plan = planned(story, goal=400)
    assert plan.receipt is not None
    assert plan.prompt is not None
    story.apply(plan.receipt)
    assert [message.text for message in plan.prompt.messages] == [message.text for message in story.prompt().messages]
