"""Thresholds: how much of the window a request may use, and from when on it is warned about or shrunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lamella.errors import BudgetExceededError, SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One budget over everything sent. Thresholds are shares of ``limit`` and strictly ordered."""

    window: int = 128_000
    reserve: int = 4_096
    warn: float = 0.60
    target: float = 0.70
    trigger: float = 0.85
    hard: float = 0.95

    def __post_init__(self) -> None:
        if self.window <= 0 or self.reserve < 0 or self.reserve >= self.window:
            raise SettingError(
                f"A window of {self.window:,} tokens with a reserve of {self.reserve:,} leaves no room.",
                hint="Choose window > reserve >= 0.",
            )
        order = (0.0, self.warn, self.target, self.trigger, self.hard)
        if not all(low < high for low, high in pairwise(order)) or self.hard > 1:
            raise SettingError(
                f"Thresholds are not in order: warn {self.warn}, target {self.target}, trigger {self.trigger}, "
                f"hard {self.hard}.",
                hint="Choose 0 < warn < target < trigger < hard <= 1, for example 0.60, 0.70, 0.85, 0.95.",
            )

    @property
    def limit(self) -> int:
        """What may be sent at all: the window less the reserve for the answer."""
        return self.window - self.reserve


def check_budget(total: int, budget: Budget, *, largest: Callable[[], Sequence[str]]) -> tuple[str, ...]:
    """Warnings for a request of this size; raises if it is over the hard threshold."""
    if total > budget.hard * budget.limit:
        hard = int(budget.hard * budget.limit)
        raise BudgetExceededError(needed=total, hard=hard, limit=budget.limit, protected=largest())
    if total > budget.warn * budget.limit:
        return (f"The request uses {total:,} of {budget.limit:,} tokens, {total / budget.limit:.0%} of what fits.",)
    return ()
