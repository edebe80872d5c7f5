"""The budget and the priorities of the design for staged paper writing, and the differences from it.

docs/decisions/paper-workflow.md lists every difference with its reason.
"""

from collections.abc import Sequence

import pytest
from tests.behaviour.paper_workflow import PAPER, send, write
from tests.unit.core.compaction.stories import QUARTERS, WORD_LISTS, Story, chat, make_rules, names, removed

from lamella.core.artifacts.kinds import make_image_artifact, make_image_data
from lamella.core.budget import (
    TokenBudget,
    count_images_tokens,
    count_pieces_tokens,
    exceeds_share,
    list_budget_warnings,
    should_compact,
)
from lamella.core.compaction.rules import CompactionConfig, CompletedStage, SummaryConfig, resolve_stages
from lamella.core.compaction.steps import drop_chitchat, is_chitchat
from lamella.core.compaction.summaries import SummaryResult
from lamella.core.log.receipts import CompactionReceipt, CompactionStepName
from lamella.core.log.turn import Turn
from lamella.errors import ContextBudgetExceededError, SettingError

WORDS = frozenset(WORD_LISTS.acknowledgements)

YES = "so be it and on we go with the next of all these many points"


# The budget, in seven facts.


@pytest.mark.parametrize(("text", "tokens"), [("abcd", 1), ("x" * 100, 25), ("abc", 1), ("abcde", 2), ("", 0)])
def test_budget_1_four_characters_are_one_token(text: str, tokens: int) -> None:
    assert QUARTERS.count(text) == tokens


def test_budget_2_window_is_taken_as_given_or_128_000() -> None:
    assert TokenBudget(window=1_048_576).window == 1_048_576
    assert TokenBudget().window == 128_000


def test_budget_2_differs_zero_window_is_refused() -> None:
    with pytest.raises(SettingError, match="leaves no room"):
        TokenBudget(window=0)


@pytest.mark.parametrize(
    ("characters", "happens"),
    [
        (200_000, []),
        (350_000, ["warned"]),
        (400_000, ["warned"]),
        (420_000, ["warned"]),
        (436_000, ["warned", "compacted"]),
        (500_000, ["warned", "compacted", "over hard"]),
    ],
)
def test_budget_3_warning_and_compaction_start_at_paper_values(characters: int, happens: list[str]) -> None:
    tokens = QUARTERS.count("x" * characters)
    each = {
        "warned": bool(list_budget_warnings(tokens, PAPER)),
        "compacted": should_compact(tokens, PAPER, last_compacted_total=None),
        "over hard": exceeds_share(tokens, PAPER.hard, PAPER),
    }
    assert [name for name, is_so in each.items() if is_so] == happens


def test_budget_3_differs_nothing_is_cut_between_80_and_85_percent() -> None:
    fitted = send(write(100, 105_000))
    assert fitted.receipt is None
    assert fitted.envelope.tokens.total == 105_000


def test_budget_3_differs_thresholds_out_of_order_are_refused() -> None:
    with pytest.raises(SettingError, match="not in order"):
        TokenBudget(trigger=0.85, hard=0.80)


def test_budget_4_a_threshold_is_a_share_of_the_window_rounded_down() -> None:
    budget = TokenBudget(window=1_048_576, reserve=0, target=0.80, trigger=0.85)
    assert int(budget.target * budget.limit) == 838_860
    assert not exceeds_share(838_860, 0.80, budget)
    assert exceeds_share(838_861, 0.80, budget)


def test_budget_5_differs_removal_depends_on_tokens_not_message_count() -> None:
    # Sixty short messages are no reason to cut any; five long ones may be.
    assert send(write(60, 10_000)).receipt is None
    few = write(6, 125_000)
    assert len(removed(send(few).receipt, "expendable")) == 1


def test_budget_6_message_tokens_are_sum_of_its_parts() -> None:
    assert count_pieces_tokens(("hello", "world!"), len) == 11
    assert count_pieces_tokens((), len) == 0


def test_budget_7_differs_images_have_tokens() -> None:
    picture = make_image_artifact(make_image_data(b"png", media_type="image/png", width=5, height=5), title="dot")
    assert count_images_tokens(picture.images, QUARTERS) == 25


# P1: acknowledgements.


@pytest.mark.parametrize("text", ["ok", "ya", "sip", "lanjut", "oke"])
def test_p1_acknowledgements_are_removed(text: str) -> None:
    assert is_chitchat(text, previous_reply="Done.", words=WORDS)


@pytest.mark.parametrize("text", ["ok?", "bagus!", "x" * 53, "Tolong jelaskan lebih rinci bagian kedua dari bab ini."])
def test_p1_questions_exclamations_and_sentences_are_kept(text: str) -> None:
    assert not is_chitchat(text, previous_reply="Done.", words=WORDS)


@pytest.mark.parametrize("text", ["kuantitatif", "opsi B", "2", "APA 7", "revisi bab 2", "tidak"])
def test_p1_differs_short_decisions_are_kept(text: str) -> None:
    assert not is_chitchat(text, previous_reply="Done.", words=WORDS)


def test_p1_differs_answer_to_question_is_kept() -> None:
    assert not is_chitchat("ya", previous_reply="Shall I go on?", words=WORDS)


def test_p1_both_replies_stay_when_their_acknowledgements_go() -> None:
    story = said(("Why?", "So."), ("ok", "A"), ("ya", "B"), ("And?", "Yes."))
    cut = drop_chitchat(story.draft())
    assert cut is not None
    assert cut.removed == (story.path[2], story.path[4])


def test_p1_differs_first_and_last_question_are_kept() -> None:
    assert drop_chitchat(said(("ok", "A"), ("ya", "B")).draft()) is None
    assert drop_chitchat(Story().draft()) is None


def said(*turns: tuple[str, str]) -> Story:
    story = Story()
    for asked, answered in turns:
        story.say(asked, answered)
    return story


# P2 and P4: stages that are done.

PATH = ("m1", "m2", "m3", "m4", "m5")


def found(first: str, last: str) -> tuple[str, ...]:
    stages, _ = resolve_stages([stage("a", first, last)], PATH)
    return stages[0][1] if stages else ()


def stage(name: str, first: str, last: str, *, recent: bool = False) -> CompletedStage:
    return CompletedStage(stage=name, label=name, first=first, last=last, recent=recent)


def test_p2_range_includes_both_ends() -> None:
    assert found("m2", "m4") == ("m2", "m3", "m4")
    assert found("m2", "m2") == ("m2",)
    assert found("m2", "unknown") == ()


def staged(*ranges: tuple[int, int], turns: int = 6, recent: Sequence[int] = ()) -> Story:
    """Talk with stages given by the numbers of their first and last messages, from 1."""
    story = chat(turns)
    steps = (CompactionStepName.OLDEST_STAGES, CompactionStepName.RECENT_STAGES)
    stages = tuple(
        stage(f"stage {n}", story.path[first - 1], story.path[last - 1], recent=n in recent)
        for n, (first, last) in enumerate(ranges)
    )
    story.rules = make_rules(CompactionConfig(steps=steps, stages=stages))
    return story


def test_p2_the_messages_of_the_stage_leave_and_all_others_stay() -> None:
    story = staged((3, 6))
    assert removed(story.plan(goal=0).receipt, "oldest_stages") == story.path[2:6]


def test_p2_differs_a_turn_leaves_whole_or_not_at_all() -> None:
    story = staged((2, 5))
    assert removed(story.plan(goal=0).receipt, "oldest_stages") == story.path[2:4]


def test_p2_differs_removed_stages_leave_only_a_count() -> None:
    story = staged((1, 2), (3, 4))
    story.compact(goal=0)
    assert "4 earlier messages; recall finds them." in story.sent()
    assert "<stage_digest>" not in story.sent()


def test_p2_without_stages_nothing_is_removed() -> None:
    assert staged().plan(goal=0).receipt is None


def test_p2_stages_are_removed_one_by_one_until_goal() -> None:
    story = staged((1, 4), (5, 8))
    assert names(story.plan(goal=story.tokens() - 50).receipt) == ["oldest_stages"]


def test_p4_recent_stages_are_left_for_own_step() -> None:
    assert names(staged((1, 4), (5, 8), recent=[1]).plan(goal=0).receipt) == ["oldest_stages", "recent_stages"]


def test_p4_differs_step_is_listed_only_if_it_removed_something() -> None:
    assert names(staged((1, 4)).plan(goal=0).receipt) == ["oldest_stages"]


# P3: a summary.


def summarised(story: Story, text: str | None, *, goal: int) -> CompactionReceipt | None:
    summaries: dict[str, SummaryResult] = {}
    while True:
        plan = story.plan(goal=goal, summaries=summaries)
        if not plan.summary_requests:
            return plan.receipt
        answer = SummaryResult(failure="the summariser failed: no") if text is None else SummaryResult(text=text)
        summaries.update((request.key, answer) for request in plan.summary_requests)


def general(messages: int, characters: int) -> Story:
    """Plain talk of so many messages of so many characters, with P1, P3 and P5 alone."""
    steps = (CompactionStepName.CHITCHAT, CompactionStepName.SUMMARY, CompactionStepName.EXPENDABLE)
    story = Story(
        make_rules(
            CompactionConfig(
                steps=steps, summary=SummaryConfig(max_output_tokens=40, max_exact_tokens=0, whole_turns=True)
            )
        )
    )
    for _ in range(0, messages, 2):
        story.say("u" * characters, "a" * characters)
    return story


def test_p3_tiny_conversation_is_not_compacted() -> None:
    assert general(2, 4).plan(goal=1_000).receipt is None


def test_p3_the_oldest_messages_become_one_summary() -> None:
    story = general(10, 400)
    receipt = summarised(story, "- [1, 2] The user asked something.", goal=story.tokens() - 300)
    assert names(receipt) == ["summary"]
    assert removed(receipt, "summary") == story.path[:6]


def test_p3_failed_summarizer_leaves_work_to_next_step() -> None:
    receipt = summarised(general(10, 400), None, goal=200)
    assert names(receipt) == ["expendable"]
    assert receipt is not None
    assert [one.why for one in receipt.skipped] == ["the summariser failed: no"]


def test_p3_differs_a_summary_that_is_too_long_is_refused_and_not_counted() -> None:
    receipt = summarised(general(20, 2_000), "s" * 3_000, goal=2_400)
    assert names(receipt) == ["expendable"]
    assert receipt is not None
    assert receipt.tokens_after <= 2_400


def test_p3_without_model_and_candidates_nothing_changes() -> None:
    assert general(2, 200).plan(goal=50).receipt is None


def test_p3_differs_the_same_turns_are_summarized_once_and_not_with_every_request() -> None:
    story = general(10, 400)
    goal = story.tokens() - 300
    receipt = summarised(story, "- [1, 2] The user asked something.", goal=goal)
    assert receipt is not None
    story.apply(receipt)
    assert story.plan(goal=goal, summaries={}).summary_requests == ()


# P5: whatever else goes.


def test_p5_differs_messages_go_until_the_target_is_reached_and_no_further() -> None:
    fitted = send(write(200, 112_000))
    assert names(fitted.receipt) == ["expendable"]
    assert fitted.receipt is not None
    assert 0.83 * PAPER.limit < fitted.receipt.tokens_after <= PAPER.target * PAPER.limit


def test_p5_differs_oversized_request_is_error_and_not_sent() -> None:
    with pytest.raises(ContextBudgetExceededError):
        write(2, 1_000).fit(Turn(text="long " * 125_000))


def test_p5_differs_long_history_never_blocks_question() -> None:
    assert names(send(write(2, 125_000)).receipt) == ["expendable"]


def test_p5_differs_compaction_is_not_followed_by_cut() -> None:
    story = write(220, 111_000, short=[21 + 12 * n for n in range(12)], yes=("yes " * 212)[:-1])
    fitted = send(story)
    assert names(fitted.receipt) == ["chitchat"]
    assert 0.80 * PAPER.limit < fitted.envelope.tokens.total < 0.85 * PAPER.limit
