"""The outlook of a compaction: what it moves, what it costs now, and what it saves later."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.unit.core.compaction.stories import QUARTERS

from lamella.core.ledger.cache_profile import BreakpointCandidates, CacheProfile, CacheRequest
from lamella.core.ledger.entry import CompactionCostEstimate, Pricing, estimate_compaction_cost
from lamella.core.log.call import CacheUsage
from lamella.core.messages import Message, Role
from lamella.core.values import replace

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def price(usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal | None:
    """A token read costs one, any other ten; what more than 500 cost is not known, or any at another time than noon."""
    del output
    known = at == NOON and usage.total <= 500
    return Decimal(usage.read + 10 * (usage.write + usage.uncached)) if known else None


def request(*texts: str) -> CacheRequest:
    messages = tuple(Message(role=Role.USER, pieces=(text,), tokens=QUARTERS.count(text)) for text in texts)
    total = sum(one.tokens for one in messages)
    return CacheRequest(model="m", tools=(), messages=messages, total=total, at=NOON, effort="", has_images=False)


RULES, OLD, NEW, SHORT = "rule" * 10, "said" * 100, "next" * 5, "line" * 20
SENT = request(RULES, OLD)
AS_IS = request(RULES, OLD, NEW)
COMPACTED = request(RULES, SHORT, NEW)


def outlook(
    sent: CacheRequest | None, *, as_is: CacheRequest = AS_IS, at: datetime | None = NOON
) -> CompactionCostEstimate:
    pricing = Pricing(profile=CacheProfile(name="p"), price=price)
    return estimate_compaction_cost(sent, as_is=as_is, compacted=COMPACTED, pricing=pricing, tokenizer=QUARTERS, at=at)


def test_cached_text_after_cut_is_priced_again() -> None:
    # As it is 110 tokens are read and 5 are new; compacted, 10 are read and 25 are new.
    assert outlook(SENT) == CompactionCostEstimate(
        changed_tokens=100, cost_now=Decimal((10 + 250) - (110 + 50)), saved_per_turn=Decimal(115 - 35)
    )


def test_unsent_prompt_moves_nothing_and_costs_less() -> None:
    assert outlook(None) == CompactionCostEstimate(
        changed_tokens=0, cost_now=Decimal(350 - 1_150), saved_per_turn=Decimal(115 - 35)
    )


def test_compaction_sharing_more_moves_nothing() -> None:
    found = outlook(SENT, as_is=request(OLD, NEW))
    assert found == CompactionCostEstimate(
        changed_tokens=0, cost_now=Decimal((10 + 250) - 1_050), saved_per_turn=Decimal(105 - 35)
    )


def test_unknown_prices_give_tokens_only() -> None:
    unknown = CompactionCostEstimate(changed_tokens=100, cost_now=None, saved_per_turn=None)
    assert outlook(SENT, at=None) == unknown
    assert outlook(SENT, as_is=request(RULES, OLD, NEW * 100)) == unknown


def with_tail(made: CacheRequest) -> CacheRequest:
    return replace(made, breakpoints=BreakpointCandidates(tail=(len(made.messages), 0)))


@pytest.mark.parametrize(("minutes", "read_as_is"), [(1, 110), (10, 0)])
def test_price_follows_breakpoints_and_lifetime(minutes: int, read_as_is: int) -> None:
    # The only breakpoint of the request sent last is at its end: nothing in front of the cut can be read alone.
    profile = CacheProfile(name="p", marks=4, lookback=20, lifetime=300)
    found = estimate_compaction_cost(
        replace(with_tail(SENT), at=NOON - timedelta(minutes=minutes)),
        as_is=with_tail(AS_IS),
        compacted=with_tail(COMPACTED),
        pricing=Pricing(profile=profile, price=price),
        tokenizer=QUARTERS,
        at=NOON,
    )
    assert found.cost_now == 350 - (read_as_is + 10 * (115 - read_as_is))
