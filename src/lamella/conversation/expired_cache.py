"""Expired caches: what the next message costs, when a keep-alive is due, and profiles that turn out wrong.

``estimate_expired_cache`` estimates the cost of the next message after the cache expired, and ``plan_keep_alive`` the
next keep-alive. Nothing is estimated for models whose cache lifetime is unknown. ``profile_mismatches`` compares the
ledger of a conversation with the cache profiles of its models, and ``measure_cache_misses`` says what misses cost.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from lamella.conversation.cache_ledger import UsageTracker
from lamella.conversation.turn import BuiltTurn, TurnRequest
from lamella.core.budget import count_messages_tokens
from lamella.core.layout.layouts import is_keep_alive_worth_it, keep_alive_interval, return_probability_in_next_lifetime
from lamella.core.ledger.cache_profile import (
    CacheObservation,
    CacheProfile,
    CacheRequest,
    ProfileContradiction,
    find_profile_contradictions,
    split_by_price_class,
)
from lamella.core.ledger.entry import CacheMiss, Pricing, measure_cache_miss, sum_cache_misses
from lamella.core.log.branch import parse_message_time
from lamella.core.log.call import ANSWER_PURPOSE, MAX_KEEP_ALIVES, ModelCall, PrefixChangeCause
from lamella.core.log.turn_records import TurnRecord
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation

# The last part of a cache lifetime in which users are warned: one minute of five.
_SOON_LIFETIME_SHARE = 0.2
_JUST_AFTER = timedelta(microseconds=1)


class CacheExpiry(Struct, frozen=True, kw_only=True):
    """A cache that has expired or is about to, and what the next message then costs without its own text.

    Attributes:
        tokens: Tokens of the request as it would be without the pause; ``cost`` is its cost.
        folded_tokens: Tokens after all unused text was removed; ``folded_cost`` is its cost.
        will_fold: Whether Lamella will fold the next request by itself.
        keep_alive: A keep-alive that can still be sent; None if it is not possible or does not pay.

    Costs are None if prices are unknown.
    """

    expired: bool
    expires_at: datetime
    tokens: int
    cost: Decimal | None
    folded_tokens: int
    folded_cost: Decimal | None
    will_fold: bool
    keep_alive: "KeepAlivePlan | None" = None


class KeepAlivePlan(Struct, frozen=True, kw_only=True):
    """Sending the last request again only to keep it in the cache: when it is due and what it costs.

    ``return_probability`` is the probability that the user asks something before the cache expires anyway.
    """

    due_at: datetime
    tokens: int
    cost: Decimal | None
    return_probability: float


def plan_keep_alive(
    usage_tracker: UsageTracker, state: PromptState, *, at: datetime | None, awaits_tool_outputs: bool = False
) -> KeepAlivePlan | None:
    """Plan the next keep-alive, between two turns or while the last request's tool calls await their outputs.

    Tools may take long, and some wait for a person. Returns None if a model is answering, if the cache has expired, if a
    keep-alive does not pay, or if the time of the last request is unknown.
    """
    sent, idle_since, last = usage_tracker.last_request, usage_tracker.idle_since, state.last_prompt
    if at is None or sent is None or sent.at is None or idle_since is None or last is None:
        return None
    if state.waits_for_reply and not awaits_tool_outputs:
        return None
    pricing = usage_tracker.get_pricing(sent.model)
    due = keep_alive_interval(pricing.profile)
    if due is None or sent.model != state.model or len(usage_tracker.keep_alive_times) >= MAX_KEEP_ALIVES:
        return None
    due_at = sent.at + timedelta(seconds=due)
    chance = return_probability_in_next_lifetime(
        state.cache_history, (due_at - idle_since).total_seconds(), pricing.profile
    )
    lasting = last.layout_plan.long_lifetime_until
    lasts = 0 if lasting is None else count_messages_tokens(last.messages[: lasting + 1], last.tokenizer)
    lapsed = (at - sent.at).total_seconds() > (pricing.profile.lifetime or 0)
    if lapsed or not is_keep_alive_worth_it(
        chance, pricing.profile, cached_tokens=sent.total - lasts, total=sent.total
    ):
        return None
    cost = pricing.price(split_by_price_class(sent.total, sent.total, pricing.profile), at)
    return KeepAlivePlan(due_at=due_at, tokens=sent.total, cost=cost, return_probability=chance)


def estimate_expired_cache(
    chat: "Conversation", *, at: datetime | None, keep_alive_plan: KeepAlivePlan | None = None
) -> CacheExpiry | None:
    """Estimate the cost of the next message after the cache expired.

    Returns None if the cache is not about to expire, if its lifetime is unknown, or if nothing was cached: no request
    was sent, its time is unknown, or it was too short. ``keep_alive_plan`` is returned as part of the result.
    """
    sent = chat.usage_tracker.last_request
    if at is None or sent is None or sent.at is None:
        return None
    pricing = chat.usage_tracker.get_pricing(sent.model)
    profile = pricing.profile
    if profile.lifetime is None or profile.read >= profile.write or sent.total < profile.minimum:
        return None
    lapses_at = sent.at + timedelta(seconds=profile.lifetime)
    if at < lapses_at - timedelta(seconds=_SOON_LIFETIME_SHARE * profile.lifetime):
        return None
    cold = _forecast_turn_after_expiry(chat, sent, pricing, expires_at=lapses_at, at=at)
    return cold if cold is None or keep_alive_plan is None else replace(cold, keep_alive=keep_alive_plan)


def _forecast_turn_after_expiry(
    chat: "Conversation", sent: CacheRequest, pricing: Pricing, *, expires_at: datetime, at: datetime
) -> CacheExpiry | None:
    moment = max(at, expires_at + _JUST_AFTER)
    # Without a time no cache expires, so this is the request as it would be without a pause.
    as_is = chat.preview(TurnRequest(text=""))
    if as_is.envelope.model != sent.model:
        # Another model has none of the request in its cache, however short the pause is.
        return None
    planned = chat.preview(TurnRequest(text=""), at=moment) if as_is.envelope.prompt.layout_plan.priced else as_is
    folds = planned is not as_is and planned.envelope.prompt.layout_plan.keep_messages is not None
    folded = planned if folds else chat.preview(TurnRequest(text="", fold=True), at=moment)
    pause = (moment - sent.at).total_seconds() if sent.at else 0.0
    cached_tokens = _count_still_cached_tokens(as_is, pricing.profile, pause=pause)
    return CacheExpiry(
        expired=at > expires_at,
        expires_at=expires_at,
        tokens=as_is.tokens.total,
        cost=pricing.price(split_by_price_class(cached_tokens, as_is.tokens.total, pricing.profile), at),
        folded_tokens=folded.tokens.total,
        folded_cost=pricing.price(folded.cache or split_by_price_class(0, folded.tokens.total, pricing.profile), at),
        will_fold=folds,
    )


def _count_still_cached_tokens(turn: BuiltTurn, profile: CacheProfile, *, pause: float) -> int:
    """Count the tokens of a request that a cache entry with a longer lifetime still has after the pause."""
    lasting = turn.envelope.prompt.layout_plan.long_lifetime_until
    if lasting is None or profile.longer is None or pause > profile.longer[0]:
        return 0
    return count_messages_tokens(turn.messages[: lasting + 1], turn.envelope.prompt.tokenizer)


# Cache profiles that contradict the ledger.


class ProfileMismatch(Struct, frozen=True, kw_only=True):
    """Observed cache behaviour of a model that contradicts its profile; ``as_of`` is the day of the last one."""

    model: str
    as_of: str
    contradictions: tuple[ProfileContradiction, ...]

    @property
    def corrected_facts(self) -> dict[str, int | bool]:
        """The corrected values, by their names in a model facts file."""
        return {name: value for one in self.contradictions for name, value in one.facts}


def profile_mismatches(
    records: Sequence[TurnRecord], ledger: Sequence[Sequence[ModelCall]], profile: Callable[[str], CacheProfile]
) -> list[ProfileMismatch]:
    """Return each model of a branch whose reported cache usage contradicts its profile."""
    seen: dict[str, list[CacheObservation]] = {}
    last: dict[str, int] = {}
    for at, calls in enumerate(ledger):
        asked = [call for call in calls if call.purpose == ANSWER_PURPOSE]
        before = [call for call in ledger[at - 1] if call.purpose == ANSWER_PURPOSE] if at else []
        observed = _observe_cache(records, at, calls=asked, previous_calls=before) if asked and before else None
        if observed is not None and asked[0].model is not None:
            seen.setdefault(asked[0].model, []).append(observed)
            last[asked[0].model] = at
    found = {model: find_profile_contradictions(some, profile(model)) for model, some in seen.items()}
    return [
        ProfileMismatch(model=model, as_of=records[last[model]].message.at[:10], contradictions=tuple(some))
        for model, some in found.items()
        if some
    ]


def _observe_cache(
    records: Sequence[TurnRecord], index: int, *, calls: Sequence[ModelCall], previous_calls: Sequence[ModelCall]
) -> CacheObservation | None:
    """Return the observation for a turn's first request, or None.

    The request must extend the one before it, go to the same model, and have reported usage, like the one before.
    """
    call, earlier = calls[0], previous_calls[-1]
    moved = (
        call.verdict.prefix_change.cause is not PrefixChangeCause.NONE or call.verdict.prefix_change.segment is not None
    )
    if moved or call.model != earlier.model or call.usage.read is None:
        return None
    if call.usage.prompt_tokens is None or earlier.usage.prompt_tokens is None:
        return None
    now, then = parse_message_time(records[index].message), parse_message_time(records[index - 1].message)
    # Only the time of a question is known. If its turn had more requests, the last one was sent later.
    exact = now is not None and then is not None and len(previous_calls) == 1
    return CacheObservation(
        turn=index + 1,
        prompt_tokens=call.usage.prompt_tokens,
        cached_tokens=call.usage.read,
        previous_prompt_tokens=earlier.usage.prompt_tokens,
        pause=(now - then).total_seconds() if exact and now and then else None,
    )


def measure_cache_misses(
    records: Sequence[TurnRecord], ledger: Sequence[Sequence[ModelCall]], get_pricing: Callable[[str | None], Pricing]
) -> list[CacheMiss | None]:
    """Return what the cache misses of each turn of a branch cost together; None for a turn without one."""
    misses: list[CacheMiss | None] = []
    previous: ModelCall | None = None
    for record, calls in zip(records, ledger, strict=True):
        at, found = parse_message_time(record.message), []
        for call in calls:
            if call.purpose != ANSWER_PURPOSE:
                continue
            if previous is not None:
                found.append(measure_cache_miss(call, previous, pricing=get_pricing(call.model), at=at))
            previous = call
        misses.append(sum_cache_misses(found))
    return misses
