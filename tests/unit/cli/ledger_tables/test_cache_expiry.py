"""The line about an expiring cache: shown only when a message costs more."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from lamella.cli.ledger_tables import format_cost_after_cache_expiry
from lamella.conversation.expired_cache import CacheExpiry

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
COLD = CacheExpiry(
    expired=True,
    expires_at=NOON,
    tokens=6_200,
    cost=Decimal("0.0232500"),
    folded_tokens=3_100,
    folded_cost=Decimal("0.011625"),
    will_fold=False,
)


def change(**fields: object) -> CacheExpiry:
    return CacheExpiry(**{**{name: getattr(COLD, name) for name in COLD.__struct_fields__}, **fields})


def test_valid_cache_prints_nothing() -> None:
    assert format_cost_after_cache_expiry(None, now=NOON) == ""


def test_expired_cache_prints_both_prices() -> None:
    told = "the cache has expired; next message: $0.02325 ($0.011625 without unused text)"
    assert format_cost_after_cache_expiry(COLD, now=NOON) == told
    assert format_cost_after_cache_expiry(change(will_fold=True), now=NOON) == (
        "the cache has expired; next message: $0.011625 (Lamella removes unused text first; $0.02325 otherwise)"
    )


def test_remaining_cache_time_is_printed_before_expiry() -> None:
    told = format_cost_after_cache_expiry(change(expired=False), now=NOON - timedelta(seconds=42))
    assert told.startswith("the cache expires in 42 s; next message: $0.02325 ")


def test_missing_price_prints_tokens_and_equal_prices_print_one() -> None:
    unpriced = change(cost=None, folded_cost=None)
    assert format_cost_after_cache_expiry(unpriced, now=NOON).endswith(
        "next message: 6,200 tokens (3,100 tokens without unused text)"
    )
    same = change(folded_tokens=6_200, folded_cost=COLD.cost)
    assert format_cost_after_cache_expiry(same, now=NOON) == "the cache has expired; next message: $0.02325"
