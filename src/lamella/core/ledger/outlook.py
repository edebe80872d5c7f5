"""The outlook of a compaction: what of the cache it moves, what that costs now, and what it saves per coming turn."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from lamella.core.ledger.cache import CachedRequest, shared_tokens, split_use
from lamella.core.ledger.entry import Terms
from lamella.core.log.call import CacheUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """``moved`` are tokens that the cache holds and that would be sent anew; money is none where prices are unknown.

    ``cost_now`` is what the next request costs more than it would without the compaction, ``saved_per_turn`` what
    every later one costs less once it is served from the cache.
    """

    moved: int
    cost_now: Decimal | None
    saved_per_turn: Decimal | None


def compare_outlook(
    sent: CachedRequest | None, *, as_is: CachedRequest, compacted: CachedRequest, terms: Terms, at: datetime | None
) -> Outlook:
    """What would be cached of the next request as it is, and of the compacted one."""
    warm = shared_tokens(sent, as_is, terms.measure) if sent else 0
    left = shared_tokens(sent, compacted, terms.measure) if sent else 0
    now = _difference(
        split_use(left, compacted.total, terms.profile),
        split_use(warm, as_is.total, terms.profile),
        terms=terms,
        at=at,
    )
    later = _difference(
        split_use(as_is.total, as_is.total, terms.profile),
        split_use(compacted.total, compacted.total, terms.profile),
        terms=terms,
        at=at,
    )
    return Outlook(moved=max(0, warm - left), cost_now=now, saved_per_turn=later)


def _difference(one: CacheUse, other: CacheUse, *, terms: Terms, at: datetime | None) -> Decimal | None:
    more, less = terms.price(one, at), terms.price(other, at)
    return None if more is None or less is None else more - less
