"""Thresholds: how much of the window a request may use, and from when on it is warned about or shrunk."""

from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from lamella.errors import SettingError

# A cut that goes deep is for what was said before: it takes nothing from what somebody attaches now.
_OWN = 0.5


class Budget(Struct, frozen=True, kw_only=True, dict=True):
    """One budget over everything sent. Thresholds are shares of ``limit``: warn, trigger and hard in this order.

    ``target`` is below trigger; whether it is above warn is nobody's matter.
    """

    window: int = 128_000
    reserve: int = 4_096
    warn: float = 0.60
    target: float = 0.40
    trigger: float = 0.85
    hard: float = 0.95

    def __post_init__(self) -> None:
        if self.window <= 0 or self.reserve < 0 or self.reserve >= self.window:
            raise SettingError(
                f"A window of {self.window:,} tokens with a reserve of {self.reserve:,} leaves no room.",
                hint="Choose window > reserve >= 0.",
            )
        order = (0.0, self.warn, self.trigger, self.hard)
        if not all(low < high for low, high in pairwise(order)) or self.hard > 1 or not 0 < self.target < self.trigger:
            raise SettingError(
                f"Thresholds are not in order: warn {self.warn}, target {self.target}, trigger {self.trigger}, "
                f"hard {self.hard}.",
                hint="Choose 0 < warn < trigger < hard <= 1, for example 0.60, 0.85, 0.95, and target below trigger.",
            )

    @property
    def own_share(self) -> float:
        """The part of what fits that may be attached and typed now without being cut: half of it, or the target."""
        return max(self.target, _OWN)

    @property
    def own(self) -> int:
        """The same in tokens."""
        return int(self.own_share * self.limit)

    @cached_property
    def limit(self) -> int:
        """What may be sent at all: the window less the reserve for the answer."""
        return self.window - self.reserve


def warn_of(total: int, budget: Budget) -> tuple[str, ...]:
    """What is to be said of a request of this size."""
    if total <= budget.warn * budget.limit:
        return ()
    return (f"The request uses {total:,} of {budget.limit:,} tokens, {total / budget.limit:.0%} of what fits.",)


def is_over(total: int, share: float, budget: Budget) -> bool:
    """Whether a request is over one of the thresholds."""
    return total > share * budget.limit


def must_shrink(total: int, budget: Budget, *, shrunk_to: int | None) -> bool:
    """Whether the chain runs by itself: over the trigger, and not right after it ran for nothing.

    ``shrunk_to`` is what the last receipt in force came to. Until the request outgrows that by the distance between
    trigger and target, or passes the hard threshold, running again would move the prefix for little.
    """
    if not is_over(total, budget.trigger, budget):
        return False
    if shrunk_to is None or is_over(total, budget.hard, budget):
        return True
    return total - shrunk_to > (budget.trigger - budget.target) * budget.limit


def check_share(share: float) -> float:
    """A share of what fits, as someone asked to come down to."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise SettingError(f"{share!r} is no share of the window.", hint="Give a number above 0 and up to 1: 0.5.")
    return float(share)
