"""The outlook of a compaction: what it moves, what it costs now, and what it saves later."""

from datetime import UTC, datetime
from decimal import Decimal

from tests.unit.core.compaction.talking import QUARTERS

from lamella.core.ledger.cache import CacheProfile, CacheRequest
from lamella.core.ledger.entry import Tariff
from lamella.core.ledger.outlook import Outlook, compare_outlook
from lamella.core.log.call import CacheUse
from lamella.core.messages.model import Message, Role

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def price(use: CacheUse, at: datetime | None, *, output: int = 0) -> Decimal | None:
    """A token read costs one, any other ten; what more than 500 cost is not known, or any at another time than noon."""
    del output
    known = at == NOON and use.total <= 500
    return Decimal(use.read + 10 * (use.write + use.uncached)) if known else None


def request(*texts: str) -> CacheRequest:
    messages = tuple(Message(role=Role.USER, pieces=(text,), tokens=QUARTERS.count(text)) for text in texts)
    total = sum(one.tokens for one in messages)
    return CacheRequest(model="m", tools=(), messages=messages, total=total, at=NOON, effort="", has_images=False)


RULES, OLD, NEW, SHORT = "rule" * 10, "said" * 100, "next" * 5, "line" * 20
SENT = request(RULES, OLD)
AS_IS = request(RULES, OLD, NEW)
COMPACTED = request(RULES, SHORT, NEW)


def outlook(sent: CacheRequest | None, *, as_is: CacheRequest = AS_IS, at: datetime | None = NOON) -> Outlook:
    tariff = Tariff(profile=CacheProfile(name="p"), price=price)
    return compare_outlook(sent, as_is=as_is, compacted=COMPACTED, tariff=tariff, measure=QUARTERS, at=at)


def test_what_was_cached_behind_the_cut_is_moved_and_paid_for_anew() -> None:
    # As it is 110 tokens are read and 5 are new; compacted, 10 are read and 25 are new.
    assert outlook(SENT) == Outlook(
        moved=100, cost_now=Decimal((10 + 250) - (110 + 50)), saved_per_turn=Decimal(115 - 35)
    )


def test_where_nothing_was_sent_nothing_is_moved_and_less_is_paid_at_once() -> None:
    assert outlook(None) == Outlook(moved=0, cost_now=Decimal(350 - 1_150), saved_per_turn=Decimal(115 - 35))


def test_a_compaction_that_shares_more_than_the_request_as_it_is_moves_nothing() -> None:
    found = outlook(SENT, as_is=request(OLD, NEW))
    assert found == Outlook(moved=0, cost_now=Decimal((10 + 250) - 1_050), saved_per_turn=Decimal(105 - 35))


def test_where_prices_are_unknown_only_tokens_are_told() -> None:
    unknown = Outlook(moved=100, cost_now=None, saved_per_turn=None)
    assert outlook(SENT, at=None) == unknown
    assert outlook(SENT, as_is=request(RULES, OLD, NEW * 100)) == unknown
