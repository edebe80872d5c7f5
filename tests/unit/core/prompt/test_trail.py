from datetime import UTC, datetime

from lamella.core.log.placement import Lapse, Placement
from lamella.core.prompt.trail import NO_TRAIL, OLDEST, Habit, Held, LongTrail, follow, go_further

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def test_a_request_is_held_at_its_marks_and_its_question() -> None:
    trail = follow(NO_TRAIL, Placement(keep=0, marks=(0, 2), at=NOW), asked_at=3, attached=(), known=(), ages={})
    assert [one.position for one in trail.entries] == [0, 2, 3]
    assert (trail.at, trail.stable) == (NOW, 2)


def test_a_cut_forgets_what_stood_behind_it_and_keeps_what_was_served() -> None:
    trail = NO_TRAIL._replace(entries=(Held(0, None), Held(4, None), Held(8, None)))
    cut = follow(trail, Placement(keep=5, served=4, at=NOW), asked_at=11, attached=(), known=(), ages={})
    assert [(one.position, one.at) for one in cut.entries] == [(0, None), (4, NOW), (11, NOW)]


def test_what_lasts_is_held_for_longer_and_what_is_behind_it_is_not() -> None:
    placement = Placement(keep=0, marks=(0, 4), lasting=4, at=NOW)
    trail = follow(NO_TRAIL, placement, asked_at=5, attached=(), known=(), ages={})
    assert [one.lasting for one in trail.entries] == [True, True, False]


def test_lapses_are_counted_where_the_pause_is_known() -> None:
    trail = NO_TRAIL
    for lapse in (Lapse.UNKNOWN, Lapse.NONE, Lapse.SHORT, Lapse.LONG):
        trail = follow(trail, Placement(lapse=lapse), asked_at=1, attached=(), known=(), ages={})
    assert (trail.requests, trail.short, trail.long) == (3, 1, 1)


def test_habits_tell_what_stayed_went_and_came_back() -> None:
    trail = follow(NO_TRAIL, Placement(), asked_at=1, attached=("a", "b"), known=(), ages={})
    trail = follow(trail, Placement(), asked_at=3, attached=("a",), known=("a", "b"), ages={})
    trail = follow(trail, Placement(), asked_at=5, attached=("a", "b"), known=("a", "b"), ages={})
    assert trail.habits == {"a": Habit(stayed=2), "b": Habit(stayed=1, dropped=1, absent=1, returned=1)}


def test_rounds_of_tools_are_held_as_well() -> None:
    trail = follow(NO_TRAIL, Placement(), asked_at=3, attached=(), known=(), ages={})
    assert [one.position for one in go_further(trail, 4).entries] == [3, 7]


def test_ages_tell_how_long_after_it_was_attached_something_left() -> None:
    trail = follow(NO_TRAIL, Placement(), asked_at=1, attached=("a", "b"), known=(), ages={})
    trail = follow(trail, Placement(), asked_at=3, attached=("a", "b"), known=("a", "b"), ages={"a": 1, "b": 1})
    trail = follow(trail, Placement(), asked_at=5, attached=("a",), known=("a", "b"), ages={"a": 1, "b": 2})
    assert trail.ages[:3] == ((3, 0), (1, 1), (0, 0))


def test_whatever_was_attached_long_ago_has_one_age() -> None:
    trail = NO_TRAIL._replace(attached=("a",))
    for age in (OLDEST, OLDEST + 1, OLDEST + 90):
        trail = follow(trail, Placement(), asked_at=1, attached=("a",), known=("a",), ages={"a": age})
    assert trail.ages[-1] == (3, 0)


def test_told_together_requests_leave_the_ages_that_they_leave_one_by_one() -> None:
    start = NO_TRAIL._replace(attached=("a", "b"))
    one, told, brought = start, LongTrail(start, {"a": 3, "b": 1}), {"a": -3, "b": -1}
    steps = [("a", "b"), ("a",), ("a", "c"), *[("a", "c")] * 12, ("c",), ("c",)]
    for number, attached in enumerate(steps):
        ages = {name: number - brought[name] for name in one.attached if name in brought}
        one = follow(one, Placement(), asked_at=1 + 2 * number, attached=attached, known=tuple(brought), ages=ages)
        told.follow((Placement(),), asked_at=1 + 2 * number, attached=attached)
        new = ["c"] if number in (2, 6) else []
        told.learn(new)
        brought |= dict.fromkeys(new, number)
    assert told.end().ages == one.ages
    assert sum(left for _, left in one.ages) == 2
