"""Rules of turns that a history mode hides precede the shown turns, word for word."""

from tests.unit.core.compaction.stories import FOLDING, IN_PLACE, QUARTERS, Story

from lamella.core.log.turn import HistoryMode
from lamella.core.prompt.layers.digest import make_digest_block, make_digest_message
from lamella.core.prompt.layers.history import render_rules_block
from lamella.core.prompt.rules import with_hidden_rules
from lamella.core.values import replace

WISH = "From now on always answer in French."


def test_rule_of_hidden_turn_precedes_shown_turns_and_is_counted() -> None:
    story = Story(terms=replace(IN_PLACE, history=HistoryMode.WINDOW, history_turns=1))
    for text in (WISH, "two?", "three?"):
        story.say(text, "yes")
    prompt = story.prompt(FOLDING)
    block = render_rules_block(((1, WISH),), omitted=0)
    assert block in prompt.messages[0].text
    assert prompt.history.rules is not None
    assert prompt.history.rules.tokens == QUARTERS.count(block)
    # What was placed already is the same object.
    again = with_hidden_rules(replace(story.state, history=prompt.history), QUARTERS)
    assert again.history.rules is prompt.history.rules


def test_rule_is_not_repeated_if_all_turns_are_shown() -> None:
    story = Story()
    for text in (WISH, "two?", "three?"):
        story.say(text, "yes")
    prompt = story.prompt(FOLDING)
    assert prompt.history.rules is None
    assert sum(message.text.count(WISH) for message in prompt.messages) == 1


def test_digest_shows_directives_of_hidden_turns_only_in_older_turns() -> None:
    for is_shown in (True, False):
        story = Story(terms=replace(IN_PLACE, history=HistoryMode.WINDOW, history_turns=1, hidden_excerpts=is_shown))
        for text in ("one?", "two?", "three?"):
            story.say(text, "yes")
        left = make_digest_message("m", 1, WISH, count=QUARTERS.count, is_excerpt=True)
        history = replace(story.state.history, digest=(make_digest_block([left]),))
        story.state = replace(story.state, history=history)
        assert (WISH in story.prompt(FOLDING).messages[0].text) is is_shown
