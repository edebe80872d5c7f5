from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.core.compaction.talking import QUARTERS, Story, attaching, note

from lamella.core.artifacts.make import make_tool_result
from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.placement import Form, Lapse, Placement
from lamella.core.log.terms import Attachments, History, Layout, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.model import Message
from lamella.core.planning.ground import Carrier, Survey, weigh
from lamella.core.planning.habits import find_hazards
from lamella.core.planning.prices import find_served, lets_move, list_candidates, plan_by_price
from lamella.core.prompt.trail import NO_TRAIL, Held
from lamella.core.values import replace

START = datetime(2026, 11, 17, tzinfo=UTC)
AUTO = Terms(layout=Layout.AUTO, linger=1)
MARKED = CacheProfile(name="marks", lifetime=300, read=0.1, write=1.25, marks=4, lookback=20, bills_writes=True)
LONG = "A line of a long note.\n" * 400


class Priced(Story):
    """A story whose turns are planned, a minute apart."""

    def __init__(self, profile: CacheProfile = MARKED, terms: Terms = AUTO) -> None:
        super().__init__(terms=terms)
        self.profile = profile
        self.at = START

    def plan_turn(self, turn: Turn, *, pause: float = 60, room: float = 1e9, aim: float | None = None) -> Placement:
        at = self.at + timedelta(seconds=pause)
        return plan_by_price(self.state, self.bind(turn), self.profile, measure=QUARTERS, room=room, aim=aim, at=at)

    @property
    def last_sent(self) -> tuple[Message, ...]:
        """What was sent last."""
        assert self.state.last is not None
        return tuple(self.state.last.messages)

    def tell(self, text: str, turn: Turn | None = None, *, pause: float = 60) -> Placement:
        asked = replace(turn or Turn(text=text), text=text)
        placement = self.plan_turn(asked, pause=pause)
        self.at += timedelta(seconds=pause)
        self.say(text, "yes", replace(asked, placement=placement))
        return placement


def carrying(profile: CacheProfile = MARKED, terms: Terms = AUTO) -> Priced:
    """A long note, and a turn of talk after it, in which it lingers; in the next it does not."""
    story = Priced(profile, terms)
    story.tell("one", replace(attaching(note("a.md", LONG)), system=SystemParts(base="Be terse.")))
    story.tell("two")
    return story


def test_a_warm_cache_is_appended_to_and_says_so() -> None:
    story = Priced()
    story.tell("one", attaching(note("a.md", "Short.")))
    placement = story.plan_turn(attaching(note("a.md", "Short.")))
    assert (placement.keep, placement.lapse) == (None, Lapse.NONE)
    assert placement.why.startswith("appended")


def test_a_cold_cache_folds_and_leaves_out_what_is_dead() -> None:
    placement = carrying().plan_turn(Turn(text="now"), pause=400)
    assert (placement.keep, placement.served, placement.lapse) == (1, None, Lapse.SHORT)
    assert placement.why.startswith("folded: the cache lapsed")


def test_a_cold_cache_folds_where_that_costs_just_as_much_as_appending() -> None:
    free = replace(MARKED, read=0.0, write=0.0)
    cold, warm = (carrying(free).plan_turn(Turn(text="now"), pause=pause) for pause in (400, 60))
    assert (cold.cost, cold.other, cold.keep) == (0.0, 0.0, 1)
    assert (warm.cost, warm.other, warm.keep) == (0.0, 0.0, None)


def test_without_a_lifetime_or_a_time_nothing_is_cold() -> None:
    forever = replace(MARKED, lifetime=None, read=0.0)
    assert carrying(forever).plan_turn(Turn(text="now"), pause=1e6).keep is None
    story = carrying(replace(MARKED, read=0.0))
    placement = plan_by_price(
        story.state, story.bind(Turn(text="now")), story.profile, measure=QUARTERS, room=1e9, at=None
    )
    assert (placement.keep, placement.lapse) == (None, Lapse.UNKNOWN)


def test_where_reading_costs_as_much_as_writing_the_smallest_prompt_wins() -> None:
    assert carrying(CacheProfile(name="none", read=1.0, write=1.0)).plan_turn(Turn(text="now")).keep is not None


def test_where_reading_is_free_nothing_that_is_cached_moves() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    assert [story.tell(f"q{number}").keep for number in range(5)] == [None] * 5


def test_much_that_is_dead_behind_little_that_lives_is_cut_away() -> None:
    story = carrying()
    kept = [story.tell(f"q{number}").keep for number in range(4)]
    assert 1 in kept


def test_over_its_room_a_request_folds_although_that_costs_more() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    assert story.plan_turn(Turn(text="now"), room=500).keep == 1


def test_what_is_attached_now_takes_of_the_room_as_well() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    room = story.tokens() + 100
    assert story.plan_turn(Turn(text="now"), room=room).keep is None
    assert story.plan_turn(attaching(note("b.md", LONG)), room=room).keep == 1
    assert story.plan_turn(Turn(text="now " * 200), room=room).keep == 1


def test_what_has_to_be_cut_comes_down_to_the_aim_where_a_cut_does() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    for number in range(3):
        story.tell("more", attaching(note(f"{number}.md", LONG)))
    story.tell("three")
    room = story.tokens() - 100
    least = story.plan_turn(Turn(text="now"), room=room).keep
    assert least is not None
    assert least > 1
    assert story.plan_turn(Turn(text="now"), room=room, aim=room / 4).keep == 1
    assert story.plan_turn(Turn(text="now"), room=room, aim=1).keep == 1


def test_what_stood_as_a_line_and_is_attached_again_is_weighed_by_its_text() -> None:
    story = carrying()
    story.tell("three", pause=400)
    again = replace(attaching(note("a.md", LONG)), text="four")
    story.tell("four", again)
    # To move all of a note that lives, for the few words beside it that do not, would cost its whole text.
    assert story.plan_turn(attaching(note("a.md", LONG))).keep is None


def test_a_plan_marks_l1_and_what_stays_and_no_more_than_there_are_marks() -> None:
    story = carrying()
    folded = story.tell("three", pause=400)
    assert folded.marks == (0, 4)
    assert story.plan_turn(Turn(text="now")).marks == (0, 4)
    single = replace(MARKED, marks=1)
    assert carrying(single).plan_turn(Turn(text="now"), pause=400).marks == ()


def test_the_longer_lifetime_is_asked_for_once_short_lapses_pay_for_it() -> None:
    story = carrying(replace(MARKED, longer=(3_600.0, 2.0)))
    folded = story.tell("three", pause=400)
    assert folded.lasting == 4
    after = story.tell("four", pause=400)
    assert after.served == 4
    assert carrying().plan_turn(Turn(text="now"), pause=400).lasting is None


@pytest.mark.parametrize(("text", "whole"), [(LONG.replace("long", "LONG", 1), False), ("New.", False)])
def test_a_small_change_is_told_as_a_difference(text: str, whole: bool) -> None:  # noqa: FBT001
    story = Priced()
    story.tell("one", attaching(note("a.md", LONG)))
    placement = story.plan_turn(attaching(note("a.md", text)))
    assert (placement.forms.get("a.md") is Form.FULL) is whole


def test_what_changed_in_its_settings_keeps_nothing() -> None:
    placement = carrying().plan_turn(Turn(text="now", system=SystemParts(base="Be kind.")))
    assert (placement.keep, placement.why) == (0, "the system prompt changed")


def test_a_mark_finds_what_stands_within_its_lookback() -> None:
    ends = [100 * number for number in range(1, 40)]
    near = replace(MARKED, lookback=5)
    assert find_served([Held(10, None)], ends, (12,), profile=near, keep=39) == (10, 1_100)
    assert find_served([Held(10, None)], ends, (30,), profile=near, keep=39) == (None, 0)
    assert find_served([Held(10, None)], ends, (10, 30), profile=near, keep=9) == (None, 0)
    steps = replace(MARKED, marks=0, granularity=128, minimum=500)
    assert find_served([Held(10, None)], ends, (), profile=steps, keep=9) == (8, 896)
    assert find_served([Held(2, None)], ends, (), profile=steps, keep=9) == (None, 0)


def moving(story: Priced, turn: Turn, *, pause: float = 60, room: float = 1e9) -> bool:
    """Whether what stands before the talk may change with a turn, as it is planned."""
    planned = replace(turn, placement=story.plan_turn(turn, pause=pause, room=room))
    return lets_move(story.prompt(planned), story.profile)


def test_l1_may_change_after_a_lapse_and_with_what_forces_a_fold_and_not_while_all_that_was_sent_is_warm() -> None:
    story = carrying()
    assert moving(story, Turn(text="now"), pause=400)
    assert moving(story, Turn(text="now", system=SystemParts(base="Be kind.")))
    assert not moving(carrying(replace(MARKED, read=0.0)), Turn(text="now"))
    talk = Priced()
    talk.tell("one", Turn(text="one", system=SystemParts(base="Be terse.")))
    assert (moving(talk, Turn(text="now")), moving(talk, Turn(text="now"), pause=400)) == (False, True)


def test_l1_may_change_with_a_cut_behind_warm_talk_where_the_room_forces_it_or_it_still_pays() -> None:
    free, dear = (replace(MARKED, lifetime=None, marks=0, lookback=None, read=read) for read in (0.0, 0.1))
    for profile, before, room, moves in (
        (dear, 1, 1e9, True),
        (dear, 200, 1e9, False),
        (free, 1, 1e9, False),
        (free, 200, 1_500, True),
    ):
        story = Priced(profile)
        for number in range(before):
            story.tell(f"question {number} about desks")
        story.tell("read", attaching(note("a.md", LONG)))
        story.tell("two")
        planned = story.plan_turn(Turn(text="now"), room=room)
        assert (planned.keep is None) == (profile is free and room > 1_500)
        assert moving(story, Turn(text="now"), room=room) is moves


STEPPED = CacheProfile(name="steps", lifetime=600, read=0.5, write=1.0, marks=0)
STICKY = Terms(layout=Layout.AUTO, attachments=Attachments.STICKY)


def heading(profile: CacheProfile = STEPPED) -> Priced:
    """Two long notes in one message, of which the first stays attached."""
    story = Priced(profile, STICKY)
    both = attaching(note("a.md", LONG), note("b.md", LONG + "And more."))
    story.tell("one", replace(both, system=SystemParts(base="Be terse.")))
    return story


def test_where_every_prefix_is_served_what_heads_a_message_stays_although_what_follows_goes() -> None:
    story = heading()
    before = story.last_sent
    placement = story.tell("two", Turn(text="two", detach=("b.md",)))
    assert (placement.keep, placement.within, placement.served) == (1, 1, 0)
    assert placement.why.startswith("cut in message 1")
    now = story.last_sent
    assert now[1].pieces[0] == before[1].pieces[0]
    assert now[1].text.endswith("[User query]:\none")
    assert [LONG in one.text for one in now] == [False, True, False, False]
    assert not any("And more." in one.text for one in now)


def test_a_note_that_heads_a_message_and_changed_stays_and_is_told_by_a_difference() -> None:
    story = heading()
    changed = attaching(note("a.md", LONG + "One line more.\n"))
    placement = story.tell("two", replace(changed, detach=("b.md",)))
    assert (placement.keep, placement.within) == (1, 1)
    assert "<diff>" in story.last_sent[-1].text
    # What stands in two places is one text no longer: the next cut shows it whole.
    again = story.tell("three", replace(attaching(note("c.md", LONG)), fold=True))
    assert (again.keep, again.within) == (1, 0)
    assert LONG + "One line more.\n" in story.last_sent[-1].text


def test_a_cut_in_a_message_shows_what_heads_those_behind_it_again() -> None:
    story = heading()
    story.tell("two", attaching(note("c.md", "A short one."), note("d.md", "Another one.")))
    placement = story.plan_turn(Turn(text="three", detach=("b.md",)))
    assert (placement.keep, placement.within, placement.order) == (1, 1, ("c.md", "d.md"))


def test_a_message_that_begins_with_what_goes_has_no_head() -> None:
    placement = heading().plan_turn(Turn(text="two", detach=("a.md",)))
    assert (placement.keep, placement.within) == (1, 0)


def test_a_message_of_which_nothing_goes_is_not_cut() -> None:
    story = Priced(CacheProfile(name="prefixes", read=0.1, write=1.0))
    for number in range(7):
        story.tell(f"q{number}")
    story.tell("read", attaching(note("a.md", "Short.")))
    placement = story.tell("two")
    assert (placement.keep, placement.within) == (None, 0)
    assert placement.why.startswith("appended")


def test_the_label_behind_what_stays_of_a_message_is_no_gain_of_its_cut() -> None:
    carrier = Carrier(1, (("dead.md", 300),), (("alive.md", 500),), 10, (("alive.md", 500),))
    ground = BARE._replace(carriers=(carrier,), entries=(Held(2, None),), wholes={"alive.md": 500})
    _, within, whole = list_candidates(ground, 3)
    assert within.total == whole.total + BARE.label
    lost = BARE.label * BARE.hazards.rest_worth(0.1, 1.0)
    assert within.cost - within.expected == pytest.approx(whole.cost - whole.expected - lost)


def test_where_a_cache_keeps_what_was_marked_a_message_goes_whole() -> None:
    story = heading(replace(STEPPED, marks=4))
    assert story.plan_turn(Turn(text="two", detach=("b.md",))).within == 0


def test_what_lingers_for_the_last_time_is_not_moved_where_the_cut_can_wait_a_turn() -> None:
    story = Priced()
    story.tell("one", replace(attaching(note("a.md", LONG * 6)), system=SystemParts(base="Be terse.")))
    story.tell("two", attaching(note("b.md", LONG)))
    # The first is dead, the second lingers: a turn later nothing has to be shown again.
    plans = [story.tell(f"q{number}") for number in range(2)]
    assert [plan.keep for plan in plans] == [None, 1]


def test_a_line_that_has_to_be_told_again_is_no_reason_to_cut() -> None:
    story = Priced(replace(STEPPED, read=0.1), STICKY)
    both = attaching(note("b.md", "A short one.\n" * 30), note("a.md", LONG))
    story.tell("one", replace(both, system=SystemParts(base="Be terse.")))
    story.tell("two", Turn(text="two", detach=("b.md",)))
    assert "No longer attached: b.md." in story.last_sent[-1].text
    assert [story.tell(f"q{number}").keep for number in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("pause", "lapse"), [(300, Lapse.NONE), (301, Lapse.SHORT), (3_600, Lapse.SHORT), (3_601, Lapse.LONG)]
)
def test_a_lapse_is_short_up_to_an_hour(pause: float, lapse: Lapse) -> None:
    assert carrying().plan_turn(Turn(text="now"), pause=pause).lapse is lapse


def test_a_wish_to_fold_begins_an_epoch_where_nothing_carries_anything() -> None:
    story = Priced()
    story.tell("one")
    placement = story.plan_turn(Turn(text="now", fold=True))
    assert (placement.keep, placement.why) == (2, "a fold was asked for")


def test_a_token_is_enough_to_be_served_where_a_cache_takes_any() -> None:
    least = replace(MARKED, marks=0, minimum=0)
    assert find_served([Held(0, None)], [1], (), profile=least, keep=1) == (0, 1)
    assert find_served([Held(0, None)], [0], (), profile=least, keep=1) == (None, 0)


# Three messages of a thousand tokens, of which nothing is known yet but what a test says.
BARE = Survey(
    first=0,
    ends=(1_000, 2_000, 3_000),
    carriers=(),
    entries=(),
    stable=None,
    hazards=find_hazards(NO_TRAIL),
    profile=CacheProfile(name="prefixes", read=0.1, write=1.0),
    wholes={},
    changed={},
    leaving=frozenset(),
    order=(),
    label=4,
)


def test_what_nobody_needs_any_more_makes_its_cut_worth_what_it_saves() -> None:
    append, fold = list_candidates(BARE._replace(carriers=(Carrier(0, (), (), 400),)), 3)
    assert (append.total, append.expected) == (3_000, append.cost)
    assert (fold.keep, fold.total) == (0, 2_600)
    assert fold.cost - fold.expected == pytest.approx(400 * BARE.hazards.rest_worth(0.1, 1.0))


def test_a_cut_behind_a_head_is_served_up_to_what_stays_of_the_message() -> None:
    carrier = Carrier(1, (("dead.md", 300),), (("alive.md", 500),), 0, (("alive.md", 500),))
    ground = BARE._replace(carriers=(carrier,), entries=(Held(2, None),), wholes={"alive.md": 500})
    _, within, whole = list_candidates(ground, 3)
    assert (within.keep, within.within, within.served) == (1, 1, 0)
    assert within.cost == pytest.approx(0.1 * 1_500 + (within.total - 1_500))
    assert (whole.keep, whole.within, whole.served) == (1, 0, 0)
    assert whole.cost == pytest.approx(0.1 * 1_000 + (whole.total - 1_000))


def test_l1_may_change_with_a_cut_that_pays_just_as_much_where_nothing_before_it_is_served() -> None:
    story = carrying(replace(MARKED, read=1.0, write=2.0))
    cut = Placement(keep=3, served=2, cost=0.0, other=0.0)
    again = sum(weigh(message, QUARTERS) for message in story.prompt(Turn(text="now", placement=cut)).messages[:3])
    assert again > 0
    for other, moves in ((again, True), (again - 1, False)):
        turn = Turn(text="now", placement=replace(cut, other=float(other)))
        assert lets_move(story.prompt(turn), story.profile) is moves


def test_what_a_cut_saves_where_something_leaves_soon_is_what_the_same_costs_a_turn_later() -> None:
    ground = BARE._replace(
        carriers=(Carrier(0, (), (("a.md", 500),), 2_000),), wholes={"a.md": 500}, leaving=frozenset({"a.md"})
    )
    _, fold = list_candidates(ground, 3)
    going = 500 * (1 - BARE.hazards.come_back("a.md"))
    waiting = BARE.hazards.wait_worth(0.1, 1.0, behind=1_000, going=going)
    assert fold.total == 1_000
    assert 0 < waiting < 2_000 * BARE.hazards.rest_worth(0.1, 1.0)
    assert fold.cost - fold.expected == pytest.approx(waiting)


def test_what_was_sent_again_to_keep_the_cache_is_warm() -> None:
    story = carrying()
    at = story.at + timedelta(seconds=400)
    turn = story.bind(Turn(text="now"))
    kept = plan_by_price(
        story.state, turn, MARKED, measure=QUARTERS, room=1e9, at=at, kept=story.at + timedelta(seconds=200)
    )
    assert (kept.lapse, kept.kept) == (Lapse.KEPT, story.at + timedelta(seconds=200))
    assert kept.served is not None
    assert plan_by_price(story.state, turn, MARKED, measure=QUARTERS, room=1e9, at=at).lapse is Lapse.SHORT


def test_a_cut_of_which_no_price_is_known_moves_nothing_before_the_talk() -> None:
    story = carrying()
    for cost, other in ((None, 5.0), (5.0, None)):
        placement = Placement(keep=3, served=2, cost=cost, other=other)
        assert not lets_move(story.prompt(Turn(text="now", placement=placement)), story.profile)


def test_without_l1_nothing_before_the_talk_is_marked() -> None:
    story = Priced()
    story.tell("one")
    assert story.plan_turn(Turn(text="now")).marks == ()


def test_a_cut_behind_what_is_served_asks_for_no_longer_lifetime() -> None:
    story = carrying(replace(MARKED, longer=(3_600.0, 2.0)))
    story.state = replace(story.state, trail=story.state.trail._replace(requests=20, short=10))
    assert story.plan_turn(Turn(text="now"), pause=400).lasting == 4
    warm = story.plan_turn(Turn(text="now"), room=1_000)
    assert (warm.keep, warm.served, warm.marks) == (1, 0, (0, 4))
    assert warm.lasting is None


def test_where_only_the_last_turns_are_shown_a_cold_cut_folds_all_that_was_said() -> None:
    story = carrying(terms=replace(AUTO, history=History.WINDOW))
    folded = story.plan_turn(Turn(text="now"), pause=400)
    assert (folded.keep, folded.marks) == (1, (0,))


def test_what_a_compaction_left_as_it_was_stays_whatever_it_costs() -> None:
    story = carrying()
    story.state = replace(story.state, kept=3)
    turn = Turn(text="now")
    assert story.plan_turn(turn).keep == 3
    assert story.plan_turn(replace(turn, system=SystemParts(base="Be kind."))).keep == 0
    other = replace(QUARTERS, name="other")
    counted = plan_by_price(story.state, story.bind(turn), MARKED, measure=other, room=1e9, at=story.at)
    assert (counted.keep, counted.why) == (0, "another model counts otherwise")


def slide(profile: CacheProfile) -> tuple[Priced, list[Placement]]:
    """Every turn brings a note and takes the one out that came three turns before it."""
    story = Priced(profile, STICKY)
    story.tell("begin", Turn(text="begin", system=SystemParts(base="Be terse.")))
    turns = [attaching(note(f"{at:02}.md", f"{LONG}This is {at:02}.")) for at in range(16)]
    left = [replace(turn, detach=(f"{at - 3:02}.md",) if at >= 3 else ()) for at, turn in enumerate(turns)]
    return story, [story.tell(f"q{at}", turn) for at, turn in enumerate(left)]


def test_where_every_prefix_is_served_a_cut_shows_last_what_is_due_to_leave() -> None:
    story, plans = slide(STEPPED)
    ordered = [plan.order for plan in plans if plan.order]
    # Before anything was seen to go, what was seen first comes first.
    assert ordered[0] == tuple(sorted(ordered[0]))
    assert ordered[-1] == (*sorted(ordered[-1])[1:], min(ordered[-1]))
    assert any(plan.within for plan in plans)
    given = make_tool_result(name="look", arguments={}, output="This was found.")
    asked = replace(attaching(note("16.md", LONG)), detach=("13.md",), fold=True, results=(given,))
    shown = story.tell("and now?", asked)
    question = story.last_sent[-1].text
    texts = [question.index(f"<path>{name}</path>") for name in shown.order]
    assert len(texts) == 3
    # What left and what a tool gave stand behind all that lives.
    places = [*texts, question.index("<left_out>"), question.index("This was found.")]
    assert places == sorted(places)


def test_where_a_message_is_served_whole_or_not_at_all_what_was_seen_first_comes_first() -> None:
    _, plans = slide(replace(STEPPED, marks=4))
    assert any(plan.keep is not None for plan in plans[3:])
    assert not any(plan.order for plan in plans)


def test_prices_are_written_down_to_a_tenth_of_a_token() -> None:
    placement = carrying().plan_turn(Turn(text="now"))
    for price in (placement.cost, placement.other):
        assert price is not None
        assert price == round(price, 1)
