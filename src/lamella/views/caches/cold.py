"""What the next message costs once a cache has lapsed, as data."""

from datetime import datetime
from decimal import Decimal
from typing import Protocol

from lamella.views.amounts import plain_if_known


class KeepShape(Protocol):
    """What has to be known of keeping a cache."""

    @property
    def due_at(self) -> datetime: ...
    @property
    def tokens(self) -> int: ...
    @property
    def cost(self) -> Decimal | None: ...
    @property
    def chance(self) -> float: ...


class ColdShape(Protocol):
    """What has to be known of a cache that lapses."""

    @property
    def lapsed(self) -> bool: ...
    @property
    def lapses_at(self) -> datetime: ...
    @property
    def tokens(self) -> int: ...
    @property
    def cost(self) -> Decimal | None: ...
    @property
    def folded_tokens(self) -> int: ...
    @property
    def folded_cost(self) -> Decimal | None: ...
    @property
    def folds(self) -> bool: ...
    @property
    def keep(self) -> KeepShape | None: ...


def view_cold(cold: ColdShape | None) -> dict[str, object] | None:
    """In the names of docs/layouts.md; nothing while the cache is warm."""
    if cold is None:
        return None
    return {
        "lapsed": cold.lapsed,
        "lapses_at": cold.lapses_at.isoformat(),
        "tokens": cold.tokens,
        "cost": plain_if_known(cold.cost),
        "folded_tokens": cold.folded_tokens,
        "folded_cost": plain_if_known(cold.folded_cost),
        "folds": cold.folds,
        "keep": None if cold.keep is None else _view_keep(cold.keep),
    }


def _view_keep(keep: KeepShape) -> dict[str, object]:
    return {
        "due_at": keep.due_at.isoformat(),
        "tokens": keep.tokens,
        "cost": plain_if_known(keep.cost),
        "chance": round(keep.chance, 2),
    }
