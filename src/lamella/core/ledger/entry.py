"""Ledger entries: what changed the prefix of a turn, what was cached, what it cost, and whose fault a miss was.

``record_turn`` records a turn before it is sent, and ``record_call`` an answered call. ``judge_answer_call`` says whether
the cache served what it contained, and who caused a miss: Lamella if its bytes changed, otherwise the provider.
``measure_cache_miss`` says what a miss cost in tokens and money.
``estimate_compaction_cost`` compares what a compaction costs now with what it saves in each later turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from lamella.core.artifacts.blocks import render_block, render_image_as_text, render_rejected_image
from lamella.core.artifacts.model import Artifact, ArtifactKind, ToolDefinition
from lamella.core.budget import Tokenizer, count_messages_tokens, count_request_tokens, count_tools_tokens
from lamella.core.ledger.cache_profile import (
    GENERIC_PROFILE,
    NO_COMMON_PREFIX,
    BreakpointCandidates,
    CacheProfile,
    CacheRequest,
    CacheSimulation,
    PerfectCache,
    count_shared_prefix_tokens,
    find_cache_reset,
    split_by_price_class,
)
from lamella.core.log.call import (
    CacheOutcome,
    CacheUsage,
    CacheVerdict,
    CallTiming,
    ModelCall,
    PrefixChange,
    PrefixChangeCause,
    RequestHash,
    TurnInputCost,
)
from lamella.core.log.turn import ArtifactForm, BreakpointMode
from lamella.core.messages import LIBRARY_HEADING, Message, ModelReply, Role, Usage, find_stable_end_positions
from lamella.core.prompt.envelope import Envelope, count_stable_messages
from lamella.core.prompt.layers.model import SYSTEM_POSITION, LayerId, Segment, message_position, shown_segments
from lamella.core.prompt.layers.turn import image_rejection_reasons
from lamella.core.prompt.prefix_change import detect_prefix_change, is_change_explained
from lamella.core.prompt.prompt import Prompt, render_user_message
from lamella.core.values import replace

# Token counts of models without a public vocabulary are estimates. A smaller shortfall than this proves nothing.
_TOLERANCE = 0.05


def judge_answer_call(
    prefix_change: PrefixChange,
    usage: Usage,
    *,
    predicted: CacheUsage | None,
    profile: CacheProfile,
    pause: float | None,
    triggered: bool = True,
) -> CacheVerdict:
    """Return the verdict on a call: Lamella's doing if its bytes changed, otherwise the provider's.

    ``predicted`` is the predicted cache usage, and ``pause`` the seconds since the previous request. ``triggered`` says
    whether a recorded action explains the prefix change.
    """
    if prefix_change.cause is PrefixChangeCause.FIRST_TURN:
        outcome = CacheOutcome.FIRST
    elif prefix_change.cause is not PrefixChangeCause.NONE:
        outcome = CacheOutcome.PREFIX_CHANGED if triggered else CacheOutcome.UNEXPLAINED
    elif usage.read is None:
        outcome = CacheOutcome.UNKNOWN
    else:
        outcome = _cache_outcome(usage.read, predicted, profile=profile, pause=pause)
        # No byte changed, but something else that this cache depends on did. The provider did not cause this miss.
        cooled = prefix_change.segment is not None and outcome in (CacheOutcome.TOO_SHORT, CacheOutcome.EVICTED)
        outcome = CacheOutcome.EXPECTED_MISS if cooled else outcome
    return CacheVerdict(outcome=outcome, prefix_change=prefix_change)


def judge_auxiliary_call(usage: Usage, *, predicted: CacheUsage | None, profile: CacheProfile) -> CacheVerdict:
    """Return the verdict on an auxiliary call, which changes no prefix and is mostly not cached at all."""
    still = PrefixChange(cause=PrefixChangeCause.NONE)
    if usage.read is None or usage.read or (predicted is not None and predicted.read):
        return judge_answer_call(still, usage, predicted=predicted, profile=profile, pause=None)
    return CacheVerdict(outcome=CacheOutcome.EXPECTED_MISS, prefix_change=still)


def _cache_outcome(read: int, usage: CacheUsage | None, *, profile: CacheProfile, pause: float | None) -> CacheOutcome:
    """Return what the cache did with an unchanged prefix."""
    expired = profile.lifetime is not None and pause is not None and pause > profile.lifetime
    if usage is not None and read >= usage.read * (1 - _TOLERANCE) - profile.granularity:
        return CacheOutcome.EXPIRED if expired and read == 0 else _outcome_by_share(usage.read, read, profile)
    if usage is None and read:
        return CacheOutcome.HIT
    return CacheOutcome.EXPIRED if expired else CacheOutcome.EVICTED


def _outcome_by_share(predicted: int, read: int, profile: CacheProfile) -> CacheOutcome:
    if predicted or read:
        return CacheOutcome.HIT
    return CacheOutcome.TOO_SHORT if profile.minimum else CacheOutcome.EXPECTED_MISS


def reported_cache_usage(usage: Usage) -> CacheUsage | None:
    """Return the reported usage by price class; None if the provider reports too little for a bill."""
    if usage.plain is None:
        return None
    write = (usage.write or 0) + (usage.write_long or 0)
    return CacheUsage(read=usage.read or 0, write=write, uncached=usage.plain, long_lifetime=usage.write_long or 0)


# What a miss cost.

# Nothing was lost in these: the request is the first, was served as expected, or was never cached.
_OUTCOMES_WITHOUT_LOSS = frozenset({CacheOutcome.FIRST, CacheOutcome.HIT, CacheOutcome.TOO_SHORT, CacheOutcome.UNKNOWN})


class CacheMiss(Struct, frozen=True, kw_only=True, gc=False):
    """What a cache miss cost.

    Attributes:
        tokens: Input tokens that the previous request left in the cache, and that were processed again all the same.
        cost: How much more they cost than if the cache had served them; None if prices are unknown.
    """

    tokens: int
    cost: Decimal | None


def measure_cache_miss(
    call: ModelCall, previous: ModelCall, *, pricing: "Pricing", at: datetime | None
) -> CacheMiss | None:
    """Return what the cache miss of a call cost, or None if nothing was lost.

    ``previous`` is the call before it. Usage that the provider does not report is taken from the prediction. A request
    that is shorter than the one before can lose no more than its own length.
    """
    verdict = call.verdict
    is_expected = verdict.outcome is CacheOutcome.EXPECTED_MISS and verdict.prefix_change.segment is None
    usage = _known_cache_usage(call)
    if verdict.outcome in _OUTCOMES_WITHOUT_LOSS or is_expected or usage is None:
        return None
    shared = min(_tokens_left_in_cache(previous, pricing.profile), usage.total)
    lost = split_by_price_class(shared, usage.total, pricing.profile).read - usage.read
    if lost <= pricing.profile.granularity:
        return None
    # A request begins with what is read, then comes what is written, for the longer lifetime first, and last plain input.
    written = min(lost, usage.write)
    plain = lost - written
    served = replace(
        usage,
        read=usage.read + plain + written,
        uncached=usage.uncached - plain,
        write=usage.write - written,
        long_lifetime=max(0, usage.long_lifetime - written),
    )
    return CacheMiss(tokens=lost, cost=_price_difference(usage, served, pricing=pricing, at=at))


def _tokens_left_in_cache(call: ModelCall, profile: CacheProfile) -> int:
    """Return how many input tokens of a call were in the cache after it."""
    usage = _known_cache_usage(call)
    if usage is None:
        return 0
    # A cache without a price for writes keeps the whole request, and its provider reports no writes.
    return usage.read + usage.write if profile.bills_writes else usage.total


def _known_cache_usage(call: ModelCall) -> CacheUsage | None:
    """Return the reported usage of a call, or the predicted one if the provider does not say what was cached."""
    return call.predicted if call.usage.read is None else reported_cache_usage(call.usage)


def sum_cache_misses(misses: Iterable[CacheMiss | None]) -> CacheMiss | None:
    """Return what several misses cost together; None if there is none. The cost is None if one of them has no price."""
    found = [miss for miss in misses if miss is not None]
    costs = [miss.cost for miss in found if miss.cost is not None]
    if not found:
        return None
    return CacheMiss(
        tokens=sum([miss.tokens for miss in found]),
        cost=sum(costs, Decimal(0)) if len(costs) == len(found) else None,
    )


# Entries of turns and calls.

# A C-level getter: every turn of a long conversation checks thousands of messages.
_get_images = attrgetter("images")


class PriceFunction(Protocol):
    """Returns the price of this usage and output at a time; None if it is unknown."""

    def __call__(self, usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal | None: ...


def _return_no_price(usage: CacheUsage, at: datetime | None, *, output: int = 0) -> None:
    del usage, at, output


class PrefixChangeReport(Struct, frozen=True, kw_only=True, gc=False):
    """The change since the previous request, and how many tokens both share from the start, if counted.

    ``triggered`` is False if no recorded action explains the change. ``dropped_reasoning`` are the positions of
    replies that are sent without their signed reasoning, because something in front of them changed.
    """

    prefix_change: PrefixChange
    common_tokens: int | None
    triggered: bool = True
    dropped_reasoning: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        return self.prefix_change.cause.value

    @property
    def segment(self) -> str | None:
        return self.prefix_change.segment


class LedgerEntry(Struct, frozen=True, kw_only=True, gc=False):
    """The ledger's record of one turn.

    The prefix change is always set; cache usage and cost only if a ledger is kept.
    """

    prefix: PrefixChangeReport
    predicted_usage: CacheUsage | None = None
    cached_by_layer: Mapping[LayerId, int] = {}
    cost: TurnInputCost | None = None
    calls: tuple[ModelCall, ...] = ()

    @property
    def verdict(self) -> CacheVerdict | None:
        """The verdict on the first call, whose prefix is the one the turn changed; None before a reply."""
        return self.calls[0].verdict if self.calls else None


class Pricing(Struct, frozen=True, kw_only=True):
    """The rules by which a turn is billed: the provider's cache profile and its prices."""

    profile: CacheProfile
    price: PriceFunction = _return_no_price


class CacheLedger(Struct, frozen=True, kw_only=True, gc=False):
    """The ledger between two turns, with three simulated caches.

    ``simulated_cache`` is the provider's cache. ``naive_cache`` is the cache of an application that puts attachments
    into the last message of each request. ``perfect_cache`` serves every text ever sent.
    """

    last_request: CacheRequest | None = None
    last_prompt: Prompt | None = None
    simulated_cache: CacheSimulation = CacheSimulation()
    naive_cache: CacheSimulation = CacheSimulation()
    perfect_cache: PerfectCache = PerfectCache()


def with_comparison_caches_filled(ledger: CacheLedger) -> CacheLedger:
    """Return a ledger that continues after a stored request, with the two caches that turns are compared with.

    Opening a conversation does not fill these two, because most conversations are opened only to be read. They start
    from the last request, which contains nearly everything that earlier requests could still serve.
    """
    prompt, request = ledger.last_prompt, ledger.last_request
    if prompt is None or request is None or ledger.naive_cache.requests:
        return ledger
    whole = split_by_price_class(0, request.total, GENERIC_PROFILE)
    _, perfect = PerfectCache().simulate_request(
        request.messages, whole, profile=GENERIC_PROFILE, tokenizer=prompt.tokenizer
    )
    naive = _to_naive_request(prompt, request)
    return replace(ledger, naive_cache=CacheSimulation(requests=((naive, NO_COMMON_PREFIX),)), perfect_cache=perfect)


def add_predicted_turn(
    ledger: CacheLedger, envelope: Envelope, *, pricing: Pricing, at: datetime | None
) -> tuple[LedgerEntry, CacheLedger]:
    """Record a turn that is about to be sent; return its entry and the ledger after it."""
    ledger = with_comparison_caches_filled(ledger)
    prompt, profile, tokenizer = envelope.prompt, pricing.profile, envelope.prompt.tokenizer
    request = to_cache_request(prompt, at=at)
    usage, cache = ledger.simulated_cache.simulate_request(request, profile=profile, tokenizer=tokenizer)
    # If a turn is sent again, its plan describes the first time, when nothing of it was cached yet: do not use it.
    again = ledger.last_request is not None and ledger.last_request.messages == request.messages
    if profile.marks and prompt.layout_plan.priced and not prompt.rounds and not again:
        usage = predict_cache_usage(prompt, profile)
    naive_request = _to_naive_request(prompt, request)
    # A naive application repeats all but its last message, and can have a breakpoint after each of the others.
    every_prefix = replace(profile, marks=0) if profile.marks else profile
    naive_use, naive = ledger.naive_cache.simulate_request(naive_request, profile=every_prefix, tokenizer=tokenizer)
    ideal, perfect = ledger.perfect_cache.simulate_request(
        request.messages, usage, profile=profile, tokenizer=tokenizer
    )
    common = count_shared_prefix_tokens(ledger.last_request, request, tokenizer) if ledger.last_request else 0
    cooled = (
        find_cache_reset(ledger.last_request, request, profile) if ledger.last_request and profile.invalidates else None
    )
    entry = LedgerEntry(
        prefix=make_prefix_report(ledger.last_prompt, prompt, common_tokens=common, cache_reset=cooled and cooled[0]),
        predicted_usage=usage,
        cached_by_layer=cached_tokens_by_layer(envelope, usage.read, tokenizer),
        cost=_price_turn_input(pricing.price, at, usage=usage, naive=naive_use, ideal=ideal),
    )
    return entry, CacheLedger(
        last_request=request, last_prompt=prompt, simulated_cache=cache, naive_cache=naive, perfect_cache=perfect
    )


def predict_cache_usage(prompt: Prompt, profile: CacheProfile) -> CacheUsage:
    """Predict cache usage from the layout plan, for caches that keep only what a breakpoint marks.

    Tokens that the plan does not expect from the cache are written to it.
    """
    layout_plan, tokenizer = prompt.layout_plan, prompt.tokenizer
    tools = count_tools_tokens(prompt.tools, tokenizer.count) if prompt.tools else 0
    read, long = (
        0 if last is None else count_messages_tokens(prompt.messages[: last + 1], tokenizer) + tools
        for last in (layout_plan.cached_message, layout_plan.long_lifetime_until)
    )
    usage = split_by_price_class(read, prompt.total, profile)
    return replace(usage, long_lifetime=min(long - usage.read, usage.write)) if long > usage.read else usage


def make_prefix_report(
    before: Prompt | None, now: Prompt, *, common_tokens: int | None = None, cache_reset: str | None = None
) -> PrefixChangeReport:
    """Describe what changed since the previous request.

    ``cache_reset`` names a change without changed bytes that invalidates the cache; it is used only if no byte changed.
    """
    movement = detect_prefix_change(before, now)
    if cache_reset is not None and movement.cause is PrefixChangeCause.NONE:
        movement = PrefixChange(cause=PrefixChangeCause.NONE, segment=cache_reset)
    triggered = is_change_explained(before, now, movement)
    dropped = tuple([message_position(position) for position in now.checked_messages.reasoning_dropped_at])
    return PrefixChangeReport(
        prefix_change=movement, common_tokens=common_tokens, triggered=triggered, dropped_reasoning=dropped
    )


def to_cache_request(prompt: Prompt, *, at: datetime | None) -> CacheRequest:
    """Return the properties of a request that a cache depends on."""
    stable = count_stable_messages(prompt)
    return CacheRequest(
        model=prompt.model,
        tools=prompt.tools,
        messages=prompt.messages,
        total=prompt.total,
        at=at,
        effort=prompt.turn_settings.reasoning_effort.value,
        has_images=any(map(_get_images, prompt.messages)),
        breakpoints=find_breakpoint_candidates(
            prompt.messages,
            prompt.tools,
            stable_messages=None if prompt.rounds else stable,
            requested=prompt.breakpoints,
            by_provider=prompt.turn_settings.cache_marks is BreakpointMode.AUTOMATIC,
        ),
    )


def find_breakpoint_candidates(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    *,
    stable_messages: int | None,
    requested: Sequence[int] = (),
    by_provider: bool = False,
) -> BreakpointCandidates:
    """Return where breakpoints are worth most in a request, by the same order as the wire formats place them.

    ``stable_messages`` is how many messages the next request starts with; None means all. With ``by_provider`` the
    provider places one breakpoint after the last message, and Lamella only those in ``requested``.
    """
    pieces = messages[0].pieces if messages and messages[0].role is Role.SYSTEM else ()
    asked = tuple([(at + 1, 0) if at or not pieces else (0, len(pieces)) for at in requested])
    if by_provider:
        return BreakpointCandidates(requested=(*asked, (len(messages), 0)))
    tail, previous = find_stable_end_positions(messages, stable_messages)
    fixed = next((at for at, piece in enumerate(pieces) if piece.endswith(LIBRARY_HEADING)), None)
    # The end of the system message is that of its last piece: a library that grows begins with the same pieces.
    ends = (len(pieces) or None, None if fixed is None else fixed + 1, 0 if tools else None)
    return BreakpointCandidates(
        requested=asked,
        tail=None if tail is None else (tail + 1, 0),
        previous_tail=None if previous is None else (previous + 1, 0),
        sections=tuple([(0, end) for end in ends if end is not None]),
    )


def make_answer_call(
    entry: LedgerEntry,
    prompt: Prompt,
    reply: ModelReply,
    *,
    pricing: Pricing,
    by_layer: Mapping[str, int],
    timing: CallTiming,
    predicted_usage: CacheUsage | None,
    pause: float | None,
    at: datetime | None,
    retries: int = 0,
    stop_reason: str = "",
    request: RequestHash | None = None,
) -> ModelCall:
    """Build the ledger's record of an answered call.

    ``predicted_usage`` is the prediction of a provider that knows the state of its own cache; it replaces the ledger's.
    """
    predicted = predicted_usage or entry.predicted_usage
    usage = reported_cache_usage(reply.usage)
    return ModelCall(
        model=prompt.model,
        verdict=judge_answer_call(
            entry.prefix.prefix_change,
            reply.usage,
            predicted=predicted,
            profile=pricing.profile,
            pause=pause,
            triggered=entry.prefix.triggered,
        ),
        predicted=predicted,
        usage=reply.usage,
        by_layer=dict(by_layer),
        cost=entry.cost,
        billed=None if usage is None else pricing.price(usage, at, output=reply.usage.output or 0),
        timing=timing,
        stop=stop_reason or reply.stop.value,
        id=reply.id,
        diagnosis=reply.diagnosis,
        retries=retries,
        request=request,
    )


def make_auxiliary_call(
    purpose: str,
    request: CacheRequest,
    reply: ModelReply,
    *,
    pricing: Pricing,
    predicted: CacheUsage | None,
    timing: CallTiming,
    retries: int = 0,
    stop_reason: str = "",
) -> ModelCall:
    """Build the ledger's record of an auxiliary call."""
    usage = reported_cache_usage(reply.usage)
    return ModelCall(
        model=request.model,
        verdict=judge_auxiliary_call(reply.usage, predicted=predicted, profile=pricing.profile),
        predicted=predicted,
        usage=reply.usage,
        billed=None if usage is None else pricing.price(usage, request.at, output=reply.usage.output or 0),
        timing=timing,
        stop=stop_reason or reply.stop.value,
        id=reply.id,
        diagnosis=reply.diagnosis,
        retries=retries,
        purpose=purpose,
    )


def build_naive_messages(prompt: Prompt) -> tuple[Message, ...]:
    """Return the naive request: every attachment in force is repeated in full in the last message.

    Earlier turns appear as typed, with their tool rounds as long as those are sent; so do the rounds of this turn.
    """
    after = [message.message for message in prompt.rounds]
    count, layer = prompt.tokenizer.count, prompt.system_layer
    head = Message(role=Role.SYSTEM, pieces=layer.pieces, tokens=layer.tokens)
    messages = [head] if layer.pieces else []
    for turn in prompt.history.turns:
        if turn.rounds:
            messages += [turn.question.message, *(message.message for message in turn.rounds)]
            messages.append(turn.reply_message or turn.reply.message)
        else:
            messages += (turn.question.message, turn.reply_message or turn.reply.message)
    attached = prompt.attachments_in_force
    if not attached:
        return (*messages, prompt.question.message, *after)
    pictures = [artifact for artifact in attached if artifact.kind is ArtifactKind.IMAGE]
    sizes = _count_full_block_tokens([one for one in attached if one.kind is not ArtifactKind.IMAGE], prompt)
    placeholders = _unsent_image_placeholders(pictures, prompt.tokenizer) if pictures else {}
    blocks = [*sizes, *placeholders.values()]
    images = [image for picture in pictures if picture.id not in placeholders for image in picture.images]
    if (
        not prompt.layout_plan.keep_messages
        and tuple(blocks) == prompt.rendered_attachments[1]
        and tuple(images) == prompt.rendered_attachments[3]
    ):
        return (*messages, prompt.question_message, *after)

    def count_block(text: str) -> int:
        tokens = sizes.get(text)
        return count(text) if tokens is None else tokens

    return (
        *messages,
        render_user_message(blocks, prompt.question.message.pieces, images, count=count_block),
        *after,
    )


def _to_naive_request(prompt: Prompt, request: CacheRequest) -> CacheRequest:
    messages = build_naive_messages(prompt)
    total = count_request_tokens(messages, prompt.tools, prompt.tokenizer)
    return replace(request, messages=messages, total=total, has_images=any(map(_get_images, messages)))


def _unsent_image_placeholders(pictures: Sequence[Artifact], tokenizer: Tokenizer) -> Mapping[str, str]:
    """Return, by id, the text that replaces each image that the model does not support or accept."""
    if not tokenizer.supports_images:
        return {picture.id: render_image_as_text(picture) for picture in pictures}
    refused = image_rejection_reasons(pictures, placed={}, tokenizer=tokenizer)
    return {one.id: render_rejected_image(one, refused[one.id]) for one in pictures if one.id in refused}


def _count_full_block_tokens(attached: Sequence[Artifact], prompt: Prompt) -> Mapping[str, int]:
    """Return the full blocks of attachments with their tokens.

    Strings and counts of the request are used again where possible, so that the comparison neither keeps a second copy
    in memory nor counts it again.
    """
    rendered: dict[str, list[Segment]] = {}
    for segment in prompt.rendered_attachments[0]:
        rendered.setdefault(segment.id, []).append(segment)
    sizes: dict[str, int] = {}
    for artifact in attached:
        known = prompt.placed.get(artifact.id) if artifact.id in prompt.library else None
        segments = [*rendered.get(artifact.id, ()), *(() if known is None else (known.segment,))]
        same = (one for one in segments if one.form is ArtifactForm.FULL and one.content == artifact.hash and one.text)
        shown = next(same, None)
        text = render_block(artifact) if shown is None else shown.text
        sizes[text] = prompt.tokenizer.count(text) if shown is None else shown.tokens
    return sizes


def cached_tokens_by_layer(envelope: Envelope, read: int, tokenizer: Tokenizer) -> Mapping[LayerId, int]:
    """Return the cached tokens of each layer; message overhead belongs to no layer.

    Most of a long request is cached, so the result is computed as everything less the uncached last messages.
    """
    tools = envelope.prompt.tools
    left = read - (count_tools_tokens(tools, tokenizer.count) if tools else 0)
    if left <= 0:
        return dict.fromkeys(LayerId, 0)
    covered = {
        layer.id: sum([segment.tokens for segment in shown_segments(layer.segments) if segment.place is not None])
        for layer in envelope.layers
    }
    messages = envelope.messages
    bare = count_messages_tokens(messages, tokenizer) - left
    uncovered: dict[str | None, int] = {}
    for index in range(len(messages) - 1, -1, -1):
        if bare <= 0:
            break
        weight = count_messages_tokens(messages[index : index + 1], tokenizer)
        position = SYSTEM_POSITION if messages[index].role is Role.SYSTEM else message_position(index)
        uncovered[position] = max(0, weight - bare)
        bare -= weight
    # Within a message attachments come before the typed text. That is also the order of the layers.
    for layer in envelope.layers:
        for segment in shown_segments(layer.segments):
            if segment.place in uncovered:
                served = min(uncovered[segment.place], segment.tokens)
                covered[layer.id] += served - segment.tokens
                uncovered[segment.place] -= served
    return covered


def _price_turn_input(
    price: PriceFunction, at: datetime | None, *, usage: CacheUsage, naive: CacheUsage, ideal: CacheUsage
) -> TurnInputCost | None:
    """Return the cost of a turn as sent, for the naive request and for a perfect cache; None if unknown."""
    amounts = [price(one, at) for one in (usage, naive, ideal)]
    if any(amount is None for amount in amounts):
        return None
    amount, naive_amount, limit = (amount or Decimal(0) for amount in amounts)
    return TurnInputCost(amount=amount, naive=naive_amount, limit=limit)


# Cost estimates of compactions.


class CompactionCostEstimate(Struct, frozen=True, kw_only=True):
    """A cost estimate; amounts are None if prices are unknown.

    Attributes:
        changed_tokens: Cached tokens that would be sent again.
        cost_now: How much more the next request costs than without the compaction.
        saved_per_turn: How much less each later request costs once it is cached.
    """

    changed_tokens: int
    cost_now: Decimal | None
    saved_per_turn: Decimal | None


def estimate_compaction_cost(
    sent: CacheRequest | None,
    *,
    as_is: CacheRequest,
    compacted: CacheRequest,
    pricing: Pricing,
    tokenizer: Tokenizer,
    at: datetime | None,
) -> CompactionCostEstimate:
    """Compare the next request as it is with the compacted one, given the request ``sent`` last.

    The cost now is that of what the cache serves of both: it may have expired, and some caches end at breakpoints.
    """
    cached_tokens = count_shared_prefix_tokens(sent, as_is, tokenizer, profile=pricing.profile) if sent else 0
    left = count_shared_prefix_tokens(sent, compacted, tokenizer, profile=pricing.profile) if sent else 0
    cache = CacheSimulation(requests=() if sent is None else ((sent, NO_COMMON_PREFIX),))
    now = _price_difference(
        cache.simulate_request(compacted, profile=pricing.profile, tokenizer=tokenizer)[0],
        cache.simulate_request(as_is, profile=pricing.profile, tokenizer=tokenizer)[0],
        pricing=pricing,
        at=at,
    )
    later = _price_difference(
        split_by_price_class(as_is.total, as_is.total, pricing.profile),
        split_by_price_class(compacted.total, compacted.total, pricing.profile),
        pricing=pricing,
        at=at,
    )
    return CompactionCostEstimate(changed_tokens=max(0, cached_tokens - left), cost_now=now, saved_per_turn=later)


def _price_difference(one: CacheUsage, other: CacheUsage, *, pricing: Pricing, at: datetime | None) -> Decimal | None:
    more, less = pricing.price(one, at), pricing.price(other, at)
    return None if more is None or less is None else more - less
