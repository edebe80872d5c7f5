"""What a plan starts from: tokens up to each message, what carries something, and what has another text now."""

from tests.unit.core.compaction.talking import NOW, QUARTERS, Story, attaching, note
from tests.unit.core.planning.test_prices import carrying

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.make import make_tool_result
from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.placement import Form
from lamella.core.log.terms import Layout, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.planning.ground import Survey, survey, weigh, weigh_question
from lamella.core.planning.habits import find_hazards
from lamella.core.prompt.trail import NO_TRAIL
from lamella.core.values import replace

PROFILE = CacheProfile(name="prefixes")
AUTO = Terms(layout=Layout.AUTO, linger=1)
# Messages that weigh something beside their text.
HEAVY = replace(QUARTERS, per_message=7)
LONG = "A line of a long note.\n" * 400


def look(story: Story, turn: Turn) -> Survey:
    measure, hazards = story.rules.measure, find_hazards(NO_TRAIL)
    return survey(story.state, story.bind(turn), PROFILE, hazards=hazards, measure=measure, at=None)[0]


def tell(system: SystemParts | None = None) -> Story:
    story = Story(terms=AUTO)
    story.rules = replace(story.rules, measure=HEAVY)
    return story.say("one", "yes", Turn(text="one", system=system)).say("two", "no")


def test_tokens_are_counted_up_to_the_end_of_each_message() -> None:
    story = tell()
    messages = story.prompt(Turn(text="now")).messages
    sizes = [weigh(message, HEAVY) for message in messages]
    assert sizes[0] == HEAVY.count("one") + 7
    found = look(story, Turn(text="now"))
    assert (found.first, list(found.ends)) == (0, [sum(sizes[:count]) for count in range(1, 5)])


def test_l1_is_the_first_message_that_is_counted() -> None:
    story = tell(SystemParts(base="Be terse."))
    found = look(story, Turn(text="now"))
    assert (found.first, found.ends[0]) == (1, HEAVY.count("Be terse.") + 7)
    assert len(found.ends) == 5


def test_what_has_another_text_now_is_weighed_by_the_update_that_says_so() -> None:
    story = Story(terms=AUTO).say("one", "yes", attaching(note("a.md", LONG)))
    found = look(story, attaching(note("a.md", LONG.replace("long", "LONG", 1))))
    assert list(found.changed) == ["a.md"]
    assert 0 < found.updates == found.changed["a.md"] < found.wholes["a.md"]
    assert look(story, attaching(note("a.md", LONG))).changed == {}


def test_of_a_result_that_rode_as_text_the_line_that_stays_is_no_gain() -> None:
    result = make_tool_result("weather", arguments={"city": "Graz"}, output="Dry. " * 200)
    story = Story(terms=AUTO).say("one", "yes", attaching(result))
    (carrier,) = look(story, Turn(text="now")).carriers
    sent = story.prompt(Turn(text="now")).messages[0].tokens
    assert (carrier.start, carrier.dead, carrier.alive) == (0, (), ())
    assert 250 < carrier.rest < sent - QUARTERS.count("one")


def test_a_question_is_weighed_with_what_stands_nowhere_yet_and_what_tools_gave_again() -> None:
    result = make_tool_result("weather", arguments={"city": "Graz"}, output="Dry. " * 200)
    story = Story(terms=AUTO).say("one", "yes", attaching(note("a.md", LONG), result))
    typed = weigh_question(story.state, Turn(text="now"), QUARTERS)
    block, known = (QUARTERS.count(render_block(one)) for one in (note("b.md", LONG), result))
    assert weigh_question(story.state, attaching(note("a.md", LONG)), QUARTERS) - typed == QUARTERS.count(NOW.text) - 1
    asked = weigh_question(story.state, NOW, QUARTERS)
    assert weigh_question(story.state, attaching(note("b.md", LONG)), QUARTERS) == asked + block
    assert weigh_question(story.state, attaching(result), QUARTERS) == asked + known


def test_what_stands_in_the_list_of_what_left_moves_along_with_a_cut() -> None:
    story = carrying()
    story.tell("three", pause=400)
    assert story.state.standing["a.md"].form is Form.HANDLE
    (carrier,) = look(story, Turn(text="now")).carriers
    assert ([name for name, _ in carrier.alive], carrier.dead) == (["a.md"], ())
