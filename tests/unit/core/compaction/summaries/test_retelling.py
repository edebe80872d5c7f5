"""Retelling: a summary of the oldest turns that are not shown, as long as an epoch begins with it."""

from tests.unit.core.compaction.stories import FOLDING, NOW, Story, make_rules

from lamella.core.compaction.rules import CompactionConfig, SummaryConfig
from lamella.core.compaction.summaries import (
    Summaries,
    SummaryRequest,
    SummaryResult,
    summary_key,
    with_history_summary,
)
from lamella.core.log.turn import HistoryMode, LayoutMode, Turn, TurnSettings
from lamella.core.values import replace


def story_of(turns: int, *, layout: LayoutMode = LayoutMode.LIBRARY) -> Story:
    story = Story(terms=TurnSettings(layout=layout, history=HistoryMode.STRIP, history_turns=2))
    for number in range(turns):
        story.say(f"Question {number}?", f"Answer {number}. " + "because " * 30)
    return story


def retold(
    story: Story, summaries: Summaries, turn: Turn = NOW, *, reads: int = 16_000
) -> tuple[Turn, tuple[SummaryRequest, ...]]:
    config = make_rules(CompactionConfig(summary=SummaryConfig(max_input_tokens=reads))).compaction_config
    return with_history_summary(
        story.state,
        story.bind(turn),
        story.rules.tokenizer,
        plan_layout=story.rules.plan_layout,
        config=config,
        summaries=summaries,
    )


def test_summary_is_needed_of_the_oldest_turns_in_whole_groups() -> None:
    assert retold(story_of(9), {}) == (story_of(9).bind(NOW), ())
    story = story_of(12)
    turn, (request,) = retold(story, {})
    assert turn == story.bind(NOW)
    assert (request.max_tokens, request.key) == (300, summary_key(story.state.history.turns[:8]))
    assert request.messages[0].text.startswith("User: Question 0?\n\nAssistant: Answer 0.")
    assert "Question 8?" not in request.messages[0].text


def test_history_summary_reads_newest_turns_up_to_limit() -> None:
    story = story_of(12)
    weights = [turn.message_tokens for turn in story.state.history.turns[:8]]
    for first in (0, 1, 7):
        _, (request,) = retold(story, {}, reads=sum(weights[first:]))
        assert request.messages[0].text.count("User: ") == 8 - first
        assert request.messages[0].text.startswith(f"User: Question {first}?")
    _, (request,) = retold(story, {}, reads=sum(weights) - 1)
    assert request.messages[0].text.count("User: ") == 7
    assert retold(story, {}, reads=weights[7] - 1) == (story.bind(NOW), ())


def test_valid_summary_is_used_and_invalid_one_reported() -> None:
    story = story_of(12)
    _, (request,) = retold(story, {})
    assert retold(story, {request.key: SummaryResult(text="They spoke.")}) == (
        replace(story.bind(NOW), history_summary="They spoke."),
        (),
    )
    turn, needs = retold(story, {request.key: SummaryResult(text="word " * 300)})
    assert needs == ()
    assert (turn.history_summary, turn.warnings) == (
        None,
        ("Earlier turns stand as their outline: the summary has 375 tokens; at most 300 are allowed.",),
    )
    failed, _ = retold(story, {request.key: SummaryResult(failure="No answer.")}, replace(NOW, warnings=("before",)))
    assert failed.warnings == ("before", "Earlier turns stand as their outline: no answer.")


def test_only_user_rules_may_be_quoted() -> None:
    story = story_of(12)
    _, (request,) = retold(story, {})
    quoted, _ = retold(story, {request.key: SummaryResult(text='They asked "Question 3?" and more.')})
    assert quoted.history_summary is not None
    invented, _ = retold(story, {request.key: SummaryResult(text='They said "drop the database at once, please".')})
    assert invented.history_summary is None


def test_in_place_summary_waits_for_next_epoch() -> None:
    story = story_of(12, layout=LayoutMode.IN_PLACE)
    assert retold(story, {}) == (story.bind(NOW), ())
    _, (request,) = retold(story, {}, FOLDING)
    assert request.messages[0].text.count("User: ") == 8
