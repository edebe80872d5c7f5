"""The ledger's entry for one turn: what moved, what was cached, what it costs, and each call that was made for it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from lamella.core.budget.counting import Measure
from lamella.core.budget.weigh import weigh
from lamella.core.ledger.cache import CacheModel, CacheProfile, CacheRequest, shared_tokens
from lamella.core.ledger.compare import PerfectCache, naive_messages
from lamella.core.ledger.cover import cover_layers
from lamella.core.ledger.verdict import judge
from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Timing, Verdict, reported_use
from lamella.core.log.placement import Form
from lamella.core.messages.delta import Reply
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.movement import find_movement
from lamella.core.prompt.prompt import Prompt
from lamella.core.values import replace

Price = Callable[[CacheUse, datetime | None], Decimal | None]
PriceAll = Callable[[CacheUse, int, datetime | None], Decimal | None]


def _no_price(_use: CacheUse, _output: int, _at: datetime | None) -> None:
    return None


class Prefix(Struct, frozen=True, kw_only=True):
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


class Entry(Struct, frozen=True, kw_only=True):
    """What the ledger says of one turn: what moved, always; what was cached and what it costs, where books are kept."""

    prefix: Prefix
    cache: CacheUse | None = None
    cached_by_layer: Mapping[LayerId, int] = {}
    cost: Cost | None = None
    calls: tuple[Call, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the turn's first call, whose prefix is what the turn moved; none before it is answered."""
        return self.calls[0].verdict if self.calls else None


class Tariff(Struct, frozen=True, kw_only=True):
    """Under which rules a turn is billed: the provider's cache, its prices, and how it counts.

    ``price`` is of input alone, ``price_all`` of input and so many tokens of output.
    """

    profile: CacheProfile
    price: Price
    measure: Measure
    price_all: PriceAll = _no_price


class Books(Struct, frozen=True, kw_only=True):
    """The ledger between two turns: what three caches hold, one real, one for naive gluing, one perfect."""

    last: CacheRequest | None = None
    prompt: Prompt | None = None
    cache: CacheModel = CacheModel()
    naive: CacheModel = CacheModel()
    perfect: PerfectCache = PerfectCache()


def enter_turn(books: Books, envelope: Envelope, *, tariff: Tariff, at: datetime | None) -> tuple[Entry, Books]:
    """The entry for a turn as asked, and the books after it."""
    prompt, profile, measure = envelope.prompt, tariff.profile, tariff.measure
    request = see_request(prompt, at=at)
    use, cache = books.cache.answer(request, profile=profile, measure=measure)
    naive_use, naive = books.naive.answer(_glue(envelope, request, measure), profile=profile, measure=measure)
    ideal, perfect = books.perfect.answer(request.messages, use, profile=profile, measure=measure)
    common = shared_tokens(books.last, request, measure) if books.last else 0
    entry = Entry(
        prefix=replace(make_prefix(books.prompt, prompt), common_tokens=common),
        cache=use,
        cached_by_layer=cover_layers(envelope, use.read, measure),
        cost=_cost(tariff.price, at, use=use, naive=naive_use, ideal=ideal),
    )
    return entry, Books(last=request, prompt=prompt, cache=cache, naive=naive, perfect=perfect)


def make_prefix(before: Prompt | None, now: Prompt) -> Prefix:
    """What moved since the request before."""
    movement = find_movement(before, now)
    untriggered = movement.cause is Cause.HISTORY_EDITED and now.rewritten is None
    return Prefix(movement=movement, common_tokens=None, triggered=not untriggered)


def see_request(prompt: Prompt, *, at: datetime | None) -> CacheRequest:
    """A request as a cache sees it."""
    return CacheRequest(model=prompt.model, tools=prompt.tools, messages=prompt.messages, total=prompt.total, at=at)


def judge_call(
    entry: Entry,
    prompt: Prompt,
    reply: Reply,
    *,
    tariff: Tariff,
    by_layer: Mapping[str, int],
    timing: Timing,
    foreseen: CacheUse | None,
    pause: float | None,
    at: datetime | None,
    retries: int = 0,
    ended: str = "",
) -> Call:
    """The call as the ledger keeps it. ``foreseen`` is what a provider that knows its own cache said it would serve."""
    predicted = foreseen or entry.cache
    use = reported_use(reply.usage)
    return Call(
        model=prompt.model,
        verdict=judge(
            entry.prefix.movement,
            reply.usage,
            use=predicted,
            profile=tariff.profile,
            pause=pause,
            triggered=entry.prefix.triggered,
        ),
        predicted=predicted,
        usage=reply.usage,
        by_layer=dict(by_layer),
        cost=entry.cost,
        billed=None if use is None else tariff.price_all(use, reply.usage.output or 0, at),
        timing=timing,
        stop=ended or reply.stop.value,
        id=reply.id,
        diagnosis=reply.diagnosis,
        retries=retries,
    )


def _glue(envelope: Envelope, request: CacheRequest, measure: Measure) -> CacheRequest:
    prompt = envelope.prompt
    messages = naive_messages(
        envelope.layer(LayerId.L1),
        envelope.layer(LayerId.L5),
        exchanges=prompt.talk.exchanges,
        attached=prompt.attached,
        blocks=_list_blocks(envelope),
        measure=measure,
    )
    return replace(request, messages=messages, total=weigh(messages, request.tools, measure))


def _list_blocks(envelope: Envelope) -> dict[tuple[str, str], str]:
    return {
        (segment.id, segment.hash): segment.text
        for layer_id in (LayerId.L2, LayerId.L3)
        for segment in envelope.segments(layer_id)
        if segment.form is Form.FULL
    }


def _cost(price: Price, at: datetime | None, *, use: CacheUse, naive: CacheUse, ideal: CacheUse) -> Cost | None:
    amounts = [price(one, at) for one in (use, naive, ideal)]
    if any(amount is None for amount in amounts):
        return None
    amount, glued, limit = (amount or Decimal(0) for amount in amounts)
    return Cost(amount=amount, naive=glued, limit=limit)
