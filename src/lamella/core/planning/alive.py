"""Keep-alives: whether what was sent last is worth sending again, only so that the cache still has it."""

import math

from lamella.core.ledger.cache import CacheProfile
from lamella.core.planning.habits import expect_back
from lamella.core.prompt.trail import Trail

# When in a lifetime the next is due: late, and early enough for one that takes a while to reach the provider.
_DUE = 0.95
_HOUR = 3_600.0


def find_due(profile: CacheProfile) -> float | None:
    """After how many seconds what was sent is to be sent again; none for a cache that nothing has to be kept in.

    That is one that does not expire by the clock, or that reads no cheaper than it writes.
    """
    return None if profile.lifetime is None or profile.read >= profile.write else _DUE * profile.lifetime


def expect_return(trail: Trail, idle: float, profile: CacheProfile) -> float:
    """The chance that somebody who was idle for so long comes back while one more request keeps the cache.

    Of those who come back within the hour as many come in each doubling of the time.
    """
    if profile.lifetime is None or idle >= _HOUR or idle <= 0:
        return 0.0
    within = min(1.0, math.log((idle + profile.lifetime) / idle) / math.log(_HOUR / idle))
    return expect_back(trail) * within


def pays_to_keep(chance: float, profile: CacheProfile, *, hot: int, total: int) -> bool:
    """Whether reading all of a request once more costs less than writing ``hot`` tokens anew would, by that chance.

    Hot are those that no longer lifetime holds.
    """
    if total < profile.minimum or find_due(profile) is None:
        return False
    return chance * (profile.write - profile.read) * hot > profile.read * total
