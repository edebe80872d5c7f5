"""Sums over a whole replay."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from lamella.core.log.call import Cause
from lamella.views.amounts import plain
from lamella.views.turns import TurnShape

_STILL = (Cause.FIRST_TURN, Cause.NONE)
_SHARE_DIGITS = 6
_Turn = TypeVar("_Turn", bound=TurnShape)


@dataclass(slots=True)
class Totals:
    """What a conversation sums up to; filled while its turns go by."""

    turns: int = 0
    tokens: int = 0
    read: int = 0
    prefix_breaks: int = 0
    compactions: int = 0
    priced: bool = True
    cost: Decimal = Decimal(0)
    naive: Decimal = Decimal(0)
    limit: Decimal = Decimal(0)

    def count(self, turns: Iterable[_Turn]) -> Iterator[_Turn]:
        """The same turns, counted as they pass."""
        for turn in turns:
            self._add(turn)
            yield turn

    def _add(self, turn: TurnShape) -> None:
        self.turns += 1
        self.tokens += turn.tokens.total
        self.read += turn.cache.read if turn.cache else 0
        self.prefix_breaks += turn.prefix.movement.cause not in _STILL
        self.compactions += turn.compaction is not None
        if turn.cost is None:
            self.priced = False
            return
        self.cost += turn.cost.amount
        self.naive += turn.cost.naive
        self.limit += turn.cost.limit

    @property
    def cache_read_share(self) -> float:
        return round(self.read / self.tokens, _SHARE_DIGITS) if self.tokens else 0.0

    @property
    def naive_ratio(self) -> Decimal | None:
        """The cost beside that of gluing everything into each message; none where that costs nothing."""
        return self.cost / self.naive if self.naive > Decimal(0) else None


def view_totals(totals: Totals) -> dict[str, object]:
    """The sums, in the names of docs/replay.md; money only where every turn has a price."""
    money = (totals.cost, totals.naive, totals.limit)
    cost, naive, limit = (plain(amount) if totals.priced else None for amount in money)
    return {
        "tokens": totals.tokens,
        "cache_read_share": totals.cache_read_share,
        "prefix_breaks": totals.prefix_breaks,
        "compactions": totals.compactions,
        "cost": cost,
        "naive_cost": naive,
        "limit_cost": limit,
    }
