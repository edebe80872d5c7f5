"""Sums over a whole replay."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from lamella.core.log.call import Cause
from lamella.engine.turn import TurnView

_STILL = (Cause.FIRST_TURN, Cause.NONE)


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

    def counting(self, turns: Iterable[TurnView]) -> Iterator[TurnView]:
        """The same turns, counted as they pass."""
        for turn in turns:
            self._add(turn)
            yield turn

    def _add(self, turn: TurnView) -> None:
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
        return round(self.read / self.tokens, 6) if self.tokens else 0.0


def plain(amount: Decimal) -> str:
    """An amount without exponent or trailing zeros."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
