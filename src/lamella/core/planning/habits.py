"""Habits: how often caches lapse and things come back or go, learnt in a conversation, from what is usual on."""

import math
from typing import NamedTuple

from lamella.core.prompt.trail import Habit, Trail, find_age

# What is expected before anything was seen, and how many observations that counts for. Tuned on the even seeds of
# `python -m bench layouts`.
_LAPSE, _LAPSE_WEIGHT = 0.06, 8
_END_AFTER = 20
_RETURN, _RETURN_WEIGHT = 0.05, 6
_DROP, _DROP_WEIGHT = 0.2, 5
_LEAST_AHEAD = 10
# Whoever waits cuts more at once: the chance per request that a later cut takes along what this one does not. The
# dearer reading is beside writing anew, the sooner that comes: by the square root, as for all that is cleared away.
_CUT_LATER = 0.45


class Hazards(NamedTuple):
    """Chances per request: that the cache lapses or the talk ends, and what to expect of each artifact."""

    lapse: float
    returns: float
    drops: float
    trail: Trail

    def come_back(self, name: str) -> float:
        """That something that is not attached will be."""
        habit = self.trail.habits.get(name, Habit())
        return (habit.returned + _RETURN_WEIGHT * self.returns) / (habit.absent + _RETURN_WEIGHT)

    def drop(self, name: str) -> float:
        """That something attached will not be any more."""
        habit = self.trail.habits.get(name, Habit())
        return (habit.dropped + _DROP_WEIGHT * self.drops) / (habit.stayed + _DROP_WEIGHT)

    def is_due(self, age: int) -> bool:
        """Whether the odds that things leave the set so many turns after they were attached are twice the usual."""
        ages = self.trail.ages
        usual = sum([left for _, left in ages]) / max(1, sum([seen for seen, _ in ages]))
        seen, left = ages[find_age(age)]
        leaves = (left + _DROP_WEIGHT * usual) / (seen + _DROP_WEIGHT)
        return leaves * (1 - usual) > 2 * usual * (1 - leaves)

    def worth(self, name: str, read: float, write: float) -> float:
        """What a token saves that is dead and not read any more, less that it may have to be written again."""
        back = self.come_back(name)
        return (1 - self.lapse) * (read - write * back) / (back + self.lapse + _cut_later(read, write))

    def wait_worth(self, read: float, write: float, *, behind: int, going: float) -> float:
        """What a cut saves at most: as much as the same costs a turn later, in which something is dead by itself.

        So many tokens stand ``behind`` it, of which those are ``going``: the later cut writes them no more.
        """
        return (1 - self.lapse) * max(0.0, (write - read) * behind - write * going)

    def rest_worth(self, read: float, write: float) -> float:
        """The same of what never comes back."""
        return (1 - self.lapse) * read / (self.lapse + _cut_later(read, write))


def _cut_later(read: float, write: float) -> float:
    return min(1.0, _CUT_LATER * math.sqrt(read / (write - read))) if write > read else 1.0


def find_hazards(trail: Trail) -> Hazards:
    """The chances after what a branch has sent."""
    lapses, seen = trail.short + trail.long, trail.requests
    habits = trail.habits.values()
    absent, returned = sum([one.absent for one in habits]), sum([one.returned for one in habits])
    stayed, dropped = sum([one.stayed for one in habits]), sum([one.dropped for one in habits])
    return Hazards(
        lapse=(lapses + _LAPSE * _LAPSE_WEIGHT) / (seen + _LAPSE_WEIGHT) + 1 / (seen + _END_AFTER),
        returns=(returned + _RETURN * _RETURN_WEIGHT) / (absent + _RETURN_WEIGHT),
        drops=(dropped + _DROP * _DROP_WEIGHT) / (stayed + _DROP_WEIGHT),
        trail=trail,
    )


def expect_back(trail: Trail) -> float:
    """The chance that somebody comes back within the hour who let the cache lapse, and neither later nor never."""
    seen = trail.requests
    hour = (trail.short + trail.kept + _LAPSE * _LAPSE_WEIGHT) / (seen + _LAPSE_WEIGHT)
    later = trail.long / (seen + _LAPSE_WEIGHT)
    return hour / (hour + later + 1 / (seen + _END_AFTER))


def expect_short_lapses(trail: Trail) -> float:
    """How many further lapses of at most an hour are to be expected."""
    seen = trail.requests
    rate = (trail.short + _LAPSE * _LAPSE_WEIGHT) / (seen + _LAPSE_WEIGHT)
    return rate * max(_LEAST_AHEAD, seen) * (trail.short + 2) / (trail.short + trail.long + 2)
