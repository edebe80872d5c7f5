"""Contradictions: where what a provider reports as cached cannot be, by what its profile says of the cache.

Only what was sent unmoved is looked at. One miss proves nothing, since caches drop what they like; two on one side of
every hit do.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from lamella.core.ledger.cache import CacheProfile

# Counts of models whose vocabulary is not public are estimates; a smaller difference than this says nothing.
_SLACK = 0.05
_MISSES = 2
_ALIKE = 3
_DOUBLE = 2


class Observation(NamedTuple):
    """An unmoved request: the turn, its tokens, those reported as cached, and those of the request before it.

    ``pause`` is how many seconds that was earlier, none where nobody knows to the second.
    """

    turn: int
    prompt: int
    read: int
    before: int
    pause: float | None


class Contradiction(NamedTuple):
    """What was seen in which turns, in a sentence, and the facts that fit it, by their names in a file of facts."""

    turns: tuple[int, ...]
    says: str
    facts: tuple[tuple[str, int | bool], ...]


def find_contradictions(seen: Sequence[Observation], profile: CacheProfile) -> list[Contradiction]:
    """What a model's requests say against its profile, at most one of each kind; nothing where there is no cache."""
    if profile.read >= profile.write:
        return []
    constant = _find_constant(seen, profile)
    if constant is not None:
        return [constant]
    floor = _find_low_floor(seen, profile) or _find_high_floor(seen, profile)
    lifetime = _find_longer_life(seen, profile) or (None if floor else _find_shorter_life(seen, profile))
    return [one for one in (floor, lifetime) if one is not None]


def _find_constant(seen: Sequence[Observation], profile: CacheProfile) -> Contradiction | None:
    """The same count again and again, although more was sent before each time."""
    for at in range(len(seen) - _ALIKE, -1, -1):
        run = seen[at : at + _ALIKE]
        grows = all(one.prompt < other.prompt for one, other in pairwise(run))
        short = all(one.before * (1 - _SLACK) - one.read > profile.granularity for one in run)
        if run[0].read > 0 and grows and short and len({one.read for one in run}) == 1:
            held = run[0].read
            says = f"{held:,} tokens came from the cache each time, while requests grew to {run[-1].prompt:,}"
            # Steps as long as what is held explain it as long as there was no second one.
            stepped = run[-1].before < _DOUBLE * held
            facts = (("granularity", held),) if stepped else (("implicit", False), ("breakpoints", 0))
            return Contradiction(_turns(run), says, facts)
    return None


def _find_low_floor(seen: Sequence[Observation], profile: CacheProfile) -> Contradiction | None:
    """Something came from the cache that is too short to be kept."""
    below = [one for one in seen if 0 < one.read < profile.minimum]
    if not below:
        return None
    least = min(one.read for one in below)
    says = f"{least:,} tokens came from the cache, which should keep nothing below {profile.minimum:,}"
    return Contradiction(_turns(below), says, (("minimum", least),))


def _find_high_floor(seen: Sequence[Observation], profile: CacheProfile) -> Contradiction | None:
    """Nothing short came from the cache, and everything longer did."""
    misses, hits = _list_misses(seen, profile), [one for one in seen if one.read]
    if len(misses) < _MISSES or not hits:
        return None
    longest, least = max(one.before for one in misses), min(one.read for one in hits)
    if longest >= least:
        return None
    says = (
        f"nothing of up to {longest:,} tokens came from the cache, which should keep {max(profile.minimum, 1):,}; "
        f"{least:,} did"
    )
    return Contradiction(_turns(misses), says, (("minimum", least),))


def _find_longer_life(seen: Sequence[Observation], profile: CacheProfile) -> Contradiction | None:
    """All of it came from the cache after a pause that it should not have outlived."""
    if profile.lifetime is None:
        return None
    lasts = max(profile.lifetime, profile.longer[0] if profile.longer else 0)
    late = [one for one in seen if one.pause is not None and one.pause > lasts and _is_whole(one, profile)]
    if not late:
        return None
    longest = ceil(max(one.pause or 0 for one in late))
    says = f"the cache still had all of it after {longest:,} s, and should keep it for {lasts:,.0f} s"
    return Contradiction(_turns(late), says, (("lifetime", longest),))


def _find_shorter_life(seen: Sequence[Observation], profile: CacheProfile) -> Contradiction | None:
    """After shorter pauses it was there, after longer ones never, although it should have been."""
    if profile.lifetime is None:
        return None
    misses = [one for one in _list_misses(seen, profile) if one.pause is not None]
    served = [one.pause for one in seen if one.read and one.pause is not None]
    if len(misses) < _MISSES or not served:
        return None
    longest, gone = max(served), min(one.pause or 0 for one in misses)
    if gone <= longest:
        return None
    says = (
        f"nothing was left in the cache after {gone:,.0f} s, and it should keep it for {profile.lifetime:,} s; "
        f"after {longest:,.0f} s it was there"
    )
    return Contradiction(_turns(misses), says, (("lifetime", max(1, int(longest))),))


def _list_misses(seen: Sequence[Observation], profile: CacheProfile) -> list[Observation]:
    """Requests of which nothing was served although the profile says that something is kept."""
    lasts = profile.lifetime
    return [
        one
        for one in seen
        if not one.read
        and one.before - one.before % profile.granularity >= max(profile.minimum, 1)
        and (lasts is None or (one.pause is not None and one.pause <= lasts))
    ]


def _is_whole(one: Observation, profile: CacheProfile) -> bool:
    return one.read > 0 and one.read >= one.before * (1 - _SLACK) - profile.granularity


def _turns(seen: Sequence[Observation]) -> tuple[int, ...]:
    return tuple(one.turn for one in seen)
