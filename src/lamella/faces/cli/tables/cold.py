"""The cold cache for people: a line that is there only when a message costs more than the last one did."""

from datetime import datetime
from decimal import Decimal

from lamella.faces.cli.terminal.telling import tell
from lamella.views.amounts import plain
from lamella.views.caches.cold import ColdShape

_DIGITS = 6


def tell_cold(cold: ColdShape | None, *, now: datetime) -> str:
    """What the next message costs as it is and folded, from when the cache has lapsed; nothing while it is warm."""
    if cold is None:
        return ""
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
