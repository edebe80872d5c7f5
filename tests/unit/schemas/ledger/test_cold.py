"""An expired cache as JSON."""

from datetime import UTC, datetime
from decimal import Decimal

from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella.conversation.expired_cache import CacheExpiry
from lamella.schemas.ledger import expired_cache_to_json

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_expired_cache_json_fields_are_documented_and_money_is_text() -> None:
    cold = CacheExpiry(
        expired=True, expires_at=NOON, tokens=9, cost=Decimal("0.10"), folded_tokens=4, folded_cost=None, will_fold=True
    )
    body = as_json(expired_cache_to_json(cold))
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
    assert set(body) == set(names(doc("reference/json-output.md"), under="ExpiredCacheJson"))
