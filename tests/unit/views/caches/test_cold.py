"""A cache that lapses, as data."""

import re
from datetime import UTC, datetime
from decimal import Decimal

from tests.contracts.places import doc

from lamella.engine.cold import ColdCache
from lamella.views.caches.cold import view_cold

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_every_field_is_documented_and_money_is_text() -> None:
    cold = ColdCache(
        lapsed=True, lapses_at=NOON, tokens=9, cost=Decimal("0.10"), folded_tokens=4, folded_cost=None, folds=True
    )
    body = view_cold(cold)
    assert body == {
        "lapsed": True,
        "lapses_at": "2026-11-17T12:00:00+00:00",
        "tokens": 9,
        "cost": "0.1",
        "folded_tokens": 4,
        "folded_cost": None,
        "folds": True,
        "keep": None,
    }
    told = set(re.findall(r"`(\w+)`", doc("layouts.md")))
    assert {*body, "cold"} <= told
