"""The ledger's entry for one turn: what moved, what was cached, what it costs, and each call that was made for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from lamella.core.artifacts.blocks import render_block, render_refused, render_unseen
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure, count_tools, weigh, weigh_messages
from lamella.core.ledger.cache import (
    CacheModel,
    CacheProfile,
    CacheRequest,
    PerfectCache,
    find_cooled,
    shared_tokens,
    split_use,
)
from lamella.core.ledger.verdict import judge, judge_aside, reported_use
from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Timing, Verdict
from lamella.core.log.placement import Form
from lamella.core.messages.delta import Reply
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import SYSTEM_PLACE, LayerId, message_place
from lamella.core.prompt.layers.turn import find_refused
from lamella.core.prompt.movement import find_movement, is_triggered
from lamella.core.prompt.prompt import Prompt, render_user
from lamella.core.values import replace

# Thousands of messages are looked through for every turn of a long conversation.
_images_of = attrgetter("images")


class Price(Protocol):
    """What so much input costs, with so much output, at a time; none where it is not known."""

    def __call__(self, use: CacheUse, at: datetime | None, *, output: int = 0) -> Decimal | None: ...


def _no_price(use: CacheUse, at: datetime | None, *, output: int = 0) -> None:
    del use, at, output


class Prefix(Struct, frozen=True, kw_only=True, gc=False):
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


class Entry(Struct, frozen=True, kw_only=True, gc=False):
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
    """Under which rules a turn is billed: the provider's cache, and its prices."""

    profile: CacheProfile
    price: Price = _no_price


class Books(Struct, frozen=True, kw_only=True, gc=False):
    """The ledger between two turns: what three caches hold, one real, one for naive gluing, one perfect."""

    last: CacheRequest | None = None
    prompt: Prompt | None = None
    cache: CacheModel = CacheModel()
    naive: CacheModel = CacheModel()
    perfect: PerfectCache = PerfectCache()


def enter_turn(books: Books, envelope: Envelope, *, tariff: Tariff, at: datetime | None) -> tuple[Entry, Books]:
    """The entry for a turn as asked, and the books after it."""
    prompt, profile, measure = envelope.prompt, tariff.profile, envelope.prompt.measure
    request = see_request(prompt, at=at)
    use, cache = books.cache.answer(request, profile=profile, measure=measure)
    # The plan of a turn that is sent once more is that of its first time, when none of it was there.
    again = books.last is not None and books.last.messages == request.messages
    if profile.marks and prompt.placement.priced and not prompt.rounds and not again:
        use = foresee(prompt, profile)
    messages = glue_messages(prompt)
    glued = replace(request, messages=messages, total=weigh(messages, prompt.tools, measure))
    naive_use, naive = books.naive.answer(glued, profile=profile, measure=measure)
    ideal, perfect = books.perfect.answer(request.messages, use, profile=profile, measure=measure)
    common = shared_tokens(books.last, request, measure) if books.last else 0
    cooled = find_cooled(books.last, request, profile) if books.last and profile.invalidates else None
    entry = Entry(
        prefix=make_prefix(books.prompt, prompt, common_tokens=common, cooled=cooled and cooled[0]),
        cache=use,
        cached_by_layer=cover_layers(envelope, use.read, measure),
        cost=_cost(tariff.price, at, use=use, naive=naive_use, ideal=ideal),
    )
    return entry, Books(last=request, prompt=prompt, cache=cache, naive=naive, perfect=perfect)


def foresee(prompt: Prompt, profile: CacheProfile) -> CacheUse:
    """What a cache that keeps only what was marked serves of a request, as its plan says; the rest is written to it."""
    placement, measure = prompt.placement, prompt.measure
    tools = count_tools(prompt.tools, measure.count) if prompt.tools else 0
    read, long = (
        0 if last is None else weigh_messages(prompt.messages[: last + 1], measure) + tools
        for last in (placement.served, placement.lasting)
    )
    use = split_use(read, prompt.total, profile)
    return replace(use, lasting=min(long - use.read, use.write)) if long > use.read else use


def make_prefix(
    before: Prompt | None, now: Prompt, *, common_tokens: int | None = None, cooled: str | None = None
) -> Prefix:
    """What moved since the request before; where no byte did, what else makes its cache ``cooled``."""
    movement = find_movement(before, now)
    if cooled is not None and movement.cause is Cause.NONE:
        movement = Movement(cause=Cause.NONE, segment=cooled)
    triggered = is_triggered(before, now, movement)
    return Prefix(movement=movement, common_tokens=common_tokens, triggered=triggered)


def see_request(prompt: Prompt, *, at: datetime | None) -> CacheRequest:
    """A request as a cache sees it."""
    return CacheRequest(
        model=prompt.model,
        tools=prompt.tools,
        messages=prompt.messages,
        total=prompt.total,
        at=at,
        effort=prompt.terms.reasoning_effort.value,
        has_images=any(map(_images_of, prompt.messages)),
    )


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
        billed=None if use is None else tariff.price(use, at, output=reply.usage.output or 0),
        timing=timing,
        stop=ended or reply.stop.value,
        id=reply.id,
        diagnosis=reply.diagnosis,
        retries=retries,
    )


def make_aside(
    purpose: str,
    request: CacheRequest,
    reply: Reply,
    *,
    tariff: Tariff,
    predicted: CacheUse | None,
    timing: Timing,
    retries: int = 0,
    ended: str = "",
) -> Call:
    """A call on the way to an answer as the ledger keeps it."""
    use = reported_use(reply.usage)
    return Call(
        model=request.model,
        verdict=judge_aside(reply.usage, use=predicted, profile=tariff.profile),
        predicted=predicted,
        usage=reply.usage,
        billed=None if use is None else tariff.price(use, request.at, output=reply.usage.output or 0),
        timing=timing,
        stop=ended or reply.stop.value,
        id=reply.id,
        diagnosis=reply.diagnosis,
        retries=retries,
        purpose=purpose,
    )


def glue_messages(prompt: Prompt) -> tuple[Message, ...]:
    """The request of an application that glues this turn's attachments into the last message, every turn.

    Earlier turns stand in it as typed, with their rounds of tools while they are sent at all; so do those of this one.
    """
    after = [said.message for said in prompt.rounds]
    count, layer = prompt.measure.count, prompt.system_layer
    head = Message(role=Role.SYSTEM, pieces=layer.pieces, tokens=layer.tokens)
    messages = [head] if layer.pieces else []
    for exchange in prompt.talk.exchanges:
        messages.append(exchange.user.message)
        if exchange.rounds:
            messages += [said.message for said in exchange.rounds]
        messages.append(exchange.answer or exchange.reply.message)
    if not prompt.attached:
        return (*messages, prompt.user.message, *after)
    pictures = [artifact for artifact in prompt.attached if artifact.kind is Kind.IMAGE]
    glued = [_find_block(artifact, prompt) for artifact in prompt.attached if artifact.kind is not Kind.IMAGE]
    told = _tell_unsent(pictures, prompt.measure) if pictures else {}
    glued += told.values()
    images = [image for picture in pictures if picture.id not in told for image in picture.images]
    if not prompt.placement.keep and tuple(glued) == prompt.shown[1] and tuple(images) == prompt.shown[3]:
        return (*messages, prompt.question, *after)
    return (*messages, render_user(glued, prompt.user.message.pieces, images, count=count), *after)


def _tell_unsent(pictures: Sequence[Artifact], measure: Measure) -> Mapping[str, str]:
    """Pictures that go as words, by id: all of them to a model that does not see, else what it does not take."""
    if not measure.sees:
        return {picture.id: render_unseen(picture) for picture in pictures}
    refused = find_refused(pictures, standing={}, measure=measure)
    return {one.id: render_refused(one, refused[one.id]) for one in pictures if one.id in refused}


def _find_block(artifact: Artifact, prompt: Prompt) -> str:
    """An attachment in full: as it stands in the request, so that the comparison holds no second copy of its text."""
    known = prompt.standing.get(artifact.id) if artifact.id in prompt.library else None
    segments = [segment for segment in prompt.shown[0] if segment.id == artifact.id]
    for segment in segments if known is None else [*segments, known.segment]:
        if segment.form is Form.FULL and segment.content == artifact.hash:
            return segment.text
    return render_block(artifact)


def cover_layers(envelope: Envelope, read: int, measure: Measure) -> Mapping[LayerId, int]:
    """Cached tokens by layer, in wire order; overhead belongs to no layer.

    Most of a long request is served whole, so it is all of it less what the few last messages are not.
    """
    tools = envelope.prompt.tools
    left = read - (count_tools(tools, measure.count) if tools else 0)
    if left <= 0:
        return dict.fromkeys(LayerId, 0)
    covered = {
        layer.id: sum([segment.tokens for segment in layer.segments if segment.place is not None])
        for layer in envelope.layers
    }
    messages = envelope.messages
    bare = weigh_messages(messages, measure) - left
    uncovered: dict[str | None, int] = {}
    for index in range(len(messages) - 1, -1, -1):
        if bare <= 0:
            break
        weight = weigh_messages(messages[index : index + 1], measure)
        place = SYSTEM_PLACE if messages[index].role is Role.SYSTEM else message_place(index)
        uncovered[place] = max(0, weight - bare)
        bare -= weight
    # Within one message what is carried stands before what was typed, which is the order of the layers.
    for layer in envelope.layers:
        for segment in layer.segments:
            if segment.place in uncovered:
                taken = min(uncovered[segment.place], segment.tokens)
                covered[layer.id] += taken - segment.tokens
                uncovered[segment.place] -= taken
    return covered


def _cost(price: Price, at: datetime | None, *, use: CacheUse, naive: CacheUse, ideal: CacheUse) -> Cost | None:
    amounts = [price(one, at) for one in (use, naive, ideal)]
    if any(amount is None for amount in amounts):
        return None
    amount, glued, limit = (amount or Decimal(0) for amount in amounts)
    return Cost(amount=amount, naive=glued, limit=limit)
