from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.core.compaction.stories import QUARTERS, Story, attaching, note

from lamella.core.artifacts.kinds import make_tool_result
from lamella.core.layout.costs import changes_prefix_anyway, estimate_cached_prefix, list_layout_options, plan_by_cost
from lamella.core.layout.layouts import (
    LayoutInputs,
    MessageWithAttachments,
    count_message_tokens,
    estimate_reuse_probabilities,
)
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.turn import (
    ArtifactForm,
    AttachmentMode,
    CacheStateAfterPause,
    HistoryMode,
    LayoutMode,
    LayoutPlan,
    SystemParts,
    Turn,
    TurnSettings,
)
from lamella.core.messages import Message
from lamella.core.prompt.cache_history import NO_CACHE_HISTORY, CacheEntry
from lamella.core.values import replace

START = datetime(2026, 11, 17, tzinfo=UTC)
AUTO = TurnSettings(layout=LayoutMode.AUTO, linger=1)
MARKED = CacheProfile(name="marks", lifetime=300, read=0.1, write=1.25, marks=4, lookback=20, bills_writes=True)
LONG = "A line of a long note.\n" * 400


class Priced(Story):
    """A story whose turns are planned, a minute apart."""

    def __init__(self, profile: CacheProfile = MARKED, terms: TurnSettings = AUTO) -> None:
        super().__init__(terms=terms)
        self.profile = profile
        self.at = START

    def plan_turn(self, turn: Turn, *, pause: float = 60, room: float = 1e9, aim: float | None = None) -> LayoutPlan:
        at = self.at + timedelta(seconds=pause)
        return plan_by_cost(
            self.state, self.bind(turn), self.profile, tokenizer=QUARTERS, max_tokens=room, target=aim, at=at
        )

    @property
    def last_sent(self) -> tuple[Message, ...]:
        """What was sent last."""
        assert self.state.last_prompt is not None
        return tuple(self.state.last_prompt.messages)

    def add_turn(self, text: str, turn: Turn | None = None, *, pause: float = 60) -> LayoutPlan:
        asked = replace(turn or Turn(text=text), text=text)
        layout_plan = self.plan_turn(asked, pause=pause)
        self.at += timedelta(seconds=pause)
        self.say(text, "yes", replace(asked, layout_plan=layout_plan))
        return layout_plan


def carrying(profile: CacheProfile = MARKED, terms: TurnSettings = AUTO) -> Priced:
    """A long note, and a turn of talk after it, in which it stays in the working set; in the next it does not."""
    story = Priced(profile, terms)
    story.add_turn("one", replace(attaching(note("a.md", LONG)), system=SystemParts(base="Be terse.")))
    story.add_turn("two")
    return story


def test_cached_prompt_is_appended_to() -> None:
    story = Priced()
    story.add_turn("one", attaching(note("a.md", "Short.")))
    layout_plan = story.plan_turn(attaching(note("a.md", "Short.")))
    assert (layout_plan.keep_messages, layout_plan.expiry) == (None, CacheStateAfterPause.NONE)
    assert layout_plan.why.startswith("appended")


def test_expired_cache_folds_and_drops_unused() -> None:
    layout_plan = carrying().plan_turn(Turn(text="now"), pause=400)
    assert (layout_plan.keep_messages, layout_plan.cached_message, layout_plan.expiry) == (
        1,
        None,
        CacheStateAfterPause.SHORT,
    )
    assert layout_plan.why.startswith("folded: the cache lapsed")


def test_expired_cache_folds_at_equal_cost() -> None:
    free = replace(MARKED, read=0.0, write=0.0)
    cold, warm = (carrying(free).plan_turn(Turn(text="now"), pause=pause) for pause in (400, 60))
    assert (cold.cost, cold.other, cold.keep_messages) == (0.0, 0.0, 1)
    assert (warm.cost, warm.other, warm.keep_messages) == (0.0, 0.0, None)


def test_unknown_lifetime_or_time_never_expires() -> None:
    forever = replace(MARKED, lifetime=None, read=0.0)
    assert carrying(forever).plan_turn(Turn(text="now"), pause=1e6).keep_messages is None
    story = carrying(replace(MARKED, read=0.0))
    layout_plan = plan_by_cost(
        story.state, story.bind(Turn(text="now")), story.profile, tokenizer=QUARTERS, max_tokens=1e9, at=None
    )
    assert (layout_plan.keep_messages, layout_plan.expiry) == (None, CacheStateAfterPause.UNKNOWN)


def test_smallest_prompt_wins_if_reading_costs_like_writing() -> None:
    assert (
        carrying(CacheProfile(name="none", read=1.0, write=1.0)).plan_turn(Turn(text="now")).keep_messages is not None
    )


def test_free_reads_move_nothing_cached() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    assert [story.add_turn(f"q{number}").keep_messages for number in range(5)] == [None] * 5


def test_much_unused_after_little_used_is_cut() -> None:
    story = carrying()
    kept = [story.add_turn(f"q{number}").keep_messages for number in range(4)]
    assert 1 in kept


def test_request_above_limit_folds_at_any_cost() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    assert story.plan_turn(Turn(text="now"), room=500).keep_messages == 1


def test_current_attachments_count_toward_limit() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    room = story.tokens() + 100
    assert story.plan_turn(Turn(text="now"), room=room).keep_messages is None
    assert story.plan_turn(attaching(note("b.md", LONG)), room=room).keep_messages == 1
    assert story.plan_turn(Turn(text="now " * 200), room=room).keep_messages == 1


def test_forced_cut_reduces_to_target_if_possible() -> None:
    story = carrying(CacheProfile(name="own", read=0.0, write=1.0))
    for number in range(3):
        story.add_turn("more", attaching(note(f"{number}.md", LONG)))
    story.add_turn("three")
    room = story.tokens() - 100
    least = story.plan_turn(Turn(text="now"), room=room).keep_messages
    assert least is not None
    assert least > 1
    assert story.plan_turn(Turn(text="now"), room=room, aim=room / 4).keep_messages == 1
    assert story.plan_turn(Turn(text="now"), room=room, aim=1).keep_messages == 1


def test_reattached_handle_costs_its_text() -> None:
    story = carrying()
    story.add_turn("three", pause=400)
    again = replace(attaching(note("a.md", LONG)), text="four")
    story.add_turn("four", again)
    # To move all of a note that lives, for the few words beside it that do not, would cost its whole text.
    assert story.plan_turn(attaching(note("a.md", LONG))).keep_messages is None


def test_plan_sets_breakpoints_on_l1_and_kept_part_within_limit() -> None:
    story = carrying()
    folded = story.add_turn("three", pause=400)
    assert folded.breakpoints == (0, 4)
    assert story.plan_turn(Turn(text="now")).breakpoints == (0, 4)
    single = replace(MARKED, marks=1)
    assert carrying(single).plan_turn(Turn(text="now"), pause=400).breakpoints == ()


def test_longer_lifetime_is_requested_once_short_expiries_pay() -> None:
    story = carrying(replace(MARKED, longer=(3_600.0, 2.0)))
    folded = story.add_turn("three", pause=400)
    assert folded.long_lifetime_until == 4
    after = story.add_turn("four", pause=400)
    assert after.cached_message == 4
    assert carrying().plan_turn(Turn(text="now"), pause=400).long_lifetime_until is None


@pytest.mark.parametrize(("text", "whole"), [(LONG.replace("long", "LONG", 1), False), ("New.", False)])
def test_small_change_is_sent_as_diff(text: str, whole: bool) -> None:  # noqa: FBT001
    story = Priced()
    story.add_turn("one", attaching(note("a.md", LONG)))
    layout_plan = story.plan_turn(attaching(note("a.md", text)))
    assert (layout_plan.forms.get("a.md") is ArtifactForm.FULL) is whole


def test_changed_settings_keep_nothing() -> None:
    layout_plan = carrying().plan_turn(Turn(text="now", system=SystemParts(base="Be kind.")))
    assert (layout_plan.keep_messages, layout_plan.why) == (0, "the system prompt changed")


def test_breakpoint_finds_entry_within_lookback() -> None:
    ends = [100 * number for number in range(1, 40)]
    near = replace(MARKED, lookback=5)
    assert estimate_cached_prefix([CacheEntry(10, None)], ends, (12,), profile=near, keep_messages=39) == (10, 1_100)
    assert estimate_cached_prefix([CacheEntry(10, None)], ends, (30,), profile=near, keep_messages=39) == (None, 0)
    assert estimate_cached_prefix([CacheEntry(10, None)], ends, (10, 30), profile=near, keep_messages=9) == (None, 0)
    steps = replace(MARKED, marks=0, granularity=128, minimum=500)
    assert estimate_cached_prefix([CacheEntry(10, None)], ends, (), profile=steps, keep_messages=9) == (8, 896)
    assert estimate_cached_prefix([CacheEntry(2, None)], ends, (), profile=steps, keep_messages=9) == (None, 0)


def moving(story: Priced, turn: Turn, *, pause: float = 60, room: float = 1e9) -> bool:
    """Whether what is before the talk may change with a turn, as it is planned."""
    planned = replace(turn, layout_plan=story.plan_turn(turn, pause=pause, room=room))
    return changes_prefix_anyway(story.prompt(planned), story.profile)


def test_l1_may_change_after_expiry_or_forced_fold_only() -> None:
    story = carrying()
    assert moving(story, Turn(text="now"), pause=400)
    assert moving(story, Turn(text="now", system=SystemParts(base="Be kind.")))
    assert not moving(carrying(replace(MARKED, read=0.0)), Turn(text="now"))
    talk = Priced()
    talk.add_turn("one", Turn(text="one", system=SystemParts(base="Be terse.")))
    assert (moving(talk, Turn(text="now")), moving(talk, Turn(text="now"), pause=400)) == (False, True)


def test_l1_may_change_with_cut_if_forced_or_still_profitable() -> None:
    free, dear = (replace(MARKED, lifetime=None, marks=0, lookback=None, read=read) for read in (0.0, 0.1))
    for profile, before, room, moves in (
        (dear, 1, 1e9, True),
        (dear, 200, 1e9, False),
        (free, 1, 1e9, False),
        (free, 200, 1_500, True),
    ):
        story = Priced(profile)
        for number in range(before):
            story.add_turn(f"question {number} about desks")
        story.add_turn("read", attaching(note("a.md", LONG)))
        story.add_turn("two")
        layout_plan = story.plan_turn(Turn(text="now"), room=room)
        assert (layout_plan.keep_messages is None) == (profile is free and room > 1_500)
        assert moving(story, Turn(text="now"), room=room) is moves


STEPPED = CacheProfile(name="steps", lifetime=600, read=0.5, write=1.0, marks=0)
STICKY = TurnSettings(layout=LayoutMode.AUTO, attachments=AttachmentMode.STICKY)


def heading(profile: CacheProfile = STEPPED) -> Priced:
    """Two long notes in one message, of which the first stays attached."""
    story = Priced(profile, STICKY)
    both = attaching(note("a.md", LONG), note("b.md", LONG + "And more."))
    story.add_turn("one", replace(both, system=SystemParts(base="Be terse.")))
    return story


def test_prefix_cache_keeps_head_of_cut_message() -> None:
    story = heading()
    before = story.last_sent
    layout_plan = story.add_turn("two", Turn(text="two", detach=("b.md",)))
    assert (layout_plan.keep_messages, layout_plan.within, layout_plan.cached_message) == (1, 1, 0)
    assert layout_plan.why.startswith("cut in message 1")
    now = story.last_sent
    assert now[1].pieces[0] == before[1].pieces[0]
    assert now[1].text.endswith("[User query]:\none")
    assert [LONG in one.text for one in now] == [False, True, False, False]
    assert not any("And more." in one.text for one in now)


def test_changed_note_at_message_head_is_updated_by_diff() -> None:
    story = heading()
    changed = attaching(note("a.md", LONG + "One line more.\n"))
    layout_plan = story.add_turn("two", replace(changed, detach=("b.md",)))
    assert (layout_plan.keep_messages, layout_plan.within) == (1, 1)
    assert "<diff>" in story.last_sent[-1].text
    # What is in two places is one text no longer: the next cut shows it whole.
    again = story.add_turn("three", replace(attaching(note("c.md", LONG)), fold=True))
    assert (again.keep_messages, again.within) == (1, 0)
    assert LONG + "One line more.\n" in story.last_sent[-1].text


def test_cut_in_message_resends_heads_of_later_messages() -> None:
    story = heading()
    story.add_turn("two", attaching(note("c.md", "A short one."), note("d.md", "Another one.")))
    layout_plan = story.plan_turn(Turn(text="three", detach=("b.md",)))
    assert (layout_plan.keep_messages, layout_plan.within, layout_plan.order) == (1, 1, ("c.md", "d.md"))


def test_message_starting_with_removed_text_has_no_head() -> None:
    layout_plan = heading().plan_turn(Turn(text="two", detach=("a.md",)))
    assert (layout_plan.keep_messages, layout_plan.within) == (1, 0)


def test_message_without_removed_text_is_not_cut() -> None:
    story = Priced(CacheProfile(name="prefixes", read=0.1, write=1.0))
    for number in range(7):
        story.add_turn(f"q{number}")
    story.add_turn("read", attaching(note("a.md", "Short.")))
    layout_plan = story.add_turn("two")
    assert (layout_plan.keep_messages, layout_plan.within) == (None, 0)
    assert layout_plan.why.startswith("appended")


def test_label_after_kept_head_is_no_gain() -> None:
    carrier = MessageWithAttachments(1, (("dead.md", 300),), (("alive.md", 500),), 10, (("alive.md", 500),))
    inputs = BARE._replace(carriers=(carrier,), cache_entries=(CacheEntry(2, None),), full_tokens={"alive.md": 500})
    _, within, whole = list_layout_options(inputs, 3)
    assert within.earlier_tokens == whole.earlier_tokens + BARE.label_tokens
    lost = BARE.label_tokens * BARE.probabilities.saving_of_removed_text(0.1, 1.0)
    assert within.cost - within.expected_cost == pytest.approx(whole.cost - whole.expected_cost - lost)


def test_breakpoint_cache_removes_whole_message() -> None:
    story = heading(replace(STEPPED, marks=4))
    assert story.plan_turn(Turn(text="two", detach=("b.md",))).within == 0


def test_last_turn_of_retention_is_not_moved_if_cut_can_wait() -> None:
    story = Priced()
    story.add_turn("one", replace(attaching(note("a.md", LONG * 6)), system=SystemParts(base="Be terse.")))
    story.add_turn("two", attaching(note("b.md", LONG)))
    # The first is dead, the second stays in the working set: a turn later nothing has to be shown again.
    plans = [story.add_turn(f"q{number}") for number in range(2)]
    assert [plan.keep_messages for plan in plans] == [None, 1]


def test_repeated_notice_is_no_reason_to_cut() -> None:
    story = Priced(replace(STEPPED, read=0.1), STICKY)
    both = attaching(note("b.md", "A short one.\n" * 30), note("a.md", LONG))
    story.add_turn("one", replace(both, system=SystemParts(base="Be terse.")))
    story.add_turn("two", Turn(text="two", detach=("b.md",)))
    assert "No longer attached: b.md." in story.last_sent[-1].text
    assert [story.add_turn(f"q{number}").keep_messages for number in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("pause", "lapse"),
    [
        (300, CacheStateAfterPause.NONE),
        (301, CacheStateAfterPause.SHORT),
        (3_600, CacheStateAfterPause.SHORT),
        (3_601, CacheStateAfterPause.LONG),
    ],
)
def test_expiry_is_short_up_to_one_hour(pause: float, lapse: CacheStateAfterPause) -> None:
    assert carrying().plan_turn(Turn(text="now"), pause=pause).expiry is lapse


def test_requested_fold_starts_epoch_without_carriers() -> None:
    story = Priced()
    story.add_turn("one")
    layout_plan = story.plan_turn(Turn(text="now", fold=True))
    assert (layout_plan.keep_messages, layout_plan.why) == (2, "a fold was asked for")


def test_one_token_is_cached_without_minimum() -> None:
    least = replace(MARKED, marks=0, minimum=0)
    assert estimate_cached_prefix([CacheEntry(0, None)], [1], (), profile=least, keep_messages=1) == (0, 1)
    assert estimate_cached_prefix([CacheEntry(0, None)], [0], (), profile=least, keep_messages=1) == (None, 0)


# Three messages of a thousand tokens, of which nothing is known yet but what a test says.
BARE = LayoutInputs(
    first_message_after_system=0,
    cumulative_tokens=(1_000, 2_000, 3_000),
    carriers=(),
    cache_entries=(),
    stable_message=None,
    probabilities=estimate_reuse_probabilities(NO_CACHE_HISTORY),
    profile=CacheProfile(name="prefixes", read=0.1, write=1.0),
    full_tokens={},
    update_tokens={},
    leaving=frozenset(),
    in_use_order=(),
    label_tokens=4,
)


def test_unused_text_makes_cut_worth_its_saving() -> None:
    append, fold = list_layout_options(BARE._replace(carriers=(MessageWithAttachments(0, (), (), 400),)), 3)
    assert (append.earlier_tokens, append.expected_cost) == (3_000, append.cost)
    assert (fold.keep_messages, fold.earlier_tokens) == (0, 2_600)
    assert fold.cost - fold.expected_cost == pytest.approx(400 * BARE.probabilities.saving_of_removed_text(0.1, 1.0))


def test_cut_after_head_is_cached_up_to_kept_part() -> None:
    carrier = MessageWithAttachments(1, (("dead.md", 300),), (("alive.md", 500),), 0, (("alive.md", 500),))
    inputs = BARE._replace(carriers=(carrier,), cache_entries=(CacheEntry(2, None),), full_tokens={"alive.md": 500})
    _, within, whole = list_layout_options(inputs, 3)
    assert (within.keep_messages, within.keep_pieces, within.cached_message) == (1, 1, 0)
    assert within.cost == pytest.approx(0.1 * 1_500 + (within.earlier_tokens - 1_500))
    assert (whole.keep_messages, whole.keep_pieces, whole.cached_message) == (1, 0, 0)
    assert whole.cost == pytest.approx(0.1 * 1_000 + (whole.earlier_tokens - 1_000))


def test_l1_may_change_with_equal_cut_if_nothing_before_is_cached() -> None:
    story = carrying(replace(MARKED, read=1.0, write=2.0))
    cut = LayoutPlan(keep_messages=3, cached_message=2, cost=0.0, other=0.0)
    again = sum(
        count_message_tokens(message, QUARTERS)
        for message in story.prompt(Turn(text="now", layout_plan=cut)).messages[:3]
    )
    assert again > 0
    for other, moves in ((again, True), (again - 1, False)):
        turn = Turn(text="now", layout_plan=replace(cut, other=float(other)))
        assert changes_prefix_anyway(story.prompt(turn), story.profile) is moves


def test_postponed_cut_is_priced_one_turn_later() -> None:
    inputs = BARE._replace(
        carriers=(MessageWithAttachments(0, (), (("a.md", 500),), 2_000),),
        full_tokens={"a.md": 500},
        leaving=frozenset({"a.md"}),
    )
    _, fold = list_layout_options(inputs, 3)
    going = 500 * (1 - BARE.probabilities.reattach_probability("a.md"))
    waiting = BARE.probabilities.cost_of_cut_next_turn(0.1, 1.0, tokens_after_cut=1_000, leaving_tokens=going)
    assert fold.earlier_tokens == 1_000
    assert 0 < waiting < 2_000 * BARE.probabilities.saving_of_removed_text(0.1, 1.0)
    assert fold.cost - fold.expected_cost == pytest.approx(waiting)


def test_keep_alive_counts_as_valid_cache() -> None:
    story = carrying()
    at = story.at + timedelta(seconds=400)
    turn = story.bind(Turn(text="now"))
    kept = plan_by_cost(
        story.state,
        turn,
        MARKED,
        tokenizer=QUARTERS,
        max_tokens=1e9,
        at=at,
        kept_alive_at=story.at + timedelta(seconds=200),
    )
    assert (kept.expiry, kept.kept_alive_at) == (CacheStateAfterPause.KEPT_ALIVE, story.at + timedelta(seconds=200))
    assert kept.cached_message is not None
    assert (
        plan_by_cost(story.state, turn, MARKED, tokenizer=QUARTERS, max_tokens=1e9, at=at).expiry
        is CacheStateAfterPause.SHORT
    )


def test_unpriced_cut_moves_nothing_before_history() -> None:
    story = carrying()
    for cost, other in ((None, 5.0), (5.0, None)):
        layout_plan = LayoutPlan(keep_messages=3, cached_message=2, cost=cost, other=other)
        assert not changes_prefix_anyway(story.prompt(Turn(text="now", layout_plan=layout_plan)), story.profile)


def test_empty_l1_gets_no_breakpoint() -> None:
    story = Priced()
    story.add_turn("one")
    assert story.plan_turn(Turn(text="now")).breakpoints == ()


def test_cut_after_cached_part_requests_no_longer_lifetime() -> None:
    story = carrying(replace(MARKED, longer=(3_600.0, 2.0)))
    story.state = replace(story.state, cache_history=story.state.cache_history._replace(requests=20, short_expiries=10))
    assert story.plan_turn(Turn(text="now"), pause=400).long_lifetime_until == 4
    warm = story.plan_turn(Turn(text="now"), room=1_000)
    assert (warm.keep_messages, warm.cached_message, warm.breakpoints) == (1, 0, (0, 4))
    assert warm.long_lifetime_until is None


def test_window_mode_folds_all_after_expiry() -> None:
    story = carrying(terms=replace(AUTO, history=HistoryMode.WINDOW))
    folded = story.plan_turn(Turn(text="now"), pause=400)
    assert (folded.keep_messages, folded.breakpoints) == (1, (0,))


def test_compacted_prefix_is_kept_at_any_cost() -> None:
    story = carrying()
    story.state = replace(story.state, kept_messages=3)
    turn = Turn(text="now")
    assert story.plan_turn(turn).keep_messages == 3
    assert story.plan_turn(replace(turn, system=SystemParts(base="Be kind."))).keep_messages == 0
    other = replace(QUARTERS, name="other")
    counted = plan_by_cost(story.state, story.bind(turn), MARKED, tokenizer=other, max_tokens=1e9, at=story.at)
    assert (counted.keep_messages, counted.why) == (0, "another model counts otherwise")


def slide(profile: CacheProfile) -> tuple[Priced, list[LayoutPlan]]:
    """Every turn brings a note and takes the one out that came three turns before it."""
    story = Priced(profile, STICKY)
    story.add_turn("begin", Turn(text="begin", system=SystemParts(base="Be terse.")))
    turns = [attaching(note(f"{at:02}.md", f"{LONG}This is {at:02}.")) for at in range(16)]
    left = [replace(turn, detach=(f"{at - 3:02}.md",) if at >= 3 else ()) for at, turn in enumerate(turns)]
    return story, [story.add_turn(f"q{at}", turn) for at, turn in enumerate(left)]


def test_prefix_cache_orders_attachments_by_expected_leaving() -> None:
    story, plans = slide(STEPPED)
    ordered = [plan.order for plan in plans if plan.order]
    # Before anything was seen to go, what was seen first comes first.
    assert ordered[0] == tuple(sorted(ordered[0]))
    assert ordered[-1] == (*sorted(ordered[-1])[1:], min(ordered[-1]))
    assert any(plan.within for plan in plans)
    given = make_tool_result(name="look", arguments={}, output="This was found.")
    asked = replace(attaching(note("16.md", LONG)), detach=("13.md",), fold=True, tool_results=(given,))
    shown = story.add_turn("and now?", asked)
    question = story.last_sent[-1].text
    texts = [question.index(f"<path>{name}</path>") for name in shown.order]
    assert len(texts) == 3
    # What left and what a tool gave are behind all that lives.
    places = [*texts, question.index("<left_out>"), question.index("This was found.")]
    assert places == sorted(places)


def test_whole_message_cache_orders_attachments_by_first_use() -> None:
    _, plans = slide(replace(STEPPED, marks=4))
    assert any(plan.keep_messages is not None for plan in plans[3:])
    assert not any(plan.order for plan in plans)


def test_prices_are_rounded_to_a_tenth_of_a_token() -> None:
    layout_plan = carrying().plan_turn(Turn(text="now"))
    for price in (layout_plan.cost, layout_plan.other):
        assert price is not None
        assert price == round(price, 1)
