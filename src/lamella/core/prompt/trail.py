"""The trail: what a branch has sent and when, as far as whoever plans by price has to know it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from lamella.core.log.placement import Lapse, Placement

# How many places that a cache may hold are remembered; older ones lie before newer ones, or are long gone.
_REMEMBERED = 24
_NO_HABITS: Mapping[str, "Habit"] = MappingProxyType({})
# Whatever was attached longer ago than so many turns is as likely to go as what was attached then.
OLDEST = 8
_NO_AGES = ((0, 0),) * OLDEST


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
    were ``short`` lapses or ``long`` ones, and so many ``kept`` from being one. ``stable`` is the last message before
    the last fold's question. ``attached`` is the working set as the model was told it last. ``habits`` are those of
    what is known; ``ages`` how many things were in the set so many turns after they were last attached, from one turn
    on, and how many of them left it then.
    """

    entries: tuple[Held, ...] = ()
    at: datetime | None = None
    requests: int = 0
    short: int = 0
    long: int = 0
    kept: int = 0
    stable: int | None = None
    attached: tuple[str, ...] = ()
    habits: Mapping[str, Habit] = _NO_HABITS
    ages: tuple[tuple[int, int], ...] = _NO_AGES


NO_TRAIL = Trail()


def count_lapse(trail: Trail, lapse: Lapse) -> Trail:
    """The trail with what the pause before one more request did."""
    return trail._replace(
        requests=trail.requests + (lapse is not Lapse.UNKNOWN),
        short=trail.short + (lapse is Lapse.SHORT),
        long=trail.long + (lapse is Lapse.LONG),
        kept=trail.kept + (lapse is Lapse.KEPT),
    )


def keep_warm(trail: Trail, at: datetime | None) -> Trail:
    """The trail once what was sent last was sent again, if it was: all that went with it lives from then on."""
    if at is None:
        return trail
    entries = tuple([one._replace(at=at) if one.at == trail.at else one for one in trail.entries])
    return trail._replace(entries=entries, at=at)


def follow(
    trail: Trail,
    placement: Placement,
    *,
    asked_at: int,
    attached: Iterable[str],
    known: Iterable[str],
    ages: Mapping[str, int],
) -> Trail:
    """The trail once a request is sent that asks its question in the message ``asked_at``.

    ``attached`` is the working set of its turn, ``known`` all that was attached before it. ``ages`` says how many turns
    before it that was, of what was in the working set until then.
    """
    trail = keep_warm(trail, placement.kept)
    keep, now = placement.keep, tuple(attached)
    stays = frozenset(now)
    held = {one.position: one for one in trail.entries if keep is None or one.position < keep}
    held.update({one.position: one for one in _hold(placement, asked_at)})
    return count_lapse(trail, placement.lapse)._replace(
        entries=tuple(sorted(held.values(), key=_position_of)[-_REMEMBERED:]),
        at=placement.at or trail.at,
        stable=trail.stable if keep is None else asked_at - 1 if asked_at else None,
        attached=now,
        habits=_learn(trail, stays, known),
        ages=_add_ages(trail.ages, ages.values(), [age for name, age in ages.items() if name not in stays]),
    )


def _hold(placement: Placement, asked_at: int) -> list[Held]:
    """The places that a request leaves with caches."""
    positions = {*placement.marks, asked_at, *(() if placement.served is None else (placement.served,))}
    last = -1 if placement.lasting is None else placement.lasting
    return [Held(position=one, at=placement.at, lasting=one <= last) for one in positions]


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


def _add_ages(
    ages: tuple[tuple[int, int], ...], seen: Iterable[int], left: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """The ages with more that was in the set at some, and left it at some."""
    stayed, gone = Counter[int](), Counter[int]()
    # Much may be attached, and little of it for as long: ages are few.
    for more, to in ((seen, stayed), (left, gone)):
        for age, times in Counter(more).items():
            to[find_age(age)] += times
    return tuple([(one + stayed[at], other + gone[at]) for at, (one, other) in enumerate(ages)]) if stayed else ages


def find_age(age: int) -> int:
    """Where the ages have what was attached so many turns ago."""
    return min(max(age, 1), OLDEST) - 1


class LongTrail:
    """A trail that many requests go on, one after another, all of them without a fold: what each leaves is added up.

    ``attached`` is the working set as the model was told it last; ``known`` says how many turns before the first
    of them things were attached last.
    """

    def __init__(self, trail: Trail, known: Mapping[str, int]) -> None:
        self._trail = trail
        self.attached = trail.attached
        # What was planned for each request, and the message that the first of so many asked its question in.
        self._parts: list[tuple[Sequence[Placement], int]] = []
        self._requests = 0
        # The first request that knew something, and that which found it attached, by their numbers.
        self._known = dict.fromkeys(known, 0)
        self._since = dict.fromkeys(trail.attached, 0)
        # The request that attached something last, and that up to which its ages are added up.
        self._brought = {name: 1 - age for name, age in known.items()}
        self._aged: dict[str, int] = {}
        self._ages: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        self._stayed: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._returned: Counter[str] = Counter()

    def follow(self, placements: Sequence[Placement], *, asked_at: int, attached: tuple[str, ...]) -> None:
        """More requests, two messages apart, with one working set; it may be another than before in the first."""
        if attached != self.attached:
            self._change(attached)
        self._parts.append((placements, asked_at))
        self._requests += len(placements)

    def _change(self, attached: tuple[str, ...]) -> None:
        next_one = self._requests + 1
        for name in self.attached:
            if name not in attached:
                self._dropped[name] += 1
                self._age(name, next_one)
                self._ages[1][next_one - self._brought.get(name, next_one)] += name in self._known
                self._stayed[name] += next_one - max(self._since.pop(name), self._known.get(name, next_one))
        for name in attached:
            if name not in self._since:
                self._returned[name] += name in self._known
                self._since[name] = next_one
        self.attached = attached

    def learn(self, names: Iterable[str]) -> None:
        """What is known to the requests after the last."""
        for name in names:
            self._age(name, self._requests)
            self._known.setdefault(name, self._requests)
            self._brought[name] = self._requests

    def _age(self, name: str, until: int) -> None:
        """Add up how long ago something was attached in each request that found it in the set, up to this one."""
        if name not in self._since or name not in self._known:
            return
        first = max(self._since[name], self._known[name], self._aged.get(name, 0)) + 1
        oldest = min(until, self._brought[name] + OLDEST)
        self._ages[0].update([request - self._brought[name] for request in range(first, oldest + 1)])
        self._ages[0][OLDEST] += max(0, until - max(oldest, first - 1))
        self._aged[name] = until

    def end(self) -> Trail:
        """The trail after all of them."""
        for name in self.attached:
            self._age(name, self._requests)
        placements = [one for part, _ in self._parts for one in part]
        lapses = Counter([one.lapse for one in placements])
        return self._trail._replace(
            entries=self._list_entries(),
            at=next((one.at for one in reversed(placements) if one.at), self._trail.at),
            requests=self._trail.requests + len(placements) - lapses[Lapse.UNKNOWN],
            short=self._trail.short + lapses[Lapse.SHORT],
            long=self._trail.long + lapses[Lapse.LONG],
            kept=self._trail.kept + lapses[Lapse.KEPT],
            attached=self.attached,
            habits={name: self._add_up(name, first) for name, first in self._known.items() if first < self._requests},
            ages=_add_ages(self._trail.ages, *[counted.elements() for counted in self._ages]),
        )

    def _add_up(self, name: str, first: int) -> Habit:
        """The habit of something that was known from some request on."""
        stayed, dropped, absent, returned = self._trail.habits.get(name, _NEW)
        more, since = self._stayed[name], self._since.get(name)
        more += 0 if since is None else self._requests - max(since, first)
        absent += self._requests - first - more
        return Habit(stayed + more, dropped + self._dropped[name], absent, returned + self._returned[name])

    def _list_entries(self) -> tuple[Held, ...]:
        """The last places, found from the last request back: each holds places no further on than its question."""
        held: dict[int, Held] = {}
        for placement, asked_at in self._walk_back():
            if len(held) >= _REMEMBERED and asked_at < sorted(held)[-_REMEMBERED]:
                break
            for one in _hold(placement, asked_at):
                held.setdefault(one.position, one)
        for one in self._trail.entries:
            held.setdefault(one.position, one)
        return tuple(sorted(held.values(), key=_position_of)[-_REMEMBERED:])

    def _walk_back(self) -> Iterator[tuple[Placement, int]]:
        for placements, asked_at in reversed(self._parts):
            for at in range(len(placements) - 1, -1, -1):
                yield placements[at], asked_at + 2 * at
