"""Wishes of turns that a history mode hides: they stand in front of the turns that are shown, word for word."""

from tests.unit.core.compaction.talking import FOLDING, IN_PLACE, QUARTERS, Story

from lamella.core.log.terms import History
from lamella.core.prompt.layers.opening import render_wishes
from lamella.core.prompt.wishes import keep_hidden_wishes
from lamella.core.values import replace

WISH = "From now on always answer in French."


def test_a_wish_of_a_hidden_turn_stands_before_those_that_are_shown_and_is_counted() -> None:
    story = Story(terms=replace(IN_PLACE, history=History.WINDOW, history_turns=1))
    for text in (WISH, "two?", "three?"):
        story.say(text, "yes")
    prompt = story.prompt(FOLDING)
    block = render_wishes(((1, WISH),), more=0)
    assert block in prompt.messages[0].text
    assert prompt.talk.rules is not None
    assert prompt.talk.rules.tokens == QUARTERS.count(block)
    # What stands already is the same object.
    again = keep_hidden_wishes(replace(story.state, talk=prompt.talk), QUARTERS)
    assert again.talk.rules is prompt.talk.rules


def test_where_every_turn_is_shown_a_wish_is_not_told_twice() -> None:
    story = Story()
    for text in (WISH, "two?", "three?"):
        story.say(text, "yes")
    prompt = story.prompt(FOLDING)
    assert prompt.talk.rules is None
    assert sum(message.text.count(WISH) for message in prompt.messages) == 1
