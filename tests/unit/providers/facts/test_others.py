"""Prices come from the genai-prices package, at the time of the turn, else at the snapshot's date."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices import Usage, calc_price

from lamella.core.log.call import CacheUsage
from lamella.providers.facts.others import DEFAULT_PRICE_DATE, BundledPrices

PRICES = BundledPrices()
USE = CacheUsage(read=1_000, write=500, uncached=200)


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("anthropic:claude-opus-5-5", "anthropic", "claude-opus-5-5"),
        ("openai:gpt-5", "openai", "gpt-5"),
        ("deepseek:deepseek-chat", "deepseek", "deepseek-chat"),
        ("gpt-5", None, "gpt-5"),
    ],
)
def test_price_comes_from_package(model: str, provider: str | None, name: str) -> None:
    at = datetime(2026, 6, 1, tzinfo=UTC)
    usage = Usage(input_tokens=1_700, cache_read_tokens=1_000, cache_write_tokens=500)
    expected = calc_price(usage, name, provider_id=provider, genai_request_timestamp=at).input_price
    assert PRICES.price(model, USE, at) == expected
    assert expected > 0


def test_reading_is_cheaper_than_plain_input_and_writing_dearer() -> None:
    def price(read: int = 0, write: int = 0, uncached: int = 0) -> Decimal:
        found = PRICES.price("anthropic:claude-opus-5-5", CacheUsage(read=read, write=write, uncached=uncached), None)
        assert found is not None
        return found

    assert price(read=1_000) < price(uncached=1_000) < price(write=1_000)


def test_turn_without_a_time_is_billed_at_the_snapshots_date() -> None:
    model = "anthropic:claude-opus-5-5"
    assert PRICES.price(model, USE, None) == PRICES.price(model, USE, DEFAULT_PRICE_DATE)


@pytest.mark.parametrize("model", ["nobody:nothing", "nothing-at-all", "openai:no-such-model", ":", ""])
def test_unknown_model_has_no_price(model: str) -> None:
    assert PRICES.price(model, USE, None) is None


def test_answers_are_not_part_of_the_price() -> None:
    zero = PRICES.price("openai:gpt-5", CacheUsage(read=0, write=0, uncached=0), None)
    assert zero == 0


def test_longer_lifetime_write_costs_more() -> None:
    def price(model: str, lasting: int) -> Decimal:
        found = PRICES.price(model, CacheUsage(read=0, write=1_000, uncached=0, long_lifetime=lasting), None)
        assert found is not None
        return found

    claude = "anthropic:claude-opus-5-5"
    assert price(claude, 1_000) * 5 == price(claude, 0) * 8
    assert price(claude, 0) < price(claude, 400) < price(claude, 1_000)
    assert price("openai:gpt-5", 1_000) == price("openai:gpt-5", 0)
