"""The cold cache for people: a line that is there only when a message costs more than the last one did."""

from datetime import datetime
from decimal import Decimal

from lamella.faces.cli.terminal.telling import tell
from lamella.views.amounts import plain
from lamella.views.caches.cold import ColdShape, KeepShape

_DIGITS = 6


def tell_cold(cold: ColdShape | None, *, now: datetime, kept: int = 0) -> str:
    """What the next message costs as it is and folded, from when the cache has lapsed; nothing while it is warm.

    Where it would pay to keep it, that is offered with its price, or told where settings have it ``kept``.
    """
    if cold is None:
        return ""
    return _tell_lapse(cold, now=now) + _tell_keep(cold.keep, now=now, kept=kept)


def _tell_keep(keep: KeepShape | None, *, now: datetime, kept: int) -> str:
    if keep is None:
        return ""
    price = _tell_amount(keep.cost, keep.tokens)
    left = max(0.0, (keep.due_at - now).total_seconds())
    return f"; kept for {price} in {left:.0f} s" if kept else f"; keep_alive = 1 would keep it for {price}"


def _tell_lapse(cold: ColdShape, *, now: datetime) -> str:
    left = max(0.0, (cold.lapses_at - now).total_seconds())
    when = "the cache lapsed" if cold.lapsed else f"the cache lapses in {left:.0f} s"
    as_is = _tell_amount(cold.cost, cold.tokens)
    if cold.folded_tokens >= cold.tokens:
        return f"{when}: {as_is} for the next message"
    folds = ", which is done by itself" if cold.folds else ""
    folded = _tell_amount(cold.folded_cost, cold.folded_tokens)
    return f"{when}: {as_is} for the next message as it is, {folded} folded{folds}"


def print_cold(cold: ColdShape | None, *, now: datetime) -> None:
    """The same as a sentence of its own, where there is something to say."""
    told = tell_cold(cold, now=now)
    if told:
        tell(f"{told[0].upper()}{told[1:]}.")


def _tell_amount(cost: Decimal | None, tokens: int) -> str:
    return f"{tokens:,} tokens" if cost is None else f"${plain(round(cost, _DIGITS))}"
