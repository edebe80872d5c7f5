"""The line on a cache that lapses: there when a message costs more, and never else."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from lamella.engine.cold import ColdCache
from lamella.faces.cli.tables.cold import tell_cold
from lamella.views.caches.cold import view_cold

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
COLD = ColdCache(
    lapsed=True,
    lapses_at=NOON,
    tokens=6_200,
    cost=Decimal("0.0232500"),
    folded_tokens=3_100,
    folded_cost=Decimal("0.011625"),
    folds=False,
)


def change(**fields: object) -> ColdCache:
    return ColdCache(**{**{name: getattr(COLD, name) for name in COLD.__struct_fields__}, **fields})


def test_nothing_is_told_while_the_cache_is_warm() -> None:
    assert tell_cold(None, now=NOON) == ""
    assert view_cold(None) is None


def test_both_prices_are_told_once_it_lapsed() -> None:
    told = "the cache lapsed: $0.02325 for the next message as it is, $0.011625 folded"
    assert tell_cold(COLD, now=NOON) == told
    assert tell_cold(change(folds=True), now=NOON) == f"{told}, which is done by itself"


def test_before_that_it_is_told_in_how_long_it_lapses() -> None:
    told = tell_cold(change(lapsed=False), now=NOON - timedelta(seconds=42))
    assert told.startswith("the cache lapses in 42 s: $0.02325 ")


def test_without_prices_tokens_are_told_and_without_a_gain_one_figure() -> None:
    unpriced = change(cost=None, folded_cost=None)
    assert tell_cold(unpriced, now=NOON).endswith("6,200 tokens for the next message as it is, 3,100 tokens folded")
    same = change(folded_tokens=6_200, folded_cost=COLD.cost)
    assert tell_cold(same, now=NOON) == "the cache lapsed: $0.02325 for the next message"
