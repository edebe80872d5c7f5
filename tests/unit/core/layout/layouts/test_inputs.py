"""Inputs of a plan: tokens up to each message, attachment carriers, and changed texts."""

from tests.unit.core.compaction.stories import NOW, QUARTERS, Story, attaching, note
from tests.unit.core.layout.test_costs import carrying

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import make_tool_result
from lamella.core.layout.layouts import (
    LayoutInputs,
    collect_layout_inputs,
    count_message_tokens,
    estimate_question_tokens,
    estimate_reuse_probabilities,
)
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.turn import ArtifactForm, LayoutMode, SystemParts, Turn, TurnSettings
from lamella.core.prompt.cache_history import NO_CACHE_HISTORY
from lamella.core.values import replace

PROFILE = CacheProfile(name="prefixes")
AUTO = TurnSettings(layout=LayoutMode.AUTO, linger=1)
# Messages that have tokens beside their text.
HEAVY = replace(QUARTERS, tokens_per_message=7)
LONG = "A line of a long note.\n" * 400


def look(story: Story, turn: Turn) -> LayoutInputs:
    tokenizer, probabilities = story.rules.tokenizer, estimate_reuse_probabilities(NO_CACHE_HISTORY)
    return collect_layout_inputs(
        story.state, story.bind(turn), PROFILE, probabilities=probabilities, tokenizer=tokenizer, at=None
    )[0]


def story_of(system: SystemParts | None = None) -> Story:
    story = Story(terms=AUTO)
    story.rules = replace(story.rules, tokenizer=HEAVY)
    return story.say("one", "yes", Turn(text="one", system=system)).say("two", "no")


def test_tokens_are_counted_up_to_the_end_of_each_message() -> None:
    story = story_of()
    messages = story.prompt(Turn(text="now")).messages
    sizes = [count_message_tokens(message, HEAVY) for message in messages]
    assert sizes[0] == HEAVY.count("one") + 7
    found = look(story, Turn(text="now"))
    assert (found.first_message_after_system, list(found.cumulative_tokens)) == (
        0,
        [sum(sizes[:count]) for count in range(1, 5)],
    )


def test_l1_is_the_first_message_that_is_counted() -> None:
    story = story_of(SystemParts(base="Be terse."))
    found = look(story, Turn(text="now"))
    assert (found.first_message_after_system, found.cumulative_tokens[0]) == (1, HEAVY.count("Be terse.") + 7)
    assert len(found.cumulative_tokens) == 5


def test_changed_text_costs_its_update() -> None:
    story = Story(terms=AUTO).say("one", "yes", attaching(note("a.md", LONG)))
    found = look(story, attaching(note("a.md", LONG.replace("long", "LONG", 1))))
    assert list(found.update_tokens) == ["a.md"]
    assert 0 < found.total_update_tokens == found.update_tokens["a.md"] < found.full_tokens["a.md"]
    assert look(story, attaching(note("a.md", LONG))).update_tokens == {}


def test_remaining_line_of_cut_result_is_no_gain() -> None:
    result = make_tool_result("weather", arguments={"city": "Graz"}, output="Dry. " * 200)
    story = Story(terms=AUTO).say("one", "yes", attaching(result))
    (carrier,) = look(story, Turn(text="now")).carriers
    sent = story.prompt(Turn(text="now")).messages[0].tokens
    assert (carrier.message_index, carrier.unused, carrier.in_use) == (0, (), ())
    assert 250 < carrier.obsolete_tokens < sent - QUARTERS.count("one")


def test_question_tokens_include_unsent_text_and_repeated_results() -> None:
    result = make_tool_result("weather", arguments={"city": "Graz"}, output="Dry. " * 200)
    story = Story(terms=AUTO).say("one", "yes", attaching(note("a.md", LONG), result))
    typed = estimate_question_tokens(story.state, Turn(text="now"), QUARTERS)
    block, known = (QUARTERS.count(render_block(one)) for one in (note("b.md", LONG), result))
    assert (
        estimate_question_tokens(story.state, attaching(note("a.md", LONG)), QUARTERS) - typed
        == QUARTERS.count(NOW.text) - 1
    )
    asked = estimate_question_tokens(story.state, NOW, QUARTERS)
    assert estimate_question_tokens(story.state, attaching(note("b.md", LONG)), QUARTERS) == asked + block
    assert estimate_question_tokens(story.state, attaching(result), QUARTERS) == asked + known


def test_handle_list_moves_with_cut() -> None:
    story = carrying()
    story.add_turn("three", pause=400)
    assert story.state.placed["a.md"].form is ArtifactForm.HANDLE
    (carrier,) = look(story, Turn(text="now")).carriers
    assert ([name for name, _ in carrier.in_use], carrier.unused) == (["a.md"], ())
