"""The outlook of a compaction: what of the cache it moves, what that costs now, and what it saves per coming turn."""

from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from lamella.core.budget.counting import Measure
from lamella.core.ledger.cache import CacheRequest, shared_tokens, split_use
from lamella.core.ledger.entry import Tariff
from lamella.core.log.call import CacheUse


class Outlook(Struct, frozen=True, kw_only=True):
    """``moved`` are tokens that the cache holds and that would be sent anew; money is none where prices are unknown.

    ``cost_now`` is what the next request costs more than it would without the compaction, ``saved_per_turn`` what
    every later one costs less once it is served from the cache.
    """

    moved: int
    cost_now: Decimal | None
    saved_per_turn: Decimal | None


def compare_outlook(
    sent: CacheRequest | None,
    *,
    as_is: CacheRequest,
    compacted: CacheRequest,
    tariff: Tariff,
    measure: Measure,
    at: datetime | None,
) -> Outlook:
    """What would be cached of the next request as it is, and of the compacted one."""
    warm = shared_tokens(sent, as_is, measure, profile=tariff.profile) if sent else 0
    left = shared_tokens(sent, compacted, measure, profile=tariff.profile) if sent else 0
    now = _difference(
        split_use(left, compacted.total, tariff.profile),
        split_use(warm, as_is.total, tariff.profile),
        tariff=tariff,
        at=at,
    )
    later = _difference(
        split_use(as_is.total, as_is.total, tariff.profile),
        split_use(compacted.total, compacted.total, tariff.profile),
        tariff=tariff,
        at=at,
    )
    return Outlook(moved=max(0, warm - left), cost_now=now, saved_per_turn=later)


def _difference(one: CacheUse, other: CacheUse, *, tariff: Tariff, at: datetime | None) -> Decimal | None:
    more, less = tariff.price(one, at), tariff.price(other, at)
    return None if more is None or less is None else more - less
