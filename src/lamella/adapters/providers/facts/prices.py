"""Prices from the ``genai-prices`` package: dated, with tiers, offline."""

from datetime import UTC, datetime
from decimal import Decimal

from lamella.core.log.call import CacheUse

# The day of the price snapshot in the pinned genai-prices 0.2.1. A turn without a time is billed at this day's
# prices, so that the same transcript costs the same whenever it is replayed.
SNAPSHOT_DATE = datetime(2026, 10, 30, tzinfo=UTC)


class SnapshotPrices:
    """Prices at the time of a turn. An unknown model has no price, which is not a price of zero."""

    def __init__(self) -> None:
        # Three amounts are asked for with every turn, and the snapshot learns no model while a program runs.
        self._unknown: set[str] = set()

    def price(self, model: str, use: CacheUse, at: datetime | None, *, output: int = 0) -> Decimal | None:
        if model in self._unknown:
            return None
        from genai_prices import Usage, calc_price  # 0.4 s to import, and only money needs it

        provider, _, bare = model.rpartition(":")
        usage = Usage(
            input_tokens=use.read + use.write + use.uncached,
            cache_read_tokens=use.read,
            cache_write_tokens=use.write,
            cache_write_1h_tokens=use.lasting,
            output_tokens=output,
        )
        try:
            found = calc_price(usage, bare, provider_id=provider or None, genai_request_timestamp=at or SNAPSHOT_DATE)
        except LookupError:
            self._unknown.add(model)
            return None
        return found.total_price if output else found.input_price
