"""The trail: what a branch has sent and when, as far as whoever plans by price has to know it."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from lamella.core.log.placement import Lapse, Placement

# How many places that a cache may hold are remembered; older ones lie before newer ones, or are long gone.
_REMEMBERED = 24
_NO_HABITS: Mapping[str, "Habit"] = MappingProxyType({})


class Held(NamedTuple):
    """A place that a cache was told to keep: the message it ends with, when that was sent last, and for how long."""

    position: int
    at: datetime | None
    lasting: bool = False


class Habit(NamedTuple):
    """How often something stayed attached or was dropped, and stayed away or came back."""

    stayed: int = 0
    dropped: int = 0
    absent: int = 0
    returned: int = 0


class Trail(NamedTuple):
    """What was sent on a branch. ``entries`` are places that caches may hold, from the first message on.

    ``at`` is when the last request was sent; ``requests`` are those with a known pause before them, of which so many
    were ``short`` lapses or ``long`` ones. ``stable`` is the last message before the last fold's question. ``attached``
    is the working set as the model was told it last. ``habits`` are those of what is known.
    """

    entries: tuple[Held, ...] = ()
    at: datetime | None = None
    requests: int = 0
    short: int = 0
    long: int = 0
    stable: int | None = None
    attached: tuple[str, ...] = ()
    habits: Mapping[str, Habit] = _NO_HABITS


NO_TRAIL = Trail()


def count_lapse(trail: Trail, lapse: Lapse) -> Trail:
    """The trail with what the pause before one more request did."""
    return trail._replace(
        requests=trail.requests + (lapse is not Lapse.UNKNOWN),
        short=trail.short + (lapse is Lapse.SHORT),
        long=trail.long + (lapse is Lapse.LONG),
    )


def follow(
    trail: Trail, placement: Placement, *, asked_at: int, attached: Iterable[str], known: Iterable[str]
) -> Trail:
    """The trail once a request is sent that asks its question in the message ``asked_at``.

    ``attached`` is the working set of its turn, ``known`` all that was attached before it.
    """
    keep, at, now = placement.keep, placement.at, tuple(attached)
    held = {one.position: one for one in trail.entries if keep is None or one.position < keep}
    for position in {*placement.marks, asked_at, *(() if placement.served is None else (placement.served,))}:
        lasts = placement.lasting is not None and position <= placement.lasting
        held[position] = Held(position=position, at=at, lasting=lasts)
    return count_lapse(trail, placement.lapse)._replace(
        entries=tuple(sorted(held.values(), key=_position_of)[-_REMEMBERED:]),
        at=at or trail.at,
        stable=trail.stable if keep is None else asked_at - 1 if asked_at else None,
        attached=now,
        habits=_learn(trail, frozenset(now), known),
    )


def _position_of(held: Held) -> int:
    return held.position


def go_further(trail: Trail, messages: int) -> Trail:
    """The trail once the last turn was sent on with so many messages of tools after its question."""
    last = trail.entries[-1]
    return trail._replace(entries=(*trail.entries, last._replace(position=last.position + messages)))


def _learn(trail: Trail, now: Collection[str], known: Iterable[str]) -> Mapping[str, Habit]:
    before = frozenset(trail.attached)
    habits: dict[str, Habit] = {}
    for name in known:
        stayed, dropped, absent, returned = trail.habits.get(name, _NEW)
        if name in before:
            habits[name] = Habit(stayed + 1, dropped + (name not in now), absent, returned)
        else:
            habits[name] = Habit(stayed, dropped, absent + 1, returned + (name in now))
    return habits


_NEW = Habit()
