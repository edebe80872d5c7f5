"""The ledger's entry for one turn: what moved, what was cached, what it costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from lamella.core.budget.counting import Measure
from lamella.core.budget.weigh import weigh
from lamella.core.ledger.cache import CachedRequest, CacheModel, CacheProfile, shared_tokens
from lamella.core.ledger.compare import PerfectCache, naive_messages
from lamella.core.ledger.cover import cover_layers
from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Verdict
from lamella.core.log.placement import Form
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.movement import find_movement
from lamella.core.prompt.state import OpenTurn
from lamella.core.values import replace

Price = Callable[[CacheUse, datetime | None], Decimal | None]
PriceAll = Callable[[CacheUse, int, datetime | None], Decimal | None]


def _no_price(_use: CacheUse, _output: int, _at: datetime | None) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What moved since the request before, and how many tokens the two share from the start, where that was asked.

    A move that nothing on record explains was not ``triggered``.
    """

    movement: Movement
    common_tokens: int | None
    triggered: bool = True

    @property
    def cause(self) -> str:
        return self.movement.cause.value

    @property
    def segment(self) -> str | None:
        return self.movement.segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the ledger says of one turn: what moved, always; what was cached and what it costs, where books are kept."""

    prefix: Prefix
    cache: CacheUse | None = None
    cached_by_layer: Mapping[LayerId, int] = field(default_factory=dict)
    cost: Cost | None = None
    calls: tuple[Call, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the turn's first call, whose prefix is what the turn moved; none before it is answered."""
        return self.calls[0].verdict if self.calls else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under which rules a turn is billed: the provider's cache, its prices, and how it counts.

    ``price`` is of input alone, ``price_all`` of input and so many tokens of output.
    """

    profile: CacheProfile
    price: Price
    measure: Measure
    price_all: PriceAll = _no_price


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The ledger between two turns: what three caches hold, one real, one for naive gluing, one perfect."""

    last: CachedRequest | None = None
    envelope: Sent | None = None
    cache: CacheModel = field(default_factory=CacheModel)
    naive: CacheModel = field(default_factory=CacheModel)
    perfect: PerfectCache = field(default_factory=PerfectCache)


def enter_turn(books: Books, opened: OpenTurn, *, terms: Terms, at: datetime | None) -> tuple[Entry, Books]:
    """The entry for a turn as asked, and the books after it."""
    envelope = opened.envelope
    request = make_request(envelope, at=at)
    glued = _glued(opened, request, terms)
    use, cache = books.cache.answer(request, profile=terms.profile, measure=terms.measure)
    naive_use, naive = books.naive.answer(glued, profile=terms.profile, measure=terms.measure)
    ideal, perfect = books.perfect.answer(request.messages, use, profile=terms.profile, measure=terms.measure)
    entry = Entry(
        prefix=replace(
            make_prefix(books.envelope, envelope),
            common_tokens=shared_tokens(books.last, request, terms.measure) if books.last else 0,
        ),
        cache=use,
        cached_by_layer=cover_layers(envelope, use.read, terms.measure),
        cost=_cost(terms.price, at, use=use, naive=naive_use, ideal=ideal),
    )
    return entry, Books(last=request, envelope=envelope, cache=cache, naive=naive, perfect=perfect)


def make_prefix(before: Sent | None, now: Envelope) -> Prefix:
    """What moved since the request before."""
    movement = find_movement(before, now)
    untriggered = movement.cause is Cause.HISTORY_EDITED and now.rewritten is None
    return Prefix(movement=movement, common_tokens=None, triggered=not untriggered)


def make_request(sent: Sent, *, at: datetime | None) -> CachedRequest:
    """A request as a cache sees it."""
    return CachedRequest(
        model=sent.model,
        tools=sent.tools,
        messages=sent.messages,
        total=sent.total,
        at=at,
    )


def _glued(opened: OpenTurn, request: CachedRequest, terms: Terms) -> CachedRequest:
    envelope = opened.envelope
    messages = naive_messages(
        envelope.layer(LayerId.L1),
        envelope.layer(LayerId.L5),
        exchanges=opened.state.exchanges,
        attached=opened.attached,
        blocks=_rendered(envelope),
        measure=terms.measure,
    )
    return CachedRequest(
        model=request.model,
        tools=request.tools,
        messages=messages,
        total=weigh(messages, request.tools, terms.measure),
        at=request.at,
    )


def _rendered(envelope: Envelope) -> dict[tuple[str, str], str]:
    return {
        (segment.id, segment.hash): segment.text
        for layer_id in (LayerId.L2, LayerId.L3)
        for segment in envelope.layer(layer_id).segments
        if segment.form is Form.FULL
    }


def _cost(price: Price, at: datetime | None, *, use: CacheUse, naive: CacheUse, ideal: CacheUse) -> Cost | None:
    amounts = [price(one, at) for one in (use, naive, ideal)]
    if any(amount is None for amount in amounts):
        return None
    amount, glued, limit = (amount or Decimal(0) for amount in amounts)
    return Cost(amount=amount, naive=glued, limit=limit)
