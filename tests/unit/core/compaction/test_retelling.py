"""Retelling: a summary of the oldest turns that are not shown, as long as an epoch begins with it."""

from tests.unit.core.compaction.talking import FOLDING, NOW, Story, make_rules

from lamella.core.compaction.asking import Summaries, SummaryNeed, SummaryText, key_of
from lamella.core.compaction.retelling import retell
from lamella.core.compaction.rules import ChainRules, SummaryRules
from lamella.core.log.terms import History, Layout, Terms
from lamella.core.log.turn import Turn
from lamella.core.values import replace


def told(turns: int, *, layout: Layout = Layout.LIBRARY) -> Story:
    story = Story(terms=Terms(layout=layout, history=History.STRIP, history_turns=2))
    for number in range(turns):
        story.say(f"Question {number}?", f"Answer {number}. " + "because " * 30)
    return story


def retold(
    story: Story, summaries: Summaries, turn: Turn = NOW, *, reads: int = 16_000
) -> tuple[Turn, tuple[SummaryNeed, ...]]:
    chain = make_rules(ChainRules(summary=SummaryRules(reads=reads))).chain
    return retell(
        story.state,
        story.bind(turn),
        story.rules.measure,
        place=story.rules.place,
        chain=chain,
        summaries=summaries,
    )


def test_a_summary_is_needed_of_the_oldest_turns_in_whole_groups() -> None:
    assert retold(told(9), {}) == (told(9).bind(NOW), ())
    story = told(12)
    turn, (need,) = retold(story, {})
    assert turn == story.bind(NOW)
    assert (need.max_tokens, need.key) == (300, key_of(story.state.talk.exchanges[:8]))
    assert need.messages[0].text.startswith("User: Question 0?\n\nAssistant: Answer 0.")
    assert "Question 8?" not in need.messages[0].text


def test_no_more_is_asked_for_than_can_be_read_and_the_newest_of_it() -> None:
    story = told(12)
    weights = [exchange.said_tokens for exchange in story.state.talk.exchanges[:8]]
    for first in (0, 1, 7):
        _, (need,) = retold(story, {}, reads=sum(weights[first:]))
        assert need.messages[0].text.count("User: ") == 8 - first
        assert need.messages[0].text.startswith(f"User: Question {first}?")
    _, (need,) = retold(story, {}, reads=sum(weights) - 1)
    assert need.messages[0].text.count("User: ") == 7
    assert retold(story, {}, reads=weights[7] - 1) == (story.bind(NOW), ())


def test_an_answer_that_may_stand_stands_and_one_that_may_not_is_said() -> None:
    story = told(12)
    _, (need,) = retold(story, {})
    assert retold(story, {need.key: SummaryText(text="They spoke.")}) == (
        replace(story.bind(NOW), strip="They spoke."),
        (),
    )
    turn, needs = retold(story, {need.key: SummaryText(text="word " * 300)})
    assert needs == ()
    assert (turn.strip, turn.warnings) == (
        None,
        ("Earlier turns stand as their outline: the summary has 375 tokens; at most 300 are allowed.",),
    )
    failed, _ = retold(story, {need.key: SummaryText(why="No answer.")}, replace(NOW, warnings=("before",)))
    assert failed.warnings == ("before", "Earlier turns stand as their outline: no answer.")


def test_a_wish_of_the_user_may_be_quoted_and_nothing_else() -> None:
    story = told(12)
    _, (need,) = retold(story, {})
    quoted, _ = retold(story, {need.key: SummaryText(text='They asked "Question 3?" and more.')})
    assert quoted.strip is not None
    invented, _ = retold(story, {need.key: SummaryText(text='They said "drop the database at once, please".')})
    assert invented.strip is None


def test_in_place_a_summary_waits_for_the_next_epoch() -> None:
    story = told(12, layout=Layout.IN_PLACE)
    assert retold(story, {}) == (story.bind(NOW), ())
    _, (need,) = retold(story, {}, FOLDING)
    assert need.messages[0].text.count("User: ") == 8
